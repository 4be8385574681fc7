"""Servers that die in the middle of a turn: sent again if nobody knows of an answer, else never."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.consulted import Consulted, consulted
from tests.drivers.engines import backend_of
from tests.drivers.keys import key_command
from tests.drivers.model_server import Call, Reply, Silent
from tests.drivers.server import parsed, run_cli

TOKENS_PER_DAY = 50_000
TOKENS_OUT = 8_000
"""What an assistant may answer unless its settings say otherwise: reserved for each request."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consulted]:
    settings = {"ZIBALDONE_CONSULT_TOKENS_PER_DAY": str(TOKENS_PER_DAY)}
    folder = tmp_path_factory.mktemp("world")
    with consulted(folder, settings=settings, has_keys=True) as served:
        served.write("src/a.py", "heron = 1\n")
        yield served


def start(world: Consulted, session_id: str, *, who: str = "ada", **more: Any) -> str:
    given = {"assistant": "reviewer", "session_id": session_id, "instructions": "Go on."}
    context = [world.path("src")]
    return str(world.mcp(who).call("start_job", **{**given, **more}, context=context)["job_id"])


def result(world: Consulted, job_id: str, who: str = "ada") -> dict[str, Any]:
    return world.mcp(who).call("poll_job", job_id=job_id, wait_seconds=40)


def shown_job(world: Consulted, job_id: str) -> dict[str, Any]:
    """As the operator sees it."""
    shown: dict[str, Any] = parsed(
        run_cli("jobs", "show", job_id, "--json", data=world.server.data)
    )
    return shown


def forget_lease(world: Consulted, job_id: str, *, is_running: bool = True) -> None:
    """As if the time of the lease were over, or the server had died before it noted the result."""
    backend = backend_of(world.server.data)
    undone = "" if is_running else ", state = 1, result = NULL, lease_owner = 'dead'"
    backend.execute(f"UPDATE jobs SET leased_until_us = 1{undone} WHERE job_id = '{job_id}'")


@pytest.mark.parametrize("steps", [0, 1], ids=["before the first reply", "in the tool loop"])
def test_a_server_killed_between_sending_and_recording_sends_again(
    world: Consulted, steps: int
) -> None:
    world.asked()
    session = f"killed-{steps}"
    calls = Reply(calls=(Call("search_files", '{"query": "heron"}'),))
    world.models.script(*[calls] * steps, Silent())
    job_id = start(world, session)
    for _ in range(steps + 1):
        world.models.wait_asked()
    world.server.kill()
    before = world.asked()
    forget_lease(world, job_id)
    world.server.start()
    done = result(world, job_id)
    after = world.asked()
    assert (done["status"], done["turn"]) == ("done", 1)
    assert done["sent"]["count"] == 1
    assert after[-1]["messages"] == before[-1]["messages"]
    assert (len(before), len(after)) == (steps + 1, 1)


def test_an_answer_that_is_recorded_is_never_asked_for_again(world: Consulted) -> None:
    world.models.script(Reply("Only once."))
    job_id = start(world, "once")
    first = result(world, job_id)
    world.asked()
    forget_lease(world, job_id, is_running=False)
    again = result(world, job_id)
    assert again == first
    # The same, when another turn went on before the first was taken up again.
    second = world.chat("once", "Next.", context=[world.path("src")])
    forget_lease(world, job_id, is_running=False)
    later = result(world, job_id)
    assert (later["answer"], later["turn"], second["turn"]) == ("Only once.", 1, 2)
    assert len(world.asked()) == 1


def test_a_job_survives_a_server_that_is_told_to_stop(world: Consulted) -> None:
    world.asked()
    world.models.hold.clear()
    job_id = start(world, "stopped")
    world.models.wait_asked()
    world.server.stop()
    world.models.hold.set()
    world.server.start()
    assert result(world, job_id)["status"] == "done"


def test_a_turn_that_died_between_its_calls_is_closed_by_the_next(world: Consulted) -> None:
    world.asked()
    calls = Reply(calls=(Call("search_files", '{"query": "heron"}', "call-x"),))
    world.models.script(calls, Silent())
    job_id = start(world, "closed")
    world.models.wait_asked()
    world.models.wait_asked()
    world.mcp().call("cancel_job", job_id=job_id)
    world.mcp().failure("poll_job", job_id=job_id, wait_seconds=40)
    answer = world.chat("closed", "Go on then.")
    *_, last = world.asked()
    closing = [m for m in last["messages"] if m["role"] == "tool"]
    assert answer["answer"] == "Understood."
    assert "interrupted" in closing[-1]["content"]


def test_a_budget_is_refused_before_anything_is_sent(world: Consulted) -> None:
    world.asked()
    refused = world.failure("budget", "word " * TOKENS_PER_DAY, who="bob")
    assert refused["code"] == "BUDGET_EXCEEDED"
    assert "nothing was sent" in refused["message"]
    assert world.asked() == []


def test_turns_that_run_at_the_same_time_share_a_budget(world: Consulted) -> None:
    """Each would fit alone. What one may take is reserved while it runs, and given back."""
    world.asked()
    world.models.hold.clear()
    text = "word " * (TOKENS_PER_DAY // 2 - TOKENS_OUT)
    try:
        first = start(world, "together-1", who="bob", instructions=text)
        world.models.wait_asked()
        second = start(world, "together-2", who="bob", instructions=text)
        refused = world.mcp("bob").failure("poll_job", job_id=second, wait_seconds=40)
        assert refused["code"] == "BUDGET_EXCEEDED"
    finally:
        world.models.hold.set()
    assert result(world, first, "bob")["status"] == "done"
    third = start(world, "together-3", who="bob", instructions=text)
    assert result(world, third, "bob")["status"] == "done"


@pytest.mark.parametrize(("who", "command"), [("guest", "revoke"), ("writer", "delete")])
def test_a_turn_whose_key_has_ended_meanwhile_is_not_sent(
    world: Consulted, who: str, command: str
) -> None:
    world.models.script(Silent())
    job_id = start(world, "ended", who=who)
    world.models.wait_asked()
    world.server.kill()
    world.asked()
    assert key_command(world.server.data, command, world.keys[who].key_id).exit_code == 0
    forget_lease(world, job_id)
    world.server.start()
    deadline_s = time.monotonic() + 30
    while (job := shown_job(world, job_id))["state"] != "parked":
        assert time.monotonic() < deadline_s, job
    assert job["error"] == "The key has ended; nothing was sent. [UNAUTHENTICATED]"
    assert world.asked() == []


@pytest.mark.engine("sqlite", reason="the server's own turns are on both")
def test_the_command_line_asks_and_lists(world: Consulted) -> None:
    environment = {
        name: value
        for name, value in world.server._environment.items()
        if name.startswith("ZIBALDONE_ASSISTANTS")
    }
    world.models.script(Reply("It is a heron."))
    arguments = ("ask", "reviewer", "What is it?", "--context", "src", "--session", "shell")
    data = world.server.data
    asked = run_cli(*arguments, data=data, environment=environment, cwd=world.project)
    assert asked.stdout == "It is a heron.\n"
    assert "sent 1, unchanged 0" in asked.stderr
    again = run_cli(*arguments, "--json", data=data, environment=environment, cwd=world.project)
    assert (parsed(again)["turn"], parsed(again)["unchanged"]["count"]) == (2, 1)
    listed = run_cli("sessions", "--json", data=data, environment=environment)
    assert "shell" in [session["session_id"] for session in parsed(listed)["sessions"]]
    shown = run_cli("sessions", "show", "reviewer", "shell", data=data, environment=environment)
    assert "project/src/a.py" in shown.stdout
    unknown = run_cli("ask", "nobody", "What?", data=data, environment=environment)
    assert (unknown.returncode, "there are reviewer" in unknown.stderr) == (3, True)
