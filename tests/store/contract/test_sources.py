"""Sources that are added, changed and removed, and what is remembered of their rows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.store.backends import Backend
from tests.store.kept import EVERYTHING, Kept
from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict, Forbidden, NotFound
from zibaldone.keep.commit import Actor, commit
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import KB_SOURCE_ID, Document
from zibaldone.model.pulled import PulledBlock, PulledRow, PulledRun
from zibaldone.store.port import Writer
from zibaldone.store.upkeep import Source

OTHER = Tenant("other")
DEFINITION: dict[str, Any] = {"chunking": {"by": "structure"}, "pull": {"url": "sqlite:x", "z": 1}}


def add(kept: Kept, name: str = "posts", namespace: str = "default", **more: Any) -> int:
    definition = more.pop("definition", DEFINITION)
    return asyncio.run(
        kept.store.upkeep(
            lambda upkeep: upkeep.sources.add(
                namespace, name, "pulled", definition, at_us=7, **more
            )
        )
    )


def source(kept: Kept, source_id: int) -> Source:
    (found,) = [s for s in sources(kept) if s.source_id == source_id]
    return found


def sources(kept: Kept) -> list[Source]:
    return asyncio.run(kept.store.upkeep(lambda upkeep: upkeep.sources.all(), write=False))


def row(number: int, block: int = 1, mark: int = 5) -> PulledRow:
    return PulledRow(f"posts:{number}", block, mark, bytes([number]))


def block(number: int, rows: int = 2, *, is_settled: bool = True) -> PulledBlock:
    return PulledBlock(number, rows, b"digest", f"[{number}]", is_settled)


def test_a_source_that_was_added_is_there_with_its_definition(kept: Kept) -> None:
    source_id = add(kept)
    added = source(kept, source_id)
    assert source_id > KB_SOURCE_ID
    assert (added.namespace, added.name, added.kind) == ("default", "posts", "pulled")
    assert (added.enabled, added.documents, added.last_sync_at_us) == (True, 0, None)
    assert added.definition == DEFINITION
    assert list(added.definition["pull"]) == ["url", "z"]
    assert added.chunking == Chunking()
    assert source(kept, KB_SOURCE_ID).definition == {}


def test_a_caller_sees_the_sources_of_its_namespace(kept: Kept) -> None:
    mine, theirs = add(kept), add(kept, namespace="other", enabled=False)
    assert [s.source_id for s in kept.read(lambda r: r.sources.all())] == [KB_SOURCE_ID, mine]
    named = kept.read(lambda r: r.sources.named("posts"), OTHER)
    assert named is not None
    assert (named.source_id, named.enabled, named.definition) == (theirs, False, DEFINITION)
    assert kept.read(lambda r: r.sources.get(theirs)) is None
    assert kept.read(lambda r: r.sources.get(theirs), OTHER) == named
    assert kept.read(lambda r: r.sources.named("absent")) is None


def test_a_name_is_used_once_in_a_namespace(kept: Kept) -> None:
    add(kept)
    with pytest.raises(Conflict, match="posts"):
        add(kept)
    with pytest.raises(Conflict, match="kb"):
        add(kept, "kb")
    add(kept, namespace="other")


def test_of_two_that_add_a_name_at_once_one_is_refused(kept: Kept, backend: Backend) -> None:
    other = backend.open(Limits())

    async def both() -> list[Any]:
        return await asyncio.gather(
            *(
                store.upkeep(
                    lambda upkeep: upkeep.sources.add("default", "posts", "pulled", {}, at_us=1)
                )
                for store in (kept.store, other)
            ),
            return_exceptions=True,
        )

    try:
        outcomes = asyncio.run(both())
    finally:
        other.close()
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1


def test_a_new_chunking_is_a_new_version_and_the_rest_is_not(kept: Kept) -> None:
    source_id = add(kept)
    recut = {"chunking": {"by": "size", "size_chars": 500}, "pull": {}}

    def redefine(definition: dict[str, Any]) -> tuple[bool, int]:
        is_recut = asyncio.run(
            kept.store.upkeep(lambda upkeep: upkeep.sources.redefine(source_id, definition))
        )
        version = asyncio.run(
            kept.store.upkeep(lambda upkeep: upkeep.sources.chunking_version(source_id))
        )
        return is_recut, version

    assert redefine({**DEFINITION, "pull": {"url": "sqlite:y"}}) == (False, 0)
    assert source(kept, source_id).definition["pull"] == {"url": "sqlite:y"}
    assert redefine(recut) == (True, 1)
    assert source(kept, source_id).chunking == Chunking.by_size(500)
    assert kept.read(lambda r: r.sources.chunking(source_id)) == Chunking.by_size(500)


def test_a_disabled_source_is_not_searched(kept: Kept) -> None:
    source_id = add(kept)
    document(kept, source_id, "posts:1", "zebra")
    assert kept.search("zebra")
    upkeep_enable(kept, source_id, False)
    assert not kept.search("zebra")
    assert not source(kept, source_id).enabled
    upkeep_enable(kept, source_id, True)
    assert kept.search("zebra")


def test_a_source_is_removed_when_its_documents_are(kept: Kept) -> None:
    source_id = add(kept)
    document(kept, source_id, "posts:1", "zebra")
    kept.write(lambda writer: remember(writer, source_id))
    remove = kept.store.upkeep
    with pytest.raises(Conflict):
        asyncio.run(remove(lambda upkeep: upkeep.sources.remove(source_id)))
    assert asyncio.run(remove(lambda upkeep: upkeep.sources.release(source_id, 10))) == 0
    kept.delete("posts:1")
    with pytest.raises(Conflict):
        asyncio.run(remove(lambda upkeep: upkeep.sources.remove(source_id)))
    assert asyncio.run(remove(lambda upkeep: upkeep.sources.release(source_id, 10))) == 1
    asyncio.run(remove(lambda upkeep: upkeep.sources.remove(source_id)))
    assert [s.name for s in sources(kept)] == ["kb"]
    kept.create("posts:1", "it comes back as a document of the built-in source")
    again = add(kept)
    assert kept.read(lambda r: r.pulled.count(again)) == 0
    assert kept.read(lambda r: r.pulled.last_run(again)) is None


@pytest.mark.parametrize(("source_id", "refusal"), [(99, NotFound), (KB_SOURCE_ID, Forbidden)])
def test_what_is_not_there_or_built_in_is_refused(
    kept: Kept, source_id: int, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        kept.upkeep(lambda upkeep: upkeep.sources.remove(source_id))
    with pytest.raises(refusal):
        kept.upkeep(lambda upkeep: upkeep.sources.enable(source_id, False))
    with pytest.raises(refusal):
        kept.upkeep(lambda upkeep: upkeep.sources.redefine(source_id, {}))


def test_the_last_sync_is_told(kept: Kept) -> None:
    source_id = add(kept)
    asyncio.run(kept.store.upkeep(lambda upkeep: upkeep.sources.set_synced(source_id, 123)))
    assert source(kept, source_id).last_sync_at_us == 123
    counts = {s.name: s.last_sync_at_us for s in kept.read(lambda r: r.sources.counts())}
    assert counts == {"kb": None, "posts": 123}


def test_rows_and_blocks_are_remembered(kept: Kept) -> None:
    source_id = add(kept)
    kept.write(lambda writer: remember(writer, source_id))
    rows = kept.read(lambda r: r.pulled.rows(source_id, ["posts:1", "posts:3", "posts:9"]))
    assert rows == {"posts:1": row(1), "posts:3": row(3, 2)}
    assert kept.read(lambda r: r.pulled.rows(source_id, [])) == {}
    assert kept.read(lambda r: r.pulled.count(source_id)) == 3
    unsettled = block(2, 1, is_settled=False)
    assert kept.read(lambda r: r.pulled.blocks(source_id)) == [block(1), unsettled]
    kept.write(lambda w: w.pulled.put_rows(source_id, [row(1, 3, mark=-(2**63))]))
    changed = kept.read(lambda r: r.pulled.rows(source_id, ["posts:1"]))
    assert changed == {"posts:1": row(1, 3, mark=-(2**63))}


def test_rows_without_a_block_are_lost(kept: Kept) -> None:
    source_id = add(kept)
    kept.write(lambda writer: remember(writer, source_id))
    assert kept.read(lambda r: r.pulled.lost(source_id, 10)) == []
    assert kept.read(lambda r: r.pulled.count_lost(source_id, [])) == 0
    assert kept.read(lambda r: r.pulled.count_lost(source_id, [1])) == 2
    kept.write(lambda w: w.pulled.put_rows(source_id, [row(8, 77)]))
    assert kept.read(lambda r: r.pulled.count_lost(source_id, [1])) == 3
    kept.write(lambda w: w.pulled.drop_blocks(source_id, [1]))
    assert sorted(kept.read(lambda r: r.pulled.lost(source_id, 10))) == [
        "posts:1",
        "posts:2",
        "posts:8",
    ]
    assert len(kept.read(lambda r: r.pulled.lost(source_id, 2))) == 2
    kept.write(lambda w: w.pulled.move_rows(source_id, ["posts:1", "posts:99"], 2))
    kept.write(lambda w: w.pulled.remove_rows(source_id, ["posts:8"]))
    assert kept.read(lambda r: r.pulled.lost(source_id, 10)) == ["posts:2"]
    assert kept.read(lambda r: r.pulled.count(source_id)) == 3


def test_only_the_last_run_may_write(kept: Kept) -> None:
    source_id = add(kept)
    with pytest.raises(Conflict):
        kept.write(lambda w: w.pulled.require_run(source_id, 1))
    kept.write(lambda w: w.pulled.begin(source_id, 1))
    kept.write(lambda w: w.pulled.require_run(source_id, 1))
    kept.write(lambda w: w.pulled.finish(source_id, 1))
    assert kept.read(lambda r: r.pulled.last_run(source_id)) == PulledRun(1, True)
    kept.write(lambda w: w.pulled.begin(source_id, 2))
    assert kept.read(lambda r: r.pulled.last_run(source_id)) == PulledRun(2, False)
    with pytest.raises(Conflict):
        kept.write(lambda w: w.pulled.require_run(source_id, 1))
    kept.write(lambda w: w.pulled.finish(source_id, 1))
    assert kept.read(lambda r: r.pulled.last_run(source_id)) == PulledRun(2, False)


def test_another_namespace_sees_and_changes_nothing_of_it(kept: Kept) -> None:
    source_id = add(kept)
    kept.write(lambda writer: remember(writer, source_id))
    before = kept.read(lambda r: (r.pulled.blocks(source_id), r.pulled.count(source_id)))
    assert kept.read(lambda r: r.pulled.blocks(source_id), OTHER) == []
    assert kept.read(lambda r: r.pulled.rows(source_id, ["posts:1"]), OTHER) == {}
    assert kept.read(lambda r: r.pulled.count(source_id), OTHER) == 0
    assert kept.read(lambda r: r.pulled.lost(source_id, 9), OTHER) == []
    assert kept.read(lambda r: r.pulled.last_run(source_id), OTHER) is None
    kept.write(lambda w: w.pulled.remove_rows(source_id, ["posts:1"]), OTHER)
    kept.write(lambda w: w.pulled.drop_blocks(source_id, [1, 2]), OTHER)
    kept.write(lambda w: w.pulled.move_rows(source_id, ["posts:1"], 9), OTHER)
    after = kept.read(lambda r: (r.pulled.blocks(source_id), r.pulled.count(source_id)))
    assert after == before


def remember(writer: Writer, source_id: int) -> None:
    writer.pulled.begin(source_id, 1)
    writer.pulled.put_rows(source_id, [row(1), row(2), row(3, 2)])
    writer.pulled.put_block(source_id, block(1))
    writer.pulled.put_block(source_id, block(2, 1, is_settled=False))


def document(kept: Kept, source_id: int, path: str, body: str) -> Document:
    actor = Actor("tester")

    def write(writer: Writer) -> Document:
        made, _ = create(writer, NewDocument(path, body), actor, kept.limits)
        after = replace(made, source_id=source_id, revision=2, pk={"Id": 1})
        return commit(writer, made, after, actor)

    return kept.write(write, EVERYTHING)


def upkeep_enable(kept: Kept, source_id: int, enabled: bool) -> None:
    asyncio.run(kept.store.upkeep(lambda upkeep: upkeep.sources.enable(source_id, enabled)))
