from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import zibaldone
from tests.drivers.graphiti_server import GraphitiServer
from tests.push.clock import Clock
from zibaldone.errors import ConfigurationError, RemoteFailed
from zibaldone.push.backend import Backend, choose_backend
from zibaldone.push.memory import Memory
from zibaldone.push.remote import McpClient

PACKAGE = Path(zibaldone.__file__).parent
SPECIAL = 'apt-28 && (a || b) c:/d "e"*'


class TestChoice:
    @pytest.mark.requirement("SC-10", "X-35")
    @pytest.mark.parametrize(
        ("setting", "variable", "backend"),
        [
            ("", None, "neo4j"),
            ("", "", "neo4j"),
            ("", "neo4j", "neo4j"),
            ("", "falkorodb", "falkordb"),
            ("", "falkordb", "falkordb"),
            ("neo4j", "falkordb", "neo4j"),
            ("falkorodb", None, "falkordb"),
        ],
    )
    def test_setting_then_environment_then_neo4j(
        self, setting: str, variable: str | None, backend: str
    ) -> None:
        environment = {} if variable is None else {"MADEINOZ_KNOWLEDGE_DB": variable}
        assert choose_backend(setting, environment) == backend

    @pytest.mark.requirement("SC-11")
    def test_another_name_is_an_error_that_names_the_valid_ones(self) -> None:
        with pytest.raises(ConfigurationError) as caught:
            choose_backend("", {"MADEINOZ_KNOWLEDGE_DB": "foo"})
        assert caught.value.message == (
            "Invalid MADEINOZ_KNOWLEDGE_DB: foo. Must be one of: neo4j, falkorodb, falkordb."
        )
        with pytest.raises(ConfigurationError, match="push_backend: Neo4J"):
            choose_backend("Neo4J", {})


def search(
    server: GraphitiServer, backend: Backend, query: str, group: str = "my-group"
) -> list[str]:
    async def run() -> list[str]:
        async with McpClient(server.url, retry=Clock().retry()) as client:
            memory = Memory(client, backend)
            nodes = await memory.search_nodes(query, [group], 5)
            facts = await memory.search_facts(query, [group], 5)
            assert [one["uuid"] for one in nodes] == [one["uuid"] for one in facts]
            return [node["name"] for node in nodes]

    return asyncio.run(run())


def remember(server: GraphitiServer, backend: Backend, name: str, body: str) -> None:
    async def run() -> None:
        async with McpClient(server.url, retry=Clock().retry()) as client:
            await Memory(client, backend).add(name=name, body=body, group="my-group")

    asyncio.run(run())


class TestEscaping:
    @pytest.mark.requirement("SC-12", "SC-16", "SC-17", "X-35")
    def test_what_the_server_sees(self, graphiti: GraphitiServer) -> None:
        search(graphiti, "neo4j", SPECIAL)
        search(graphiti, "falkordb", SPECIAL)
        plain, escaped = graphiti.calls("search_nodes")
        assert plain.arguments["query"] == SPECIAL
        assert plain.arguments["group_ids"] == ["my-group"]
        assert escaped.arguments["query"] == 'apt\\-28 \\&& \\(a \\|| b\\) c\\:\\/d \\"e\\"\\*'
        assert escaped.arguments["group_ids"] == ["my\\-group"]

    @pytest.mark.requirement("SC-15", "SC-16", "X-35")
    def test_a_hyphen_is_found_where_queries_are_passed_on(self) -> None:
        with GraphitiServer(redisearch=True) as server:
            remember(server, "falkordb", "actor", "APT-28 is an actor.")
            assert search(server, "falkordb", "apt-28") == ["actor"]
            with pytest.raises(RemoteFailed, match="Syntax error"):
                search(server, "neo4j", "apt-28")

    @pytest.mark.requirement("SC-17", "X-35")
    def test_a_hyphen_is_found_where_they_are_not(self, graphiti: GraphitiServer) -> None:
        remember(graphiti, "neo4j", "actor", "APT-28 is an actor.")
        assert search(graphiti, "neo4j", "apt-28") == ["actor"]

    @pytest.mark.requirement("SC-16")
    @pytest.mark.parametrize("backend", ["neo4j", "falkordb"])
    def test_a_group_is_never_renamed(self, graphiti: GraphitiServer, backend: Backend) -> None:
        remember(graphiti, backend, "n", "b")
        (episode,) = graphiti.stored.values()
        assert episode.group_id == "my-group"

    @pytest.mark.requirement("SC-13")
    def test_nobody_is_asked_what_the_database_is(self, graphiti: GraphitiServer) -> None:
        remember(graphiti, choose_backend("", {}), "n", "b")
        assert [asked.rpc_method for asked in graphiti.asked] == [
            *("initialize", "initialize"),  # redirected
            *("notifications/initialized", "tools/call"),
        ]


@pytest.mark.requirement("SC-18")
def test_there_is_one_helper() -> None:
    """Whoever escapes a query imports it; nobody has a copy."""
    texts = {
        file.relative_to(PACKAGE).as_posix(): file.read_text(encoding="utf-8")
        for file in PACKAGE.rglob("*.py")
    }
    users = {name for name, text in texts.items() if "escape_query" in text}
    assert [name for name in users if "def escape_query" in texts[name]] == [
        "text/fulltext_escape.py"
    ]
    assert "push/memory.py" in users
    copies = [name for name, text in texts.items() if '^"~*?:' in text]
    assert copies == ["text/fulltext_escape.py"]
