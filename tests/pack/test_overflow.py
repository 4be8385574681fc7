"""The index of one call: what it finds, and that nothing of it is left, however the call ends."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.embedders import PATIENCE_SECONDS, Blocking, Counting, Failing
from zibaldone.embed.hashed import Hashed
from zibaldone.embed.port import Vectors
from zibaldone.errors import Ambiguous, InvalidArgument, LimitExceeded, NotFound
from zibaldone.model.vector import np
from zibaldone.pack.file_index import FileIndex, Stopped
from zibaldone.pack.files import PackedFile
from zibaldone.pack.overflow import STORES, EphemeralIndex, FoundChunk, ephemeral_index
from zibaldone.pack.vector_cache import VectorCache


@dataclass(frozen=True, slots=True)
class File:
    path: str
    load: Callable[[], str]


def file(path: str, text: str) -> File:
    return File(path, lambda: text)


FILES = [
    file(
        "app/net/redirects.py",
        '"""Follow redirects."""\n\n\ndef follow(response):\n    """Go to the next location."""\n'
        "    return open_url(response.headers['location'])\n",
    ),
    file(
        "app/net/client.py",
        "from app.net.redirects import follow\n\n\nclass HttpClient:\n    def get(self, url):\n"
        "        response = self.send(url)\n        return follow(response)\n",
    ),
    file(
        "app/store/cookie_jar.py",
        "class CookieJar:\n    def extract(self, response):\n"
        "        for value in response.headers:\n            self.keep(value)\n",
    ),
    file(
        "tests/test_redirects.py",
        "from app.net.redirects import follow\n\n\ndef test_redirects_are_followed():\n"
        "    assert follow(redirects) and redirects\n",
    ),
    file("README.md", "# App\n\nAn HTTP client.\n\n## Cookies\n\nThe cookie jar keeps cookies.\n"),
]


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run, and see that no store and no thread is left."""
    made, destroyed = STORES.made["memory"], STORES.destroyed["memory"]
    threads = {*threading.enumerate()}
    asyncio.run(asyncio.wait_for(work, 3 * PATIENCE_SECONDS))
    assert STORES.made["memory"] - made == STORES.destroyed["memory"] - destroyed
    assert STORES.open("memory") == 0
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while left := {*threading.enumerate()} - threads:
        assert time.monotonic() < deadline_s, left
        time.sleep(0.01)


async def until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(2 * PATIENCE_SECONDS):
        while not is_true():  # noqa: ASYNC110 (threads set no event of the loop)
            await asyncio.sleep(0.01)


class Quick(Counting):
    """The same vector for every text, at once."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        return np.full((len(texts), self.dimensions), 8**-0.5, np.float32)


def index_of(
    files: list[File], embedder: Hashed | None = None, cache: VectorCache | None = None
) -> Any:
    return ephemeral_index(files, embedder=embedder, cache=cache or VectorCache(), share="ada")


def paths(hits: list[FoundChunk]) -> list[str]:
    return [hit.path for hit in hits]


@pytest.mark.parametrize("embedder", [None, Hashed()], ids=["words", "vectors"])
def test_finds_the_file_and_the_lines(embedder: Hashed | None) -> None:
    async def work() -> None:
        async with index_of(FILES, embedder) as index:
            assert list(index.files) == [one.path for one in FILES]
            (first, *_) = await index.search("where are redirects followed", 5)
            assert first.path == "app/net/redirects.py"
            assert (first.from_line, first.to_line) == (1, 6)
            assert "def follow" in first.text
            scores = [hit.score for hit in await index.search("http client", 5)]
            assert scores == sorted(scores, reverse=True)

    run(work())


class Trusted(Hashed):
    """Knows a language by so much."""

    def __init__(self, trust: float) -> None:
        super().__init__()
        self._trust = trust

    def language_trust(self, text: str) -> float:
        del text
        return self._trust


def test_a_model_that_knows_the_language_less_decides_less() -> None:
    async def scores(embedder: Hashed | None) -> dict[str, float]:
        async with index_of(FILES, embedder) as index:
            return {hit.path: hit.score for hit in await index.search("http client cookies", 5)}

    async def work() -> None:
        by_words = await scores(None)
        little, much = await scores(Trusted(0.001)), await scores(Trusted(1.0))
        assert {path: little[path] for path in by_words} == pytest.approx(by_words, abs=0.01)
        assert {path: much[path] for path in by_words} != pytest.approx(by_words, abs=0.05)

    run(work())


def test_takes_the_files_that_a_pack_left_over(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("def alpha():\n    pass\n")
    left_over = PackedFile("app/a.py", 24, 0, source.read_text)

    async def work() -> None:
        async with ephemeral_index(
            [left_over], embedder=None, cache=VectorCache(), share="ada"
        ) as index:
            assert paths(await index.search("alpha", 3)) == ["app/a.py"]

    run(work())


def test_the_definition_of_a_symbol_comes_before_its_uses() -> None:
    async def work() -> None:
        async with index_of(FILES) as index:
            assert paths(await index.search("follow", 5))[0] == "app/net/redirects.py"
            assert paths(await index.search("CookieJar", 5))[0] == "app/store/cookie_jar.py"
            assert paths(await index.search("what does HttpClient do", 5))[0] == "app/net/client.py"

    run(work())


def test_a_file_with_more_uses_does_not_hide_the_definition() -> None:
    filler = "".join(f"    step_{number}(value)\n" for number in range(6))
    uses = "    frob_item(value)\n" * 4
    files = [
        file("a/first.py", f"def prepare(value):\n{filler}\n\ndef frob_item(x):\n    pass\n"),
        file("b/second.py", f"def consume(value):\n{uses}{filler}"),
        *FILES,
    ]

    async def work() -> None:
        async with index_of(files) as index:
            assert paths(await index.search("why does frob_item fail", 2))[0] == "a/first.py"

    run(work())


def test_tests_come_first_only_if_they_are_asked_for() -> None:
    async def work() -> None:
        async with index_of(FILES) as index:
            plain = paths(await index.search("redirects", 5))
            asked = paths(await index.search("tests of redirects", 5))
        assert plain.index("tests/test_redirects.py") > plain.index("app/net/redirects.py")
        assert asked[0] == "tests/test_redirects.py"

    run(work())


def test_a_file_is_found_once_and_shown_by_its_best_chunk() -> None:
    filler = "".join(f"def helper_{n}(value):\n    return value + {n}\n\n\n" for n in range(200))
    text = f"{filler}def wanted_symbol(value):\n    return value\n\n\n{filler}"

    async def work() -> None:
        async with index_of([file("big.py", text), *FILES]) as index:
            hits = await index.search("wanted_symbol", 10)
            assert len(paths(hits)) == len({*paths(hits)})
            assert "def wanted_symbol" in hits[0].text
            lines = text.splitlines()[hits[0].from_line - 1 : hits[0].to_line]
            assert "\n".join(lines).strip() == hits[0].text.strip()

    run(work())


def test_reads_files_by_path_and_lines() -> None:
    async def work() -> None:
        async with index_of(FILES) as index:
            assert await index.read("app/net/client.py") == FILES[1].load()
            assert await index.read("./client.py", 4, 4) == "class HttpClient:\n"
            with pytest.raises(NotFound):
                await index.read("../../etc/passwd")
            with pytest.raises(InvalidArgument):
                await index.read("README.md", 0, 3)
            with pytest.raises(InvalidArgument):
                await index.read("README.md", 3, 2)
            with pytest.raises(InvalidArgument, match="there is no line 99"):
                await index.read("README.md", 99)

    run(work())


def test_a_short_path_that_fits_several_files_is_ambiguous() -> None:
    async def work() -> None:
        async with index_of([file("a/x.py", "1"), file("b/x.py", "2")]) as index:
            with pytest.raises(Ambiguous, match=r"a/x\.py, b/x\.py"):
                await index.read("x.py")

    run(work())


def test_a_long_file_is_read_in_parts() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 5_001))

    async def work() -> None:
        async with index_of([file("long.txt", text)]) as index:
            first = await index.read("long.txt")
            assert first.startswith("line 1\n")
            assert first.endswith("5000 lines in all; read on with from_line=2001]")
            assert (await index.read("long.txt", 4_999)) == "line 4999\nline 5000\n"
            assert (await index.read("long.txt", 10, 11)) == "line 10\nline 11\n"

    run(work())


@pytest.mark.parametrize("query", ["", "  ", "x" * 10_000, "a\ud800b"])
def test_bad_queries_are_refused(query: str) -> None:
    async def work() -> None:
        async with index_of(FILES) as index:
            with pytest.raises((InvalidArgument, LimitExceeded)):
                await index.search(query, 5)
            with pytest.raises(InvalidArgument):
                await index.search("fine", 0)

    run(work())


@pytest.mark.parametrize(
    "query", ['"', "()", "a OR b AND", "-x", "*", "\x00", "ünïcode 漢字", "((((" * 500, "_" * 999]
)
def test_odd_queries_are_answered(query: str) -> None:
    async def work() -> None:
        async with index_of(FILES, Hashed()) as index:
            await index.search(query, 5)

    run(work())


def test_an_index_of_nothing_finds_nothing() -> None:
    async def work() -> None:
        for files in ([], [file("empty.py", "")], [file("blank.py", " \n\n")]):
            async with index_of(files, Hashed()) as index:
                assert await index.search("anything", 5) == []

    run(work())


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_found(tmp_path: Path) -> None:
    gone = File("gone.py", (tmp_path / "gone.py").read_text)

    async def work() -> None:
        async with index_of([gone, *FILES]) as index:
            assert list(index.unreadable) == ["gone.py"]
            assert await index.search("redirects", 3)
            with pytest.raises(NotFound):
                await index.read("gone.py")

    run(work())


def test_a_file_that_is_gone_after_building_is_no_fault(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("def alpha():\n    pass\n")

    async def work() -> None:
        async with index_of([File("a.py", source.read_text)], Hashed()) as index:
            source.unlink()
            assert paths(await index.search("alpha", 3)) == ["a.py"]

    run(work())


def test_more_files_than_a_store_holds_are_refused() -> None:
    async def work() -> None:
        many = [FILES[0]] * 10_001
        with pytest.raises(LimitExceeded, match="10001 files would have to be searched"):
            async with index_of(many):
                pass

    run(work())


def test_more_text_than_a_store_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zibaldone.pack.file_index.OVERFLOW_TEXT_CHARS_MAX", 250)

    async def work() -> None:
        async with index_of(FILES[:1]) as index:
            assert len(index.files) == 1
        with pytest.raises(LimitExceeded, match="Name fewer or smaller folders"):
            async with index_of(FILES[:2]):
                pass

    run(work())


def test_the_second_call_on_ten_thousand_files_embeds_nothing() -> None:
    files = [file(f"f/{number}.py", f"def f{number}():\n    pass\n") for number in range(10_000)]
    cache, embedder = VectorCache(), Quick(8)

    async def work() -> None:
        async with index_of(files, embedder, cache) as index:
            await until(lambda: index.embedded >= len(files))
        embedder.taken()
        async with index_of(files, embedder, cache) as index:
            await index.search("f77", 3)
            await asyncio.sleep(0)
            assert index.embedded == 0
        assert embedder.taken() == ["f77"]
        async with ephemeral_index(files[:50], embedder=embedder, cache=cache, share="bob") as own:
            await until(lambda: own.embedded >= 50)

    run(work())


def test_after_an_edit_only_changed_chunks_are_embedded() -> None:
    text = "".join(f"def f{n}(value):\n    return value * {n}\n\n\n" for n in range(300))
    cache, embedder = VectorCache(), Counting(8)

    async def filled(body: str) -> int:
        async with index_of([file("a.py", body), FILES[0]], embedder, cache) as index:
            await until(lambda: index.embedded > 0)
            before = -1
            while before != index.embedded:
                before = index.embedded
                await asyncio.sleep(0.2)
            return before

    async def work() -> None:
        first = await filled(text)
        assert await filled(text.replace("value * 150", "value * 151")) < first / 3

    run(work())


class Broken(Exception):
    pass


def assert_no_index_is_in_memory() -> None:
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one) is FileIndex and one.files]


@pytest.mark.requirement("SI-07")
@pytest.mark.parametrize("embedder", [None, Counting(8)], ids=["words", "vectors"])
def test_an_error_of_the_caller_destroys_the_index(embedder: Counting | None) -> None:
    async def work() -> None:
        with pytest.raises(Broken):
            async with index_of(FILES, embedder) as index:
                raise Broken
        assert list(index.files) == []  # also for somebody who kept it

    run(work())
    assert_no_index_is_in_memory()


def test_a_loader_that_fails_destroys_the_index() -> None:
    def load() -> str:
        raise Broken

    async def work() -> None:
        with pytest.raises(Broken):
            async with index_of([File("a.py", load)]):
                pass

    run(work())


@pytest.mark.requirement("SI-07")
def test_cancelling_while_it_builds_ends_the_build_soon() -> None:
    begun = threading.Event()
    loaded: list[int] = []

    def load() -> str:
        begun.set()
        loaded.append(1)
        time.sleep(0.005)
        return "def f():\n    pass\n" * 100

    async def work() -> None:
        async def build() -> None:
            async with index_of([File(f"{number}.py", load) for number in range(9_000)]):
                pytest.fail("it was built")

        task = asyncio.create_task(build())
        await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        count = len(loaded)
        assert count < 9_000
        await asyncio.sleep(0.05)
        assert len(loaded) == count

    run(work())
    assert_no_index_is_in_memory()


def test_cancelling_ends_the_build_inside_of_a_long_file() -> None:
    stopped = threading.Event()
    stopped.set()
    index = FileIndex("")
    with pytest.raises(Stopped):
        index.add(file("long.py", "def f():\n    pass\n\n\n" * 5_000), stopped.is_set)


def test_cancelling_a_search_destroys_the_index() -> None:
    embedder = Blocking()

    async def work() -> None:
        async def ask() -> None:
            async with index_of(FILES, embedder) as index:
                await index.search("redirects", 3)

        task = asyncio.create_task(ask())
        await asyncio.to_thread(embedder.begun.wait, PATIENCE_SECONDS)
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()  # it waits for the thread inside of the model
        embedder.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())


def test_a_model_that_hangs_does_not_hold_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zibaldone.pack.overflow.OVERFLOW_CLOSE_SECONDS_MAX", 0.05)
    monkeypatch.setattr("zibaldone.pack.overflow.OVERFLOW_QUERY_SECONDS_MAX", 0.05)
    embedder = Blocking()

    async def work() -> None:
        async with index_of(FILES, embedder) as index:
            hits = await index.search("redirects", 3)
            assert paths(hits)[0] == "app/net/redirects.py"
            assert index.vectors_missing is not None
        assert STORES.open("memory") == 0
        embedder.may_go_on.set()

    run(work())


def test_a_model_that_fails_leaves_keyword_search() -> None:
    async def work() -> None:
        async with index_of(FILES, Failing(RuntimeError("broken"))) as index:
            assert paths(await index.search("redirects", 3))[0] == "app/net/redirects.py"
            assert index.vectors_missing == "The embedding model failed."

    run(work())


def test_the_event_loop_goes_on_while_it_builds() -> None:
    text = "def function(value):\n    return value.attribute['key'] + 12\n\n\n" * 2_000
    files = [file(f"{number}.py", text + str(number)) for number in range(15)]

    async def work() -> None:
        pauses: list[float] = []

        async def tick() -> None:
            while True:
                before_s = time.perf_counter()
                await asyncio.sleep(0.001)
                pauses.append(time.perf_counter() - before_s)

        ticking = asyncio.create_task(tick())
        async with index_of(files):
            ticking.cancel()
        # A build in the loop itself would leave it no turn at all.
        assert len(pauses) > 20
        assert max(pauses) < 1.0

    run(work())


def test_the_order_of_the_files_does_not_change_the_answer() -> None:
    async def work() -> None:
        async def asked(files: list[File]) -> list[tuple[str, int]]:
            async with index_of(files) as index:
                hits: list[FoundChunk] = await index.search("response headers client", 5)
                return [(hit.path, hit.from_line) for hit in hits]

        assert await asked(FILES) == await asked(FILES[::-1])

    run(work())


def test_an_index_is_not_made_twice_for_a_path() -> None:
    async def work() -> None:
        async with index_of([FILES[0], FILES[0]]) as index:
            assert isinstance(index, EphemeralIndex)
            assert len(index.files) == 1

    run(work())
