"""Whole pushes to both kinds of servers."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.graphiti_server import GraphitiServer
from tests.drivers.memory_server import Asked, FaultScript, Reply, as_json
from tests.drivers.zibaldone_stub import ZibaldoneStub
from tests.push.folders import Folder
from zibaldone.errors import (
    DeadlineExceeded,
    InvalidArgument,
    NotFound,
    RemoteDenied,
    RemoteFailed,
    RemoteUnavailable,
)
from zibaldone.limits import PUSH_PART_CHARS_GRAPHITI, PUSH_SETTLE_SECONDS
from zibaldone.model.instant import now_us
from zibaldone.push import targets
from zibaldone.push.run import PushOptions, dry_run, push_status, watch_folder

Servers = ZibaldoneStub | GraphitiServer


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(params=["zibaldone", "graphiti"])
def server(request: pytest.FixtureRequest) -> Iterator[Servers]:
    made = ZibaldoneStub() if request.param == "zibaldone" else GraphitiServer()
    with made as running:
        yield running


class TestBothKinds:
    def test_add_update_delete(self, server: Servers, folder: Folder) -> None:
        for name in ("a.md", "b.md", "deep/c.md"):
            folder.write(name, f"# {name}\n\nfirst\n")
        report = folder.push(server.url)
        assert report.counts() == {**_none(), "added": 3}
        assert report.is_complete
        assert server.bodies() == folder.texts()

        folder.write("a.md", "# a\n\nsecond\n")
        folder.remove("b.md")
        report = folder.push(server.url)
        assert (report.updated, report.gone, report.unchanged) == (["a.md"], ["b.md"], 1)
        assert len(server.bodies()) == 3

        report = folder.push(server.url, delete=True)
        assert report.deleted == ["b.md"]
        assert server.bodies() == folder.texts()

    def test_nothing_is_asked_when_nothing_changed(self, server: Servers, folder: Folder) -> None:
        folder.write("a.md", "text")
        folder.push(server.url)
        _settle(folder)
        asked = len(server.asked)
        assert folder.push(server.url).counts() == {**_none(), "unchanged": 1}
        assert len(server.asked) == asked

    @pytest.mark.parametrize("fault", FaultScript.NAMES)
    def test_each_fault_leaves_each_note_once(
        self, server: Servers, folder: Folder, fault: str
    ) -> None:
        for number in range(5):
            folder.write(f"{number}.md", f"note {number}")
        faults = FaultScript(server)
        faults.pending.extend([fault, fault])
        assert folder.push(server.url).is_complete
        assert not faults.pending
        assert server.bodies() == folder.texts()

    def test_a_lost_state_doubles_nothing(self, server: Servers, folder: Folder) -> None:
        folder.write("a.md", "text")
        folder.push(server.url)
        for file in folder.state.iterdir():
            file.unlink()
        folder.push(server.url)
        assert server.bodies() == ["text"]
        # Zibaldone knows the note by its uuid; Graphiti is asked for it first.
        is_sent_again = isinstance(server, ZibaldoneStub)
        assert len(server.calls("add_memory")) == 1 + is_sent_again

    def test_a_server_that_is_away_ends_the_push(self, server: Servers, folder: Folder) -> None:
        for number in range(5):
            folder.write(f"{number}.md", "text")
        folder.push(server.url)
        for number in range(5):
            folder.write(f"{number}.md", f"text {number}")
        server.stop()
        report = folder.push(server.url)
        assert isinstance(report.stopped, RemoteUnavailable)
        assert len(report.left) == 5
        server.start()
        assert folder.push(server.url).counts()["updated"] == 5
        assert server.bodies() == folder.texts()

    def test_a_wrong_key_ends_the_push(self, server: Servers, folder: Folder) -> None:
        folder.write("a.md", "text")
        server.behaviour = lambda asked: as_json({}, 401)
        report = folder.push(server.url)
        assert isinstance(report.stopped, RemoteDenied)
        assert (report.left, len(server.asked)) == (["a.md"], 1)

    def test_a_note_that_is_refused_does_not_stop_the_others(
        self, server: Servers, folder: Folder
    ) -> None:
        for name in ("a.md", "b.md", "c.md"):
            folder.write(name, name)

        def refuse(asked: Asked) -> Reply | None:
            is_b = asked.arguments.get("name") == "b"
            return as_json({"error": "no"}, 413) if is_b else None

        server.behaviour = refuse
        report = folder.push(server.url)
        assert [path for path, _ in report.failed] == ["b.md"]
        assert server.bodies() == ["a.md", "c.md"]
        server.behaviour = lambda asked: None
        assert folder.push(server.url).is_complete
        assert server.bodies() == ["a.md", "b.md", "c.md"]

    @pytest.mark.parametrize("status", [500, 504])
    def test_a_note_that_the_server_cannot_digest_is_put_aside(
        self, server: Servers, folder: Folder, status: int
    ) -> None:
        for name in ("a.md", "b.md", "c.md"):
            folder.write(name, name)

        def choke(asked: Asked) -> Reply | None:
            return as_json({}, status) if asked.arguments.get("name") == "a" else None

        server.behaviour = choke
        report = folder.push(server.url)
        assert [path for path, _ in report.failed] == ["a.md"]
        assert (report.stopped, server.bodies()) == (None, ["b.md", "c.md"])

    def test_a_server_that_refuses_everything_ends_the_push(
        self, server: Servers, folder: Folder
    ) -> None:
        for number in range(20):
            folder.write(f"{number}.md", "text")
        server.behaviour = lambda asked: as_json({}, 500) if asked.tool == "add_memory" else None
        report = folder.push(server.url)
        assert isinstance(report.stopped, RemoteFailed)
        assert (len(report.failed), len(report.left)) == (4, 16)

    def test_a_time_limit(self, server: Servers, folder: Folder) -> None:
        folder.write("a.md", "text")
        report = folder.push(server.url, seconds_max=-1.0)
        assert isinstance(report.stopped, DeadlineExceeded)
        assert (report.left, server.asked) == (["a.md"], [])

    def test_all_sends_what_the_server_lost(self, server: Servers, folder: Folder) -> None:
        folder.write("a.md", "one")
        folder.write("b.md", "two")
        folder.push(server.url)
        server.stored.clear()
        assert folder.push(server.url).counts()["unchanged"] == 2
        folder.push(server.url, resend_all=True)
        assert server.bodies() == ["one", "two"]

    def test_groups_and_names_keep_folders_apart(self, server: Servers, tmp_path: Path) -> None:
        one, two = Folder(tmp_path / "one"), Folder(tmp_path / "two")
        one.write("a.md", "one")
        two.write("a.md", "two")
        one.push(server.url, name="one", delete=True)
        two.push(server.url, name="two", delete=True)
        two.push(server.url, name="two", group="other", delete=True)
        assert server.bodies() == ["one", "two"]
        assert server.bodies("other") == ["two"]

    def test_a_folder_that_became_empty_deletes_nothing(
        self, server: Servers, folder: Folder
    ) -> None:
        folder.write("a.md", "text")
        folder.push(server.url)
        folder.remove("a.md")
        report = folder.push(server.url, delete=True)
        assert (report.gone, report.deleted) == (["a.md"], [])
        assert server.bodies() == ["text"]

    def test_dry_run_and_status(self, server: Servers, folder: Folder) -> None:
        folder.write("a.md", "text")
        options = folder.options(server.url)
        assert dry_run(options).added == ["a.md"]
        assert server.asked == []
        status = asyncio.run(push_status(options))
        assert (status.is_up, status.health, status.sent) == (True, "ok", 0)
        folder.push(server.url)
        server.stop()
        status = asyncio.run(push_status(folder.options(server.url, tries=1)))
        assert (status.is_up, status.sent) == (False, 1)
        assert "Cannot connect" in status.health


class TestZibaldone:
    def test_a_replay_is_no_revision(self, stub: ZibaldoneStub, folder: Folder) -> None:
        folder.write("a.md", "text")
        FaultScript(stub).pending.extend(["reset_after", "504_after", "cut_after"])
        folder.push(stub.url)
        assert len(stub.calls("add_memory")) == 4
        assert stub.revisions == 1

    def test_long_notes_are_sent_in_parts(
        self, stub: ZibaldoneStub, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(targets, "PUSH_PART_CHARS_ZIBALDONE", 100)
        folder.write("a.md", "word " * 100)
        folder.push(stub.url)
        assert len(stub.stored) > 4
        folder.write("a.md", "word " * 30)
        folder.push(stub.url)
        assert len(stub.stored) == 2
        folder.write("a.md", "short")
        folder.write("b.md", "short")
        folder.push(stub.url)
        assert stub.bodies() == ["short", "short"]
        folder.remove("a.md")
        folder.push(stub.url, delete=True)
        assert stub.bodies() == ["short"]

    def test_a_note_deleted_while_it_was_sent(self, stub: ZibaldoneStub, folder: Folder) -> None:
        """The server has it, and nothing but the intention to send it was saved."""
        folder.write("a.md", "one")
        folder.write("b.md", "two")
        stub.after = lambda asked, reply: as_json({}, 500) if asked.tool else reply
        assert len(folder.push(stub.url).failed) == 2
        stub.after = lambda asked, reply: reply
        folder.remove("a.md")
        assert folder.push(stub.url, delete=True).is_complete
        assert stub.bodies() == ["two"]


class TestGraphiti:
    def test_an_empty_folder_on_another_machine_deletes_nothing(
        self, graphiti: GraphitiServer, folder: Folder, tmp_path: Path
    ) -> None:
        """Nothing is known there of what was sent, and the disk may not be mounted."""
        folder.write("a.md", "text")
        folder.push(graphiti.url)
        elsewhere = Folder(tmp_path / "elsewhere")
        everything = {"target": "graphiti", "delete": True, "resend_all": True}
        elsewhere.push(graphiti.url, **everything)
        assert graphiti.bodies() == ["text"]
        elsewhere.write("b.md", "other")
        elsewhere.push(graphiti.url, **everything)
        assert graphiti.bodies() == ["other"]

    def test_what_cannot_be_read_on_another_machine_is_not_deleted(
        self,
        graphiti: GraphitiServer,
        folder: Folder,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        for path in ("a.md", "b.md", "closed/c.md", "d.md"):
            folder.write(path, path)
        folder.push(graphiti.url)
        elsewhere = Folder(tmp_path / "elsewhere")
        elsewhere.write("a.md", "a.md")
        (elsewhere.path / "b.md").write_bytes(b"\xff")
        elsewhere.write("closed/c.md", "c.md")
        elsewhere.write("d.md", "d.md")
        scandir = os.scandir

        def some_of_it(path: str) -> Any:
            if path.endswith("closed"):
                raise PermissionError(errno.EACCES, "Permission denied")
            return scandir(path)

        with monkeypatch.context() as patched:
            patched.setattr(os, "scandir", some_of_it)
            elsewhere.push(graphiti.url, delete=True)
            assert graphiti.bodies() == ["a.md", "b.md", "closed/c.md", "d.md"]
            elsewhere.remove("d.md")  # it is known here that this one was sent
            elsewhere.push(graphiti.url, delete=True)
            assert graphiti.bodies() == ["a.md", "b.md", "closed/c.md"]
        elsewhere.remove("closed/c.md")
        elsewhere.push(graphiti.url, delete=True, resend_all=True)
        assert graphiti.bodies() == ["a.md", "b.md"]

    def test_what_waits_is_looked_for_next_time(self, folder: Folder) -> None:
        with GraphitiServer(stores_at_once=False) as server:
            folder.write("a.md", "text")
            assert folder.push(server.url).waiting == ["a.md"]
            assert folder.push(server.url).waiting == ["a.md"]
            assert len(server.calls("add_memory")) == 1
            server.work()
            assert folder.push(server.url).waiting == []
            assert server.bodies() == ["text"]

    def test_forty_acknowledged_and_two_kept(self, folder: Folder) -> None:
        """What its real server did when it was stopped."""
        for number in range(40):
            folder.write(f"{number:02}.md", f"note {number}")
        with GraphitiServer(stores_at_once=False) as server:
            assert len(folder.push(server.url).waiting) == 40
            server.work(2)
            server.restart()
            assert len(server.stored) == 2
            # One that comes after them shows that the others will not.
            folder.write("40.md", "note 40")
            server.stores_at_once = True
            folder.push(server.url)
            folder.push(server.url)
            assert server.bodies() == folder.texts()

    def test_what_does_not_come_within_an_hour_is_sent_again(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder.write("a.md", "text")
        with GraphitiServer(stores_at_once=False) as server:
            folder.push(server.url)
            server.restart()
            later_us = now_us() + int(PUSH_SETTLE_SECONDS * 1_000_000) + 1_000_000
            monkeypatch.setattr(targets, "now_us", lambda: later_us)
            server.stores_at_once = True
            folder.push(server.url)
            assert server.bodies() == ["text"]

    def test_a_copy_that_shows_late_is_deleted(self, folder: Folder) -> None:
        folder.write("a.md", "text")
        with GraphitiServer(stores_at_once=False) as server:
            FaultScript(server, only="add_memory").pending.append("reset_after")
            folder.push(server.url)
            assert len(server.queue) == 2
            server.work()
            assert server.bodies() == ["text", "text"]
            folder.push(server.url)
            assert server.bodies() == ["text"]

    def test_a_note_deleted_while_it_waits(self, folder: Folder) -> None:
        folder.write("a.md", "one")
        folder.write("b.md", "two")
        with GraphitiServer(stores_at_once=False) as server:
            folder.push(server.url)
            folder.remove("a.md")
            folder.push(server.url, delete=True)
            server.work()
            folder.push(server.url, delete=True)
            assert server.bodies() == ["two"]

    def test_the_old_revision_stays_until_the_new_one_is_there(self, folder: Folder) -> None:
        folder.write("a.md", "old")
        with GraphitiServer() as server:
            folder.push(server.url)
            server.stores_at_once = False
            folder.write("a.md", "new")
            folder.push(server.url)
            assert server.bodies() == ["old"]
            server.work()
            folder.push(server.url)
            assert server.bodies() == ["new"]

    def test_no_uuid_is_sent(self, graphiti: GraphitiServer, folder: Folder) -> None:
        """It would be taken for that of an episode to change, and the note silently dropped."""
        folder.write("a.md", "---\ntags: [x]\n---\ntext")
        folder.push(graphiti.url)
        (call,) = graphiti.calls("add_memory")
        assert set(call.arguments) == {
            *("name", "episode_body", "group_id", "source", "source_description"),
            "reference_time",
        }
        assert call.arguments["source_description"].startswith("Markdown note a.md; tags x [zib")
        assert graphiti.bodies() == ["text"]

    def test_episodes_of_others_are_left_alone(
        self, graphiti: GraphitiServer, folder: Folder
    ) -> None:
        folder.write("a.md", "text")
        folder.push(graphiti.url)
        other = next(iter(graphiti.stored.values()))
        for number, description in enumerate(("theirs", "[zibaldone:no]", "")):
            copy = type(other)(f"n{number}", "theirs", "main", "text", description, None)
            graphiti.stored[copy.uuid] = copy
        folder.write("a.md", "changed")
        folder.push(graphiti.url, delete=True)
        assert graphiti.bodies() == ["changed", "theirs", "theirs", "theirs"]

    def test_long_notes_are_sent_in_parts(self, graphiti: GraphitiServer, folder: Folder) -> None:
        folder.write("a.md", "word " * (PUSH_PART_CHARS_GRAPHITI // 2))
        folder.push(graphiti.url)
        assert len(graphiti.stored) == 3
        folder.write("a.md", "short")
        folder.push(graphiti.url)
        assert graphiti.bodies() == ["short"]

    def test_groups_with_many_episodes(
        self, graphiti: GraphitiServer, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("zibaldone.push.memory.PUSH_LIST_EPISODES_MIN", 2)
        for number in range(9):
            folder.write(f"{number}.md", f"note {number}")
        folder.push(graphiti.url)
        for file in folder.state.iterdir():
            file.unlink()
        folder.push(graphiti.url)
        assert graphiti.bodies() == folder.texts()


class TestKinds:
    def test_a_server_that_became_another_gets_everything(
        self, stub: ZibaldoneStub, folder: Folder
    ) -> None:
        folder.write("a.md", "text")
        folder.push(stub.url)
        port = stub.port
        stub.stop()
        other = GraphitiServer()
        other.port = port
        with other:
            folder.push(other.url, target="graphiti")
            assert other.bodies() == ["text"]


def test_watching(stub: ZibaldoneStub, folder: Folder) -> None:
    folder.write("a.md", "one")
    seen: list[int] = []

    async def run() -> None:
        def on_report(report: object) -> None:
            seen.append(len(stub.stored))
            if len(seen) == 1:
                folder.write("b.md", "two")
            else:
                task.cancel()

        watching = watch_folder(folder.options(stub.url), on_report, seconds=0.01)
        task = asyncio.create_task(watching)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert seen == [1, 2]


def test_what_is_refused(tmp_path: Path) -> None:
    def options(**more: object) -> PushOptions:
        given = {"folder": tmp_path, "url": "http://a/", "state_folder": tmp_path / "s", **more}
        return PushOptions(**given)  # type: ignore[arg-type]

    with pytest.raises(NotFound):
        options(folder=tmp_path / "none").check()
    for group in ("", "a b", "a/b", "ä"):
        with pytest.raises(InvalidArgument, match="group"):
            options(group=group).check()
    with pytest.raises(InvalidArgument):
        options(tries=0).check()
    assert "secret" not in repr(options(api_key="secret"))


def _none() -> dict[str, int]:
    names = ("added", "updated", "checked", "deleted", "unchanged", "skipped")
    return dict.fromkeys((*names, "failed", "gone", "waiting", "left"), 0)


def _settle(folder: Folder) -> None:
    """As if an hour had passed, in which Graphiti may still show what it was sent."""
    from zibaldone.push.state import State

    (file,) = folder.state.glob("*.db")
    with State(file) as state:
        state.set_fact("unsettled_until_us", "0")
