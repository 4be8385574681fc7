"""Documents that take long to prepare, and whether an answer says the truth about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drivers.server import Server
from tests.hostile.peers import Bystander

_BYTES = 10 * 1024 * 1024
_PATIENCE_SECONDS = 240


def _repeated(piece: str) -> str:
    """Ten megabytes of it, no two chunks of which are the same."""
    size_bytes = len(piece.encode())
    parts = (f"{number} " + piece * (600 // size_bytes) for number in range(_BYTES // 620))
    return "".join(parts)


# What takes longest: characters that stand for 18 letters, identifiers, camel case, pairs of Han.
_BODIES = {
    "ligatures": _repeated("\ufdfa"),
    "identifiers": _repeated("a.b_c-d/"),
    "camel case": _repeated("aBc "),
    "Han": _repeated("\u6c34\u706b"),
    "lines": "\n" * _BYTES,
}


@pytest.mark.timeout(_PATIENCE_SECONDS + 60)
@pytest.mark.parametrize("name", _BODIES)
def test_a_long_document_does_not_hold_up_others(tmp_path: Path, name: str) -> None:
    """Seconds of CPU time, for which a machine that is busy may need more than a tool's time."""
    environment = {"ZIBALDONE_TOOL_SECONDS_MAX": str(_PATIENCE_SECONDS)}
    with Server(tmp_path / "data", environment=environment) as server, Bystander(server):
        given = {"path": "long", "content": _BODIES[name]}
        answer = server.client.post("/documents", json=given, timeout=_PATIENCE_SECONDS)
        assert answer.status_code == 201, answer.text
        part = server.client.get("/documents/long", params={"from_line": 9_000_000})
        assert part.status_code == 200


def test_what_took_too_long_is_not_stored(tmp_path: Path) -> None:
    environment = {"ZIBALDONE_TOOL_SECONDS_MAX": "0.5"}
    with Server(tmp_path / "data", environment=environment) as server:
        given = {"path": "long", "content": _BODIES["identifiers"]}
        for _ in range(2):  # a retry meets no CONFLICT
            answer = server.client.post("/documents", json=given, timeout=60)
            assert answer.status_code == 504, answer.text
            assert "Nothing was stored." in answer.json()["message"]
            assert server.client.get("/documents/long?view=preview").status_code == 404
        assert server.client.post("/documents", json={**given, "content": "x"}).status_code == 201


def test_many_replacements_in_a_long_document(server: Server) -> None:
    server.create("long", "ab " * (_BYTES // 3))
    replacements = [
        {
            "old_str": "ab " if number % 2 == 0 else "ba ",
            "new_str": "ba " if number % 2 == 0 else "ab ",
            "replace_all": True,
        }
        for number in range(100)
    ]
    with Bystander(server):
        answer = server.client.patch(
            "/documents/long", json={"replacements": replacements}, timeout=60
        )
    assert answer.status_code in (200, 504), answer.text
    revision = server.client.get("/documents/long?view=preview").json()["revision"]
    assert revision == (2 if answer.status_code == 200 else 1)


def test_a_short_document_that_grows_and_shrinks_while_it_is_patched(server: Server) -> None:
    """A kilobyte becomes ten megabytes, is searched a hundred times, and is short in the end."""
    server.create("short", "x" * 1000)
    face = "c\U0001f600"
    there = {"old_str": "ab", "new_str": face, "replace_all": True}
    back = {"old_str": face, "new_str": "ab", "replace_all": True}
    replacements = [
        {"old_str": "x", "new_str": "ab" * 5_200, "replace_all": True},
        *([there, back] * 20),
        {"old_str": "ab", "new_str": "", "replace_all": True},
    ]
    with Bystander(server) as bystander:
        bystander.wait_for_a_round()
        before = bystander.count
        answer = server.client.patch(
            "/documents/short", json={"replacements": replacements}, timeout=60
        )
        rounds = bystander.count - before
    assert answer.status_code in (200, 504), answer.text
    assert rounds >= 5  # one, if the others' writes have to wait for its end
