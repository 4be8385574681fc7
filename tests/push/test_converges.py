"""Random edits, deletions, crashes and faults: in the end the server has what the folder has."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drivers.graphiti_server import GraphitiServer
from tests.drivers.memory_server import Asked, FaultScript, MemoryServer, Reply
from tests.drivers.zibaldone_stub import ZibaldoneStub
from tests.push.clock import Clock
from tests.push.folders import Folder
from zibaldone.push import targets
from zibaldone.push.run import push_folder

EXAMPLES = int(os.environ.get("PUSH_EXAMPLES", "10"))
"""A few for each run of the tests; hundreds when the push changes."""

NAMES = ("a.md", "b.md", "c/d.md")

edits = st.tuples(st.just("write"), st.sampled_from(NAMES), st.integers(0, 3))
deletions = st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(0))
pushes = st.tuples(
    st.just("push"), st.lists(st.sampled_from(FaultScript.NAMES), max_size=5), st.booleans()
)
crashes = st.tuples(st.just("crash"), st.integers(1, 6), st.booleans())
server_events = st.tuples(
    st.sampled_from(["restart", "work", "lose_state"]), st.just(0), st.just(0)
)
Event = tuple[str, Any, Any]
histories = st.lists(
    st.one_of(edits, edits, deletions, pushes, crashes, server_events), max_size=12
)


class World:
    """A folder, a server, and what happens to them."""

    def __init__(self, server: MemoryServer, root: Path) -> None:
        self.server = server
        self.folder = Folder(root)
        self.folder.write("always.md", "this one stays")
        self._writes = 0

    def happen(self, event: Event) -> None:
        kind, first, second = event
        getattr(self, f"_{kind}")(first, second)

    def _write(self, name: str, size: int) -> None:
        self._writes += 1
        self.folder.write(name, f"{name} {self._writes} " + "word " * 30 * size)

    def _remove(self, name: str, _: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.folder.remove(name)

    def _push(self, faults: list[str], delete: bool) -> None:
        FaultScript(self.server).pending.extend(faults)
        self.folder.push(self.server.url, delete=delete, tries=2)
        FaultScript(self.server)

    def _crash(self, request: int, is_after: bool) -> None:
        """The client dies at some request: before the server has it, or before the answer."""
        asyncio.run(self._crashed(request, is_after))

    async def _crashed(self, request: int, is_after: bool) -> None:
        loop, count = asyncio.get_running_loop(), 0

        def die() -> None:
            loop.call_soon_threadsafe(task.cancel)

        def before(asked: Asked) -> Reply | None:
            nonlocal count
            count += 1
            if count == request and not is_after:
                die()
            return None

        def after(asked: Asked, reply: Reply) -> Reply:
            if count == request and is_after:
                die()
            return reply

        self.server.behaviour, self.server.after = before, after
        options = self.folder.options(self.server.url)
        task = asyncio.create_task(push_folder(options, retry=Clock().retry()))
        with contextlib.suppress(asyncio.CancelledError):
            await task
        FaultScript(self.server)

    def _restart(self, *_: int) -> None:
        if isinstance(self.server, GraphitiServer):
            self.server.restart()
        else:
            self.server.sessions.clear()

    def _work(self, *_: int) -> None:
        if isinstance(self.server, GraphitiServer):
            self.server.work(1)

    def _lose_state(self, *_: int) -> None:
        if isinstance(self.server, GraphitiServer):
            for file in self.folder.state.glob("*"):
                file.unlink()

    def calm_down(self) -> None:
        FaultScript(self.server)
        if isinstance(self.server, GraphitiServer):
            self.server.work()
            self.server.stores_at_once = True

    def bodies(self) -> list[str]:
        assert isinstance(self.server, ZibaldoneStub | GraphitiServer)
        return _joined(self.server)


def _joined(server: ZibaldoneStub | GraphitiServer) -> list[str]:
    """The texts of notes; those in parts put together again."""
    whole: dict[str, list[tuple[int, str]]] = {}
    for body in server.bodies():
        if body.startswith("[Part "):
            link, _, text = body.partition("\n\n")
            words = link.split()
            path = words[5].rstrip(":")
            whole.setdefault(path, []).append((int(words[1]), text))
        else:
            whole.setdefault(body, []).append((1, body))
    return sorted("".join(text for _, text in sorted(parts)) for parts in whole.values())


@pytest.mark.parametrize("kind", ["zibaldone", "graphiti"])
@settings(max_examples=EXAMPLES)
@given(history=histories)
def test_the_server_comes_to_have_what_the_folder_has(
    kind: str, history: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "PUSH_PART_CHARS_ZIBALDONE", 200)
    monkeypatch.setattr(targets, "PUSH_PART_CHARS_GRAPHITI", 200)
    server = ZibaldoneStub() if kind == "zibaldone" else GraphitiServer(stores_at_once=False)
    with server, tempfile.TemporaryDirectory() as root:
        world = World(server, Path(root))
        for event in history:
            world.happen(event)
        world.calm_down()
        # The first sends and learns what was lost; what it learns the second mends.
        for _ in range(2):
            report = world.folder.push(server.url, delete=True)
            assert report.is_complete, report
        if kind == "graphiti":  # another note shows which of those before it were lost
            world.folder.write("zz.md", "the last one")
            for _ in range(2):
                report = world.folder.push(server.url, delete=True)
        assert report.waiting == []
        assert world.bodies() == world.folder.texts()
