"""The tests of a part are in the folder of the same name."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "zibaldone"

OF_THEIR_OWN = {
    "acceptance",  # the requirements and their tests
    "clients",  # other people's MCP clients, and the conformance suite
    "drivers",  # what tests share
    "golden",  # recorded answers
    "hostile",  # attacks, across all parts
    "nightly",  # the same for hours
    "repo",  # the repository itself
    "several",  # servers that share a database
}


def folders(root: Path) -> set[str]:
    """Relative paths of the folders that contain files, other than Python's caches."""
    files = [file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {file.parent.relative_to(root).as_posix() for file in files} - {"."}


def test_tests_mirror_the_package() -> None:
    parts = folders(PACKAGE)
    ours = {folder for folder in folders(TESTS) if folder.split("/")[0] not in OF_THEIR_OWN}
    assert ours - parts == {"store/contract"}


def test_tests_in_no_folder_are_of_modules_in_no_folder() -> None:
    modules = {file.stem for file in PACKAGE.glob("*.py")}
    assert {file.stem.removeprefix("test_") for file in TESTS.glob("test_*.py")} <= modules
