from __future__ import annotations

from pathlib import Path

import pytest

from zibaldone.errors import Conflict, StorageUnavailable
from zibaldone.push.scan import LocalFile
from zibaldone.push.state import State

FILE = LocalFile("a.md", 1, 2, 3)


def finish(state: State, *, parts: int = 1) -> None:
    state.finish(FILE, read_ns=4, digest="d", parts=parts, is_visible=False)


@pytest.mark.requirement("SC-38")
def test_is_there_when_opened_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "state.db"
    with State(file) as state:
        state.begin("a.md", 2)
        state.begin("b.md", 3)
        state.begin("b.md", 1)
        finish(state)
        state.set_visible(["a.md"])
        state.set_fact("target", "graphiti")
    with State(file) as state:
        (note,) = state.notes().values()
        assert note[:8] == ("a.md", 1, 2, 3, 4, "d", 1, 1)
        assert state.sending() == {"b.md": 3}
        assert (state.fact("target"), state.fact("other")) == ("graphiti", "")
        state.touch({FILE._replace(mtime_ns=9): 10})
        assert state.notes()["a.md"][:5] == ("a.md", 1, 9, 3, 10)
        state.forget("a.md")
        assert state.notes() == {}
        state.clear()
        assert state.sending() == {}


def test_one_push_at_a_time(tmp_path: Path) -> None:
    with State(tmp_path / "state.db"), pytest.raises(Conflict, match="Another push"):
        State(tmp_path / "state.db")
    State(tmp_path / "state.db").close()


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(b"this is not a database, " * 100)
    with State(file) as state:
        assert state.was_damaged
        assert state.notes() == {}
    assert (tmp_path / "state.db.damaged").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable, match="Cannot create"):
        State(tmp_path / "file" / "state.db")
