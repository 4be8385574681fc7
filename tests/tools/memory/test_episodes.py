"""The memory profile against a server process: episodes are kept once each, forgotten softly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.server import Server
from zibaldone.limits import MEMORY_HASH_INLINE_CHARS_MAX

NAMES = [
    "add_memory",
    "search_nodes",
    "search_memory_facts",
    "get_episodes",
    "delete_episode",
    "clear_graph",
    "get_status",
    "recall",
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("memory") / "data") as server:
        yield server


@pytest.fixture
def memory(served: Server) -> Mcp:
    return Mcp(served.client, "/mcp-memory")


def episodes(memory: Mcp, group: str, count: int = 100) -> list[dict[str, Any]]:
    found = memory.call("get_episodes", group_ids=[group], max_episodes=count)["episodes"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("path", ["/mcp-memory", "/mcp-memory/"])
def test_both_paths_are_served_without_a_redirect(served: Server, path: str) -> None:
    memory = Mcp(served.client, path)
    assert [tool["name"] for tool in memory.tools()][: len(NAMES)] == NAMES
    assert memory.rpc("ping").status_code == 200


def test_another_time_is_a_change_and_another_way_to_write_it_is_not(memory: Mcp) -> None:
    def add(**more: str) -> str:
        given = {"name": "n", "episode_body": "x", "group_id": "times", "uuid": "t-1", **more}
        return str(memory.call("add_memory", **given)["status"])

    assert add(reference_time="2026-01-01T00:00:00Z") == "created"
    assert add(reference_time="2026-01-01T01:00:00+01:00") == "unchanged"
    assert add(reference_time="2026-02-01T00:00:00Z") == "updated"
    assert add(reference_time="2026-02-01", source_description="chat") == "updated"
    assert add(reference_time="2026-02-01", source_description="chat") == "unchanged"


def test_an_episode_is_a_document(served: Server, memory: Mcp) -> None:
    answer = memory.call(
        "add_memory",
        name="Choice of a queue",
        episode_body="Ada chose the outbox over Kafka.",
        group_id="shape",
        source_description="notes",
        uuid="e-1",
        reference_time="2026-03-01T10:00:00+01:00",
    )
    assert answer["message"] == "Episode 'Choice of a queue' stored in group 'shape'"
    assert (answer["uuid"], answer["status"], answer["revision"]) == ("e-1", "created", 1)
    document = served.client.get("/documents/memory/shape/e-1").json()
    assert document["content"] == "Ada chose the outbox over Kafka."
    (episode,) = episodes(memory, "shape")
    assert episode == {
        "uuid": "e-1",
        "name": "Choice of a queue",
        "content": "Ada chose the outbox over Kafka.",
        "created_at": episode["created_at"],
        "valid_at": "2026-03-01T09:00:00.000000Z",
        "source": "text",
        "source_description": "notes",
        "group_id": "shape",
        "revision": 1,
        "document_id": "memory/shape/e-1",
        "truncated": False,
    }


def test_a_uuid_is_an_idempotency_key(memory: Mcp) -> None:
    given = {"name": "N", "group_id": "keyed", "uuid": "k", "reference_time": "2026-01-01"}
    first = memory.call("add_memory", episode_body="one", **given)
    again = memory.call("add_memory", episode_body="one", **given)
    other = memory.call("add_memory", episode_body="two", **given)
    assert [first["status"], again["status"], other["status"]] == [
        "created",
        "unchanged",
        "updated",
    ]
    assert [first["revision"], again["revision"], other["revision"]] == [1, 1, 2]
    (episode,) = episodes(memory, "keyed")
    assert (episode["content"], episode["revision"]) == ("two", 2)
    conflict = memory.failure(
        "add_memory", name="N", episode_body="one", group_id="another", uuid="k"
    )
    assert conflict["code"] == "CONFLICT"


def test_the_same_episode_without_a_uuid_is_stored_once(memory: Mcp) -> None:
    given = {"name": "N", "episode_body": "the same", "group_id": "once"}
    first, again = memory.call("add_memory", **given), memory.call("add_memory", **given)
    assert (again["status"], again["uuid"]) == ("unchanged", first["uuid"])
    memory.call("add_memory", **given, reference_time="2026-01-01T00:00:00Z")
    assert len(episodes(memory, "once")) == 2


def test_the_latest_come_first_by_their_own_time(memory: Mcp) -> None:
    for day in (2, 5, 1, 4, 3):
        memory.call(
            "add_memory",
            name=f"day {day}",
            episode_body=f"text {day}",
            group_id="ordered",
            reference_time=f"2026-05-0{day}",
        )
    assert [one["name"] for one in episodes(memory, "ordered")] == [
        f"day {day}" for day in (5, 4, 3, 2, 1)
    ]
    assert [one["name"] for one in episodes(memory, "ordered", 2)] == ["day 5", "day 4"]


def test_the_default_group_is_main(memory: Mcp) -> None:
    memory.call("add_memory", name="N", episode_body="in no group")
    assert memory.call("get_episodes")["episodes"][0]["group_id"] == "main"


def test_forgetting_is_soft(served: Server, memory: Mcp) -> None:
    for number in range(3):
        memory.call(
            "add_memory",
            name="N",
            episode_body=f"soft {number}",
            group_id="soft",
            uuid=f"s{number}",
        )
    deleted = memory.call("delete_episode", uuid="s1")
    assert deleted["message"] == "Episode with UUID s1 deleted successfully"
    assert {one["uuid"] for one in episodes(memory, "soft")} == {"s0", "s2"}
    assert memory.failure("delete_episode", uuid="s1")["code"] == "NOT_FOUND"
    cleared = memory.call("clear_graph", group_ids=["soft"])
    assert cleared["deleted"] == 2
    assert episodes(memory, "soft") == []
    everything = Mcp(served.client, "/mcp-all")
    history = everything.call("document_history", path="memory/soft/s1")["revisions"]
    assert [one["operation"] for one in history] == ["delete", "create"]
    back = memory.call("add_memory", name="N", episode_body="back", group_id="soft", uuid="s1")
    assert (back["status"], back["revision"]) == ("created", 3)
    assert [one["content"] for one in episodes(memory, "soft")] == ["back"]


def test_clearing_a_group_leaves_the_others(memory: Mcp) -> None:
    for group in ("cleared", "cleared-not"):
        memory.call("add_memory", name="N", episode_body="x", group_id=group)
    memory.call("clear_graph", group_ids=["cleared"])
    assert memory.call("get_status")["groups"].get("cleared") is None
    assert len(episodes(memory, "cleared-not")) == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("add_memory", {"name": "N", "episode_body": "x", "saga": "s"}),
        ("get_episodes", {"last_n": 3}),
        ("search_nodes", {"query": "x", "max_facts": 3}),
        ("search_memory_facts", {"query": "x", "max_nodes": 3}),
        ("delete_episode", {"uuid": "x", "group_id": "main"}),
        ("clear_graph", {"group_id": "main"}),
    ],
)
def test_unknown_arguments_are_refused_by_name(
    memory: Mcp, tool: str, arguments: dict[str, Any]
) -> None:
    failure = memory.failure(tool, **arguments)
    assert failure["code"] == "INVALID_ARGUMENT"
    assert failure["details"]["field"] == list(arguments)[-1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"group_id": "a/b"},
        {"group_id": ".."},
        {"group_id": " "},
        {"uuid": ".."},
        {"reference_time": "yesterday"},
        {"source": "image"},
        {"name": ""},
    ],
)
def test_what_cannot_be_an_episode_is_refused(memory: Mcp, wrong: dict[str, Any]) -> None:
    given = {"name": "N", "episode_body": "x", **wrong}
    assert memory.failure("add_memory", **given)["code"] == "INVALID_ARGUMENT"


def test_a_document_written_by_other_tools_is_an_episode_too(served: Server, memory: Mcp) -> None:
    served.create("memory/other-tools/deep/note.md", "Grace wrote it for Ada.")
    (episode,) = episodes(memory, "other-tools")
    assert episode["uuid"] == "deep/note.md"
    documents = Mcp(served.client)
    documents.call("delete_document", path="memory/other-tools/deep/note.md")
    assert episodes(memory, "other-tools") == []


def test_forty_acknowledged_episodes_survive_a_kill(served: Server, memory: Mcp) -> None:
    """Graphiti keeps two of them."""

    def add(number: int) -> str:
        body = json.dumps({"number": number})
        answer = memory.call(
            "add_memory", name=f"n{number}", episode_body=body, group_id="killed", source="json"
        )
        return str(answer["uuid"])

    with ThreadPoolExecutor(8) as threads:
        acknowledged = set(threads.map(add, range(40)))
    served.kill()
    served.start()
    kept = episodes(memory, "killed")
    assert len(acknowledged) == len(kept) == 40
    assert {one["uuid"] for one in kept} == acknowledged


def test_a_long_episode_without_an_id_is_stored_once(memory: Mcp) -> None:
    """Its id is made of its text, in a thread."""
    body = "A line about nothing in particular.\n" * (MEMORY_HASH_INLINE_CHARS_MAX // 30)
    long = {"name": "Long", "group_id": "long", "episode_body": body}
    first, second = memory.call("add_memory", **long), memory.call("add_memory", **long)
    assert (first["status"], second["status"]) == ("created", "unchanged")
    assert first["uuid"] == second["uuid"]
    status = memory.call("get_status")
    assert status["groups"]["long"] == 1
    assert status["message"].endswith(" groups")
