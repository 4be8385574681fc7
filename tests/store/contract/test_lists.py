"""Lists: byte order, literal prefixes, pages by offset and by the id before."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.store.kept import ACTOR, EVERYTHING, Kept
from zibaldone.access.principal import Tenant
from zibaldone.keep.create import NewDocument, create
from zibaldone.store.port import Listing, Writer

LAST_BEFORE_SURROGATES = "\ud7ff"
FIRST_AFTER_SURROGATES = "\ue000"
LAST = "\U0010ffff"

IDS = (
    "100%/a",
    "100x/a",
    "A",
    "Z/z",
    "_",
    "a",
    "a!",
    "a-b",
    "a.b",
    "a/b",
    "a/b/c",
    "a0",
    "aB",
    "a_",
    "ab",
    "a\\b",
    "knowledge/one",
    "knowledge/two",
    "knowledgeX/one",
    "knowledge_/one",
    "z",
    "~",
    "é",
    "e\u0301",
    "ß/tief",
    "việt/nam",
    "日本/語",
    f"x{LAST_BEFORE_SURROGATES}",
    f"x{LAST_BEFORE_SURROGATES}y",
    f"x{FIRST_AFTER_SURROGATES}",
    "x\ufffd",  # before the next one in UTF-8, after it in UTF-16
    "x\U00010000",
    f"x{LAST}",
    f"x{LAST}y",
    "y",
    LAST,
    LAST * 2,
    LAST * 2 + "z",
)


def in_byte_order(ids: tuple[str, ...] | list[str] = IDS) -> list[str]:
    return sorted(ids, key=str.encode)


@pytest.fixture
def filled(kept: Kept) -> Kept:
    def work(writer: Writer) -> None:
        for path in reversed(IDS):
            create(writer, NewDocument(path, "text"), ACTOR, kept.limits)

    kept.write(work)
    return kept


@pytest.mark.requirement("000/IX.01", "T14")
def test_ids_come_in_byte_order(filled: Kept) -> None:
    assert filled.ids() == in_byte_order()
    assert filled.ids() == filled.ids()


@pytest.mark.requirement("000/D1.07")
def test_a_prefix_is_literal_whatever_its_last_character(filled: Kept) -> None:
    prefixes = {path[:end] for path in IDS for end in range(len(path) + 1)}
    prefixes |= {"%", "a%", "a_b", "\\", "nothing", "x\ud7fe", "x\U0010fffe", LAST * 3, "a/b/c/d"}
    for prefix in sorted(prefixes):
        expected = [path for path in in_byte_order() if path.startswith(prefix)]
        assert filled.ids(prefix) == expected, ascii(prefix)


def test_pages_by_offset_and_by_the_id_before_are_slices_of_the_whole(filled: Kept) -> None:
    for prefix in ("", "a", "x", LAST):
        whole = filled.ids(prefix)
        for start in range(len(whole) + 2):
            assert filled.ids(prefix, offset=start, limit=3) == whole[start : start + 3]
        for position, path in enumerate(whole):
            assert filled.ids(prefix, after=path, limit=3) == whole[position + 1 : position + 4]


def test_the_id_before_need_not_exist(filled: Kept) -> None:
    for after in ("", "a/b/zzz", "knowledge", f"x{LAST}a", LAST * 9):
        expected = [path for path in in_byte_order() if path.encode() > after.encode()]
        assert filled.ids(after=after) == expected, ascii(after)


def test_an_id_before_the_prefix_starts_at_the_prefix(filled: Kept) -> None:
    assert filled.ids("knowledge/", after="a") == ["knowledge/one", "knowledge/two"]
    assert filled.ids("knowledge/", after="z") == []


@pytest.mark.requirement("T6", "000/D1.06")
def test_deleted_documents_are_in_no_list_and_shift_no_page(filled: Kept) -> None:
    whole = filled.ids()
    for path in whole[::2]:
        filled.delete(path)
    assert filled.ids() == whole[1::2]
    assert filled.ids(offset=3, limit=2) == whole[1::2][3:5]
    assert filled.ids("knowledge/") == [
        path for path in whole[1::2] if path.startswith("knowledge/")
    ]


@pytest.mark.requirement("000/CC.03")
def test_a_list_shows_a_write_at_once_with_what_it_changed(kept: Kept) -> None:
    kept.create("a/b", title="First", tags=("x", "y"))
    (head,) = kept.heads("a/")
    assert (head.document_id, head.parent_id, head.title, head.tags, head.revision) == (
        "a/b", "a", "First", ("x", "y"), 1,
    )  # fmt: skip
    kept.update("a/b", title="Second", tags=())
    (head,) = kept.heads("a/")
    assert (head.title, head.tags, head.revision) == ("Second", (), 2)


def test_a_tenant_and_a_prefix_are_both_literal(filled: Kept) -> None:
    for visible in ("", "a", "knowledge", f"x{LAST}", LAST):
        for prefix in ("", "a", "a/", "knowledge/", "x", f"x{LAST}y", LAST * 2):
            expected = [
                path
                for path in in_byte_order()
                if path.startswith(visible) and path.startswith(prefix)
            ]
            assert filled.ids(prefix, Tenant(prefix=visible)) == expected


TAKEN = tuple(in_byte_order())
PLACES = {
    "whole": {},
    "start": {"limit": 3},
    "middle": {"limit": 3, "after": TAKEN[10]},
    "by offset": {"limit": 3, "offset": 7},
    "end": {"limit": 3, "after": TAKEN[-2]},
    "behind the end": {"limit": 3, "offset": 10_000},
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("prefix", ["", "a", "knowledge/", LAST, "nothing"])
def test_a_listing_is_the_heads_as_json(filled: Kept, prefix: str, place: dict[str, Any]) -> None:
    heads = filled.heads(prefix, **place)
    listing = filled.listing(prefix, **place)
    assert orjson.loads(listing.to_json()) == orjson.loads(orjson.dumps(heads))
    assert list(listing.heads) == heads
    assert listing.count == len(heads)
    assert listing.last_id == (heads[-1].document_id if heads else None)
    assert listing.has_more == bool(heads and filled.heads(prefix, after=listing.last_id, limit=1))


def test_a_listing_writes_every_character_as_json_does(kept: Kept) -> None:
    odd = '"quoted" back\\slash \u0001 tab\t 語 \U0001f600 </script>'
    kept.create("a", title=odd, tags=(odd, "é"))
    (item,) = orjson.loads(kept.listing().to_json())
    (head,) = kept.heads()
    assert (item["title"], item["tags"]) == (head.title, list(head.tags))
    assert "\u0001" in head.title


def test_a_listing_made_of_heads_is_the_one_that_the_engine_makes(filled: Kept) -> None:
    heads = filled.heads(limit=5)
    plain, made = Listing(heads, has_more=True), filled.listing(limit=5)
    assert orjson.loads(plain.to_json()) == orjson.loads(made.to_json())
    assert (plain.count, plain.last_id, plain.has_more) == (made.count, made.last_id, made.has_more)
    assert (list(plain.heads), Listing((), has_more=False).last_id) == (list(made.heads), None)


class TestLevels:
    PATHS = ("a", "n/1", "n/2", "n/d/3", "n/d/e/4", "nb/5", "\u00fc/6", "z")

    def test_folders_are_counted_in_byte_order(self, kept: Kept) -> None:
        for path in (*self.PATHS, "gone/x"):
            kept.create(path, "text")
        kept.delete("gone/x")

        def folders(
            prefix: str, limit: int = 9, tenant: Tenant = EVERYTHING
        ) -> list[tuple[str, int]]:
            found = kept.read(lambda reader: reader.documents.folders(prefix, limit=limit), tenant)
            return [(one.prefix, one.count) for one in found]

        assert folders("") == [("n/", 4), ("nb/", 1), ("\u00fc/", 1)]
        assert folders("", 2) == [("n/", 4), ("nb/", 1)]
        assert folders("n") == [("n/", 4), ("nb/", 1)]
        assert folders("n/") == [("n/d/", 2)]
        assert folders("q/") == []
        assert folders("", tenant=Tenant(EVERYTHING.namespace, "n/d/")) == [("n/", 2)]
        assert folders("nb/", tenant=Tenant(EVERYTHING.namespace, "n/d/")) == []
        assert folders("", tenant=Tenant("other")) == []

    def test_documents_of_one_level_come_in_pages(self, kept: Kept) -> None:
        for path in self.PATHS:
            kept.create(path, "text")

        def here(prefix: str, **more: Any) -> list[str]:
            arguments = {"limit": 9, **more}
            found = kept.read(lambda reader: reader.documents.heads_here(prefix, **arguments))
            return [head.document_id for head in found]

        assert here("") == ["a", "z"]
        assert here("", limit=1) == ["a"]
        assert here("", after="a") == ["z"]
        assert here("n/") == ["n/1", "n/2"]
        assert here("n/", after="n/1") == ["n/2"]
        assert here("n") == []
