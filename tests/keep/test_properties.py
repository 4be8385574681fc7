"""What holds for all ids, prefixes and patches, found by trying many."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drivers.runtimes import Caller, opened
from zibaldone.access.principal import Tenant
from zibaldone.errors import Ambiguous, InvalidArgument, NotFoundInContent
from zibaldone.keep.patch import Replacement, apply
from zibaldone.text import normalize
from zibaldone.tools.spec import Runtime

# Few letters, so that ids share starts; the signs that patterns, paths and byte order care about.
NAME = st.text(st.sampled_from("aAb0_%\\~é\uffee😀"), min_size=1, max_size=4)
ID = st.lists(NAME, min_size=1, max_size=3).map("/".join)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    with opened(tmp_path_factory.mktemp("properties") / "data") as runtime:
        yield runtime


_namespaces = itertools.count()


@pytest.mark.requirement("000/D1.07", "000/IX.01")
@settings(max_examples=60)
@given(
    alive=st.sets(ID, min_size=1, max_size=12),
    deleted=st.sets(ID, max_size=4),
    prefixes=st.lists(ID | NAME, min_size=1, max_size=6),
    limit=st.integers(1, 5),
)
def test_lists_are_the_sorted_ids_with_that_start(
    runtime: Runtime, alive: set[str], deleted: set[str], prefixes: list[str], limit: int
) -> None:
    caller = Caller(runtime, Tenant(namespace=f"example-{next(_namespaces)}"))
    for document_id in alive | deleted:
        caller("upload_document", path=document_id, content="")
    for document_id in deleted:
        caller("delete_document", path=document_id)
    ordered = sorted(alive - deleted, key=str.encode)
    for prefix in ["", *prefixes, *(one[:-1] for one in prefixes)]:
        expected = [one for one in ordered if one.startswith(prefix)]
        assert caller.ids(prefix=prefix, limit=100) == expected
        by_cursor: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = caller("list_documents", prefix=prefix, limit=limit, **more)
            by_cursor += [item["document_id"] for item in page["items"]]
            if "next_cursor" not in page:
                break
            more = {"cursor": page["next_cursor"]}
        assert by_cursor == expected
        by_offset = [
            one
            for offset in range(0, len(expected) + 1, limit)
            for one in caller.ids(prefix=prefix, limit=limit, offset=offset)
        ]
        assert by_offset == expected


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
PATH_TEXT = st.text(st.sampled_from("./ a\u00a0\u0301e\u3000"), max_size=14)


@settings(max_examples=2_000)
@given(raw=PATH_TEXT | ANY_TEXT)
def test_an_id_is_canonical_or_refused(raw: str) -> None:
    try:
        document_id = normalize.document_id(raw)
    except InvalidArgument:
        return
    assert normalize.document_id(document_id) == document_id, "an id that is listed can be read"
    segments = document_id.split("/")
    assert not {"", ".", ".."} & {segment.strip(" ") for segment in segments}
    assert document_id == document_id.strip(" /")
    assert len(document_id.encode()) <= 1024
    assert not any(char < " " or char == "\x7f" for char in document_id)


@settings(max_examples=500)
@given(prefix=st.text(st.characters(codec="utf-8"), max_size=6), text=st.text(max_size=8))
def test_a_prefix_is_a_range_of_bytes(prefix: str, text: str) -> None:
    end = normalize.prefix_end(prefix)
    for candidate in (text, prefix + text, prefix[:-1] + text):
        in_range = candidate.encode() >= prefix.encode() and (
            end is None or candidate.encode() < end.encode()
        )
        assert in_range is candidate.startswith(prefix)


BODY = st.text(st.sampled_from("ab\né"), max_size=12)


@settings(max_examples=500)
@given(body=BODY, old=BODY, new=BODY, every=st.booleans())
def test_a_patch_replaces_the_one_place_or_all_or_none(
    body: str, old: str, new: str, every: bool
) -> None:
    starts = [start for start in range(len(body)) if body.startswith(old, start)]
    replacement = Replacement(old, new, every)
    if not old:
        with pytest.raises(InvalidArgument):
            apply(body, [replacement], 1000)
    elif not starts:
        with pytest.raises(NotFoundInContent):
            apply(body, [replacement], 1000)
    elif every:
        assert apply(body, [replacement], 1000) == (body.replace(old, new), body.count(old))
    elif len(starts) > 1:
        with pytest.raises(Ambiguous) as refusal:
            apply(body, [replacement], 1000)
        assert 2 <= refusal.value.details["count"] <= len(starts)
    else:
        start = starts[0]
        expected = body[:start] + new + body[start + len(old) :]
        assert apply(body, [replacement], 1000) == (expected, 1)


@settings(max_examples=300)
@given(
    around=st.tuples(BODY, BODY),
    old=st.text(st.sampled_from("ab\né"), min_size=1, max_size=12),
    new=BODY,
    chars_max=st.integers(0, 40),
)
def test_a_patch_is_refused_exactly_when_it_grows_too_long(
    around: tuple[str, str], old: str, new: str, chars_max: int
) -> None:
    body = old.join(around)
    grown = body.replace(old, new)
    if len(grown) > chars_max:
        with pytest.raises(InvalidArgument):
            apply(body, [Replacement(old, new, every=True)], chars_max)
    else:
        assert apply(body, [Replacement(old, new, every=True)], chars_max)[0] == grown
