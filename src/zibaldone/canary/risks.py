"""K1 to K4: what could go wrong between a write and its vectors."""

from __future__ import annotations

import asyncio
import time

from zibaldone.canary.check import Bench, Check, Failed, NotPossible, first_failure
from zibaldone.canary.counting import DEALT_WITH, require_count
from zibaldone.errors import NotFound, StorageUnavailable
from zibaldone.limits import (
    CANARY_DELETES,
    CANARY_POLL_SECONDS,
    CANARY_QUIET_SECONDS,
    CANARY_UPLOADS,
    CANARY_WAIT_SECONDS_MAX,
)

_AT_ONCE = 8
_BREATH_SECONDS = 0.01
"""Between two writes, so that a restart falls among them."""


async def _restart(bench: Bench) -> str:
    if bench.deployment.disturbances is None:
        raise NotPossible(
            "a server that others use is not restarted; run the canary without --url, on the "
            "server's store"
        )
    folder = bench.folder
    paths = [f"{folder.path}k1/{number}" for number in range(2 * CANARY_UPLOADS)]

    async def write_all() -> int:
        retries = 0
        for path in paths:
            while True:
                try:
                    await folder.upload(path, f"Written around a restart: {path}.", upsert=True)
                except StorageUnavailable:
                    retries += 1
                    await asyncio.sleep(CANARY_POLL_SECONDS)
                else:
                    break
            await asyncio.sleep(_BREATH_SECONDS)
        return retries

    with first_failure():
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(write_all())
            await asyncio.sleep(CANARY_POLL_SECONDS)
            severed = await bench.deployment.disturbances.sever()
            await asyncio.sleep(CANARY_POLL_SECONDS)
            await bench.deployment.disturbances.restart()
    await bench.ready_after(*paths)
    for path in paths:
        if await folder.content(path) != f"Written around a restart: {path}.":
            raise Failed(f"{path} has another text")
        if await folder.found_by_meaning("restart", [path]) != [f"{path}#0"]:
            raise Failed(f"{path} has no vector")
    cut = f", {severed} connections cut" if severed else ""
    return f"{len(paths)} documents{cut}, {writing.result()} writes tried again"


async def _no_echo(bench: Bench) -> str:
    folder = bench.folder

    async def upload(attempt: int) -> None:
        path = f"{folder.path}k2/{attempt}"
        await folder.upload(path, f"Once is enough, number {attempt}.")
        await bench.ready_after(path)
        await asyncio.sleep(2 * CANARY_QUIET_SECONDS)  # what the status would call for comes now
        if jobs := await folder.jobs(path):
            raise Failed(f"{len(jobs)} jobs are queued though the document is ready")

    await require_count(bench, DEALT_WITH, 1, upload)
    return "1 change dealt with"


async def _twice(bench: Bench) -> str:
    folder, path = bench.folder, f"{bench.folder.path}k3/note"
    await folder.upload(path, "One.")
    before = [chunk["chunk_metadata"]["point_id"] for chunk in await folder.chunks(path)]
    for text in ("Two.", "Three."):
        await folder.update(path, text)
    await bench.ready_after(path)
    await asyncio.sleep(CANARY_QUIET_SECONDS)
    chunks = await folder.chunks(path)
    after = [chunk["chunk_metadata"]["point_id"] for chunk in chunks]
    if after != before or [chunk["body"] for chunk in chunks] != ["Three."]:
        raise Failed("the document has other points than before, or those of an earlier text")
    if await folder.found_by_meaning("Three.", [path]) != [f"{path}#0"]:
        raise Failed("the document has not exactly one vector")
    state = (await folder.statuses([path]))[path]
    if state != "ready":
        raise Failed(f"the status is {state} in the end")
    return "1 point, ready"


async def _deleted_at_once(bench: Bench) -> str:
    folder = bench.folder
    paths = [f"{folder.path}k4/{number}" for number in range(CANARY_DELETES)]
    waiting = list(paths)

    async def upload_and_delete() -> None:
        while waiting:
            path = waiting.pop()
            await folder.upload(path, f"Gone at once: {path}.")
            await folder.delete(path)

    with first_failure():
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(upload_and_delete())
    deadline_s = time.monotonic() + CANARY_WAIT_SECONDS_MAX * bench.slack
    while await folder.jobs(f"{folder.path}k4/"):
        if time.monotonic() > deadline_s:
            raise Failed(f"not dealt with after {CANARY_WAIT_SECONDS_MAX * bench.slack:g} s")
        await asyncio.sleep(CANARY_POLL_SECONDS)
    hits = [
        hit
        for hit in await folder.found_by_meaning("Gone at once")
        if hit.startswith(f"{folder.path}k4/")
    ]
    if hits:
        raise Failed(f"{len(hits)} vectors are left, of {hits[0]} for one")
    if set((await folder.statuses(paths)).values()) != {"missing"}:
        raise Failed("some documents can still be read")
    try:
        await folder.content(paths[0])
    except NotFound:
        return f"{len(paths)} documents, no vector left"
    raise Failed(f"{paths[0]} can still be read")


CHECKS = (
    Check("K1", "A restart loses no document and no vector", _restart),
    Check("K2", "Writing the status asks for no more work", _no_echo),
    Check("K3", "Two changes of one document leave the points of the last", _twice),
    Check("K4", "Documents deleted at once leave no vectors", _deleted_at_once),
)
