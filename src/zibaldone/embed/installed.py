"""Models that `zibaldone model install` keeps in a folder of their own.

`<models>/<kind>/packages` has the packages of a model that the environment lacks: its files, and
the libraries it runs on. It is added to the end of `sys.path` when the model is chosen, so that
whatever the environment has wins.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from zibaldone.folders import make_private

PACKAGES = "packages"
_MANIFEST = "model.json"
_PARTIAL = ".partial-"
_PARTIAL_SECONDS_MAX = 86_400.0


@dataclass(frozen=True, slots=True)
class InstalledModel:
    kind: str
    folder: Path
    python: str
    """What its libraries were built for."""
    size_bytes: int

    @property
    def is_usable(self) -> bool:
        return self.python == python_tag()


def python_tag() -> str:
    """Libraries of another version of Python, or of another platform, cannot be loaded."""
    return f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"


def installed_model(kind: str, models: Path) -> InstalledModel | None:
    try:
        manifest = json.loads((models / kind / _MANIFEST).read_bytes())
        return InstalledModel(
            kind, models / kind, str(manifest["python"]), int(manifest["size_bytes"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def use_installed(kind: str, models: Path) -> bool:
    """Make an installed model importable in this process; False if there is none to use."""
    model = installed_model(kind, models)
    if model is None or not model.is_usable:
        return False
    packages = str(model.folder / PACKAGES)
    if packages not in sys.path:
        sys.path.append(packages)
        importlib.invalidate_caches()
    return True


def remove_installed(kind: str, models: Path) -> bool:
    """Whether there was one."""
    folder = models / kind
    if not folder.exists():
        return False
    with _partial(kind, models) as away:
        folder.rename(away / kind)
    return True


@contextmanager
def installing(kind: str, models: Path) -> Iterator[Path]:
    """An empty folder; when the block ends well, it becomes the model, in one step.

    If the process is killed, it stays beside the models under another name, and the next one that
    installs something removes it.
    """
    make_private(models)
    _remove_abandoned(models)
    with _partial(kind, models) as partial:
        made = partial / "new"
        made.mkdir()
        yield made
        if (models / kind).exists():
            (models / kind).rename(partial / "old")
        made.rename(models / kind)


def describe(folder: Path, kind: str, more: Mapping[str, str]) -> None:
    """Write what `installed_model` reads."""
    size_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    manifest = {"kind": kind, "python": python_tag(), "size_bytes": size_bytes, **more}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


@contextmanager
def _partial(kind: str, models: Path) -> Iterator[Path]:
    prefix = f"{_PARTIAL}{os.getpid()}-{kind}-"
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=models))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(models: Path) -> None:
    for folder in models.glob(f"{_PARTIAL}*"):
        pid = folder.name.removeprefix(_PARTIAL).partition("-")[0]
        with suppress(OSError):
            age_seconds = time.time() - folder.stat().st_mtime
            if age_seconds > _PARTIAL_SECONDS_MAX or not _is_running(pid):
                shutil.rmtree(folder, ignore_errors=True)


def _is_running(pid: str) -> bool:
    if os.name != "posix" or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
