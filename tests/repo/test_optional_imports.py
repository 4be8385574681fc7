"""Required libraries are imported as usual, optional ones through `extras.require`."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "zibaldone"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

IMPORT_BY_NAME = {"extras.py", "cli/lazy.py", "embed/package.py", "model/vector.py"}
"""Modules that may call importlib: for extras, our own commands, libraries of models, and numpy."""


PACKAGES_OF_EXTRAS = {"store/postgres/": "postgres"}
"""Folders that need an extra altogether, and are imported after `extras.require` asked for it."""


def distributions(requirements: list[str]) -> set[str]:
    return {_normal(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions_of(module: str) -> set[str]:
    """The installed distributions that provide a module; empty if none does."""
    provided = importlib.metadata.packages_distributions()
    return {_normal(name) for name in provided.get(module.split(".", maxsplit=1)[0], ())}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def imported_here(statement: ast.stmt) -> Iterator[str]:
    """What one statement of a module imports, unless it is put off into a function."""
    if not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield from imported(statement)


def imported_by_name(tree: ast.AST) -> Iterator[str]:
    """Arguments of import_module and the like, but for modules of Python itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("import_module", "__import__")
        ):
            name = ast.unparse(node.args[0])
            if name.strip("'").split(".")[0] not in sys.stdlib_module_names:
                yield name


def required_from_extras(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "extras.require":
            extra, module = (ast.literal_eval(argument) for argument in node.args)
            yield extra, module


def faults_of(file: str, code: str) -> list[str]:
    optional = PROJECT["optional-dependencies"]
    required = distributions(PROJECT["dependencies"]).union(
        *(
            distributions(optional[extra])
            for folder, extra in PACKAGES_OF_EXTRAS.items()
            if file.startswith(folder)
        )
    )
    tree = ast.parse(code)
    faults = [
        f"{name} is no required library"
        for name in imported(tree)
        if (top := name.split(".")[0]) not in sys.stdlib_module_names
        and top != "zibaldone"
        and not distributions_of(top) & required
    ]
    if file not in IMPORT_BY_NAME:
        faults += [f"imports {name} by name" for name in imported_by_name(tree)]
    if re.search(r"from zibaldone.extras import .*\brequire\b", code):
        faults.append("write extras.require, so that this test sees it")
    for extra, module in required_from_extras(tree):
        found = distributions_of(module)
        if extra not in optional:
            faults.append(f"there is no extra {extra}")
        elif found and not found & distributions(optional[extra]):
            faults.append(f"{module} is not part of {extra}")
    return faults


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_optional_libraries_come_through_extras(file: Path) -> None:
    assert faults_of(file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("folder", PACKAGES_OF_EXTRAS)
def test_packages_of_extras_are_imported_where_the_extra_was_asked_for(folder: str) -> None:
    package = f"zibaldone.{folder.strip('/').replace('/', '.')}"
    for file in modules():
        name = file.relative_to(PACKAGE).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"))
        top_level = {module for statement in tree.body for module in imported_here(statement)}
        if not name.startswith(folder):
            assert not [module for module in top_level if module.startswith(package)], name


def test_what_is_refused() -> None:
    assert faults_of("store/postgres/a.py", "import psycopg") == []
    assert faults_of("store/a.py", "import psycopg") == ["psycopg is no required library"]
    assert faults_of("a.py", "def f():\n    import httpx2") == ["httpx2 is no required library"]
    assert faults_of("a.py", "importlib.import_module('a.b')") == ["imports 'a.b' by name"]
    assert faults_of("a.py", "import_module(name)") == ["imports name by name"]
    assert faults_of("a.py", "import_module('resource')") == []
    assert faults_of("a.py", "extras.require('none', 'httpx2')") == ["there is no extra none"]
    assert faults_of("a.py", "extras.require('pull', 'httpx2')") == ["httpx2 is not part of pull"]
    assert faults_of("a.py", "extras.require('remote', 'httpx2')\nimport click, json") == []
