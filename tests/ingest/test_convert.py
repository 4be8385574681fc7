"""Converting in child processes: what they are given, and that nothing they do harms the parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers import hostile
from tests.ingest.test_extract import a_docx, a_pdf
from zibaldone.errors import (
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    LimitExceeded,
    NotConfigured,
    PayloadTooLarge,
)
from zibaldone.ingest import child as child_module
from zibaldone.ingest import convert as subject
from zibaldone.ingest.child import Child
from zibaldone.ingest.convert import Converter
from zibaldone.ingest.extract import extract
from zibaldone.limits import (
    ARCHIVE_ENTRIES_MAX,
    CONVERT_FILES_MAX,
    CONVERT_INLINE_BYTES_MAX,
    CONVERT_MEMORY_BYTES_MAX,
    CONVERT_PROCESSES_MAX,
    MIB,
)

PAGE = b"<h1>Title</h1><p>words"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


TOO_SLOW = (LimitExceeded, DeadlineExceeded)
"""By its CPU time, and on a machine that gives it too little of that, by the clock."""
HANG_SECONDS = 20


def converter_of(seconds_max: float = 30.0, text_bytes_max: int = 10 * MIB) -> Converter:
    return Converter(bytes_max=64 * MIB, text_bytes_max=text_bytes_max, seconds_max=seconds_max)


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    """Every child that was started, in order."""
    started: list[Child] = []

    class Recorded(Child):
        def __init__(self, idle_seconds_max: float) -> None:
            super().__init__(idle_seconds_max)
            started.append(self)

    monkeypatch.setattr(subject, "Child", Recorded)
    return started


@pytest.fixture
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def converter() -> Iterator[Converter]:
    made = converter_of()
    yield made
    made.close()


Run = Callable[[Coroutine[Any, Any, Any]], Any]


async def until(condition: Callable[[], Any], seconds_max: float = 20.0) -> None:
    deadline_s = time.monotonic() + seconds_max
    while not condition():
        assert time.monotonic() < deadline_s, "waited in vain"
        await asyncio.sleep(0.01)


def is_running(pid: int | None) -> bool:
    assert pid is not None
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the latter: it ended while being read
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


class TestResults:
    @pytest.mark.parametrize(
        ("data", "name", "mime"),
        [
            (PAGE, "a.html", None),
            (PAGE, "a", "text/html; charset=utf-8"),
            (a_pdf("first", "second", title="T"), "a.pdf", None),
            (a_docx(), "a", None),
            (b"# T\r\nword", "a.md", None),
            ("é".encode("cp1252"), "a.txt", "text/plain; charset=windows-1252"),
            (b"x\n" * CONVERT_INLINE_BYTES_MAX, "large.txt", None),
        ],
        ids=["html", "by mime", "pdf", "docx", "markdown", "charset", "large text"],
    )
    def test_the_child_says_what_extract_says(
        self, converter: Converter, run: Run, data: bytes, name: str, mime: str | None
    ) -> None:
        expected = extract(data, name=name, mime=mime)
        assert run(converter.convert(data, name=name, mime=mime)) == expected

    def test_errors_keep_their_code_words_and_details(self, converter: Converter, run: Run) -> None:
        for data, kind in (
            (b"%PDF-1.7", InvalidArgument),
            (hostile.zip_bomb(20 * MIB), PayloadTooLarge),
            (b"PK\x03\x04" + b"PK\x01\x02" * (ARCHIVE_ENTRIES_MAX + 1), LimitExceeded),
        ):
            with pytest.raises(kind) as expected:
                extract(data, name="a.docx")
            with pytest.raises(kind) as caught:
                run(converter.convert(data, name="a.docx"))
            assert caught.value.as_dict() == expected.value.as_dict()

    def test_a_missing_library_is_told(
        self, converter: Converter, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "pypdf.py").write_text("raise ImportError")
        monkeypatch.syspath_prepend(str(tmp_path))
        with pytest.raises(NotConfigured, match=r"pip install 'zibaldone\[ingest\]'"):
            run(converter.convert(a_pdf("x"), name="a.pdf"))

    def test_names_of_any_kind(self, converter: Converter, run: Run) -> None:
        for name in ("", "x" * 100_000 + ".html", "\udcff.html", "a\0b.html"):
            assert run(converter.convert(PAGE, name=name, mime="text/html")).title == "Title"

    def test_text_longer_than_a_document_is_refused(self, run: Run) -> None:
        small = converter_of(text_bytes_max=100)
        with pytest.raises(InvalidArgument, match="holds 100 at most"):
            run(small.convert(b"<p>" + b"word " * 100, name="a.html"))
        small.close()

    def test_a_file_over_the_limit_is_refused_before_a_child_sees_it(
        self, run: Run, children: list[Child]
    ) -> None:
        small = Converter(bytes_max=10, text_bytes_max=10, seconds_max=10)
        with pytest.raises(PayloadTooLarge):
            run(small.convert(PAGE, name="a.html"))
        assert children == []


class TestHostileFiles:
    """Each ends in time with an error that says what to do, and the next file is converted."""

    @pytest.mark.parametrize(
        ("data", "name"),
        [
            (hostile.COMMENTS, "a.html"),
            (hostile.docx_of(15 * MIB), "a.docx"),
            (hostile.looping_pdf(), "a.pdf"),
        ],
        ids=["quadratic HTML", "DOCX with 15 MiB of XML", "looping PDF"],
    )
    def test_too_slow(self, run: Run, children: list[Child], data: bytes, name: str) -> None:
        converter = converter_of(seconds_max=3.0)
        started_s = time.monotonic()
        with pytest.raises(TOO_SLOW, match=r"seconds.*Split it"):
            run(converter.convert(data, name=name))
        assert time.monotonic() - started_s < HANG_SECONDS
        # A reader of pages looks at the clock itself: it refuses the file and stays of use.
        run(until(lambda: children[0].is_ended or children[0].answered == 1))
        assert run(converter.convert(PAGE, name="a.html")).title == "Title"
        converter.close()

    def test_a_zip_bomb(self, converter: Converter, run: Run) -> None:
        data = hostile.zip_bomb(300 * MIB)
        assert len(data) < MIB
        with pytest.raises(PayloadTooLarge):
            run(converter.convert(data, name="a.docx"))

    @on_linux
    def test_too_much_memory(self, converter: Converter, run: Run, children: list[Child]) -> None:
        with pytest.raises(PayloadTooLarge, match="MiB of memory"):
            run(converter.convert(hostile.ATTRIBUTES, name="a.html"))
        run(until(lambda: children[0].is_ended))
        assert run(converter.convert(PAGE, name="a.html")).title == "Title"

    def test_the_event_loop_goes_on(self, run: Run) -> None:
        async def lag_beside(work: Coroutine[Any, Any, Any]) -> float:
            """CPU time, which another process's work does not add to."""
            task, longest_s = asyncio.create_task(work), 0.0
            while not task.done():
                before_s = time.thread_time()
                await asyncio.sleep(0.01)
                longest_s = max(longest_s, time.thread_time() - before_s)
            with pytest.raises(TOO_SLOW):
                task.result()
            return longest_s

        converter = converter_of(seconds_max=3.0)
        work = converter.convert(hostile.docx_of(15 * MIB), name="a.docx")
        assert run(lag_beside(work)) < 0.5
        converter.close()


class TestChildren:
    def test_small_text_needs_none(
        self, converter: Converter, run: Run, children: list[Child]
    ) -> None:
        for name in ("a.md", "a.txt", "a.py", "LICENSE"):
            run(converter.convert(b"word", name=name))
        with pytest.raises(InvalidArgument, match="cannot be turned into text"):
            run(converter.convert(b"\x89PNG", name="a.png"))
        assert children == []

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.rst", b"A\n=\n\nwords"),
            ("a.org", b"* A\nwords"),
            ("a.ipynb", b'{"cells": [{"cell_type": "markdown", "source": "words"}]}'),
            ("a.html", PAGE),
            ("a.txt", "Gr\u00f6\u00dfe der T\u00fcr".encode("latin-1")),
        ],
    )
    def test_whatever_is_parsed_or_guessed_needs_one(
        self, converter: Converter, run: Run, children: list[Child], name: str, data: bytes
    ) -> None:
        run(converter.convert(data, name=name))
        assert len(children) == 1

    def test_one_is_used_again_and_replaced_in_time(
        self,
        converter: Converter,
        run: Run,
        children: list[Child],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(subject, "CONVERT_USES_MAX", 3)
        for _ in range(4):
            run(converter.convert(PAGE, name="a.html"))
        assert [child.answered for child in children] == [3, 1]
        run(until(lambda: not is_running(children[0].pid)))

    def test_there_are_never_more_than_the_bound(
        self, converter: Converter, run: Run, children: list[Child]
    ) -> None:
        async def many() -> None:
            await asyncio.gather(*(converter.convert(PAGE, name="a.html") for _ in range(8)))

        run(many())
        assert len(children) == CONVERT_PROCESSES_MAX
        assert sum(child.answered for child in children) == 8

    def test_an_idle_one_ends_and_the_next_file_starts_another(
        self,
        converter: Converter,
        run: Run,
        children: list[Child],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(subject, "CONVERT_IDLE_SECONDS_MAX", 0.05)
        run(converter.convert(PAGE, name="a.html"))
        run(until(lambda: children[0].is_ended and not is_running(children[0].pid)))
        assert run(converter.convert(PAGE, name="a.html")).title == "Title"

    def test_one_that_is_killed_from_outside_is_replaced(
        self, converter: Converter, run: Run, children: list[Child]
    ) -> None:
        run(converter.convert(PAGE, name="a.html"))
        os.kill(children[0].pid or 0, signal.SIGKILL)
        assert run(converter.convert(PAGE, name="a.html")).title == "Title"
        assert len(children) == 2

    def test_a_file_that_ends_its_child_twice_is_refused(
        self, run: Run, children: list[Child]
    ) -> None:
        converter = converter_of()

        async def kill_both() -> None:
            work = asyncio.create_task(converter.convert(hostile.COMMENTS, name="a.html"))
            for number in range(2):
                await until(lambda number=number: len(children) > number)  # type: ignore[misc]
                await until(lambda number=number: children[number].pid)  # type: ignore[misc]
                os.kill(children[number].pid or 0, signal.SIGKILL)
            with pytest.raises(InvalidArgument, match=r"SIGKILL.*text or Markdown"):
                await work

        run(kill_both())
        assert len(children) == 2
        converter.close()

    def test_a_cancelled_conversion_ends_its_child(
        self, converter: Converter, run: Run, children: list[Child]
    ) -> None:
        async def cancel() -> None:
            work = asyncio.create_task(converter.convert(hostile.COMMENTS, name="a.html"))
            await until(lambda: children and children[0].pid)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            await until(lambda: not is_running(children[0].pid), seconds_max=2)

        run(cancel())
        assert run(converter.convert(PAGE, name="a.html")).title == "Title"

    def test_closing_ends_those_that_run(self, run: Run, children: list[Child]) -> None:
        converter = converter_of()

        async def close() -> None:
            work = asyncio.create_task(converter.convert(hostile.COMMENTS, name="a.html"))
            await until(lambda: children and children[0].pid)
            converter.close()
            with pytest.raises(Internal, match="shutting down"):
                await work

        run(close())
        assert not is_running(children[0].pid)

    def test_one_that_does_not_start_is_not_the_files_fault(
        self, converter: Converter, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(child_module, "WORKER", "zibaldone.ingest.missing")
        with pytest.raises(RuntimeError, match="exit code 1"):
            run(converter.convert(PAGE, name="a.html"))

    @on_linux
    def test_it_is_limited_and_knows_no_secret(
        self,
        converter: Converter,
        run: Run,
        children: list[Child],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("ZIBALDONE_EMBEDDING_API_KEY", "s3cret")
        run(converter.convert(PAGE, name="a.html"))
        process = Path(f"/proc/{children[0].pid}")
        assert b"s3cret" not in (process / "environ").read_bytes()
        lines = (process / "limits").read_text().splitlines()
        soft = {line[:26].strip(): line[26:].split()[0] for line in lines[1:]}
        assert soft["Max address space"] == str(CONVERT_MEMORY_BYTES_MAX)
        assert soft["Max open files"] == str(CONVERT_FILES_MAX)
        assert soft["Max file size"] == "0"
        assert soft["Max core file size"] == "0"
        assert 18 <= int(soft["Max cpu time"]) < 24

    @on_linux
    def test_it_ends_with_its_parent(self) -> None:
        script = (
            "import asyncio, threading, time\n"
            "from tests.drivers import hostile\n"
            "from zibaldone.ingest import child\n"
            "asked = child.Child(60)\n"
            "head = {'name': 'a.html', 'mime': None, 'seconds_max': 60, 'text_bytes_max': 1}\n"
            "asked.ask(child.Request(head, hostile.COMMENTS, 1))\n"
            "while asked.pid is None: time.sleep(0.01)\n"
            "time.sleep(1.0)\n"
            "print(asked.pid, flush=True)\n"
            "time.sleep(60)\n"
        )
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            assert is_running(pid)
            parent.kill()
            asyncio.run(until(lambda: not is_running(pid), seconds_max=2))
