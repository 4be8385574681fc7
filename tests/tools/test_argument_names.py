from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from pydantic import BaseModel

from tests.drivers.catalogues import CATALOGUE
from zibaldone.errors import InvalidArgument
from zibaldone.limits import ECHO_CHARS_MAX
from zibaldone.tools.argument_names import names_of, unknown_places
from zibaldone.tools.call import validate
from zibaldone.tools.documents.get_document import GetDocument
from zibaldone.tools.documents.patch_document import PatchDocument
from zibaldone.tools.rag.search_hybrid import SearchHybrid
from zibaldone.tools.schema import input_schema
from zibaldone.tools.spec import AnyTool


@pytest.mark.parametrize("tool", CATALOGUE.tools, ids=lambda tool: tool.name)
def test_every_argument_that_a_tool_lists_is_known(tool: AnyTool) -> None:
    listed: dict[str, Any] = input_schema(tool)["properties"]
    arguments: type[BaseModel] = tool.arguments
    names = names_of(arguments)
    assert not list(unknown_places(names, dict.fromkeys(listed)))


@pytest.mark.parametrize(
    ("model", "arguments", "places"),
    [
        (GetDocument, {"path": "x"}, []),
        (GetDocument, {"document_id": "x"}, []),
        (GetDocument, {"nope": 1, "path": "x"}, [("nope",)]),
        (SearchHybrid, {"query": "x", "filters": {"tags": []}}, [("filters", "tags")]),
        (SearchHybrid, {"return": {"a": 1}, "fuse": {"b": 1}}, [("fuse", "b"), ("return", "a")]),
        (
            PatchDocument,
            {"replacements": [{"old_str": "a"}, {"old": "b"}, 7]},
            [("replacements", 1, "old")],
        ),
        (PatchDocument, {"replacements": {"old": "b"}}, [("replacements", "old")]),
    ],
)
def test_unknown_names_are_found_wherever_they_are(
    model: Any, arguments: dict[str, Any], places: list[Any]
) -> None:
    assert sorted(unknown_places(names_of(model), arguments)) == places


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        (GetDocument, {"path": "x", **{f"n{n}": 0 for n in range(50_000)}}),
        (SearchHybrid, {"query": "x", "filters": {f"n{n}": 0 for n in range(50_000)}}),
        (PatchDocument, {"path": "x", "replacements": [{f"n{n}": 0} for n in range(50_000)]}),
    ],
)
def test_ten_problems_are_described_and_no_more_looked_for(
    model: Any, arguments: dict[str, Any]
) -> None:
    places = unknown_places(names_of(model), arguments)
    assert len(list(islice(places, 10))) == 10
    with pytest.raises(InvalidArgument) as refused:
        validate(model, arguments)
    assert len(refused.value.details["problems"]) == 10


def test_a_long_name_is_not_repeated_whole() -> None:
    arguments = {f"{n}{'x' * 10_000}": 0 for n in range(20)}
    for given in (arguments, dict(list(arguments.items())[:1])):
        with pytest.raises(InvalidArgument) as refused:
            validate(GetDocument, {"path": "x", **given})
        assert len(refused.value.message) < 2 * ECHO_CHARS_MAX
