"""Which leg decides the order of a search: the words or the vectors, by what was found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.drivers.commands import Commands

STORY = " ".join(f"word{number} of the long story" for number in range(60))
TABLE = "\n".join(f"  (x_{number} = {number}, y_{number});" for number in range(60))


@pytest.fixture
def cli(data: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """With a model whose vectors are near where texts of one length share words, rare or not."""
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")
    return Commands(data)


def first(cli: Commands, folder: Path, texts: Mapping[str, str], query: str) -> str:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    cli.ok("import", str(folder))
    hit: str = cli.json("search", query)["results"][0]["document_id"]
    return hit


def test_a_word_that_singles_out_a_document_outweighs_the_vectors(
    cli: Commands, tmp_path: Path
) -> None:
    letters = {
        f"{number}.txt": f"The harbour office wrote letter number {number} about tides."
        for number in range(25)
    }
    texts = {**letters, "rare.txt": "Cloves of zanzibar, by the ledger of the sultan."}
    query = "harbour office letter tides zanzibar ledger"
    assert first(cli, tmp_path / "files", texts, query) == "rare.txt"


def test_among_code_the_vectors_outweigh_such_a_word(cli: Commands, tmp_path: Path) -> None:
    functions = {
        f"{number}.txt": f"def f{number}(a, b):\n    return open_port(a[{number}], b) == (a, b)\n"
        for number in range(25)
    }
    texts = {
        **functions,
        "rare.txt": f"def zanzibar():\n    return [\n{TABLE}]",
        "near.txt": "def open_port(a, b): return",
    }
    assert first(cli, tmp_path / "files", texts, "open port return zanzibar") == "near.txt"
