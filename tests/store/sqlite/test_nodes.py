"""Entities that many episodes mention."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import apsw

from tests.store.kept import Kept
from zibaldone.limits import ENTITIES_MAX, Limits
from zibaldone.model.document import Document
from zibaldone.model.memory import Entity, Episode
from zibaldone.store.open import open_store, store_url
from zibaldone.store.port import Reader, Writer

EPISODES = 50
KEYS = [f"name {number}" for number in range(ENTITIES_MAX)]


def _put(writer: Writer, document: Document, episode: Episode) -> None:
    writer.memory.put(document, episode)


def test_what_is_held_to_count_entities_is_not_all_that_mentions_them(tmp_path: Path) -> None:
    entities = [Entity(key, key.title() + 50 * "x", "Name") for key in KEYS]

    def measured(reader: Reader) -> tuple[set[int], int]:
        reader.memory.nodes("g", KEYS)  # from now on the pages of the file are in memory
        apsw.memory_high_water(True)
        before_bytes = apsw.memory_used()
        nodes = reader.memory.nodes("g", KEYS)
        return {node.episodes for node in nodes}, apsw.memory_high_water() - before_bytes

    with closing(open_store(store_url(tmp_path), Limits())) as store:
        kept = Kept(store, Limits())
        for number in range(EPISODES):
            document = kept.create(f"memory/g/{number}", "text")
            episode = Episode("g", str(number), 1, entities)
            kept.write(partial(_put, document=document, episode=episode))
        episodes, peak_bytes = kept.read(measured)
    assert episodes == {EPISODES}
    assert peak_bytes < 500_000  # for ten thousand mentions
