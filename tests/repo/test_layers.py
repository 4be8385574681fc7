"""The import table: a module may import its own folder and anything lower, never higher."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "zibaldone"

LAYERS: dict[str, int] = {
    "cli": 7,
    "wiring": 7,
    "__main__": 7,
    "web": 6,
    "stdio": 6,
    "console": 6,
    "canary": 6,
    "protocol": 5,
    "tools": 4,
    "keep": 3,
    "index": 3,
    "find": 3,
    "pull": 3,
    "pack": 3,
    "consult": 3,
    "memory": 3,
    "jobs": 3,
    "exchange": 3,
    "ingest": 3,
    "store": 2,
    "embed": 2,
    "text": 1,
    "access": 1,
    "model": 0,
    "errors": 0,
    "limits": 0,
    "extras": 0,
    "folders": 0,
}
"""The height of each part; parts of one height do not import each other unless SIDEWAYS says so."""

JOB_ADDERS = ("keep", "index", "find", "pull", "pack", "consult", "memory", "exchange", "ingest")
SIDEWAYS: set[tuple[str, str]] = {
    ("cli", "wiring"),
    ("__main__", "cli"),
    ("consult", "pack"),
    ("pack", "find"),
    ("memory", "keep"),
    ("memory", "find"),
    *((part, "jobs") for part in JOB_ADDERS),
    ("text", "access"),
    ("model", "limits"),
    ("model", "errors"),
    ("limits", "errors"),
    ("extras", "errors"),
}
ASIDE: dict[str, set[str]] = {
    "settings": {"errors", "limits"},
    "push": {"model", "errors", "limits", "extras", "text"},
}
SETTINGS_READERS = {"cli", "wiring"}
PORTS = ("store.port", "store.upkeep", "store.tables", "embed.port")
PORTS_ONLY = {*JOB_ADDERS, "jobs"}


def imports_of(file: Path) -> list[tuple[str, ast.stmt]]:
    found: list[tuple[str, ast.stmt]] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "zibaldone":
                found += [(f"zibaldone.{alias.name}", node) for alias in node.names]
            else:
                found.append((node.module, node))
    return [(name, node) for name, node in found if name.split(".")[0] == "zibaldone"]


def part_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def faults_of(part: str, imported: str) -> str | None:
    """Why a module of `part` may not import `imported` (a dotted name), or None."""
    target = part_of(imported)
    if target in ("", "__version__", part):
        return None
    if part in ASIDE:
        return None if target in ASIDE[part] else f"{part} stands aside"
    if target == "settings":
        return None if part in SETTINGS_READERS else "settings are read in wiring and cli only"
    if target == "push":
        return None if part == "cli" else "push is a client of its own"
    if LAYERS[target] > LAYERS[part]:
        return f"{target} is above {part}"
    if LAYERS[target] == LAYERS[part] and (part, target) not in SIDEWAYS:
        return f"{target} is beside {part}"
    module = ".".join(imported.split(".")[1:3])
    if part in PORTS_ONLY and target in ("store", "embed") and module not in PORTS:
        return f"{part} sees only the ports of {target}"
    return None


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_go_down(file: Path) -> None:
    relative = file.relative_to(PACKAGE)
    part = relative.parts[0].removesuffix(".py")
    if part == "__init__":
        assert imports_of(file) == []
        return
    faults = [f"{name}: {why}" for name, _ in imports_of(file) if (why := faults_of(part, name))]
    assert faults == []


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_first_party_import_hides_in_a_function(file: Path) -> None:
    """Except optional backends, imported where they are chosen, and what a command needs to run:
    the command line starts quickly because `--help` imports none of it."""
    relative = file.relative_to(PACKAGE)
    if relative.as_posix() in ("store/open.py", "embed/open.py") or relative.parts[0] == "cli":
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    top = {id(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if id(node) in top and isinstance(node, ast.ImportFrom):
                    assert not (node.module or "").startswith("zibaldone"), node.module


def test_every_part_has_a_height() -> None:
    parts = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in modules()}
    assert parts - {"__init__"} <= LAYERS.keys() | ASIDE.keys()


def test_the_table_refuses_what_it_should() -> None:
    assert faults_of("keep", "zibaldone.web.http") == "web is above keep"
    assert faults_of("keep", "zibaldone.find.parse") == "find is beside keep"
    assert faults_of("keep", "zibaldone.store.sqlite.store") == "keep sees only the ports of store"
    assert faults_of("tools", "zibaldone.settings") is not None
    assert faults_of("tools", "zibaldone.keep.patch") is None


DRAWERS = {"utils", "helpers", "common", "shared", "base", "manager", "misc"}


def test_no_drawers() -> None:
    assert not [file for file in modules() if file.stem in DRAWERS or file.parent.name in DRAWERS]
