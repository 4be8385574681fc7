"""A tool and a profile that come with the configuration are offered wherever tools are."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from docs.generate import tools_page
from typing_extensions import TypedDict

from tests.drivers.catalogues import CATALOGUE, catalogue
from tests.drivers.commands import Commands
from tests.drivers.in_process import application
from tests.drivers.mcp import JSON, envelope_of, text_of
from zibaldone.errors import ConfigurationError
from zibaldone.tools import built_in
from zibaldone.tools.spec import Arguments, Call, ToolSpec
from zibaldone.web.routes import ROUTES, Route


class Forecast(Arguments):
    place: str


class Weather(TypedDict):
    place: str
    sky: str


async def handle(call: Call, given: Forecast) -> Weather:
    del call
    return {"place": given.place, "sky": "clear"}


FORECAST = ToolSpec(
    name="weather.forecast",
    title="Forecast",
    description="Say what the sky will be like.",
    arguments=Forecast,
    result=Weather,
    effect="read",
    handler=handle,
)
PROFILES = {"sailors": ["weather.forecast", "search_knowledge"]}
LOCAL_TOOLS = [tool.name for tool in CATALOGUE.tools if tool.is_local]
ANSWER = {"place": "Ravenna", "sky": "clear"}


async def requests(app: Any, *made: tuple[str, str, Any]) -> list[httpx.Response]:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return [
            await client.request(method, path, json=body, headers={"accept": JSON})
            for method, path, body in made
        ]


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


class TestAToolOfTheConfiguration:
    def test_over_mcp(self, data: Path) -> None:
        call = rpc("tools/call", name="weather.forecast", arguments={"place": "Ravenna"})
        with application(data, FORECAST, profiles=PROFILES) as app:
            listed, everything, answered, elsewhere = asyncio.run(
                requests(
                    app,
                    ("POST", "/mcp-sailors", rpc("tools/list")),
                    ("POST", "/mcp-all", rpc("tools/list")),
                    ("POST", "/mcp-sailors", call),
                    ("POST", "/mcp", call),
                )
            )
        names = [tool["name"] for tool in envelope_of(listed)["result"]["tools"]]
        assert names == ["weather.forecast", "search_knowledge"]
        names = [tool["name"] for tool in envelope_of(everything)["result"]["tools"]]
        assert "weather_forecast" in names
        assert text_of(envelope_of(answered)["result"]) == ANSWER
        assert envelope_of(elsewhere)["error"]["code"] == -32601

    def test_over_rest(self, data: Path) -> None:
        routes = (*ROUTES, Route("POST", "/weather", "weather.forecast"))
        with application(data, FORECAST, routes=routes) as app:
            answered, document, refused = asyncio.run(
                requests(
                    app,
                    ("POST", "/weather", {"place": "Ravenna"}),
                    ("GET", "/openapi.json", None),
                    ("GET", "/weather", None),
                )
            )
        assert answered.json() == ANSWER
        operation = document.json()["paths"]["/weather"]["post"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert schema["required"] == ["place", "sky"]
        assert refused.status_code == 405

    def test_on_the_command_line(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(built_in, "TOOLS", (*built_in.TOOLS, FORECAST))
        Commands(data).ok("put", "any", stdin="x")
        answer = Commands(data).ok("call", "weather_forecast", '{"place": "Ravenna"}')
        assert json.loads(answer) == ANSWER

    def test_in_the_reference(self) -> None:
        page = tools_page(catalogue(FORECAST))
        assert "## weather.forecast" in page
        assert "Answer: `place`, `sky`." in page


class TestWhatIsRefused:
    def test_two_tools_of_one_name(self) -> None:
        for name in ("weather.forecast", "weather_forecast"):
            with pytest.raises(ConfigurationError, match="Two tools are named"):
                catalogue(FORECAST, replace(FORECAST, name=name))

    def test_a_profile_with_a_tool_that_is_not_there(self) -> None:
        with pytest.raises(ConfigurationError, match=r"profiles\.sailors: unknown tool"):
            catalogue(profiles=PROFILES)

    @pytest.mark.parametrize("name", LOCAL_TOOLS)
    def test_a_profile_with_a_tool_of_the_operator(self, name: str) -> None:
        with pytest.raises(ConfigurationError, match="unknown tool"):
            catalogue(profiles={"mine": [name]})

    def test_a_route_to_a_tool_of_the_operator(self, data: Path) -> None:
        routes = (*ROUTES, Route("POST", "/keys", "create_key"))
        with (
            pytest.raises(ValueError, match="create_key"),
            application(data, routes=routes),
        ):
            pass


class TestToolsOfTheOperator:
    def test_keys_and_sources_are_among_them(self) -> None:
        assert {"create_key", "list_keys", "revoke_key", "list_sources"} <= {*LOCAL_TOOLS}

    def test_no_profile_and_no_route_has_them(self) -> None:
        for profile in CATALOGUE.profiles:
            assert not {*LOCAL_TOOLS} & {*profile.tools}
        assert not {*LOCAL_TOOLS} & {route.tool for route in ROUTES}

    def test_the_command_line_can_call_them(self, data: Path) -> None:
        Commands(data).ok("put", "any", stdin="x")
        assert json.loads(Commands(data).ok("call", "list_keys")) == {"keys": []}
