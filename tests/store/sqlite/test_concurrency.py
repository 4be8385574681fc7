"""Many at a time: clients of one server, and several processes on one file."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import httpx2 as httpx
import pytest

from tests.drivers.server import Server, clean_environment
from tests.store.kept import ACTOR, EVERYTHING, Kept
from tests.store.sqlite.invariants import broken_invariants
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url


def at_once(
    server: Server, count: int, request: Callable[[httpx.Client, int], httpx.Response]
) -> list[httpx.Response]:
    """Each on a connection of its own, all sent when all are there."""
    line = threading.Barrier(count)

    def one(number: int) -> httpx.Response:
        line.wait()
        return request(client, number)

    with (
        httpx.Client(
            base_url=server.url,
            timeout=60,
            trust_env=False,
            limits=httpx.Limits(max_connections=count),
        ) as client,
        ThreadPoolExecutor(count) as threads,
    ):
        return list(threads.map(one, range(count)))


def statuses(answers: list[httpx.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def test_fifty_patches_of_different_places_all_land(shared_server: Server) -> None:
    shared_server.create("p/many", "".join(f"<place {number}>\n" for number in range(50)))
    answers = at_once(
        shared_server,
        50,
        lambda client, number: client.patch(
            "/documents/p/many",
            json={"old_str": f"<place {number}>", "new_str": f"<done {number}>"},
        ),
    )
    assert statuses(answers) == {200: 50}
    assert sorted(answer.json()["revision"] for answer in answers) == list(range(2, 52))
    document = shared_server.client.get("/documents/p/many").json()
    assert document["content"] == "".join(f"<done {number}>\n" for number in range(50))
    assert document["revision"] == 51


def test_of_patches_of_the_same_place_one_lands(shared_server: Server) -> None:
    shared_server.create("p/same", "the place")
    answers = at_once(
        shared_server,
        20,
        lambda client, number: client.patch(
            "/documents/p/same", json={"old_str": "the place", "new_str": f"by {number}"}
        ),
    )
    assert statuses(answers) == {200: 1, 409: 19}
    assert {a.json()["code"] for a in answers if a.status_code == 409} == {"NOT_FOUND_IN_CONTENT"}
    (winner,) = (number for number, answer in enumerate(answers) if answer.status_code == 200)
    document = shared_server.client.get("/documents/p/same").json()
    assert (document["content"], document["revision"]) == (f"by {winner}", 2)


def test_of_updates_from_the_same_revision_one_wins(shared_server: Server) -> None:
    shared_server.create("u/same", "first")
    answers = at_once(
        shared_server,
        20,
        lambda client, number: client.put(
            "/documents/u/same", json={"content": f"by {number}", "last_known_revision": 1}
        ),
    )
    assert statuses(answers) == {200: 1, 409: 19}
    for answer in answers:
        if answer.status_code == 409:
            error = answer.json()
            assert error["code"] == "CONFLICT"
            assert (error["details"]["expected"], error["details"]["actual"]) == (1, 2)
    (winner,) = (number for number, answer in enumerate(answers) if answer.status_code == 200)
    document = shared_server.client.get("/documents/u/same").json()
    assert (document["content"], document["revision"]) == (f"by {winner}", 2)


def test_of_creates_at_the_same_path_one_wins(shared_server: Server) -> None:
    answers = at_once(
        shared_server,
        20,
        lambda client, number: client.post(
            "/documents", json={"path": "c/same", "content": f"by {number}"}
        ),
    )
    assert statuses(answers) == {201: 1, 409: 19}
    (winner,) = (number for number, answer in enumerate(answers) if answer.status_code == 201)
    assert shared_server.client.get("/documents/c/same").json()["content"] == f"by {winner}"


def test_one_bad_write_among_many_fails_alone(shared_server: Server) -> None:
    shared_server.create("g/taken")

    def request(client: httpx.Client, number: int) -> httpx.Response:
        path = "g/taken" if number % 5 == 0 else f"g/{number}"
        return client.post("/documents", json={"path": path, "content": str(number)})

    answers = at_once(shared_server, 40, request)
    assert [answer.status_code for answer in answers] == [
        409 if number % 5 == 0 else 201 for number in range(40)
    ]
    listed = shared_server.client.get("/documents", params={"prefix": "g/"}).json()
    assert listed["count"] == 33


PROCESS = """
import asyncio, sys
from pathlib import Path
from zibaldone import settings
from zibaldone.wiring.runtime import build_runtime
from zibaldone.access.principal import LOCAL
from zibaldone.tools.call import call_tool
from zibaldone.tools.documents import patch_document, upload_document
from zibaldone.tools.spec import Call

name, count = sys.argv[2], int(sys.argv[3])
runtime = build_runtime(settings.load({"data": sys.argv[1]}))

async def write():
    made = Call(runtime, LOCAL)
    for number in range(count):
        await call_tool(upload_document.TOOL, made,
                   {"path": f"from/{name}/{number:03}", "content": f"{name} {number}"})
        await call_tool(patch_document.TOOL, made,
                   {"path": "shared", "old_str": f"<{name} {number}>", "new_str": f"<{name} done>"})

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(write())
runtime.store.close()
"""


def test_several_processes_share_a_file(tmp_path: Path) -> None:
    data, count, names = tmp_path / "data", 40, ("one", "two", "three")
    with Server(data) as server:
        everybody = (*names, "http")
        places = [f"<{name} {number}>" for name in everybody for number in range(count)]
        server.create("shared", "\n".join(places))
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", PROCESS, str(data), name, str(count)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=clean_environment(),
            )
            for name in names
        ]  # fmt: skip
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for number in range(count):
            server.create(f"from/http/{number:03}", f"http {number}")
            change = {"old_str": f"<http {number}>", "new_str": "<http done>"}
            answer = server.client.patch("/documents/shared", json=change)
            assert answer.status_code == 200, answer.text
        for process in processes:
            assert process.communicate(timeout=100) == ("", "")
            assert process.returncode == 0
        shared = server.client.get("/documents/shared").json()
        assert shared["revision"] == 1 + len(places)
        assert shared["content"] == "\n".join(
            f"<{n} done>" for n in everybody for _ in range(count)
        )
        for name in everybody:
            page = server.client.get("/documents", params={"prefix": f"from/{name}/", "limit": 100})
            ids = [item["document_id"] for item in page.json()["items"]]
            assert ids == [f"from/{name}/{number:03}" for number in range(count)]
        assert "locked" not in server.log()
    assert broken_invariants(data / DATABASE_NAME) == {}


@pytest.fixture
def held(tmp_path: Path) -> apsw.Connection:
    """Another process's connection to the file, to take the write lock with."""
    open_store(store_url(tmp_path / "data"), Limits()).close()
    return apsw.Connection(str(tmp_path / "data" / DATABASE_NAME))


def test_a_write_that_is_cancelled_while_it_waits_never_happens(
    tmp_path: Path, held: apsw.Connection
) -> None:
    store = open_store(store_url(tmp_path / "data"), Limits())
    kept = Kept(store, Limits())
    held.execute("BEGIN IMMEDIATE")

    async def give_up() -> None:
        new = NewDocument("late", "text")
        writing = asyncio.ensure_future(
            store.write(EVERYTHING, lambda writer: create(writer, new, ACTOR, Limits()))
        )
        await asyncio.sleep(0)  # it is submitted
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    asyncio.run(give_up())
    held.execute("ROLLBACK")
    kept.create("next", "text")
    assert kept.ids() == ["next"]
    store.close()
    held.close()


def test_a_call_that_timed_out_behind_a_lock_was_not_carried_out(
    tmp_path: Path, held: apsw.Connection
) -> None:
    environment = {"ZIBALDONE_TOOL_SECONDS_MAX": "0.3"}
    with Server(tmp_path / "data", environment=environment) as server:
        held.execute("BEGIN IMMEDIATE")
        answer = server.client.post("/documents", json={"path": "late", "content": "text"})
        assert (answer.status_code, answer.json()["code"]) == (504, "DEADLINE_EXCEEDED")
        held.execute("ROLLBACK")
        server.create("next")
        listed = server.client.get("/documents").json()["items"]
        assert [item["document_id"] for item in listed] == ["next"]
    held.close()


def test_quick_reads_go_on_while_another_process_writes(
    tmp_path: Path, held: apsw.Connection
) -> None:
    store = open_store(store_url(tmp_path / "data"), Limits())
    kept = Kept(store, Limits())
    kept.create("a", "zebra")
    held.execute("BEGIN IMMEDIATE")
    held.execute("UPDATE bodies SET body = 'half done'")
    for _ in range(100):
        found = kept.read(lambda reader: reader.documents.get("a"), is_small=True)
        assert found is not None
        assert found.body == "zebra"
    held.execute("ROLLBACK")
    assert kept.read(lambda reader: reader.documents.get("a"), is_small=True) is not None
    store.close()
    held.close()
