"""The Accept header: what is read from it and which format it leads to."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zibaldone.protocol.negotiate import ACCEPTABLE, Accept, parse_accept

JSON, SSE = "application/json", "text/event-stream"

_media = st.sampled_from(
    [JSON, SSE, "application/*", "text/*", "*/*", "*", "application/xml", "text/html", "image/png"]
)
_quality = st.one_of(
    st.none(),
    st.floats(0, 1).map(lambda q: f"{q:.3f}"),
    st.floats(allow_nan=True, allow_infinity=True).map(str),
    st.text(alphabet="0123456789.-+eEnaif_ ", max_size=6),
)


def _item(media: str, quality: str | None) -> str:
    return media if quality is None else f"{media};q={quality}"


_items = st.lists(st.builds(_item, _media, _quality), min_size=1, max_size=5)
_any_text = st.one_of(
    _items.map(", ".join),
    st.text(max_size=60),
    st.text(alphabet='ajpxt/*;,q=0.19 "\\-', max_size=60),
)


class TestWhatIsRead:
    @pytest.mark.requirement("001/H.01")
    def test_both_wishes_their_qualities_and_whether_any_media_type_was_named(self) -> None:
        assert parse_accept(f"{JSON};q=0.5, {SSE};q=0.8") == Accept(
            wants_json=True, wants_sse=True, q_json=0.5, q_sse=0.8, any_valid_media=True
        )
        assert parse_accept("application/xml") == Accept(
            wants_json=False, wants_sse=False, q_json=0.0, q_sse=0.0, any_valid_media=True
        )
        assert parse_accept(";;;").any_valid_media is False

    @pytest.mark.requirement("001/H.02", "001/N.01", "001/N.02", "X-11")
    @pytest.mark.parametrize(
        ("header", "wants_json", "wants_sse"),
        [
            ("*/*", True, False),
            ("*", True, False),
            ("application/*", True, False),
            ("text/*", False, True),
            (JSON, True, False),
            (SSE, False, True),
            (f"{SSE}, application/*", True, True),
            ("APPLICATION/JSON", True, False),
            (f" {SSE} ;charset=utf-8", False, True),
            (f"{JSON};profile=x;Q=0", False, False),
            (f"{SSE};q = 0 , {JSON} ; q = 1", True, False),
        ],
    )
    def test_ranges_and_missing_qualities(
        self, header: str, wants_json: bool, wants_sse: bool
    ) -> None:
        accept = parse_accept(header)
        assert (accept.wants_json, accept.wants_sse) == (wants_json, wants_sse)

    @pytest.mark.requirement("000/AC.09")
    def test_a_missing_quality_is_one(self) -> None:
        accept = parse_accept(f"{JSON};q=0.9, {SSE}")
        assert (accept.q_json, accept.q_sse) == (0.9, 1.0)
        assert accept.format == "sse"

    @pytest.mark.requirement("001/R4", "X-10")
    @pytest.mark.parametrize(
        ("quality", "read_as"),
        [
            ("", 1.0),
            ("high", 1.0),
            ("0.5x", 1.0),
            ("nan", 1.0),
            ("7", 1.0),
            ("1e400", 1.0),
            ("inf", 1.0),
            ("-0.5", 0.0),
            ("-inf", 0.0),
            ("0", 0.0),
            ("0.000", 0.0),
            ("0.25", 0.25),
        ],
    )
    def test_a_quality_is_clamped_and_an_unreadable_one_is_one(
        self, quality: str, read_as: float
    ) -> None:
        assert parse_accept(f"{JSON};q={quality}").q_json == read_as

    def test_only_the_parameter_q_is_a_quality(self) -> None:
        assert parse_accept(f"{JSON};x-q=0;seq=0").q_json == 1.0
        assert parse_accept(f'{JSON};note="q";q=0.3').q_json == 0.3

    @pytest.mark.requirement("001/H.03", "000/AC.10")
    @given(_any_text)
    @example(";;;malformed")
    @example("application/json;q=")
    @example("\x00/\xff")
    def test_nothing_makes_it_raise(self, header: str) -> None:
        accept = parse_accept(header)
        assert accept.format in ("json", "sse")
        assert 0.0 <= accept.q_json <= 1.0
        assert 0.0 <= accept.q_sse <= 1.0
        assert not math.isnan(accept.q_json + accept.q_sse)
        assert accept.wants_json == (accept.q_json > 0)
        assert accept.wants_sse == (accept.q_sse > 0)


class TestTheFormat:
    @pytest.mark.requirement(
        "000/AC.01",
        "000/AC.02",
        "000/AC.03",
        "000/AC.06",
        "000/AC.07",
        "000/AC.08",
        "000/AC.12",
        "000/AC.13",
        "001/N.03",
        "000/R6",
    )
    @pytest.mark.parametrize(
        ("header", "chosen"),
        [
            (None, "json"),
            ("", "json"),
            ("*/*", "json"),
            ("*", "json"),
            (";;;", "json"),
            (";;;malformed", "json"),
            (JSON, "json"),
            (SSE, "sse"),
            (f"{JSON}, {SSE}", "json"),
            (f"{SSE}, {JSON}", "json"),
            (f"{JSON};q=0.8, {SSE};q=0.5", "json"),
            (f"{JSON};q=0.5, {SSE};q=0.8", "sse"),
            (f"{JSON};q=0.999, {SSE};q=1", "sse"),
            (f"{SSE};q=1, {JSON};q=0.5", "sse"),
            (f"{JSON};q=0, {SSE}", "sse"),
            (f"{JSON};q=0.1, {SSE};q=0", "json"),
            (f"{SSE};q=0.9, */*;q=0.1", "sse"),
            (f"{SSE};q=0.5, */*", "json"),
            ("text/html, application/xhtml+xml, */*;q=0.8", "json"),
        ],
    )
    def test_table(self, header: str | None, chosen: str) -> None:
        accept = parse_accept(header)
        assert not accept.is_unsupported
        assert accept.format == chosen

    @pytest.mark.parametrize("header", [f"{JSON};q=0, */*", "application/*;q=0, */*;q=0.3"])
    def test_anything_but_json_is_an_event_stream(self, header: str) -> None:
        accept = parse_accept(header)
        assert not accept.is_unsupported
        assert accept.format == "sse"

    @pytest.mark.requirement("001/H.05", "000/AC.04", "001/N.04")
    @pytest.mark.parametrize(
        ("header", "unsupported"),
        [
            ("application/xml", True),
            ("text/html, image/*", True),
            (f"{JSON};q=0", True),
            (f"{JSON};q=0, {SSE};q=0, */*", True),
            ("*/*;q=0", True),
            (";;;", False),
            ("json", False),
            ("", False),
            (None, False),
            (f"application/xml, {JSON};q=0.1", False),
        ],
    )
    def test_unsupported_takes_a_real_media_type_and_none_that_is_ours(
        self, header: str | None, unsupported: bool
    ) -> None:
        assert parse_accept(header).is_unsupported is unsupported

    def test_the_refusal_names_both(self) -> None:
        assert JSON in ACCEPTABLE
        assert SSE in ACCEPTABLE

    @pytest.mark.requirement("001/H.04")
    @given(_any_text)
    def test_an_event_stream_is_only_sent_to_those_who_prefer_it(self, header: str) -> None:
        accept = parse_accept(header)
        if accept.format == "sse":
            assert accept.wants_sse
            assert not accept.wants_json or accept.q_sse > accept.q_json
        if accept.is_unsupported:
            assert accept.any_valid_media

    @given(_items, st.randoms())
    def test_the_order_of_the_items_does_not_matter(self, items: list[str], random: Random) -> None:
        shuffled = list(items)
        random.shuffle(shuffled)
        assert parse_accept(", ".join(items)) == parse_accept(",".join(shuffled))
