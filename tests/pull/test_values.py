"""Keys as ids, values as JSON, definitions as values."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zibaldone.errors import InvalidArgument
from zibaldone.model.source import Part, SourceDefinition
from zibaldone.pull.ids import id_maker
from zibaldone.pull.mapping import tags_of
from zibaldone.pull.values import LEFT_OUT, encoded, plain, text
from zibaldone.text import normalize

TABLE: dict[str, Any] = {
    "url": "sqlite:///x.db",
    "table": "posts",
    "key": "Id",
    "document": {"body": "Body"},
}


def define(**table: Any) -> SourceDefinition:
    return SourceDefinition.from_table("posts", {**TABLE, **table})


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.tuples(TEXTS, TEXTS), st.tuples(TEXTS, TEXTS))
def test_two_keys_never_give_one_id_and_ids_are_valid(
    one: tuple[str, str], two: tuple[str, str]
) -> None:
    make = id_maker(define(key=["a", "b"]))
    assert (make(one) == make(two)) == (one == two)
    assert normalize.document_id(make(one)) == make(one)


@given(TEXTS)
def test_a_key_alone_is_a_valid_id(key: str) -> None:
    make = id_maker(define(document={"body": "Body", "id": "{key}"}))
    assert normalize.document_id(make([key])) == make([key])


@pytest.mark.parametrize(
    ("template", "key", "document_id"),
    [
        ("{name}:{key}", [12345], "posts:12345"),
        ("{name}:{key}", [-1], "posts:-1"),
        ("{name}:{key}", ["a/b"], "posts:a%2Fb"),
        ("{name}:{key}", [uuid.UUID(int=5)], "posts:00000000-0000-0000-0000-000000000005"),
        ("{name}:{key}", [b"\x00\xff"], "posts:%x00ff"),
        ("rows/{Id}.md", [7], "rows/7.md"),
    ],
)
def test_ids(template: str, key: list[Any], document_id: str) -> None:
    assert id_maker(define(document={"body": "Body", "id": template}))(key) == document_id


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (12, 12),
        (2**70, str(2**70)),
        (0.5, 0.5),
        (float("nan"), None),
        (Decimal("12.50"), 12.5),
        (Decimal(7), 7),
        (Decimal("1E+2"), 100),
        (Decimal("0.1234567890123456789"), "0.1234567890123456789"),
        (Decimal("NaN"), "NaN"),
        (datetime(2020, 1, 2, 3, 4, 5), "2020-01-02T03:04:05Z"),  # noqa: DTZ001
        (datetime(2020, 1, 2, 3, 4, 5, 60, UTC), "2020-01-02T03:04:05.000060Z"),
        (datetime(2020, 1, 2, tzinfo=timezone(timedelta(hours=2))), "2020-01-01T22:00:00Z"),
        (date(2020, 1, 2), "2020-01-02"),
        ("0000-00-00 00:00:00", None),
        ("text", "text"),
        (b"bytes", LEFT_OUT),
        ([1, b"x", {"a": Decimal("1.5")}], [1, None, {"a": 1.5}]),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    ],
)
def test_native_values(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    if expected is not LEFT_OUT:
        orjson.dumps(plain(value))


def test_values_that_differ_are_encoded_differently() -> None:
    values = [None, 1, 1.5, "1", "", b"1", True, Decimal(1), 2**70, "\ud800", date(2020, 1, 2)]
    assert len({encoded((value,)) for value in values}) == len(values)
    assert text({"a": [1]}) == '{"a":[1]}'


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("<a><b-c>", ["a", "b-c"]),
        ("a, b", ["a", " b"]),
        ('["a", "b"]', ["a", "b"]),
        ("|a|b|", ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        ("c++", ["c++"]),
        (None, []),
        ("", []),
        ("[broken", ["[broken"]),
    ],
)
def test_tags_in_their_styles(value: Any, tags: list[str]) -> None:
    assert tags_of(value, "auto") == tags


class TestDefinition:
    def test_as_it_was_written(self) -> None:
        document = {
            "id": "p/{Id}",
            "title": ["Title"],
            "body": ["Title", {"text": "\n\n"}, "Body"],
            "metadata": {"points": "Score"},
            "tags": "Tags",
            "tag_style": "angle",
            "created": "CreationDate",
        }
        made = define(
            document=document,
            where="Score > 0",
            watermark="UpdatedAt",
            refetch=["Id", "Score"],
            schedule="0 * * * *",
            chunking={"by": "size", "size_chars": 500},
            delete_share_max=0.5,
            enabled=False,
        )
        assert made.document.body == (Part("Title"), Part(text="\n\n"), Part("Body"))
        assert SourceDefinition.from_table("posts", made.as_dict()) == made
        assert SourceDefinition.from_stored("posts", "default", made.stored()) == made
        assert orjson.loads(orjson.dumps(made.stored())) == made.stored()

    def test_every_problem_at_once(self) -> None:
        table = {
            "tabel": "posts",
            "url": "mysql://reader:secret@host/db",
            "document": {"titel": 3, "id": "{Foo}", "body_format": "pdf", "metadata": 7},
            "poll_seconds": "often",
            "delete_share_max": 2,
            "enabled": "yes",
            "chunking": {"by": "luck"},
        }
        with pytest.raises(InvalidArgument) as refused:
            SourceDefinition.from_table("kb", table)
        problems = refused.value.details["problems"]
        for part in (
            *("built-in source", "either table or select", "password must not", "key is missing"),
            *("document.body is missing", "{Foo}", "mean 'title'?", "mean 'table'?"),
            *("body_format must be one of", "document.metadata must be", "poll_seconds must be"),
            *("delete_share_max must be from 0 to 1", "enabled must be true", "chunking: by"),
        ):
            assert any(part in problem for problem in problems), part
        assert "secret" not in refused.value.message

    @pytest.mark.parametrize(
        "url",
        [
            "mysql://u:clear@h/d",
            "postgresql://u@h/d?password=clear",
            "postgresql://u@h/d?sslpassword=clear",
            "mysql://u:${A}clear@h/d",
        ],
    )
    def test_a_clear_password_is_refused(self, url: str) -> None:
        with pytest.raises(InvalidArgument, match="environment variable") as refused:
            define(url=url)
        assert "clear" not in refused.value.message

    def test_references_are_filled_in_and_quoted(self) -> None:
        made = define(url="mysql://${USER}:${PW}@h/d")
        assert made.references == ("USER", "PW")
        filled = made.resolved_url({"USER": "me", "PW": "p@ss/w:rd"})
        assert filled == "mysql://me:p%40ss%2Fw%3Ard@h/d"
        assert define(url="${DB}").resolved_url({"DB": "mysql://u:p@h/d"}) == "mysql://u:p@h/d"
        with pytest.raises(InvalidArgument, match="PW"):
            made.resolved_url({"USER": "me"})
