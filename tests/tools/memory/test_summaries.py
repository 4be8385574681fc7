"""The summary of an entity of which much was said."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any

from tests.drivers.catalogues import BY_NAME
from tests.drivers.runtimes import opened
from zibaldone.access.principal import Principal, Tenant
from zibaldone.limits import FACTS_MAX, MEMORY_SUMMARY_FACTS
from zibaldone.tools.call import call_tool
from zibaldone.tools.spec import Call, Runtime

NAMES = ["Anna", "Berta", "Clara", "Dora"]


async def _search(runtime: Runtime) -> tuple[list[dict[str, Any]], int]:
    call = Call(runtime, Principal(key_id="test", tenant=Tenant()))
    for name in NAMES:
        for number in range(MEMORY_SUMMARY_FACTS):
            lines = [
                f"{name} met {NAMES[line % 4 - 1]} at {number}, {line}." for line in range(270)
            ]
            said = {"name": "Talk", "episode_body": "\n".join(lines)}
            await call_tool(BY_NAME["add_memory"], call, said)
    asked = {"query": " ".join(NAMES), "max_nodes": 100}
    await call_tool(BY_NAME["search_nodes"], call, asked)
    tracemalloc.start()
    try:
        answer: Any = await call_tool(BY_NAME["search_nodes"], call, asked)
        return answer["nodes"], tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_few_of_its_facts_are_in_memory_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path) as runtime:
        nodes, peak_bytes = asyncio.run(_search(runtime))
    summaries = {node["name"]: node["summary"] for node in nodes}
    for name in NAMES:
        assert summaries[name].startswith(f"{name} met "), summaries
        assert summaries[name].count(" met ") == MEMORY_SUMMARY_FACTS
    facts = len(NAMES) * MEMORY_SUMMARY_FACTS * FACTS_MAX
    assert peak_bytes < facts * 500  # it was much more
