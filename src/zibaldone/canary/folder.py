"""The documents that one run writes: where they are, what became of them, and how they go again."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from zibaldone.canary.deployment import Deployment, Unreachable
from zibaldone.errors import Forbidden, NotFound, VectorsUnavailable, ZibaldoneError
from zibaldone.limits import (
    BATCH_PATHS_MAX,
    CANARY_CLEAR_SECONDS_MAX,
    CANARY_POLL_SECONDS,
    CANARY_STALE_SECONDS,
    JOB_LIST_LIMIT_MAX,
    LIST_LIMIT_MAX,
)

ROOT = "zibaldone-canary/"
SKIPPED = ("operations/tasks/comments/", "registries/")
"""Where documents get no vectors."""

_STAMP = "%Y%m%dT%H%M%S"
_DELETES_AT_ONCE = 4


class Folder:
    """Every document carries the run's tag, and its path has the run's name.

    Skipped paths stand at the top, so documents there are in two more folders of the same name.
    """

    def __init__(self, deployment: Deployment, above: str = "") -> None:
        self._deployment = deployment
        self._above = above
        run = f"{datetime.now(UTC).strftime(_STAMP)}-{secrets.token_hex(3)}"
        self.tag = f"{ROOT}{run}"
        self.path = f"{above}{ROOT}{run}/"
        self.skipped = () if above else tuple(f"{start}{ROOT}{run}/" for start in SKIPPED)
        """Empty: the caller may write to one folder only."""
        self._written: dict[str, None] = {}

    @classmethod
    async def open(cls, deployment: Deployment) -> Folder:
        """Forbidden: the caller may not write or delete."""
        folder = cls(deployment)
        try:
            await folder._try_out()
        except Forbidden as refusal:
            above = refusal.details.get("allowed_prefix")
            if not isinstance(above, str) or not above:
                raise
            folder = cls(deployment, above)
            await folder._try_out()
        return folder

    async def _try_out(self) -> None:
        """Deleting comes first: who may not delete must not begin to write."""
        path = f"{self.path}probe"
        with contextlib.suppress(NotFound):
            await self._deployment.call("delete_document", {"path": path})
        try:
            await self.upload(path, "")
        finally:
            await self.clear()

    async def upload(self, path: str, content: str, *, upsert: bool = False) -> None:
        self._written[path] = None  # before it is sent: it may be stored though no answer comes
        arguments = {"path": path, "content": content, "tags": [self.tag], "upsert": upsert}
        await self._deployment.call("upload_document", arguments)

    async def update(self, path: str, content: str) -> None:
        await self._deployment.call("update_document", {"path": path, "content": content})

    async def patch(self, path: str, old: str, new: str) -> None:
        arguments = {"path": path, "old_str": old, "new_str": new}
        await self._deployment.call("patch_document", arguments)

    async def delete(self, path: str) -> None:
        await self._deployment.call("delete_document", {"path": path})
        self._written.pop(path, None)

    async def statuses(self, paths: Sequence[str]) -> dict[str, str]:
        """The vector status of each; `missing` if there is no such document."""
        found: dict[str, str] = {}
        for start in range(0, len(paths), BATCH_PATHS_MAX):
            part = list(paths[start : start + BATCH_PATHS_MAX])
            answer = await self._deployment.call("batch_read", {"paths": part})
            for item in answer["items"]:
                found[item["path"]] = item.get("vector_status", "missing")
        return found

    async def content(self, path: str) -> str:
        answer = await self._deployment.call("get_document", {"path": path, "related": False})
        content: str = answer["content"]
        return content

    async def ready_after(self, paths: Sequence[str], seconds_max: float) -> float:
        """Wait until all are ready; how long that took. TimeoutError names those that are not."""
        began_s = time.monotonic()
        while True:
            states = await self.statuses(paths)
            took_s = time.monotonic() - began_s
            late = [f"{path}: {state}" for path, state in states.items() if state != "ready"]
            if not late:
                return took_s
            if took_s > seconds_max:
                more = f" and {len(late) - 1} more" if len(late) > 1 else ""
                raise TimeoutError(f"after {took_s:.1f} s: {late[0]}{more}")
            await asyncio.sleep(CANARY_POLL_SECONDS)

    async def chunks(self, path: str) -> list[dict[str, Any]]:
        """The first two chunks of a document, with their point ids."""
        answer = await self._deployment.call(
            "rag.get_chunks", {"chunk_ids": [f"{path}#0", f"{path}#1"]}
        )
        chunks: list[dict[str, Any]] = answer["chunks"]
        return chunks

    async def found_by_meaning(self, text: str, paths: Sequence[str] = ()) -> list[str]:
        """Ids of the nearest chunks of this run, or only of some of its documents."""
        filters: dict[str, Any] = {"tags_any": [self.tag]}
        if paths:
            filters["doc_ids"] = list(paths)
        wanted = {"query_text": text, "k": 50, "filters": filters}
        while True:
            try:
                answer = await self._deployment.call("rag.search_vector", wanted)
            except VectorsUnavailable:  # still reading them into memory
                await asyncio.sleep(CANARY_POLL_SECONDS)
            else:
                return [hit["chunk_id"] for hit in answer["results"]]

    async def jobs(self, path: str = "") -> list[str]:
        """Queued and running jobs about documents of this run, or about one of them."""
        starts = (path,) if path else (self.path, *self.skipped)
        subjects = []
        for state in ("queued", "running"):
            answer = await self._deployment.call(
                "list_jobs", {"kind": "vectors", "state": state, "limit": JOB_LIST_LIMIT_MAX}
            )
            subjects += [job["subject"] or "" for job in answer["jobs"]]
        return [subject for subject in subjects if subject.startswith(starts)]

    async def clear(self) -> list[str]:
        """Delete all that was written; what could not be deleted is returned."""
        left = await self._delete_all(self._written)
        deadline_s = time.monotonic() + CANARY_CLEAR_SECONDS_MAX
        with contextlib.suppress(ZibaldoneError, Unreachable):  # jobs end by themselves
            while time.monotonic() < deadline_s:
                if not await self.jobs():
                    break
                await asyncio.sleep(CANARY_POLL_SECONDS)
        return left

    async def clear_earlier(self) -> None:
        """Delete what runs left that were killed long ago."""
        for start in (self._above + ROOT, *(f"{top}{ROOT}" for top in SKIPPED if self.skipped)):
            arguments = {"prefix": start, "limit": LIST_LIMIT_MAX}
            page = await self._deployment.call("list_documents", arguments)
            stale = [
                item["document_id"]
                for item in page["items"]
                if _is_stale(item["document_id"].removeprefix(start))
            ]
            await self._delete_all(stale)

    async def _delete_all(self, paths: Iterable[str]) -> list[str]:
        waiting = list(paths)
        left: list[str] = []

        async def delete_some() -> None:
            while waiting:
                path = waiting.pop()
                try:
                    await self.delete(path)
                except NotFound:
                    pass
                except (ZibaldoneError, Unreachable):
                    left.append(path)

        await asyncio.gather(*(delete_some() for _ in range(_DELETES_AT_ONCE)))
        return left


def _is_stale(name: str) -> bool:
    """Whether a run that is named so began long ago."""
    try:
        began = datetime.strptime(name.partition("-")[0], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return False
    return datetime.now(UTC) - began > timedelta(seconds=CANARY_STALE_SECONDS)
