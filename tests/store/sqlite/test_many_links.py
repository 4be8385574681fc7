"""Many documents with one name, or with links to one: what is held in memory to show a few."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from tests.store.kept import Kept
from zibaldone.limits import TITLE_CHARS_MAX, Limits
from zibaldone.model.link import Link
from zibaldone.store.open import open_store, store_url
from zibaldone.store.port import Reader

DOCUMENTS = 200


def test_no_more_of_them_is_held_than_is_shown(tmp_path: Path) -> None:
    def look(reader: Reader) -> tuple[list[str], list[str]]:
        named = reader.links.with_names(["same", "none"], each=2)
        pointing = reader.links.pointing([Link("path", "target")], limit=3)
        assert named.keys() == {"same"}
        return [one.document_id for one in named["same"]], [one.document_id for one in pointing]

    def measured(reader: Reader) -> tuple[tuple[list[str], list[str]], int]:
        look(reader)  # from now on the pages of the file are in memory
        apsw.memory_high_water(True)
        before_bytes = apsw.memory_used()
        return look(reader), apsw.memory_high_water() - before_bytes

    with closing(open_store(store_url(tmp_path), Limits())) as store:
        kept = Kept(store, Limits())
        for number in range(DOCUMENTS):
            title = TITLE_CHARS_MAX * "x"
            kept.create(f"{number:03}/same", "See [this](/target).", title=title)
        found, peak_bytes = kept.read(measured)
    assert found == (["000/same", "001/same"], ["000/same", "001/same", "002/same"])
    assert peak_bytes < DOCUMENTS * TITLE_CHARS_MAX / 2
