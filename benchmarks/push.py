"""Pushing notes: against bare posts of the same bytes, and a run that finds nothing to do.

    python -m benchmarks.push [--quick]

The floor of a push is a client that posts the same calls of add_memory, made beforehand, one after
the other on one connection: no files to read, no front matter, nothing to remember. Both sides go
to the same server, in turns. The floor of a run without changes is a walk that takes the stat of
each file.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import orjson

from benchmarks.report import Finding, paired_ratio, table
from benchmarks.servers.process import ServerProcess, zibaldone
from benchmarks.writes import text
from zibaldone.push.note import Note, read_note
from zibaldone.push.run import PushOptions, push_folder
from zibaldone.push.scan import scan
from zibaldone.push.state import State
from zibaldone.push.targets import ZibaldoneTarget

_PATH = "/mcp-memory/"
_LONG_AGO_SECONDS = 1_700_000_000


def measure(*, quick: bool) -> list[Finding]:
    rounds, per_round = (3, 100) if quick else (5, 200)
    with tempfile.TemporaryDirectory() as folder:
        pushed = _push(Path(folder), rounds, per_round)
        return [pushed, _no_change(Path(folder), 2_000 if quick else 10_000)]


def _push(folder: Path, rounds: int, per_round: int) -> Finding:
    ours, bare = [], []
    with zibaldone(folder / "served") as server:
        for number in range(rounds):
            notes = folder / f"notes-{number}"
            _write_notes(notes, per_round, seed=number)
            options = PushOptions(
                folder=notes,
                url=f"http://127.0.0.1:{server.port}{_PATH}",
                state_folder=folder / "state",
                group=f"pushed-{number}",
            )
            bodies = _calls(notes, f"bare-{number}")
            bare.append(asyncio.run(_post(server, bodies)))
            started_s = time.perf_counter()
            report = asyncio.run(push_folder(options))
            ours.append(time.perf_counter() - started_s)
            assert len(report.added) == per_round, report
    total = rounds * per_round
    return Finding(
        f"push of {total} notes",
        f"{total / sum(ours):.0f} a second",
        f"bare posts: {total / sum(bare):.0f} a second",
        paired_ratio(ours, bare),
        at_most=2,
    )


def _write_notes(folder: Path, count: int, seed: int) -> None:
    for number in range(count):
        file = folder / f"{number % 100:02}" / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        front = f"---\ntitle: Note {number}\ntags: [a, b{number % 7}]\nrating: {number % 10}\n---\n"
        file.write_text(front + text(seed * 100_000 + number), encoding="utf-8")
        os.utime(file, (_LONG_AGO_SECONDS, _LONG_AGO_SECONDS))


def _calls(folder: Path, group: str) -> list[bytes]:
    """The requests that a push of the folder makes, for a group of their own."""
    options = PushOptions(folder=folder, url="http://none/", state_folder=folder, group=group)
    target = ZibaldoneTarget(None, options.source)  # type: ignore[arg-type]
    calls = []
    for number, file in enumerate(scan(folder)[0], 2):
        note = read_note(folder, file.path)
        assert isinstance(note, Note)
        for episode in target.episodes(note):
            arguments = {
                "name": episode.name,
                "episode_body": episode.body,
                "group_id": group,
                "source": "text",
                "source_description": episode.description,
                "reference_time": episode.reference_time,
                "uuid": episode.uuid,
            }
            params = {"name": "add_memory", "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            calls.append(orjson.dumps(message))
    return calls


async def _post(server: ServerProcess, bodies: list[bytes]) -> float:
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    url = f"http://127.0.0.1:{server.port}{_PATH}"
    async with httpx.AsyncClient(verify=False, trust_env=False, timeout=30) as client:
        started_s = time.perf_counter()
        for body in bodies:
            answer = await client.post(url, content=body, headers=headers)
            assert answer.status_code == 200, answer.text
        return time.perf_counter() - started_s


def _no_change(folder: Path, count: int) -> Finding:
    notes = folder / "many"
    _write_notes(notes, count, seed=99)
    options = PushOptions(
        folder=notes, url="http://127.0.0.1:9/", state_folder=folder / "state", target="zibaldone"
    )
    with State(options.state_file) as state:
        later_ns = time.time_ns() + 60_000_000_000  # the files were made a moment ago
        for file in scan(notes)[0]:
            note = read_note(notes, file.path)
            assert isinstance(note, Note)
            state.finish(note.file, read_ns=later_ns, digest=note.digest, parts=1, is_visible=True)
    ours, bare = [], []
    for _ in range(9):
        gc.collect()
        started_s = time.perf_counter()
        walked = sum(1 for _ in _walk(notes))
        bare.append(time.perf_counter() - started_s)
        started_s = time.perf_counter()
        report = asyncio.run(push_folder(options))
        ours.append(time.perf_counter() - started_s)
        assert report.unchanged == walked == count, report
    return Finding(
        f"push of {count} notes, none of them changed",
        f"{1000 * min(ours):.0f} ms",
        f"a walk with stat: {1000 * min(bare):.0f} ms",
        paired_ratio(ours, bare),
        at_most=3,
    )


def _walk(root: Path) -> Iterator[os.stat_result]:
    waiting = [os.fspath(root)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure pushing notes.")
    parser.add_argument("--quick", action="store_true", help="fewer notes")
    print(table(measure(quick=parser.parse_args().quick)))
