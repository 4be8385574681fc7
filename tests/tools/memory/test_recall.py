"""Facts, entities and recall, against a server process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import HASHED
from tests.drivers.server import Server

TALK = [
    ("2026-03-01T10:00:00Z", "Ann: Did you ever finish that race?"),
    ("2026-03-01T10:00:05Z", "Bob: Yes, last Saturday, in four hours!"),
    ("2026-03-01T10:00:10Z", "Ann: Wow, a marathon. I only walk the dog."),
    ("2026-04-01T10:00:00Z", "Bob: I live in Oslo now."),
    ("2026-06-01T10:00:00Z", "Ann: The soup was too salty."),
    ("2026-06-01T10:00:05Z", "Bob: I moved to Rome."),
    ("2026-07-01T10:00:00Z", "Ann: My violin lessons begin in September."),
    ("2026-07-02T10:00:00Z", "Ann: My violin lessons begin in September!"),
]

YEAR = [
    ("2025-01-05T10:00:00Z", "Cleo: I tried the pizza place Roma."),
    ("2025-02-05T10:00:00Z", "Dan: The rain does not end here."),
    ("2025-04-05T10:00:00Z", "Cleo: The move to our new flat went well."),
    ("2025-06-05T10:00:00Z", "Cleo: I tried the pizza place Turin."),
    ("2025-09-05T10:00:00Z", "Dan: My garden is full of beans."),
    ("2025-12-05T10:00:00Z", "Dan: Our wedding was on 3 March 2025, on a boat."),
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mcp]:
    data = tmp_path_factory.mktemp("recall") / "data"
    with Server(data, environment=HASHED) as server:
        memory = Mcp(server.client, "/mcp-memory")
        for group, messages in {"talk": TALK, "year": YEAR}.items():
            for number, (at, text) in enumerate(messages):
                memory.call(
                    "add_memory",
                    name="Message",
                    episode_body=text,
                    group_id=group,
                    source="message",
                    uuid=f"{group[0]}{number}",
                    reference_time=at,
                )
        memory.call(
            "add_memory",
            name="Deploy",
            episode_body="---\nproject: Apollo\n---\n"
            "The outbox of [[Apollo]] is drained by `worker.py`.",
            group_id="notes",
            uuid="deploy",
        )
        yield memory


def test_an_answer_is_found_by_the_words_beside_it(memory: Mcp) -> None:
    lines = memory.call("recall", query="When was Bob's marathon?", group="talk")["lines"]
    found = [line["uuid"] for line in lines]
    assert "t1" in found[:3]
    (line,) = (line for line in lines if line["uuid"] == "t1")
    assert line["text"] == "Bob: Yes, last Saturday (2026-02-28), in four hours!"
    assert (line["at"], line["group_id"]) == ("2026-03-01T10:00:05.000000Z", "talk")
    assert line["document_id"] == "memory/talk/t1"


def test_what_was_replaced_comes_last_and_says_so(memory: Mcp) -> None:
    lines = memory.call("recall", query="Where does Bob live? Oslo or Rome", group="talk")["lines"]
    found = [line["uuid"] for line in lines]
    assert found.index("t5") < found.index("t3")
    (old,) = (line for line in lines if line["uuid"] == "t3")
    assert old["replaced_by"] == "Bob: I moved to Rome."
    assert old["until"] == "2026-06-01T10:00:05.000000Z"
    assert not any("until" in line for line in lines[:-1] if line["uuid"] != "t3")


def test_as_of_knows_nothing_later(memory: Mcp) -> None:
    then = "2026-05-01T00:00:00Z"
    lines = memory.call("recall", query="Where does Bob live?", group="talk", as_of=then)["lines"]
    assert {"t3"} <= {line["uuid"] for line in lines} <= {"t0", "t1", "t2", "t3"}
    assert not any("until" in line for line in lines)
    facts = memory.call("search_memory_facts", query="Bob lives", group_ids=["talk"], as_of=then)
    assert [fact["invalid_at"] for fact in facts["facts"]] == [None]


def test_as_of_hides_what_was_said_next(memory: Mcp) -> None:
    """Words beside a hit are looked at, too, in one talk: those before it only."""
    asked = {"query": "Who took four hours?", "group": "talk", "as_of": "2026-03-01T10:00:07Z"}
    assert {line["uuid"] for line in memory.call("recall", **asked)["lines"]} == {"t0", "t1"}


def test_facts_in_the_shape_of_graphiti(memory: Mcp) -> None:
    facts = memory.call("search_memory_facts", query="Where does Bob live", group_ids=["talk"])
    assert facts["message"] == "Facts retrieved successfully"
    by_episode = {fact["episodes"][0]: fact for fact in facts["facts"]}
    assert by_episode["t3"]["invalid_at"] == by_episode["t5"]["valid_at"]
    assert by_episode["t3"]["attributes"]["replaced_in"] == "memory/talk/t5"
    assert by_episode["t5"]["invalid_at"] is None
    assert by_episode["t5"]["fact"] == "Bob: I moved to Rome."
    about = by_episode["t5"]["target_node_uuid"]
    only = memory.call(
        "search_memory_facts", query="Bob", group_ids=["talk"], center_node_uuid=about
    )
    assert [fact["episodes"] for fact in only["facts"]] == [["t5"]]


def test_nodes_in_the_shape_of_graphiti(memory: Mcp) -> None:
    nodes = memory.call("search_nodes", query="What about Bob?", group_ids=["talk"])["nodes"]
    bob = nodes[0]
    assert (bob["name"], bob["labels"], bob["group_id"]) == ("Bob", ["Entity", "Person"], "talk")
    assert bob["summary"] == "Bob: I moved to Rome."
    assert bob["created_at"] == "2026-03-01T10:00:05.000000Z"
    code = memory.call("search_nodes", query="outbox", group_ids=["notes"], entity_types=["Code"])[
        "nodes"
    ]
    assert [node["name"] for node in code] == ["worker.py"]


def test_the_same_thing_is_said_once_as_it_was_said_last(memory: Mcp) -> None:
    lines = memory.call("recall", query="violin lessons", group="talk")["lines"]
    assert [line["uuid"] for line in lines if "violin" in line["text"]] == ["t7"]


def test_the_budget_is_kept(memory: Mcp) -> None:
    answer = memory.call("recall", query="Bob and Ann", group="talk", budget_tokens=60)
    assert 0 < answer["tokens"] <= 60
    assert answer["truncated"] is True
    assert len(answer["lines"]) < 4


def test_groups_are_apart(memory: Mcp) -> None:
    lines = memory.call("recall", query="Bob outbox", group="notes")["lines"]
    assert {line["group_id"] for line in lines} == {"notes"}
    both = memory.call("recall", query="Bob outbox", group=["notes", "talk"])["lines"]
    assert {line["group_id"] for line in both} == {"notes", "talk"}
    assert memory.call("recall", query="Bob", group="nobody")["lines"] == []


@pytest.mark.parametrize(
    ("question", "order"),
    [
        ("Which pizza place did Cleo try before the move?", ["y0", "y3"]),
        ("Which pizza place did Cleo try after the move?", ["y3", "y0"]),
        ("Which pizza place did Cleo try recently?", ["y3", "y0"]),
        ("Which pizza place did Cleo try first?", ["y0", "y3"]),
        ("Which pizza place did Cleo try in January 2025?", ["y0", "y3"]),
        ("Which pizza place did Cleo try after January 2025?", ["y3", "y0"]),
    ],
)
def test_time_words_without_a_date(memory: Mcp, question: str, order: list[str]) -> None:
    lines = memory.call("recall", query=question, group="year")["lines"]
    assert [line["uuid"] for line in lines if "pizza" in line["text"]] == order
    facts = memory.call("search_memory_facts", query=question, group_ids=["year"])["facts"]
    assert [fact["episodes"][0] for fact in facts if "pizza" in fact["fact"]] == order


def test_an_event_is_when_it_was_not_when_it_was_told(memory: Mcp) -> None:
    """The wedding was in March; it is told in December."""
    for question, order in {
        "Which pizza place did Cleo try before the wedding?": ["y0", "y3"],
        "Which pizza place did Cleo try after the wedding?": ["y3", "y0"],
    }.items():
        lines = memory.call("recall", query=question, group="year")["lines"]
        assert [line["uuid"] for line in lines if "pizza" in line["text"]] == order


def test_an_event_that_nobody_told_of_changes_nothing(memory: Mcp) -> None:
    plain = memory.call("recall", query="Which pizza place did Cleo try?", group="year")["lines"]
    asked = "Which pizza place did Cleo try after the graduation?"
    lines = memory.call("recall", query=asked, group="year")["lines"]
    assert [line["uuid"] for line in lines[:2]] == [line["uuid"] for line in plain[:2]]


def test_an_event_that_is_later_is_not_known(memory: Mcp) -> None:
    """As of February there was no move yet, so there is nothing after it."""
    asked = "Which pizza place did Cleo try before the move?"
    lines = memory.call("recall", query=asked, group="year", as_of="2025-02-10T00:00:00Z")["lines"]
    assert {line["uuid"] for line in lines} <= {"y0", "y1"}


def test_a_question_of_names_alone_finds_what_they_said(memory: Mcp) -> None:
    lines = memory.call("recall", query="Cleo", group="year")["lines"]
    assert {"y0", "y2", "y3"} <= {line["uuid"] for line in lines}


def test_what_holds_now_comes_before_what_was_ended(memory: Mcp) -> None:
    for number, town in enumerate(("Oslo", "Rome")):
        memory.call(
            "add_memory",
            name="Note",
            episode_body=f"Eve lives in {town}.",
            group_id="moves",
            uuid=f"m{number}",
            reference_time=f"2026-0{number + 1}-01",
        )
    query = {"query": "Where does Eve live?", "group_ids": ["moves"]}
    facts = memory.call("search_memory_facts", **query)["facts"]
    assert [(fact["fact"], fact["invalid_at"] is None) for fact in facts] == [
        ("Eve lives in Rome.", True),
        ("Eve lives in Oslo.", False),
    ]
