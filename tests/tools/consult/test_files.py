"""count_tokens: whose turn it is while files are read."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.runtimes import opened
from tests.pack.project import Project
from zibaldone.access.principal import LOCAL
from zibaldone.pack.counts import Counts
from zibaldone.tools.call import call_tool
from zibaldone.tools.consult.files import COUNT
from zibaldone.tools.spec import Call

HANG_SECONDS = 10


class SlowCounts(Counts):
    """Of files that take long to read."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def of(self, *args: Any, **options: Any) -> Any:
        self.has_begun.set()
        assert self.may_end.wait(HANG_SECONDS)
        return super().of(*args, **options)


@pytest.mark.engine("sqlite", reason="nothing is stored")
def test_who_gives_up_keeps_the_turn_until_the_thread_ends(data: Path, tmp_path: Path) -> None:
    """Else a key that comes and goes would have as many threads as it likes."""
    project = Project(tmp_path)
    project.words("a.py", 10)
    counts = SlowCounts()

    async def run(call: Call) -> None:
        given = {"paths": [str(project.root)]}
        counting = asyncio.create_task(call_tool(COUNT, call, given))
        await asyncio.to_thread(counts.has_begun.wait, HANG_SECONDS)
        counting.cancel()
        await asyncio.wait([counting], timeout=0.05)
        has_left = counting.done()
        counts.may_end.set()
        await asyncio.wait([counting])
        assert counting.cancelled()
        assert not has_left

    with opened(data) as runtime:
        assistants = {"reviewer": project.assistant()}
        asyncio.run(run(Call(replace(runtime, counts=counts, assistants=assistants), LOCAL)))
