"""Turns with assistants, over MCP, with models that are a scripted server."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY

from tests.drivers.consulted import Consulted, consulted
from tests.drivers.engines import backend_of
from tests.drivers.mcp import MODERN, Mcp
from tests.drivers.model_server import (
    Call,
    Cut,
    Endless,
    InStream,
    Reply,
    Silent,
    TooLong,
    rate_limited,
    server_error,
    unauthorized,
)
from zibaldone.limits import CONSULT_PER_KEY, CONSULT_STEPS_MAX
from zibaldone.protocol.tasks import EXTENSION

KEY = "sk-proj-" + "a1B2c3D4" * 6
WORDS = "alpha beta gamma delta "
"""About four tokens."""

ASSISTANTS: dict[str, dict[str, Any]] = {
    "claude": {"provider": "anthropic", "model": "claude-test"},
    "planner": {"api": "responses"},
    "small": {"context_tokens": 3_000, "output_tokens": 500, "inline_tokens": 1_000},
    "hasty": {"seconds_max": 2},
    "frank": {"redact": False},
    "whole": {"stable_inline": False},
    "knowing": {"knowledge": True},
    "priced": {"prices": {"input": 2.0, "cached": 0.2, "output": 8.0}},
    "hosted": {"hosted_store": True, "inline_tokens": 100, "api": "responses"},
    "seed": {"context_tokens": 200_000, "inline_tokens": 125_000},
}


ONE_ENGINE = pytest.mark.engine("sqlite", reason="it is about the model; others look at the store")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consulted]:
    settings = {"ZIBALDONE_CONSULT_TOKENS_PER_DAY": "3000000"}
    folder = tmp_path_factory.mktemp("world")
    with consulted(folder, ASSISTANTS, settings=settings, has_keys=True) as served:
        yield served


@pytest.fixture(autouse=True)
def nothing_is_left(world: Consulted) -> Iterator[None]:
    """Every test starts with a model that just says yes, and leaves no store behind."""
    world.asked()
    yield
    world.models.hold.set()
    assert world.models.script_left == 0
    open_stores = 'zibaldone_call_stores_open{kind="memory"} 0.0'
    metrics = world.server.client.get("/metrics", headers=world.keys["ada"].headers)
    assert "call_stores_open{" not in metrics.text or open_stores in metrics.text


def counts(answer: dict[str, Any]) -> tuple[int, int, int]:
    return answer["sent"]["count"], answer["unchanged"]["count"], answer["store"]["count"]


def said(body: dict[str, Any]) -> str:
    """All that a model of Chat Completions was sent."""
    return json.dumps(body["messages"], ensure_ascii=False)


# ---- the seed's scenarios ----


@pytest.mark.requirement("SI-39", "SI-40", "SI-41", "SI-05")
def test_scenario_1_a_typical_session(world: Consulted) -> None:
    """50 files with 180k tokens: 40 with 120k are inline, 10 with 60k in the store."""
    for number in range(40):
        world.write(f"one/src/small{number:02}.txt", WORDS * 740 + str(number))
    for number in range(10):
        world.write(f"one/src/large{number:02}.txt", WORDS * 1_500 + str(number))
    context = [world.path("one/src")]
    first = world.chat("typical", assistant="seed", context=context)
    assert counts(first) == (40, 0, 10)
    for number in range(3):
        world.write(f"one/src/small{number:02}.txt", WORDS * 740 + f"changed {number}")
    second = world.chat("typical", assistant="seed", context=context)
    assert counts(second) == (3, 37, 10)
    for number in range(20):
        world.write(f"one/tests/test{number:02}.txt", f"a test {number}")
    third = world.chat("typical", assistant="seed", context=[*context, world.path("one/tests")])
    assert counts(third) == (0, 40, 30)
    assert third["tokens"]["saved"] > 100_000
    assert third["tokens"]["saved_total"] == sum(
        turn["tokens"]["saved"] for turn in (first, second, third)
    )
    assert [turn["turn"] for turn in (first, second, third)] == [1, 2, 3]
    bodies = [body["messages"] for body in world.asked()]
    for before, after in itertools.pairwise(bodies):
        assert after[: len(before)] == before
    assert third["tokens"]["cached_share"] > 0.9


@pytest.mark.requirement("SI-42")
def test_scenario_2_the_window_fills(world: Consulted) -> None:
    world.write("two/a.txt", WORDS * 100)
    world.write("two/b.txt", WORDS * 120)
    context = [world.path("two")]
    first = world.chat("implement-auth", assistant="small", context=context)
    assert counts(first) == (2, 0, 0)
    for _ in range(15):
        world.models.script(Reply("words " * 90))
        result = world.mcp().outcome(
            "chat_with_small",
            {"session_id": "implement-auth", "instructions": "Go on.", "context": context},
        )
        if result["isError"]:
            break
    refused = json.loads(result["content"][0]["text"])
    world.models._script.clear()
    assert refused["code"] == "SESSION_FULL"
    assert "session_id='implement-auth-v2'" in refused["message"]
    fresh = world.chat("implement-auth-v2", assistant="small", context=context)
    assert counts(fresh) == (2, 0, 0)
    assert fresh["turn"] == 1


@ONE_ENGINE
def test_a_window_that_the_provider_calls_full_is_an_error_that_proposes_a_session(
    world: Consulted,
) -> None:
    world.models.script(TooLong())
    refused = world.failure("full-v9")
    assert refused["code"] == "SESSION_FULL"
    assert "session_id='full-v10'" in refused["message"]


# ---- what is sent and remembered ----


@ONE_ENGINE
@pytest.mark.parametrize("assistant", ["claude", "planner"])
def test_every_api_continues_a_conversation(world: Consulted, assistant: str) -> None:
    world.write(f"{assistant}/a.py", "print('hello')\n")
    context = [world.path(assistant)]
    world.models.script(
        Reply(calls=(Call("search_files", '{"query": "hello"}'),), thinking="Hm."),
        Reply("It does."),
    )
    first = world.chat("api", "Does it print?", assistant=assistant, context=context)
    second = world.chat("api", "Sure?", assistant=assistant, context=context)
    assert (first["answer"], first["tool_calls"]) == ("It does.", 1)
    assert counts(second) == (0, 1, 0)
    name = "messages" if assistant == "claude" else "input"
    one, _, three = (body[name] for body in world.asked())
    assert json.dumps(three).startswith(json.dumps(one)[:-1].rstrip("}]")[:200])


@pytest.mark.requirement("SI-31")
def test_a_reset_begins_anew(world: Consulted) -> None:
    world.write("reset/a.py", "one = 1\n")
    context = [world.path("reset")]
    world.chat("reset", context=context)
    described = world.mcp().call("describe_session", assistant="reviewer", session_id="reset")
    assert (described["turns"], described["messages"]) == (1, 3)
    assert described["inline"] == {"count": 1, "paths": ["project/reset/a.py"]}
    given = {"assistant": "reviewer", "session_id": "reset"}
    assert world.mcp().call("reset_session", **given)["status"] == "reset"
    assert world.mcp().call("reset_session", **given)["status"] == "absent"
    assert world.mcp().failure("describe_session", **given)["code"] == "NOT_FOUND"
    again = world.chat("reset", context=context)
    assert (again["turn"], counts(again)) == (1, (1, 0, 0))


@pytest.mark.requirement("SI-33", "SI-34")
def test_without_the_list_every_turn_sends_everything(world: Consulted) -> None:
    world.write("whole/a.py", "one = 1\n")
    for _ in range(2):
        answer = world.chat("whole", assistant="whole", context=[world.path("whole")])
        assert counts(answer) == (1, 0, 0)
    _, second = world.asked()
    assert said(second).count("one = 1") == 2 or "one = 1" in said(second)
    described = world.mcp().call("describe_session", assistant="whole", session_id="whole")
    assert described["has_list"] is False
    assert described["inline"]["count"] == 0


@pytest.mark.requirement("SI-26", "SI-27", "SI-15")
def test_the_tables_hold_the_list_and_what_was_sent(world: Consulted) -> None:
    for number in range(3):
        world.write(f"tables/f{number}.txt", WORDS * 100)
    world.chat("tables", assistant="small", context=[world.path("tables")])
    backend = backend_of(world.server.data)
    session = "(SELECT session_key FROM consult_sessions WHERE session_id = 'tables')"
    sent = list(
        backend.query(
            f"SELECT file_path, last_size, last_mtime FROM sent_files "
            f"WHERE session_key = {session} ORDER BY 1"
        )
    )
    listed = list(
        backend.query(
            f"SELECT inline_paths, created_at, updated_at FROM stable_inline_lists "
            f"WHERE session_key = {session}"
        )
    )
    assert [path for path, _, _ in sent] == ["0/f0.txt", "0/f1.txt"]
    file = Path(world.path("tables/f0.txt")).stat()
    assert sent[0][1:] == (file.st_size, file.st_mtime_ns)
    assert len(listed) == 1


@ONE_ENGINE
def test_secrets_are_taken_out_unless_the_assistant_is_trusted(world: Consulted) -> None:
    world.write("secrets/settings.py", f'API_KEY = "{KEY}"\n')
    context = [world.path("secrets")]
    answer = world.chat("redact", context=context)
    frank = world.chat("redact", assistant="frank", context=context)
    redacted, plain = world.asked()
    assert (answer["redacted"], frank["redacted"]) == (1, 0)
    assert KEY not in said(redacted)
    assert KEY in said(plain)


@ONE_ENGINE
def test_paths_outside_of_the_roots_are_refused_before_anything_is_sent(world: Consulted) -> None:
    refused = world.failure("outside", context=["/etc/passwd"])
    assert refused["code"] == "FORBIDDEN"
    assert world.failure("gone", context=[world.path("nothing")])["code"] == "NOT_FOUND"
    assert world.asked() == []


# ---- functions ----


@ONE_ENGINE
def test_the_assistant_searches_and_reads_what_is_not_in_the_prompt(world: Consulted) -> None:
    world.write("store/big.py", "def cormorant():\n    return 'bird'\n" + f"# {WORDS}\n" * 400)
    world.models.script(
        Reply(calls=(Call("search_files", '{"query": "cormorant"}'),)),
        Reply(
            calls=(
                Call("read_file", '{"path": "project/store/big.py", "to_line": 2}'),
                Call("read_file", '{"path": "project/none.py"}'),
            )
        ),
        Reply("A bird."),
    )
    answer = world.chat("store", assistant="small", attachments=[world.path("store")])
    assert (answer["answer"], answer["tool_calls"]) == ("A bird.", 3)
    assert answer["attachments"]["count"] == 1
    *_, last = world.asked()
    found, read, missing = (m["content"] for m in last["messages"] if m["role"] == "tool")
    assert "def cormorant():" in found
    assert "return 'bird'" in read
    assert missing.startswith("Error: ")


@ONE_ENGINE
def test_a_hosted_store_is_gone_when_the_turn_ends(world: Consulted) -> None:
    world.write("hosted/big.py", "def curlew():\n    return 'bird'\n" + f"# {WORDS}\n" * 100)
    call = Call("search_files", '{"query": "curlew"}')
    world.models.script(Reply(calls=(call,)), Reply("A bird."))
    answer = world.chat("hosted", assistant="hosted", context=[world.path("hosted")])
    assert (answer["answer"], answer["store"]["count"]) == ("A bird.", 1)
    made = [r for r in world.models.requests if r.method == "POST" and "vector_stores" in r.path]
    gone = [r for r in world.models.requests if r.method == "DELETE"]
    assert made
    assert len(gone) >= 2


@ONE_ENGINE
def test_malformed_calls_are_answered_and_the_loop_goes_on(world: Consulted) -> None:
    calls = ('{"query": ', "[]", '{"query": 7}', '{"limit": 3}', '{"query": "x", "limit": "many"}')
    world.models.script(
        Reply(calls=(*(Call("search_files", text) for text in calls), Call("rm", "{}"))),
        Reply("Sorry."),
    )
    answer = world.chat("malformed", attachments=[world.path("store")])
    assert answer["answer"] == "Sorry."
    *_, last = world.asked()
    results = [m["content"] for m in last["messages"] if m["role"] == "tool"]
    assert len(results) == 6
    assert all(result.startswith("Error: ") for result in results)
    assert "there is no function 'rm'" in results[-1]


@ONE_ENGINE
def test_a_model_that_only_calls_functions_is_stopped(world: Consulted) -> None:
    plain = world.models.default
    world.models.default = lambda request: Reply(calls=(Call("search_files", '{"query": "x"}'),))
    try:
        answer = world.chat("endless-calls")
    finally:
        world.models.default = plain
    assert answer["stop"] == "steps"
    asked = world.asked()
    assert len(asked) == CONSULT_STEPS_MAX
    assert "Answer now" in said(asked[-1])
    assert world.chat("endless-calls")["turn"] == 2


def test_an_assistant_that_may_searches_the_knowledge_of_its_caller(world: Consulted) -> None:
    for who, text in (("ada", "The heron is grey."), ("eve", "The heron is secret.")):
        world.mcp(who, "/mcp").call("upload_document", path=f"birds/{who}", content=text)
    for who in ("ada", "eve"):
        call = Call("search_knowledge", '{"query": "heron"}')
        world.models.script(Reply(calls=(call,)), Reply("So it is."))
        world.chat("birds", assistant="knowing", who=who)
        *_, last = world.asked()
        (found,) = (m["content"] for m in last["messages"] if m["role"] == "tool")
        assert ("grey" in found, "secret" in found) == (who == "ada", who == "eve")
    world.models.script(
        Reply(calls=(Call("search_knowledge", '{"query": "heron"}'),)), Reply("No.")
    )
    world.chat("birds")
    *_, last = world.asked()
    assert "there is no function 'search_knowledge'" in said(last)


def test_an_assistant_reads_no_knowledge_for_a_key_that_may_not_read(world: Consulted) -> None:
    world.mcp(path="/mcp").call(
        "upload_document", path="birds/owl", content="The owl is nocturnal."
    )
    call = Call("search_knowledge", '{"query": "owl"}')
    world.models.script(Reply(calls=(call,)), Reply("No."))
    world.chat("birds", assistant="knowing", who="writer")
    *_, last = world.asked()
    assert "nocturnal" not in said(last)
    assert "there is no function 'search_knowledge'" in said(last)


# ---- faults of providers ----


@ONE_ENGINE
@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([unauthorized()], "PROVIDER_REFUSED"),
        ([rate_limited(9_999)], "PROVIDER_BUSY"),
        ([server_error()] * 4, "PROVIDER_UNAVAILABLE"),
        ([Cut(2)], "PROVIDER_UNAVAILABLE"),
        ([InStream()], "PROVIDER_UNAVAILABLE"),
    ],
    ids=["401", "429", "500", "half answer", "error in the stream"],
)
def test_a_call_that_failed_sends_the_same_again(
    world: Consulted, steps: list[Any], code: str
) -> None:
    session = f"fault-{code}-{type(steps[0]).__name__}-{len(steps)}"
    world.write("fault/a.py", "one = 1\n")
    world.models.script(*steps)
    refused = world.failure(session, context=[world.path("fault")])
    assert refused["code"] == code
    assert "sk-" not in refused["message"]
    answer = world.chat(session, context=[world.path("fault")])
    assert (answer["turn"], counts(answer)) == (1, (1, 0, 0))
    first, *_, last = world.asked()
    assert last["messages"] == first["messages"]


@ONE_ENGINE
def test_a_provider_that_asks_for_a_short_pause_is_asked_again(world: Consulted) -> None:
    world.models.script(rate_limited(0), server_error(), Reply("At last."))
    assert world.chat("patience")["answer"] == "At last."


@ONE_ENGINE
@pytest.mark.parametrize("step", [Silent(), Endless()], ids=["silence", "endless stream"])
def test_a_turn_ends_when_its_time_is_over(world: Consulted, step: Any) -> None:
    world.models.script(step)
    refused = world.failure(f"slow-{type(step).__name__}", assistant="hasty")
    assert refused["code"] in ("DEADLINE_EXCEEDED", "PROVIDER_UNAVAILABLE")
    assert world.chat(f"slow-{type(step).__name__}", assistant="hasty")["turn"] == 1


# ---- turns, jobs and keys ----


def test_two_turns_of_a_session_follow_one_another(world: Consulted) -> None:
    world.models.hold.clear()
    answers: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(world.chat("both", "One of two."))),
        threading.Thread(target=lambda: answers.append(world.chat("both", "One of two."))),
    ]
    for thread in threads:
        thread.start()
    world.models.wait_asked()
    world.models.hold.set()
    for thread in threads:
        thread.join()
    assert sorted(answer["turn"] for answer in answers) == [1, 2]
    first, second = world.asked()
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert len(second["messages"]) > len(first["messages"])


def test_one_key_leaves_turns_to_others(world: Consulted) -> None:
    """The turns that it has beyond its share wait, and come about later."""
    world.asked()
    world.models.hold.clear()

    def start(who: str, number: int) -> tuple[Mcp, str]:
        mcp, session = world.mcp(who), f"share-{number}"
        given = {"assistant": "reviewer", "session_id": session, "instructions": f"For {who}."}
        return mcp, mcp.call("start_job", **given)["job_id"]

    started = [start("ada", number) for number in range(CONSULT_PER_KEY + 2)]
    for _ in range(CONSULT_PER_KEY):
        world.models.wait_asked()
    started.append(start("bob", 0))
    world.models.wait_asked()
    asked = [json.dumps(request.json) for request in world.models.to_models]
    world.models.hold.set()
    assert sum("For bob." in request for request in asked) == 1
    assert sum("For ada." in request for request in asked) == CONSULT_PER_KEY
    for mcp, job_id in started:
        assert mcp.call("poll_job", job_id=job_id, wait_seconds=30)["status"] == "done"


def test_a_job_is_started_polled_and_cancelled(world: Consulted) -> None:
    mcp = world.mcp()
    given = {"assistant": "reviewer", "session_id": "job", "instructions": "Go."}
    world.models.hold.clear()
    started = mcp.call("start_job", **given)
    assert started["status"] == "running"
    assert mcp.call("poll_job", job_id=started["job_id"])["status"] == "running"
    world.models.wait_asked()
    busy = mcp.failure("reset_session", assistant="reviewer", session_id="job")
    assert busy["code"] == "CONFLICT"
    world.models.hold.set()
    done = mcp.call("poll_job", job_id=started["job_id"], wait_seconds=30)
    assert (done["status"], done["answer"]) == ("done", "Understood.")
    world.models.hold.clear()
    second = mcp.call("start_job", **given)
    world.models.wait_asked()
    mcp.call("cancel_job", job_id=second["job_id"])
    ended = mcp.failure("poll_job", job_id=second["job_id"], wait_seconds=30)
    world.models.hold.set()
    assert ended["code"] == "CONFLICT"
    assert world.chat("job")["turn"] == 2


@ONE_ENGINE
def test_a_client_that_declares_tasks_is_given_one(world: Consulted) -> None:
    headers = world.keys["ada"].headers
    mcp = Mcp(world.server.client, "/mcp-consult", version=MODERN, headers=headers)
    declared: dict[str, Any] = {
        "_meta": {CLIENT_CAPABILITIES_META_KEY: {"extensions": {EXTENSION: {}}}}
    }
    given = {"session_id": "task", "instructions": "Go."}
    called = {"name": "chat_with_reviewer", "arguments": given, **declared}
    task = mcp.result("tools/call", called)
    assert task["resultType"] == "task"
    until_s = time.monotonic() + 30
    while task["status"] == "working":
        assert time.monotonic() < until_s
        task = mcp.result("tasks/get", {"taskId": task["taskId"], **declared})
    assert task["result"]["structuredContent"]["answer"] == "Understood."
    assert task["result"]["structuredContent"]["turn"] == 1
    other = Mcp(
        world.server.client, "/mcp-consult", version=MODERN, headers=world.keys["bob"].headers
    )
    assert other.error("tasks/get", {"taskId": task["taskId"], **declared})


@ONE_ENGINE
def test_progress_is_reported_while_the_model_writes(world: Consulted) -> None:
    world.models.script(Reply("word " * 400))
    params = {
        "name": "chat_with_reviewer",
        "arguments": {"session_id": "progress", "instructions": "Write."},
        "_meta": {"progressToken": "t"},
    }
    world.models.hold.clear()
    release = threading.Timer(2, world.models.hold.set)
    release.start()
    response = world.mcp().rpc("tools/call", params, accept="text/event-stream")
    release.join()
    frames = [
        json.loads(line.removeprefix("data: "))
        for line in response.text.splitlines()
        if line.startswith("data: ")
    ]
    assert frames[-1]["result"]["isError"] is False
    told = [frame["params"] for frame in frames[:-1]]
    assert told
    assert {params["progressToken"] for params in told} == {"t"}
    assert any("asking" in params["message"] for params in told)


@pytest.mark.requirement("SI-06")
def test_nothing_of_a_session_is_there_for_another_key(world: Consulted) -> None:
    world.write("mine/secret.py", "pelican = 1\n")
    mine = world.chat("shared", "My secret is pelican.", context=[world.path("mine")])
    for who in ("bob", "eve"):
        theirs = world.mcp(who)
        listed = theirs.call("list_sessions")["sessions"]
        assert "shared" not in [session["session_id"] for session in listed]
        given = {"assistant": "reviewer", "session_id": "shared"}
        assert theirs.failure("describe_session", **given)["code"] == "NOT_FOUND"
        assert theirs.failure("poll_job", job_id=mine["job_id"])["code"] == "NOT_FOUND"
        assert theirs.failure("cancel_job", job_id=mine["job_id"])["code"] in (
            "NOT_FOUND",
            "FORBIDDEN",
        )
        every = world.mcp(who, "/mcp-all")
        shown = every.outcome("get_job", {"job_id": mine["job_id"]})
        assert "pelican" not in json.dumps(shown)
        assert "pelican" not in json.dumps(every.call("list_jobs", limit=200))
        world.asked()
        own = world.chat("shared", "Go on.", who=who, context=[world.path("mine")])
        (body,) = world.asked()
        assert (own["turn"], counts(own)) == (1, (1, 0, 0))
        assert "My secret" not in said(body)
        assert theirs.call("reset_session", **given)["status"] == "reset"
    again = world.chat("shared", context=[world.path("mine")])
    assert (again["turn"], counts(again)) == (2, (0, 1, 0))


def test_a_key_that_may_only_read_asks_nobody(world: Consulted) -> None:
    assert world.failure("read", who="reader")["code"] == "FORBIDDEN"
    assert world.asked() == []


def test_an_answer_is_stored_with_its_session_as_source(world: Consulted) -> None:
    world.models.script(Reply("# Findings\n\nNone."))
    stored = world.chat("kept", "Find faults.", store_answer="reviews/one")["stored"]
    assert stored == {"path": "reviews/one", "revision": 1}
    document = world.mcp(path="/mcp").call("get_document", path="reviews/one")
    assert document["content"].startswith("# Findings")
    assert document["metadata"]["session_id"] == "kept"
    assert document["metadata"]["assistant"] == "reviewer"
    refused = world.failure("kept", who="guest", store_answer="reviews/two")
    assert refused["code"] == "FORBIDDEN"
    inside = world.chat("kept", who="guest", store_answer="guests/two")
    assert inside["stored"]["path"] == "guests/two"


@ONE_ENGINE
def test_a_structured_answer_is_checked(world: Consulted) -> None:
    schema = {
        "type": "object",
        "properties": {"faults": {"type": "array", "items": {"type": "string"}}},
        "required": ["faults"],
        "additionalProperties": False,
    }
    world.models.script(Reply('{"faults": ["one"]}'), Reply('{"faults": [1]}'), Reply("None."))
    fits, unfit, text = (
        world.chat("structured", structured_output_schema=schema) for _ in range(3)
    )
    assert fits["structured"] == {"faults": ["one"]}
    assert "structured" not in unfit
    assert "faults[0] must be of the type string" in unfit["notes"][0]
    assert "not the JSON" in text["notes"][0]


@ONE_ENGINE
def test_cost_is_counted_by_the_prices(world: Consulted) -> None:
    first = world.chat("cost", "word " * 2_000, assistant="priced")
    second = world.chat("cost", assistant="priced")
    for answer in (first, second):
        tokens = answer["tokens"]
        plain = tokens["input"] - tokens["cached"]
        expected = (plain * 2.0 + tokens["cached"] * 0.2 + tokens["output"] * 8.0) / 1e6
        assert answer["cost"] == pytest.approx(expected)
    assert second["tokens"]["cached"] > 1_000
    assert second["cost_total"] == pytest.approx(first["cost"] + second["cost"])


@ONE_ENGINE
def test_one_question_goes_to_several_assistants(world: Consulted) -> None:
    def answer(request: Any) -> Reply:
        is_claude = "claude" in request.json["model"]
        common = "The cache is never cleared. "
        own = "The lock is held too long." if is_claude else "There is no test for it."
        return Reply(common + own)

    plain = world.models.default
    world.models.default = answer
    try:
        given = {"session_id": "many", "instructions": "What is wrong?"}
        many = world.mcp().call("ask_many", assistants=["reviewer", "claude"], **given)
    finally:
        world.models.default = plain
    assert many["status"] == "done"
    assert [one["assistant"] for one in many["answers"]] == ["reviewer", "claude"]
    assert many["comparison"]["agreed"] == ["The cache is never cleared."]
    assert many["comparison"]["differences"] == [
        {"text": "There is no test for it.", "said_by": ["reviewer"]},
        {"text": "The lock is held too long.", "said_by": ["claude"]},
    ]
    assert world.chat("many", assistant="claude")["turn"] == 2
    world.asked()
    unknown = world.mcp().failure("ask_many", assistants=["nobody"], **given)
    assert unknown["code"] == "INVALID_ARGUMENT"
    assert world.asked() == []


def test_sessions_are_listed_by_last_use(world: Consulted) -> None:
    for session in ("first", "second", "first"):
        world.chat(session, who="guest")
    page = world.mcp("guest").call("list_sessions", limit=1)
    assert [session["session_id"] for session in page["sessions"]] == ["first"]
    rest = world.mcp("guest").call("list_sessions", after=page["next_after"])
    assert "second" in [session["session_id"] for session in rest["sessions"]]


@ONE_ENGINE
def test_arguments_out_of_bounds_are_refused(world: Consulted) -> None:
    for given in (
        {"session_id": ""},
        {"session_id": "x" * 201},
        {"session_id": "a\nb"},
        {"instructions": ""},
        {"context": "project"},
        {"reasoning_effort": "immense"},
        {"wishes": 1},
    ):
        arguments = {"session_id": "bounds", "instructions": "Go.", **given}
        result = world.mcp().outcome("chat_with_reviewer", arguments)
        assert result["isError"], given
    assert world.asked() == []


@ONE_ENGINE
def test_what_no_turn_can_take_is_refused_before_it_is_queued(world: Consulted) -> None:
    long = "x" * 300_000
    given = {"assistant": "reviewer", "session_id": "much", "instructions": "Go."}
    for more, code in (
        ({"context": ["a"] * 600, "attachments": ["b"] * 600}, "LIMIT_EXCEEDED"),
        ({"context": ["a" * 4_000] * 100}, "LIMIT_EXCEEDED"),
        ({"instructions": long, "output_format": long}, "INVALID_ARGUMENT"),
    ):
        assert world.mcp().failure("start_job", **{**given, **more})["code"] == code
    listed = world.mcp(path="/mcp-all").call("list_jobs", kind="consult", limit=200)["jobs"]
    assert [job for job in listed if job["state"] == "parked" and "takes" in job["error"]] == []
    assert world.asked() == []


def test_turns_of_one_key_do_not_take_all_places(world: Consulted) -> None:
    """More turns at once than a key may run: all are answered in the end."""
    started_s = time.monotonic()
    jobs = [
        world.mcp().call("start_job", assistant="reviewer", session_id=f"p{n}", instructions="Go.")
        for n in range(8)
    ]
    for job in jobs:
        done = world.mcp().call("poll_job", job_id=job["job_id"], wait_seconds=40)
        assert done["status"] == "done"
    assert time.monotonic() - started_s < 60
