"""Pushes to our own server over a network that fails in every way, and pushes that are killed.

After any of it each note is there exactly once: all are read back.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.fault_proxy import FAULTS, FaultProxy
from tests.drivers.server import COMMAND, Server, clean_environment, free_port
from tests.push.folders import Folder
from zibaldone.push.report import Report
from zibaldone.push.retry import Retry
from zibaldone.push.run import push_folder

NOTES = 40


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, FaultProxy]]:
    with Server(tmp_path_factory.mktemp("storm") / "data") as server:
        proxy = FaultProxy(free_port(), server.port)
        try:
            yield server, proxy
        finally:
            proxy.close()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    for number in range(NOTES):
        made.write(f"{number:02}.md", f"---\ntags: [t{number}]\n---\n# Note {number}\n\nText.\n")
    return made


def push(folder: Folder, proxy: FaultProxy, group: str, **more: Any) -> Report:
    url = f"{proxy.url}/mcp-memory/"
    options = folder.options(url, group=group, request_seconds_max=0.5, **more)
    retry = Retry(tries=4, first_wait_seconds=0.02)
    return asyncio.run(push_folder(options, retry=retry))


def push_until_complete(folder: Folder, proxy: FaultProxy, group: str, **more: Any) -> int:
    for number in range(1, 100):
        if push(folder, proxy, group, **more).is_complete:
            return number
    raise AssertionError("it never came to an end")


def read_back(server: Server, group: str) -> list[dict[str, Any]]:
    """All episodes of a group, past the proxy."""
    call = {"name": "get_episodes", "arguments": {"group_ids": [group], "max_episodes": 100}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"accept": "application/json"}
    answer = server.client.post("/mcp-memory", json=message, headers=headers).json()["result"]
    assert not answer.get("isError"), answer
    episodes: list[dict[str, Any]] = json.loads(answer["content"][0]["text"])["episodes"]
    return episodes


def check(
    server: Server, folder: Folder, group: str, *, revision: int | None = 1
) -> tuple[int, int]:
    """How many notes are lost, and how many are there twice or in a revision too many."""
    episodes = read_back(server, group)
    bodies = [episode["content"] for episode in episodes]
    lost = len(set(folder.texts()) - set(bodies))
    doubled = len(bodies) - len(set(bodies))
    if revision is not None:
        doubled += sum(episode["revision"] != revision for episode in episodes)
    assert set(bodies) <= set(folder.texts())
    return lost, doubled


class TestStorm:
    @pytest.mark.requirement("SC-26", "SC-27", "SC-28", "SC-29")
    def test_every_fault(self, shared: tuple[Server, FaultProxy], folder: Folder) -> None:
        server, proxy = shared
        script = [*FAULTS, *FAULTS]
        random.Random(13).shuffle(script)
        # Calls that go well between them: otherwise no note would ever come through.
        proxy.script(
            [fault for pair in zip(script, [""] * len(script), strict=True) for fault in pair]
        )
        pushes = push_until_complete(folder, proxy, "every-fault")
        assert pushes > 1  # 401 ends a push
        assert set(FAULTS) <= set(proxy.seen())
        assert check(server, folder, "every-fault") == (0, 0)

    def test_edits_and_deletions_in_a_storm(
        self, shared: tuple[Server, FaultProxy], folder: Folder
    ) -> None:
        server, proxy = shared
        proxy.script([])
        push(folder, proxy, "edits")
        for number in range(0, NOTES, 2):
            folder.write(f"{number:02}.md", f"changed {number}")
        for number in range(1, NOTES, 8):
            folder.remove(f"{number:02}.md")
        chosen = random.Random(7)
        quick = [fault for fault in FAULTS if not fault.startswith(("slow", "trickle"))]
        proxy.script([chosen.choice(quick) if chosen.random() < 0.6 else "" for _ in range(80)])
        push_until_complete(folder, proxy, "edits", delete=True)
        assert check(server, folder, "edits", revision=None) == (0, 0)

    def test_the_server_is_killed_between_two_notes(
        self, shared: tuple[Server, FaultProxy], folder: Folder
    ) -> None:
        server, proxy = shared
        proxy.script([""] * 15 + ["reset"] * 8)  # of a note, and of asking whether all is well
        assert len(push(folder, proxy, "killed").added) == 15
        server.kill()
        assert not push(folder, proxy, "killed").is_complete
        server.start()
        push_until_complete(folder, proxy, "killed")
        assert check(server, folder, "killed") == (0, 0)


class TestKill:
    def test_a_killed_push_loses_and_doubles_nothing(
        self, shared: tuple[Server, FaultProxy], folder: Folder, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """SIGKILL while the server has stored a note and the push does not know it yet."""
        server, proxy = shared
        sent = 0
        for passed in (0, 7, 12):
            proxy.script([""] * passed + ["hold_after"])
            process = _start_push(folder, proxy)
            _wait_until_held(proxy, process)
            process.kill()
            process.wait()
            sent += passed
        proxy.script([])
        assert _start_push(folder, proxy).wait(60) == 0
        calls = len(proxy.seen())
        lost, doubled = check(server, folder, "main")
        with capsys.disabled():
            print(  # noqa: T201 - the figure of the kill test
                f"\n  push killed 3 times among {NOTES} notes: {lost} lost, {doubled} doubled"
            )
        assert (lost, doubled) == (0, 0)
        assert calls == NOTES - sent  # what was acknowledged was not sent again


def _start_push(folder: Folder, proxy: FaultProxy) -> subprocess.Popen[bytes]:
    environment = clean_environment({"ZIBALDONE_DATA": str(folder.state)})
    return subprocess.Popen(
        [*COMMAND, "push", str(folder.path), "--to", f"{proxy.url}/mcp-memory/"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=os.fspath(folder.path),
    )


def _wait_until_held(proxy: FaultProxy, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + 60
    while "held" not in proxy.seen():
        assert process.poll() is None, "the push ended before it was held"
        assert time.monotonic() < deadline_s, proxy.seen()
        time.sleep(0.01)
