"""The hosted store of one call, over HTTP: found, read, and deleted whichever way the call ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.drivers.embedders import PATIENCE_SECONDS
from tests.drivers.model_server import ModelServer, Status, server_error, unauthorized
from zibaldone.consult import hosted
from zibaldone.consult.hosted import HostedIndex, hosted_index, sweep_leftovers
from zibaldone.errors import LimitExceeded, NotFound, ProviderRefused, ProviderUnavailable
from zibaldone.model.assistant import Assistant
from zibaldone.pack.stores import STORES


@dataclass(frozen=True, slots=True)
class File:
    path: str
    load: Callable[[], str]


def file(path: str, text: str) -> File:
    return File(path, lambda: text)


FILES = [
    file(
        "app/redirects.py", "import os\n\n\ndef follow(response):\n    return response.location\n"
    ),
    file("app/cookies.py", "class CookieJar:\n    pass\n"),
    file("app/empty.py", "\n"),
]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(api_key="secret") as running:
        yield running


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted, "HOSTED_PAUSE_SECONDS", 0.001)


def assistant(server: ModelServer) -> Assistant:
    return Assistant("helper", "openai", "m", base_url=server.url, api_key_env="KEY")


def index_of(server: ModelServer, files: list[File] | None = None) -> Any:
    chosen = FILES if files is None else files
    return hosted_index(chosen, assistant=assistant(server), environment={"KEY": "secret"})


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 3 * PATIENCE_SECONDS))


@pytest.fixture
def nothing_left(server: ModelServer) -> Iterator[None]:
    made, destroyed = STORES.made["hosted"], STORES.destroyed["hosted"]
    yield
    assert server.hosted.stores == {}
    assert server.hosted.files == {}
    assert STORES.made["hosted"] - made == STORES.destroyed["hosted"] - destroyed == 1


@pytest.mark.requirement("SI-07")
@pytest.mark.usefixtures("nothing_left")
def test_files_are_searched_read_and_deleted(server: ModelServer) -> None:
    async def work() -> None:
        async with index_of(server) as index:
            assert isinstance(index, HostedIndex)
            (store,) = server.hosted.stores.values()
            assert store.name == index.name
            assert store.name.startswith("zibaldone-call-until-")
            assert store.expires_after
            assert len(server.hosted.files) == 2  # not the empty one
            (hit, *_) = await index.search("follow response", 3)
            assert (hit.path, hit.from_line) == ("app/redirects.py", 1)
            assert "def follow" in hit.text
            assert await index.read("redirects.py", 4, 4) == "def follow(response):\n"
            with pytest.raises(NotFound):
                await index.read("other.py")
        assert {request.headers.get("authorization") for request in server.requests} == {
            "Bearer secret"
        }

    run(work())


class Broken(Exception):
    pass


@pytest.mark.usefixtures("nothing_left")
def test_an_error_of_the_caller_deletes_everything(server: ModelServer) -> None:
    async def work() -> None:
        with pytest.raises(Broken):
            async with index_of(server):
                raise Broken

    run(work())


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("path", ["/v1/files", "/v1/vector_stores"])
def test_a_refusal_while_it_is_built_deletes_everything(server: ModelServer, path: str) -> None:
    server.fail(path, unauthorized(), method="POST")

    async def work() -> None:
        with pytest.raises(ProviderRefused, match="KEY"):
            async with index_of(server):
                pytest.fail("it was built")

    run(work())


@pytest.mark.usefixtures("nothing_left")
def test_failures_that_pass_are_tried_again(server: ModelServer) -> None:
    server.fail("/v1/files", server_error(), method="POST")
    server.fail("/v1/vector_stores", Status(429, "slow down", "rate_limit_error"), method="POST")
    server.fail("/v1/files", server_error(), method="DELETE")

    async def work() -> None:
        async with index_of(server) as index:
            assert await index.search("CookieJar", 1)

    run(work())


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.03, 0.1])
def test_cancelling_deletes_everything(server: ModelServer, seconds: float) -> None:
    many = [file(f"{number}.py", f"value = {number}\n") for number in range(40)]

    async def work() -> None:
        entered = asyncio.Event()

        async def ask() -> None:
            entered.set()
            async with index_of(server, many):
                await asyncio.sleep(PATIENCE_SECONDS)

        task = asyncio.create_task(ask())
        await entered.wait()
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # twice, as impatient callers do
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())


def test_what_cannot_be_deleted_stays_counted_and_is_swept_later(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.fail("/v1/vector_stores", server_error(), method="DELETE", times=100)
    destroyed = STORES.destroyed["hosted"]

    async def work() -> None:
        async with index_of(server):
            pass
        assert STORES.destroyed["hosted"] == destroyed
        assert len(server.hosted.stores) == 1

    run(work())
    server._failing.clear()
    swept = sweep_leftovers(assistant(server), {"KEY": "secret"})
    assert asyncio.run(swept) == 0  # the call may still run, in another process
    later_s = time.time() + assistant(server).seconds_max + 10_000
    monkeypatch.setattr(time, "time", lambda: later_s)
    swept = sweep_leftovers(assistant(server), {"KEY": "secret"})
    assert asyncio.run(swept) == 3
    assert server.hosted.stores == {}
    assert server.hosted.files == {}
    STORES.count_destroyed("hosted")


def test_the_sweep_touches_nothing_of_others(server: ModelServer) -> None:
    client = hosted._Client(assistant(server), "secret")

    async def work() -> None:
        await client.post("/vector_stores", {"name": "my documents"})
        for number in range(150):
            await client.post("/vector_stores", {"name": f"zibaldone-call-until-1-{number:08x}"})
        await client.upload("notes.txt", b"mine")
        await client.upload("zibaldone-call-until-1-00000000-7.txt", b"left")
        await client.close()
        assert await sweep_leftovers(assistant(server), {"KEY": "secret"}) == 151

    run(work())
    assert [store.name for store in server.hosted.stores.values()] == ["my documents"]
    assert [one.name for one in server.hosted.files.values()] == ["notes.txt"]


@pytest.mark.usefixtures("nothing_left")
def test_files_that_cannot_be_read_are_reported(server: ModelServer) -> None:
    def load() -> str:
        raise OSError("gone")

    async def work() -> None:
        async with index_of(server, [File("gone.py", load), FILES[0]]) as index:
            assert index.unreadable == {"gone.py": "gone"}
            assert await index.search("follow", 1)

    run(work())


@pytest.mark.usefixtures("nothing_left")
def test_without_text_no_store_is_made(server: ModelServer) -> None:
    async def work() -> None:
        async with index_of(server, [FILES[2]]) as index:
            assert await index.search("anything", 3) == []
        assert server.hosted.stores_made == 0

    run(work())


def test_too_many_files_are_refused_before_anything_is_sent(server: ModelServer) -> None:
    async def work() -> None:
        with pytest.raises(LimitExceeded):
            async with index_of(server, [FILES[0]] * 10_001):
                pass

    run(work())
    assert server.requests == []


def test_a_server_that_is_away_is_unavailable(server: ModelServer) -> None:
    away = Assistant("helper", "openai", "m", base_url="http://127.0.0.1:9/v1")

    async def work() -> None:
        with pytest.raises(ProviderUnavailable):
            async with hosted_index(FILES, assistant=away, environment={}):
                pass

    run(work())
    del server
