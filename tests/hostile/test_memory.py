"""Episodes: no text keeps others waiting, is answered with a 5xx, or spoils its group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.server import Server
from tests.hostile.peers import Bystander


def _doubling(levels: int) -> str:
    """Each mapping holds the one before twice: as many entries as 2 to the power of levels."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]" for n in range(1, levels)]
    return "\n".join(lines)


# Each took the old code seconds or minutes, in the one writer and without a turn for any thread.
_LONG: dict[str, str] = {
    "underscores": "a" + "_" * 30_000 + "@",
    "pairs": "a_" * 15_000 + "@",
    "one word": "a" * 32_000,
    "merged mappings": f"---\n{_doubling(24)}\n---\ntext",
}

# Each was a 500.
_ODD: dict[str, str] = {
    "a number without digits": '---\nk: !!int ""\n---\ntext',
    "a boolean that is none": "---\nk: !!bool perhaps\n---\ntext",
    "a time that is none": "---\nk: !!timestamp soon\n---\ntext",
    "a tag of 4 800 digits": f"---\ntags: [0x{'f' * 4_000}]\n---\ntext",
    "a tag with NUL": '---\ntags: ["a\\0b", good]\n---\ntext',
}


def _add(memory: Mcp, body: str, **more: Any) -> dict[str, Any]:
    return memory.call("add_memory", name="n", episode_body=body, **more)


@pytest.mark.parametrize("name", _LONG)
def test_reading_an_episode_stops_nobody(shared_server: Server, name: str) -> None:
    memory = Mcp(shared_server.client, "/mcp-memory")
    with Bystander(shared_server) as bystander:
        assert _add(memory, _LONG[name], group_id="long")["status"] == "created"
        bystander.wait_for_a_round()


@pytest.mark.parametrize("name", _ODD)
def test_front_matter_that_is_odd_is_stored(shared_server: Server, name: str) -> None:
    memory = Mcp(shared_server.client, "/mcp-memory")
    assert _add(memory, _ODD[name], group_id="odd")["status"] == "created"


@pytest.mark.parametrize("zone", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_outside_of_the_calendar_spoils_no_group(shared_server: Server, zone: str) -> None:
    path = f"memory/times/{zone[:4]}"
    document = {
        "path": path,
        "content": "Ada Lovelace met Charles Babbage yesterday.",
        "metadata": {"reference_time": zone},
    }
    assert shared_server.client.post("/documents", json=document).status_code == 201
    memory = Mcp(shared_server.client, "/mcp-memory")
    found = memory.call("get_episodes", group_ids=["times"], max_episodes=100)["episodes"]
    assert path in [episode["document_id"] for episode in found]


def test_episodes_of_one_id_in_several_groups_are_deleted_all(shared_server: Server) -> None:
    """In several transactions, if they are long."""
    for group in ("one", "two", "three"):
        document = {"path": f"memory/{group}/same", "content": "some words " * 20_000}
        assert shared_server.client.post("/documents", json=document).status_code == 201
    memory = Mcp(shared_server.client, "/mcp-memory")
    memory.call("delete_episode", uuid="same")
    left = memory.call("get_episodes", group_ids=["one", "two", "three"])["episodes"]
    assert left == []
