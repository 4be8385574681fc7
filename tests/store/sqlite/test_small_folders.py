"""A caller bound to a folder of a few documents among many of others: its lists cost what they cost
in a namespace of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.drivers.catalogues import BY_NAME
from tests.drivers.runtimes import opened
from tests.store.sqlite.test_small_tenants import Steps
from zibaldone.access.principal import Principal, Tenant
from zibaldone.limits import Limits
from zibaldone.model.link import Link
from zibaldone.model.query import Filter
from zibaldone.store.sqlite.store import Session
from zibaldone.store.sqlite.vectors import VectorMemory
from zibaldone.tools.call import call_tool
from zibaldone.tools.spec import Call, Runtime

CROWDED, ALONE = "crowded", "alone"
OTHERS = 200


async def _fill(runtime: Runtime) -> None:
    async def write(namespace: str, folder: str, documents: int) -> None:
        call = Call(runtime, Principal(key_id="test", tenant=Tenant(namespace)))
        for number in range(documents):
            text = "About [mine](/m/0/same.md), [[same]]."
            path = f"{folder}/{number}/same.md"
            await call_tool(BY_NAME["upload_document"], call, {"path": path, "content": text})
            said = {"name": "Talk", "episode_body": f"Said {number}.", "group_id": folder}
            await call_tool(BY_NAME["add_memory"], call, said)

    await write(ALONE, "m", 3)
    await write(CROWDED, "m", 3)
    await write(CROWDED, "a", OTHERS)
    await write(CROWDED, "z", OTHERS)


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steps]:
    folder = tmp_path_factory.mktemp("small_folders")
    with opened(folder) as runtime:
        asyncio.run(_fill(runtime))
        made = Steps(folder)
        yield made
        made.raw.close()


READS: dict[str, Callable[[Session], object]] = {
    "recent": lambda reader: [head.document_id for head in reader.documents.recent("", limit=10)],
    "names": lambda reader: reader.links.with_names(["same"], each=2),
    "backlinks": lambda reader: reader.links.pointing(
        [Link("path", "m/0/same.md"), Link("name", "same")], limit=10
    ),
    "groups": lambda reader: reader.memory.groups(),
    "changes": lambda reader: len(reader.audit.page(None, limit=1_000)),
    "sources": lambda reader: reader.sources.counts(),
    "unready": lambda reader: reader.vectors.coverage("none"),
    "tagged": lambda reader: reader.vectors.passing([], Filter(tags_any=("none",))),
    "dated": lambda reader: reader.vectors.passing([], Filter(updated_after_us=1)),
}


@pytest.mark.parametrize("prefix", ["m/", "memory/m/"])
@pytest.mark.parametrize("read", READS)
def test_what_others_wrote_beside_a_folder_is_passed_by(
    steps: Steps, read: str, prefix: str
) -> None:
    needed, found = [], []
    for namespace in (ALONE, CROWDED):
        reader = Session(steps.raw, Tenant(namespace, prefix), VectorMemory(), Limits())
        steps.since()
        found.append(READS[read](reader))
        needed.append(steps.since())
    assert found[0] == found[1]
    assert needed[1] < 2 * needed[0] + 20, needed


@pytest.mark.parametrize("prefix", ["m/", "memory/m/"])
def test_a_group_outside_of_the_folder_costs_nothing(steps: Steps, prefix: str) -> None:
    reader = Session(steps.raw, Tenant(CROWDED, prefix), VectorMemory(), Limits())
    steps.since()
    assert reader.memory.latest(["a"], limit=10) == []
    assert reader.memory.nodes("a", ["said"]) == []
    assert reader.memory.stating("a", "said", limit=10) == []
    assert steps.since() == 0


@pytest.mark.parametrize(("prefix", "groups"), [("a/", {}), ("mem", {"m": 3, "a": 200, "z": 200})])
def test_groups_are_not_looked_for_among_other_documents(
    steps: Steps, prefix: str, groups: dict[str, int]
) -> None:
    reader = Session(steps.raw, Tenant(CROWDED, prefix), VectorMemory(), Limits())
    steps.since()
    assert reader.memory.groups() == groups
    assert groups or steps.since() < OTHERS / 10
