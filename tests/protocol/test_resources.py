"""Documents as resources, prompts, and completion of paths."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.drivers.catalogues import CATALOGUE
from tests.drivers.mcp import LEGACY, MODERN, Mcp
from tests.drivers.runtimes import opened
from tests.drivers.server import Server
from zibaldone.access.principal import LOCAL
from zibaldone.protocol.resources import ResourceNotFound
from zibaldone.protocol.surface import Surface
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.profiles import Profile
from zibaldone.tools.spec import AnyTool, Call

DOCUMENTS = 230
ODD_IDS = ("odd/a b.md", "odd/100%", "odd/tài liệu", "odd/q?x=1#y", "odd/a+b&c", "odd/%2F")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("resources") / "data") as running:
        with ThreadPoolExecutor(8) as pool:
            numbers = range(DOCUMENTS)
            made = pool.map(lambda n: running.create(f"many/{n:03}", f"text {n}"), numbers)
            assert len(list(made)) == DOCUMENTS
        for document_id in ODD_IDS:
            running.create(document_id, f"body of {document_id}", title="Odd", mime="text/plain")
        yield running


@pytest.fixture(scope="module", params=[None, MODERN], ids=str)
def mcp(server: Server, request: pytest.FixtureRequest) -> Mcp:
    return Mcp(server.client, version=request.param)


def pages(mcp: Mcp) -> Iterator[list[dict[str, Any]]]:
    params: dict[str, Any] = {}
    while True:
        result = mcp.result("resources/list", params)
        yield result["resources"]
        if "nextCursor" not in result:
            return
        params = {"cursor": result["nextCursor"]}


class TestResources:
    def test_pages_hold_every_document_once_in_order(self, mcp: Mcp) -> None:
        found = list(pages(mcp))
        assert [len(page) for page in found] == [100, 100, DOCUMENTS + len(ODD_IDS) - 200]
        names = [resource["name"] for page in found for resource in page]
        assert names == sorted(names, key=str.encode)
        assert len(set(names)) == DOCUMENTS + len(ODD_IDS)

    def test_what_is_listed_can_be_read(self, mcp: Mcp) -> None:
        listed = [resource for page in pages(mcp) for resource in page]
        odd = {resource["name"]: resource for resource in listed if resource["name"] in ODD_IDS}
        assert set(odd) == set(ODD_IDS)
        for document_id, resource in odd.items():
            assert resource["title"] == "Odd"
            result = mcp.result("resources/read", {"uri": resource["uri"]})
            assert result["contents"] == [
                {
                    "uri": resource["uri"],
                    "mimeType": "text/plain",
                    "text": f"body of {document_id}",
                }
            ]

    def test_the_template_leads_to_a_document(self, mcp: Mcp) -> None:
        (template,) = mcp.result("resources/templates/list")["resourceTemplates"]
        uri = template["uriTemplate"].replace("{+path}", quote("many/007"))
        assert mcp.result("resources/read", {"uri": uri})["contents"][0]["text"] == "text 7"

    @pytest.mark.parametrize(
        "uri", ["zibaldone:///none", "zibaldone://many/007", "http://x/", "zibaldone:///"]
    )
    def test_what_is_not_there_is_said_not_to_be(self, mcp: Mcp, uri: str) -> None:
        error = mcp.error("resources/read", {"uri": uri})
        assert error["code"] == (-32602 if mcp.version == MODERN else -32002)
        assert error["data"] == {"uri": uri}

    @pytest.mark.parametrize("cursor", ["", "nonsense", "WyJhIiwiYiJd", "W10"])
    def test_a_cursor_that_is_not_ours_is_refused(self, mcp: Mcp, cursor: str) -> None:
        assert mcp.error("resources/list", {"cursor": cursor})["code"] == -32602

    def test_a_deleted_document_is_gone(self, server: Server, mcp: Mcp) -> None:
        path = f"zz/deleted-{mcp.version}"
        server.create(path)
        uri = f"zibaldone:///{path}"
        assert mcp.result("resources/read", {"uri": uri})
        mcp.call("delete_document", path=path)
        assert mcp.error("resources/read", {"uri": uri})["code"] in (-32002, -32602)

    def test_the_capabilities_say_what_there_is(self, server: Server) -> None:
        for version in LEGACY:
            result = Mcp(server.client).result("initialize", {"protocolVersion": version})
            assert {"tools", "resources", "prompts"} <= result["capabilities"].keys()


class TestCatalogues:
    """Resources come from the tools of the surface's catalogue."""

    def surface(self, *tools: AnyTool) -> Surface:
        names = tuple(tool.name for tool in tools)
        return Surface(Profile("mcp", "/mcp", names), Catalogue(tools))

    def test_its_tools_list_and_read(self, data: Path) -> None:
        async def listed(call: Call, arguments: Any) -> dict[str, Any]:
            return {"items": [{"document_id": "mine", "title": ""}]}

        async def read(call: Call, arguments: Any) -> dict[str, Any]:
            return {"document_id": arguments.path, "mime": "text/plain", "content": "my own"}

        surface = self.surface(
            dataclasses.replace(CATALOGUE.by_name["list_documents"], handler=listed),
            dataclasses.replace(CATALOGUE.by_name["get_document_for_rewrite"], handler=read),
        )
        assert "resources" in surface.capabilities
        with opened(data) as runtime:
            call = Call(runtime, LOCAL)
            (resource,) = asyncio.run(surface.list_resources(None, call))["resources"]
            assert resource["name"] == "mine"
            (content,) = asyncio.run(surface.read_resource(resource["uri"], call))["contents"]
            assert content["text"] == "my own"
            answer = asyncio.run(surface.complete("path", "m", call))
            assert answer["completion"]["values"] == ["mine"]

    def test_without_them_there_are_no_resources(self, data: Path) -> None:
        surface = self.surface()
        assert "resources" not in surface.capabilities
        assert surface.list_resource_templates() == []
        with opened(data) as runtime:
            call = Call(runtime, LOCAL)
            assert asyncio.run(surface.list_resources(None, call)) == {"resources": []}
            with pytest.raises(ResourceNotFound):
                asyncio.run(surface.read_resource("zibaldone:///a", call))
            answer = asyncio.run(surface.complete("path", "m", call))
            assert answer["completion"]["values"] == []


class TestPrompts:
    def test_each_can_be_got_with_its_arguments(self, mcp: Mcp) -> None:
        listed = mcp.result("prompts/list")["prompts"]
        assert len(listed) >= 3
        for prompt in listed:
            assert prompt["description"]
            arguments = {one["name"]: "the {braces} of it" for one in prompt["arguments"]}
            result = mcp.result("prompts/get", {"name": prompt["name"], "arguments": arguments})
            (message,) = result["messages"]
            assert message["role"] == "user"
            assert "the {braces} of it" in message["content"]["text"]

    def test_one_that_is_needed_may_not_be_missing(self, mcp: Mcp) -> None:
        for prompt in mcp.result("prompts/list")["prompts"]:
            error = mcp.error("prompts/get", {"name": prompt["name"]})
            assert error["code"] == -32602
            needed = [one["name"] for one in prompt["arguments"] if one["required"]]
            assert needed[0] in error["message"]

    def test_one_that_is_not_needed_may(self, mcp: Mcp) -> None:
        params = {"name": "keep_note", "arguments": {"topic": "deploys"}}
        (message,) = mcp.result("prompts/get", params)["messages"]
        assert "deploys" in message["content"]["text"]
        assert "  " not in message["content"]["text"]


class TestCompletion:
    def complete(self, mcp: Mcp, argument: str, value: str) -> dict[str, Any]:
        reference = {"type": "ref/resource", "uri": "zibaldone:///{+path}"}
        params = {"ref": reference, "argument": {"name": argument, "value": value}}
        completion: dict[str, Any] = mcp.result("completion/complete", params)["completion"]
        return completion

    def test_paths_that_start_as_typed(self, mcp: Mcp) -> None:
        assert self.complete(mcp, "path", "many/00") == {
            "values": [f"many/{number:03}" for number in range(10)],
            "hasMore": False,
        }

    def test_at_most_a_hundred(self, mcp: Mcp) -> None:
        found = self.complete(mcp, "path", "many/")
        assert len(found["values"]) == 100
        assert found["hasMore"] is True

    def test_of_a_prompt_too(self, mcp: Mcp) -> None:
        params = {
            "ref": {"type": "ref/prompt", "name": "tidy_folder"},
            "argument": {"name": "prefix", "value": "odd/t"},
        }
        found = mcp.result("completion/complete", params)["completion"]
        assert found["values"] == ["odd/tài liệu"]

    def test_of_anything_else_there_is_none(self, mcp: Mcp) -> None:
        assert self.complete(mcp, "topic", "many/") == {"values": [], "hasMore": False}

    def test_a_value_that_no_path_can_have(self, mcp: Mcp) -> None:
        params = {
            "ref": {"type": "ref/resource", "uri": "x"},
            "argument": {"name": "path", "value": "a\nb"},
        }
        assert mcp.error("completion/complete", params)["code"] == -32602
