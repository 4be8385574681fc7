"""What the columns of a table are taken for, by their names, types and a few rows."""

from __future__ import annotations

from typing import Any

from zibaldone.pull.propose import propose
from zibaldone.pull.reflect import ColumnInfo, ColumnKind

PROSE = "A sentence that is long enough to be read as prose, with some more words after it. " * 2


def columns(**kinds: ColumnKind) -> list[ColumnInfo]:
    return [ColumnInfo(name, kind) for name, kind in kinds.items()]


def test_a_table_of_posts() -> None:
    facts = columns(
        Id="whole", PostTypeId="whole", CreationDate="text", Score="whole", Body="text",
        LastActivityDate="text", Title="text", Tags="text", ContentLicense="text",
    )  # fmt: skip
    row = {
        "Id": 1, "PostTypeId": 1, "CreationDate": "2024-01-01T10:00:00.123", "Score": 3,
        "Body": f"<p>{PROSE}</p>", "LastActivityDate": "2024-01-02T10:00:00.123",
        "Title": "How?", "Tags": "<a><b>", "ContentLicense": "CC BY-SA 4.0",
    }  # fmt: skip
    found = propose(facts, ["Id"], [row, {**row, "Id": 2, "Title": None, "Tags": None}])
    assert (found.title, found.body, found.tags) == ("Title", ("Body",), "Tags")
    assert found.created == "CreationDate"
    # LastActivityDate does not change with every edit, so it must not be the watermark.
    assert found.updated == ""


def test_a_table_in_another_style() -> None:
    facts = columns(
        order_no="whole", line_no="whole", product_name="text", long_description="text",
        created_at="time", updated_at="time", photo="binary", labels="other",
    )  # fmt: skip
    rows: list[dict[str, Any]] = [{"product_name": "Lamp", "long_description": PROSE}]
    found = propose(facts, ["order_no", "line_no"], rows)
    assert (found.title, found.body) == ("product_name", ("long_description",))
    assert (found.tags, found.created) == ("labels", "created_at")
    assert found.updated == "updated_at"


def test_long_texts_are_the_body_whatever_their_names() -> None:
    facts = columns(id="whole", a="text", b="text", c="text")
    found = propose(facts, ["id"], [{"a": "x", "b": PROSE, "c": PROSE}])
    assert found.body == ("b", "c")
    assert found.title == ""


def test_a_table_without_prose_is_searched_by_its_texts() -> None:
    facts = columns(code="text", city="text", country="text", people="whole", since="text")
    found = propose(facts, ["code"], [{"city": "Oslo", "country": "NO", "since": "1048-01-01"}])
    assert found.title == ""
    assert found.body == ("city", "country")


def test_an_empty_table_goes_by_names() -> None:
    facts = columns(id="whole", title="text", body="text", modified="time")
    found = propose(facts, ["id"], [])
    assert (found.title, found.body, found.updated) == ("title", ("body",), "modified")


def test_a_name_alone_is_a_body_when_there_is_nothing_else() -> None:
    found = propose(columns(id="whole", name="text"), ["id"], [{"name": "Ada"}])
    assert (found.title, found.body) == ("name", ("name",))
