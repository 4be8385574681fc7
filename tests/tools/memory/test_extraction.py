"""Episodes that an assistant reads in the background, in place of the deterministic result."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.consulted import Consulted, assistants, consulted
from tests.drivers.engines import backend_of
from tests.drivers.keys import create_key
from tests.drivers.mcp import Mcp
from tests.drivers.model_server import ModelServer, Reply, Status
from tests.drivers.server import Server
from zibaldone.errors import ConfigurationError
from zibaldone.limits import PROVIDER_TRIES_MAX
from zibaldone.settings import Settings
from zibaldone.wiring.runtime import build_runtime

_SECONDS_MAX = 40
_BUSY = Status(429, "Rate limit reached.", "rate_limit_error", headers={"retry-after": "0"})

ANN = [("ann", "Person"), ("initech", "Company")]
WORKS = ("ann", "works at", "initech", "ann works at initech.")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consulted]:
    settings = {"ZIBALDONE_MEMORY_ASSISTANT": "reviewer"}
    with consulted(tmp_path_factory.mktemp("world"), settings=settings) as served:
        yield served


def reply(entities: list[tuple[str, str]], *facts: tuple[str, str, str, str], **more: Any) -> Reply:
    names, parts = ("name", "kind"), ("subject", "relation", "object", "sentence")
    answer = {
        "entities": [dict(zip(names, one, strict=True)) for one in entities],
        "facts": [dict(zip(parts, one, strict=True)) for one in facts],
    }
    return Reply(json.dumps(answer | more))


def add(world: Consulted, group: str, body: str, **more: Any) -> dict[str, Any]:
    given = {"name": "note", "episode_body": body, "group_id": group, **more}
    return world.mcp(path="/mcp-memory").call("add_memory", **given)


def facts(world: Consulted, group: str, query: str = "ann") -> list[dict[str, Any]]:
    memory = world.mcp(path="/mcp-memory")
    found = memory.call("search_memory_facts", query=query, group_ids=[group])["facts"]
    assert isinstance(found, list)
    return found


def labels(world: Consulted, group: str, query: str) -> dict[str, list[str]]:
    memory = world.mcp(path="/mcp-memory")
    found = memory.call("search_nodes", query=query, group_ids=[group])["nodes"]
    return {node["name"]: node["labels"][1:] for node in found}


def jobs_of(jobs: Mcp, document: str) -> list[dict[str, Any]]:
    """Newest first."""
    found = jobs.call("list_jobs", kind="extract", limit=100)["jobs"]
    return [job for job in found if job["subject"] == document]


def ended(world: Consulted, document: str) -> list[dict[str, Any]]:
    """The jobs about a document, when none of them waits or runs any more."""
    jobs, deadline_s = world.mcp(path="/mcp-all"), time.monotonic() + _SECONDS_MAX
    while True:
        found = jobs_of(jobs, document)
        if found and all(job["state"] in ("done", "parked") for job in found):
            return [jobs.call("get_job", job_id=job["job_id"]) for job in found]
        assert time.monotonic() < deadline_s, found
        time.sleep(0.05)


def test_what_the_model_finds_replaces_the_deterministic_result(world: Consulted) -> None:
    world.asked()
    invented = ("ann", "lives in", "oslo", "ann lives in oslo.")
    secret = "ghp_" + "a1B2c3D4e5" * 4
    world.models.script(reply(ANN, WORKS, invented))
    body = f"---\ntags: [careers]\n---\nann works at initech. Her token is {secret}."
    first = add(world, "found", body, uuid="one", reference_time="2026-01-01")
    assert first["status"] == "created"
    (job,) = ended(world, "memory/found/one")
    assert job["result"] == {"outcome": "replaced", "entities": 3, "facts": 1, "left_out": 1}
    assert labels(world, "found", "ann initech careers") == {
        "ann": ["Person"],
        "initech": ["Company"],
        "careers": ["Tag"],
    }
    (fact,) = facts(world, "found")
    assert (fact["fact"], fact["invalid_at"]) == ("ann works at initech.", None)
    (sent,) = world.asked()
    assert sent["response_format"]["type"] == "json_schema"
    asked = sent["messages"][-1]["content"]
    head, *_, last = asked.splitlines()
    assert head.startswith("<episode ")
    assert last == head.replace("<episode", "</episode")
    assert "careers" not in asked, "front matter is declared, not read"
    assert secret not in json.dumps(sent)
    assert "[redacted" in asked
    # A later fact of the same subject and slot ends the earlier one, as without a model.
    joined = ("ann", "joined", "globex", "In March ann joined globex.")
    world.models.script(reply([("ann", "Person"), ("globex", "Company")], joined))
    add(world, "found", joined[3], uuid="two", reference_time="2026-03-20")
    ended(world, "memory/found/two")
    (later,) = world.asked()
    assert later["messages"][-1]["content"].splitlines()[0] != head, "a word of its own"
    ends = {one["fact"]: one["invalid_at"] for one in facts(world, "found")}
    assert ends[joined[3]] is None
    assert ends[WORKS[3]] is not None


def test_the_same_again_is_not_read_again(world: Consulted) -> None:
    world.models.script(reply(ANN, WORKS))
    add(world, "again", WORKS[3], uuid="same")
    ended(world, "memory/again/same")
    world.asked()
    assert add(world, "again", WORKS[3], uuid="same")["status"] == "unchanged"
    assert len(ended(world, "memory/again/same")) == 1
    assert world.asked() == []


def test_an_episode_written_by_another_tool_is_read_too(world: Consulted) -> None:
    world.models.script(reply(ANN, WORKS))
    world.server.create("memory/other/note.md", WORKS[3])
    ended(world, "memory/other/note.md")
    assert [fact["fact"] for fact in facts(world, "other")] == [WORKS[3]]
    world.server.create("notes/plain.md", WORKS[3])
    assert jobs_of(world.mcp(path="/mcp-all"), "notes/plain.md") == []


@contextmanager
def hanging(world: Consulted) -> Iterator[None]:
    world.asked()
    world.models.hold.clear()
    try:
        yield
    finally:
        world.models.hold.set()


def test_a_write_is_acknowledged_while_the_model_hangs_and_an_edit_wins(world: Consulted) -> None:
    with hanging(world):
        add(world, "edited", "Ada met Grace in Rome.\nann works at initech.", uuid="edited-1")
        world.models.wait_asked()
        deterministic = [fact["fact"] for fact in facts(world, "edited", "Ada Grace")]
        assert deterministic == ["Ada met Grace in Rome."]
        add(world, "edited", "Ada met Alan in Oslo.", uuid="edited-1")
        world.models.script(reply(ANN, WORKS), Reply("Not JSON."))
    second, first = ended(world, "memory/edited/edited-1")
    assert first["result"] == {"outcome": "outdated"}
    assert (second["state"], second["payload"]["revision"]) == ("parked", 2)
    assert [fact["fact"] for fact in facts(world, "edited", "Ada ann")] == ["Ada met Alan in Oslo."]


def test_a_deleted_episode_stays_deleted(world: Consulted) -> None:
    with hanging(world):
        add(world, "deleted", WORKS[3], uuid="gone")
        world.models.wait_asked()
        world.mcp(path="/mcp-memory").call("delete_episode", uuid="gone")
        world.models.script(reply(ANN, WORKS))
    (job,) = ended(world, "memory/deleted/gone")
    assert job["result"] == {"outcome": "outdated"}
    assert facts(world, "deleted") == []


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (Reply("I cannot do that."), "not JSON"),
        (reply(ANN, more=1), "alone"),
        (reply([("ann", "Person")] * 201), "201"),
        (Reply('{"entities": [{"name": "ann", "kind": 1}], "facts": []}'), "no text"),
        (Reply('{"entities": [', stop="length"), "cut off"),
        (Reply("No.", stop="refused"), "refused"),
        (Status(401, "Incorrect API key provided.", "authentication_error"), "PROVIDER_REFUSED"),
    ],
    ids=["prose", "key", "count", "type", "cut", "refused", "unauthorized"],
)
def test_an_answer_that_cannot_be_used_changes_nothing(
    world: Consulted, step: Reply | Status, why: str, request: pytest.FixtureRequest
) -> None:
    group = request.node.callspec.id.rpartition("-")[2]
    world.models.script(step)
    add(world, group, "Ada met Grace in Rome.", uuid=group)
    (job,) = ended(world, f"memory/{group}/{group}")
    assert job["state"] == "parked"
    assert why in job["error"]
    assert [fact["fact"] for fact in facts(world, group, "Ada")] == ["Ada met Grace in Rome."]


def test_a_busy_provider_is_asked_again_later(world: Consulted) -> None:
    world.models.script(*[_BUSY] * PROVIDER_TRIES_MAX, reply(ANN, WORKS))
    add(world, "busy", WORKS[3], uuid="busy-1")
    (job,) = ended(world, "memory/busy/busy-1")
    assert (job["state"], job["attempts"]) == ("done", 1)
    assert [fact["fact"] for fact in facts(world, "busy")] == [WORKS[3]]


def test_a_job_survives_the_death_of_its_server(
    world: Consulted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.models, "default", lambda _: reply(ANN, WORKS))
    with hanging(world):
        add(world, "killed", WORKS[3], uuid="killed-1")
        world.models.wait_asked()
        world.server.kill()
        backend_of(world.server.data).execute(
            "UPDATE jobs SET leased_until_us = 1 WHERE kind = 'extract' AND state = 1"
        )
    world.server.start()
    (job,) = ended(world, "memory/killed/killed-1")
    assert (job["state"], job["result"]["outcome"]) == ("done", "replaced")
    assert [fact["fact"] for fact in facts(world, "killed")] == [WORKS[3]]


def served_with_keys(folder: Path, models: ModelServer, **settings: str) -> Server:
    table: Mapping[str, Any] = {"output_tokens": 1_000}
    return Server(
        folder / "data",
        environment={
            "ZIBALDONE_ASSISTANTS": assistants(models, folder, {"reviewer": table}),
            "ZIBALDONE_MEMORY_ASSISTANT": "reviewer",
            **settings,
        },
    )


@pytest.mark.engine("sqlite", reason="spending is proven on both by the contract tests")
def test_the_cost_is_that_of_the_key_that_wrote(tmp_path: Path) -> None:
    ada, bob = create_key(tmp_path / "data"), create_key(tmp_path / "data")
    with (
        ModelServer() as models,
        served_with_keys(tmp_path, models, ZIBALDONE_CONSULT_TOKENS_PER_DAY="4000") as server,
    ):
        models.default = lambda _: reply(ANN, WORKS)
        memory = Mcp(server.client, "/mcp-memory", headers=ada.headers)
        jobs = Mcp(server.client, "/mcp-all", headers=ada.headers)
        deadline_s, states = time.monotonic() + _SECONDS_MAX, []
        for number in range(9):
            memory.call(
                "add_memory", name="n", episode_body=f"{WORKS[3]} {number}", uuid=f"{number}"
            )
            document = f"memory/main/{number}"
            while True:
                (job,) = jobs_of(jobs, document)
                if job["state"] == "done" or job["error"]:
                    break
                assert time.monotonic() < deadline_s, job
                time.sleep(0.05)
            states.append(job["state"])
            if job["error"]:
                break
        assert states[-1] == "queued"
        assert "BUDGET_EXCEEDED" in job["error"]
        assert job["attempts"] == 0
        assert len(models.to_models) == len(states) - 1 > 0
        chat = {"session_id": "s", "instructions": "word " * 1_000}
        refused = Mcp(server.client, "/mcp-consult", headers=ada.headers).failure(
            "chat_with_reviewer", **chat
        )
        assert refused["code"] == "BUDGET_EXCEEDED"
        Mcp(server.client, "/mcp-consult", headers=bob.headers).call("chat_with_reviewer", **chat)
        # What is more than the budget of any day waits for none.
        Mcp(server.client, "/mcp-memory", headers=bob.headers).call(
            "add_memory", name="n", episode_body="word " * 5_000, uuid="long"
        )
        while (job := jobs_of(jobs, "memory/main/long")[0])["state"] in ("queued", "running"):
            assert not job["error"], job
            assert time.monotonic() < deadline_s, job
            time.sleep(0.05)
        assert job["state"] == "parked"
        assert "BUDGET_EXCEEDED" in job["error"]


@pytest.mark.engine("sqlite", reason="no store is opened")
def test_an_unknown_assistant_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="memory_assistant is 'nobody'"):
        build_runtime(Settings(data=tmp_path, embedder="none", memory_assistant="nobody"))
