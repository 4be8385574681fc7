"""C1 to C7: what a deployment does with writes."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from zibaldone.canary.check import Bench, Check, Failed, NotPossible, first_failure
from zibaldone.canary.counting import EMBEDDED, require_count
from zibaldone.limits import (
    CANARY_CONSUMED_SECONDS_MAX,
    CANARY_LAG_P95_SECONDS_MAX,
    CANARY_LAG_P99_SECONDS_MAX,
    CANARY_POLL_SECONDS,
    CANARY_QUIET_SECONDS,
    CANARY_RECONNECT_SECONDS_MAX,
    CANARY_SAMPLE_SECONDS,
    CANARY_UPLOADS,
    CANARY_WAIT_SECONDS_MAX,
    CANARY_WRITES_PER_SECOND,
)
from zibaldone.model.point import point_id

_STILL_SAMPLES = 10


async def _one_embedding(bench: Bench) -> str:
    async def upload(attempt: int) -> None:
        path = f"{bench.folder.path}c1/{attempt}"
        await bench.folder.upload(path, f"A small note, number {attempt}.")
        await bench.ready_after(path)

    await require_count(bench, EMBEDDED, 1, upload)
    return "1 embedding"


async def _one_point(bench: Bench) -> str:
    folder, path = bench.folder, f"{bench.folder.path}c2/note"
    wanted = point_id(path, 0)
    for content in ("A note of one chunk.", "The same note, written again."):
        await folder.upload(path, content, upsert=True)
        await bench.ready_after(path)
        points = [chunk["chunk_metadata"]["point_id"] for chunk in await folder.chunks(path)]
        if points != [wanted]:
            raise Failed(f"points {', '.join(points) or 'none'} instead of {wanted}")
        hits = await folder.found_by_meaning(content, [path])
        if hits != [f"{path}#0"]:
            raise Failed(f"{len(hits)} vectors instead of 1")
    return f"point {wanted}"


async def _consumed(bench: Bench) -> str:
    folder, path = bench.folder, f"{bench.folder.path}c3/note"
    slowest_s = 0.0
    for write in (
        partial(folder.upload, path, "First words."),
        partial(folder.update, path, "Second words."),
        partial(folder.patch, path, "Second", "Third"),
    ):
        await write()
        took_s = await bench.ready_after(path, seconds_max=CANARY_CONSUMED_SECONDS_MAX)
        slowest_s = max(slowest_s, took_s)
    await folder.delete(path)
    began_s = time.monotonic()
    while await folder.jobs(path):
        if time.monotonic() - began_s > CANARY_CONSUMED_SECONDS_MAX * bench.slack:
            raise Failed(f"the deletion is not dealt with after {time.monotonic() - began_s:.1f} s")
        await asyncio.sleep(CANARY_POLL_SECONDS)
    return f"4 writes, {slowest_s:.2f} s at most"


async def _never_back(bench: Bench) -> str:
    folder = bench.folder
    paths = [f"{folder.path}c4/{number}" for number in range(CANARY_UPLOADS)]
    for path in paths:
        await folder.upload(path, f"The text of {path}. " * 50)
    seen: dict[str, list[str]] = {path: [] for path in paths}
    deadline_s = time.monotonic() + CANARY_WAIT_SECONDS_MAX * bench.slack
    still = samples = 0
    while still < _STILL_SAMPLES:
        states = await folder.statuses(paths)
        samples += 1
        for path, state in states.items():
            if seen[path][-1:] != [state]:
                seen[path].append(state)
        still = still + 1 if set(states.values()) == {"ready"} else 0
        if time.monotonic() > deadline_s:
            raise Failed(f"not ready after {CANARY_WAIT_SECONDS_MAX * bench.slack:g} s")
        await asyncio.sleep(CANARY_SAMPLE_SECONDS)
    for path, states_seen in seen.items():
        if states_seen not in (["pending", "ready"], ["ready"]):
            raise Failed(f"{path} went {' → '.join(states_seen)}")
    return f"{len(paths)} uploads, {samples} samples"


async def _after_a_gap(bench: Bench) -> str:
    if bench.deployment.disturbances is None:
        raise NotPossible(
            "a server's connections cannot be cut from outside; run the canary without --url, "
            "on the server's store"
        )
    folder = bench.folder
    paths = [f"{folder.path}c5/{number}" for number in range(3)]
    async with bench.deployment.disturbances.cut_off():
        for path in paths:
            await folder.upload(path, f"Written in the gap: {path}.")
        await asyncio.sleep(CANARY_QUIET_SECONDS)
        if set((await folder.statuses(paths)).values()) != {"pending"}:
            raise NotPossible("another process makes the vectors meanwhile")
    took_s = await bench.ready_after(*paths, seconds_max=CANARY_RECONNECT_SECONDS_MAX)
    queued = (await bench.deployment.call("reindex_missing", {}))["queued"]
    await bench.ready_after(*paths)
    outcome = f"ready {took_s:.2f} s after the gap; reindex-missing queued {queued}"
    severed = await bench.deployment.disturbances.sever()
    if not severed:
        return outcome
    path = f"{folder.path}c5/severed"
    await folder.upload(path, "Written after the connections were cut.")
    took_s = await bench.ready_after(path, seconds_max=CANARY_RECONNECT_SECONDS_MAX)
    return f"{outcome}; {severed} connections cut, ready {took_s:.2f} s after that"


async def _keeps_up(bench: Bench) -> str:
    folder = bench.folder
    written_s: dict[str, float] = {}
    lags_s: list[float] = []

    async def upload(number: int) -> None:
        path = f"{folder.path}c6/{number}"
        await folder.upload(path, f"Write number {number} of a steady stream.")
        written_s[path] = time.monotonic()

    async def watch(is_over: asyncio.Event) -> None:
        while written_s or not is_over.is_set():
            states = await folder.statuses(list(written_s))
            now_s = time.monotonic()
            for path, state in states.items():
                if state == "ready":
                    lags_s.append(now_s - written_s.pop(path))
                elif now_s - written_s[path] > CANARY_WAIT_SECONDS_MAX * bench.slack:
                    raise Failed(f"{path} is {state} after {now_s - written_s[path]:.0f} s")
            await asyncio.sleep(CANARY_POLL_SECONDS)

    count = bench.write_seconds * CANARY_WRITES_PER_SECOND
    began_s = time.monotonic()
    is_over = asyncio.Event()
    with first_failure():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch(is_over))
            async with asyncio.TaskGroup() as uploads:
                for number in range(count):
                    due_s = began_s + number / CANARY_WRITES_PER_SECOND
                    await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                    uploads.create_task(upload(number))
            rate = count / max(time.monotonic() - began_s, bench.write_seconds)
            is_over.set()
    p95_s, p99_s = _percentile(lags_s, 95), _percentile(lags_s, 99)
    measured = f"{count} writes at {rate:.1f}/s, lag p95 {p95_s:.2f} s, p99 {p99_s:.2f} s"
    if (
        p95_s > CANARY_LAG_P95_SECONDS_MAX * bench.slack
        or p99_s > CANARY_LAG_P99_SECONDS_MAX * bench.slack
    ):
        raise Failed(measured)
    return measured


def _percentile(values: list[float], percent: int) -> float:
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]


async def _skipped(bench: Bench) -> str:
    folder = bench.folder
    if not folder.skipped:
        raise NotPossible("the key may write to one folder only, and skipped paths are outside it")

    async def write_skipped(attempt: int) -> None:
        paths = [f"{start}{attempt}" for start in folder.skipped]
        for path in paths:
            await folder.upload(path, "A record that changes often.")
        empty = f"{folder.path}c7/empty-{attempt}"
        await folder.upload(empty, " \n")
        await asyncio.sleep(CANARY_QUIET_SECONDS)
        wrong = {
            path: state
            for path, state in (await folder.statuses([*paths, empty])).items()
            if state != "skipped"
        }
        if wrong:
            raise Failed(", ".join(f"{path}: {state}" for path, state in wrong.items()))
        if hits := await folder.found_by_meaning("A record that changes often.", [*paths, empty]):
            raise Failed(f"{hits[0]} has a vector")

    try:
        await require_count(bench, EMBEDDED, 0, write_skipped)
    except NotPossible as reason:
        await write_skipped(-1)
        return f"no vectors; embeddings not counted: {reason}"
    return "0 embeddings, no vectors"


CHECKS = (
    Check("C1", "A small upload is embedded once", _one_embedding),
    Check("C2", "A document of one chunk has one point, always the same", _one_point),
    Check("C3", "Every kind of write is taken up within 2 s", _consumed),
    Check("C4", "A status goes from pending to ready, never back", _never_back),
    Check("C5", "Writes in a gap are indexed within 5 s of its end", _after_a_gap),
    Check("C6", "10 writes a second: lag p95 < 5 s, p99 < 15 s", _keeps_up),
    Check("C7", "Skipped paths and empty bodies are not embedded", _skipped),
)
