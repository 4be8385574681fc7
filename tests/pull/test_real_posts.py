"""Real posts, where they are at hand: the public StackExchange dumps as an SQLite file.

TESTS_POSTS names the file.
"""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.pull.databases import SqliteFile
from tests.pull.pulling import Pulling, counts
from zibaldone.limits import Limits
from zibaldone.pull.propose import proposal
from zibaldone.pull.reflect import tables
from zibaldone.store.open import open_store

_WORD = re.compile(r"\w+")
_ROWS = 400


def test_their_words_are_all_there(tmp_path: Path) -> None:
    file = Path(os.environ.get("TESTS_POSTS", ""))
    if not file.is_file():
        pytest.skip("TESTS_POSTS names no file")
    url = f"sqlite:///{file}"
    table = min(tables(url, {}))
    made = proposal(url, table, "posts", environment={})
    assert (made.key, made.document.tags) == (("Id",), "Tags")
    definition = type(made).from_table("posts", {**made.as_dict(), "where": f"Id <= {_ROWS}"})
    store = open_store(str(tmp_path / "zibaldone.db"), Limits())
    pulling = Pulling(store, SqliteFile(tmp_path))
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as raw:
        chosen = f'SELECT Id, Title, Body, Tags, Score FROM "{table}" WHERE Id <= {_ROWS}'
        rows = raw.execute(chosen).fetchall()
    raw.close()
    assert counts(pulling.sync(definition)) == (len(rows), 0, 0, 0, 0)
    documents = pulling.documents()
    for number, title, body, tags, score in rows:
        document = documents[f"posts:{number}"]
        wanted = _words(BeautifulSoup(body, "html.parser").get_text(" "))
        assert [word for word in wanted if word not in document.body] == [], number
        assert "<p>" not in document.body
        assert document.title == " ".join((title or "").split())
        assert document.metadata["Score"] == score
        assert len(document.tags) == (tags or "").replace("|", "<").count("<") - (
            1 if (tags or "").startswith("|") else 0
        )
    assert counts(pulling.sync(definition)) == (0, 0, 0, len(rows), 0)
    pulling.close()
    store.close()
    pulling.database.close()


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))
