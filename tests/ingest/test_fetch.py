from __future__ import annotations

import asyncio
import gzip
import os
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from zibaldone.errors import (
    ConfigurationError,
    DeadlineExceeded,
    Forbidden,
    InvalidArgument,
    NotConfigured,
    NotFound,
    PayloadTooLarge,
    ZibaldoneError,
)
from zibaldone.ingest.extract import extract
from zibaldone.ingest.fetch import Fetched, Fetcher

BYTES_MAX = 1000


def fetch(
    source: str,
    *,
    roots: tuple[Path, ...] = (),
    hosts: tuple[str, ...] = (),
    seconds_max: float = 20.0,
) -> Fetched:
    fetcher = Fetcher(roots=roots, hosts=hosts, bytes_max=BYTES_MAX, seconds_max=seconds_max)
    return asyncio.run(fetcher.fetch(source))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "allowed"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "note.md").write_bytes(b"# Note\r\n")
    (tmp_path / "secret.txt").write_bytes(b"secret")
    return root


class TestFile:
    def test_a_path_and_a_file_url_inside_a_root(self, root: Path) -> None:
        file = root / "inner" / "note.md"
        expected = Fetched(b"# Note\r\n", name="note.md", mime=None, origin=file.as_uri())
        elsewhere = root.parent / "elsewhere"
        assert fetch(str(file), roots=(elsewhere, root)) == expected
        assert fetch(file.as_uri(), roots=(root,)) == expected
        assert fetch(f"FILE://localhost{file}", roots=(root,)) == expected
        assert extract(expected.data, name=expected.name).text == "# Note\n"

    def test_an_escaped_name(self, root: Path) -> None:
        file = root / "a #1?.txt"
        file.write_bytes(b"x")
        assert fetch(file.as_uri(), roots=(root,)).name == "a #1?.txt"
        with pytest.raises(InvalidArgument, match="%3F"):
            fetch(f"file://{root}/a?.txt", roots=(root,))

    def test_no_roots_no_files(self, root: Path) -> None:
        with pytest.raises(Forbidden, match="ingest_roots") as caught:
            fetch(str(root / "inner" / "note.md"), hosts=("127.0.0.1",))
        assert caught.value.details["setting"] == "ingest_roots"

    def test_outside_is_refused_whether_or_not_it_is_there(self, root: Path) -> None:
        messages = set()
        for outside in (root.parent / "secret.txt", root.parent / "absent.txt", Path("/")):
            with pytest.raises(Forbidden, match="ingest_roots") as caught:
                fetch(str(outside), roots=(root,))
            messages.add(caught.value.message)
        assert len(messages) == 1

    def test_a_sibling_whose_name_begins_alike_is_outside(self, root: Path) -> None:
        sibling = root.with_name("allowed-not")
        sibling.mkdir()
        (sibling / "a.txt").write_bytes(b"x")
        with pytest.raises(Forbidden):
            fetch(str(sibling / "a.txt"), roots=(root,))

    @pytest.mark.parametrize("dots", ["..", "%2e%2e", ".%2E"])
    def test_dots_are_refused_even_when_they_stay_inside(self, root: Path, dots: str) -> None:
        with pytest.raises(Forbidden):
            fetch(f"file://{root}/inner/{dots}/inner/note.md", roots=(root,))
        with pytest.raises(Forbidden):
            fetch(f"file://{root}/{dots}/secret.txt", roots=(root,))

    def test_a_link_that_leads_out_is_refused(self, root: Path) -> None:
        (root / "file.txt").symlink_to(root.parent / "secret.txt")
        (root / "folder").symlink_to(root.parent)
        for escape in (root / "file.txt", root / "folder" / "secret.txt"):
            assert escape.read_bytes() == b"secret"
            with pytest.raises(Forbidden):
                fetch(str(escape), roots=(root,))

    def test_a_link_that_stays_inside_is_followed(self, root: Path) -> None:
        (root / "short.md").symlink_to(root / "inner" / "note.md")
        fetched = fetch(str(root / "short.md"), roots=(root,))
        assert fetched.data == b"# Note\r\n"
        assert fetched.origin == (root / "inner" / "note.md").as_uri()

    def test_a_root_may_be_a_link(self, root: Path) -> None:
        link = root.with_name("link")
        link.symlink_to(root)
        assert fetch(str(link / "inner" / "note.md"), roots=(link,)).name == "note.md"
        assert fetch(str(root / "inner" / "note.md"), roots=(link,)).name == "note.md"

    @pytest.mark.parametrize("swapped", ["inner", "inner/note.md"])
    def test_a_link_made_after_the_path_was_resolved_is_not_followed(
        self, root: Path, swapped: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The race, played out: the check saw a plain path, the opening meets a link."""
        outside = root.parent / "outside"
        outside.mkdir()
        (outside / "note.md").write_bytes(b"secret")
        (root / swapped).rename(root.parent / "moved")
        (root / swapped).symlink_to(
            outside if swapped == "inner" else outside / "note.md",
            target_is_directory=swapped == "inner",
        )
        path = root / "inner" / "note.md"
        assert path.read_bytes() == b"secret"
        monkeypatch.setattr(os.path, "realpath", str)
        with pytest.raises((Forbidden, NotFound, InvalidArgument)):
            fetch(str(path), roots=(root,))

    def test_only_regular_files(self, root: Path) -> None:
        os.mkfifo(root / "fifo")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.relpath(root / "socket"))
        for irregular in ("fifo", "socket", "inner", "."):
            with pytest.raises(InvalidArgument, match="regular"):
                fetch(str(root / irregular), roots=(root,))

    @pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
    def test_a_device_is_not_read(self) -> None:
        with pytest.raises(InvalidArgument, match="regular"):
            fetch("/dev/zero", roots=(Path("/dev"),))

    def test_what_cannot_be_opened(self, root: Path) -> None:
        (root / "loop").symlink_to(root / "loop")
        for source, error in (
            (root / "absent.md", NotFound),
            (root / "inner" / "note.md" / "below", NotFound),
            (root / ("n" * 300), InvalidArgument),
            (root / "loop", InvalidArgument),
        ):
            with pytest.raises(error):
                fetch(str(source), roots=(root,))

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
    def test_a_file_the_server_may_not_read(self, root: Path) -> None:
        (root / "locked").write_bytes(b"x")
        (root / "locked").chmod(0)
        with pytest.raises(Forbidden, match="not permitted"):
            fetch(str(root / "locked"), roots=(root,))

    def test_size(self, root: Path) -> None:
        (root / "full").write_bytes(b"x" * BYTES_MAX)
        (root / "over").write_bytes(b"x" * (BYTES_MAX + 1))
        assert len(fetch(str(root / "full"), roots=(root,)).data) == BYTES_MAX
        with pytest.raises(PayloadTooLarge) as caught:
            fetch(str(root / "over"), roots=(root,))
        assert caught.value.details["bytes_max"] == BYTES_MAX

    @pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no such file here")
    def test_size_is_also_counted_while_reading(self) -> None:
        """Files of /proc say that they are empty, as one that grows would."""
        with pytest.raises(PayloadTooLarge):
            fetch("/proc/self/maps", roots=(Path(os.path.realpath("/proc/self")),))

    def test_descriptors_are_closed(self, root: Path) -> None:
        (root / "over").write_bytes(b"x" * (BYTES_MAX + 1))
        before = open_descriptors()
        for name in ("over", "inner", "absent"):
            with pytest.raises(ZibaldoneError):
                fetch(str(root / name), roots=(root,))
        fetch(str(root / "inner" / "note.md"), roots=(root,))
        assert open_descriptors() == before


def open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


class TestSource:
    @pytest.mark.parametrize(
        "source",
        [
            "",
            "relative/note.md",
            "~/note.md",
            "ftp://127.0.0.1/a",
            "data:text/plain,abc",
            "javascript:alert(1)",
            "file://server/share/a",
            "file:///a#b",
            "/a\0b",
            "file:///a%00b",
            "/a\ud800b",
            "http://127.0.0.1\r\nHost: x",
        ],
    )
    def test_what_is_no_source_is_refused(self, source: str) -> None:
        with pytest.raises(InvalidArgument):
            fetch(source, roots=(Path("/"),), hosts=("127.0.0.1",))

    @pytest.mark.parametrize(
        "host", ["http://a.org", "a.org/x", "*.org", "", "a.org:", "a.org:http", "u@a.org"]
    )
    def test_a_host_that_could_never_match_is_a_configuration_error(self, host: str) -> None:
        with pytest.raises(ConfigurationError, match="ingest_hosts"):
            fetch("/a", hosts=(host,))

    def test_a_relative_root_is_a_configuration_error(self) -> None:
        with pytest.raises(ConfigurationError, match="ingest_roots"):
            fetch("/a", roots=(Path("folder"),))


class Site(BaseHTTPRequestHandler):
    """`/name` answers by the method of that name; every request is remembered."""

    asked: list[str]
    closing: threading.Event

    def do_GET(self) -> None:
        self.asked.append(f"{self.headers['Host'].partition(':')[0]}{self.path}")
        try:
            getattr(self, self.path.strip("/").partition("?")[0].partition("/")[0])()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def page(self) -> None:
        self.answer(200, b"<p>hello", Content_Type="text/html; charset=utf-8", Content_Length="8")

    def untyped(self) -> None:
        self.answer(200, b"plain")

    def missing(self) -> None:
        self.answer(404, b"not here")

    def to(self) -> None:
        self.answer(302, Location=self.path.partition("?")[2])

    def count(self) -> None:
        left = int(self.path.rpartition("?")[2])
        self.answer(307, Location=f"/count?{left - 1}" if left > 1 else "page")

    def stranded(self) -> None:
        self.answer(302)

    def announced(self) -> None:
        self.answer(200, Content_Length=str(BYTES_MAX + 1))

    def endless(self) -> None:
        self.answer(200)
        while not self.closing.is_set():
            self.wfile.write(b"x" * 100)

    def full(self) -> None:
        self.answer(200, b"x" * BYTES_MAX)

    def packed(self) -> None:
        self.answer(200, gzip.compress(b"x" * 50_000_000), Content_Encoding="gzip")

    def small(self) -> None:
        self.answer(200, gzip.compress(b"unpacked"), Content_Encoding="gzip")

    def layered(self) -> None:
        """A layer that ends at once, and much after it."""
        inner = gzip.compress(b"text") + bytes(5_000_000)
        self.answer(200, gzip.compress(inner), Content_Encoding="gzip, gzip")

    def more(self) -> None:
        self.answer(200, gzip.compress(b"text") + bytes(BYTES_MAX), Content_Encoding="gzip")

    def half(self) -> None:
        self.answer(200, gzip.compress(b"unpacked")[:-4], Content_Encoding="gzip")

    def broken(self) -> None:
        self.answer(200, b"not gzip", Content_Encoding="gzip")

    def cut(self) -> None:
        self.answer(200, b"half", Content_Length="8")

    def drip(self) -> None:
        self.answer(200)
        while not self.closing.wait(0.02):
            self.wfile.write(b".")

    def silent(self) -> None:
        self.closing.wait()


class Running:
    def __init__(self, port: int, asked: list[str]) -> None:
        self.asked = asked
        self.host = f"127.0.0.1:{port}"
        self.url = f"http://{self.host}"
        self.other_url = f"http://localhost:{port}"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("NO_PROXY", "*")
    asked: list[str] = []
    closing = threading.Event()
    handler = type("OneSite", (Site,), {"asked": asked, "closing": closing})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Running(server.server_port, asked)
        finally:
            closing.set()
            server.shutdown()
            thread.join()


class TestUrl:
    def test_an_allowed_host(self, site: Running) -> None:
        fetched = fetch(f"{site.url}/page#part", hosts=(site.host,))
        assert fetched == Fetched(
            b"<p>hello", "page", "text/html; charset=utf-8", f"{site.url}/page"
        )
        assert extract(fetched.data, name=fetched.name, mime=fetched.mime).text == "hello"
        assert fetch(f"{site.url}/untyped", hosts=("127.0.0.1",)).mime is None
        assert fetch(f"{site.url}/untyped/a%20b.md?c=d", hosts=("127.0.0.1",)).name == "a b.md"

    def test_host_names_compare_without_case(self, site: Running) -> None:
        source = site.other_url.replace("localhost", "LocalHost") + "/page"
        assert fetch(source, hosts=("LOCALHOST",)).data == b"<p>hello"

    def test_no_hosts_no_urls(self, site: Running, tmp_path: Path) -> None:
        with pytest.raises(Forbidden, match="ingest_hosts") as caught:
            fetch(f"{site.url}/page", roots=(tmp_path,))
        assert caught.value.details["setting"] == "ingest_hosts"
        assert site.asked == []

    @pytest.mark.parametrize(
        "hosts",
        [("localhost",), ("127.0.0.1:1",), ("27.0.0.1",), ("127.0.0.1.org",), ("[::1]",)],
        ids=str,
    )
    def test_another_host_is_refused(self, site: Running, hosts: tuple[str, ...]) -> None:
        with pytest.raises(Forbidden, match="ingest_hosts"):
            fetch(f"{site.url}/page", hosts=hosts)
        assert site.asked == []

    def test_tricks_with_the_authority(self, site: Running) -> None:
        for source in (
            f"http://{site.host}@localhost/page",
            f"{site.url.replace('://', '://user:pass@')}/page",
            f"{site.url.replace('://', '://user@')}/page",
        ):
            with pytest.raises(InvalidArgument, match="user name"):
                fetch(source, hosts=(site.host, "localhost"))
        for source in (
            "http:///page",
            r"http://localhost\@127.0.0.1/",
            "http://127.0.0.1#@localhost",
        ):
            with pytest.raises((InvalidArgument, Forbidden)):
                fetch(source, hosts=("localhost",))
        assert site.asked == []

    def test_redirects_within_allowed_hosts(self, site: Running) -> None:
        fetched = fetch(f"{site.url}/count?3", hosts=(site.host,))
        assert (fetched.data, fetched.origin) == (b"<p>hello", f"{site.url}/page")
        source = f"{site.url}/to?{site.other_url}/page"
        assert fetch(source, hosts=("localhost", "127.0.0.1")).origin == f"{site.other_url}/page"

    def test_a_redirect_too_many(self, site: Running) -> None:
        with pytest.raises(InvalidArgument, match="more than 3"):
            fetch(f"{site.url}/count?4", hosts=(site.host,))
        assert site.asked == [f"127.0.0.1/count?{left}" for left in (4, 3, 2, 1)]

    def test_a_redirect_to_another_host_is_not_followed(self, site: Running) -> None:
        with pytest.raises(Forbidden, match="localhost"):
            fetch(f"{site.url}/to?{site.other_url}/page", hosts=(site.host,))
        assert len(site.asked) == 1

    @pytest.mark.parametrize(
        "location",
        [
            "file:///etc/passwd",
            "ftp://127.0.0.1/a",
            "http://u:p@127.0.0.1/",
            "//a:b:c/",
        ],
    )
    def test_a_redirect_to_what_is_no_url_for_us(self, site: Running, location: str) -> None:
        with pytest.raises(InvalidArgument):
            fetch(f"{site.url}/to?{location}", hosts=("127.0.0.1",))
        assert len(site.asked) == 1

    @pytest.mark.parametrize(("path", "status"), [("missing", 404), ("stranded", 302)])
    def test_other_statuses(self, site: Running, path: str, status: int) -> None:
        with pytest.raises(InvalidArgument, match=str(status)) as caught:
            fetch(f"{site.url}/{path}", hosts=(site.host,))
        assert caught.value.details["status"] == status

    @pytest.mark.parametrize("path", ["announced", "endless", "packed"])
    def test_too_large(self, site: Running, path: str) -> None:
        with pytest.raises(PayloadTooLarge):
            fetch(f"{site.url}/{path}", hosts=(site.host,))

    def test_exactly_as_large_as_allowed(self, site: Running) -> None:
        assert len(fetch(f"{site.url}/full", hosts=(site.host,)).data) == BYTES_MAX

    def test_layers_of_compression_are_not_undone(self, site: Running) -> None:
        """Half a megabyte of them kept the event loop for a minute."""
        with pytest.raises(InvalidArgument, match="gzip, gzip"):
            fetch(f"{site.url}/layered", hosts=(site.host,))

    def test_what_follows_the_end_of_the_compressed_counts(self, site: Running) -> None:
        with pytest.raises(PayloadTooLarge):
            fetch(f"{site.url}/more", hosts=(site.host,))

    def test_compression_is_undone(self, site: Running) -> None:
        assert fetch(f"{site.url}/small", hosts=(site.host,)).data == b"unpacked"

    @pytest.mark.parametrize("path", ["drip", "silent"])
    def test_the_whole_fetch_is_bounded_in_time(self, site: Running, path: str) -> None:
        with pytest.raises(DeadlineExceeded, match="within 1 seconds"):
            fetch(f"{site.url}/{path}", hosts=(site.host,), seconds_max=1.0)
        assert len(site.asked) == 1

    @pytest.mark.parametrize("path", ["broken", "half", "cut"])
    def test_a_broken_answer(self, site: Running, path: str) -> None:
        with pytest.raises(InvalidArgument, match="cannot be read"):
            fetch(f"{site.url}/{path}", hosts=(site.host,))

    def test_nobody_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_PROXY", "*")
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            with pytest.raises(InvalidArgument, match="ConnectError"):
                fetch(f"http://127.0.0.1:{unused.getsockname()[1]}/", hosts=("127.0.0.1",))

    def test_without_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "httpx2", None)
        with pytest.raises(NotConfigured, match=r"pip install 'zibaldone\[ingest\]'"):
            fetch("http://127.0.0.1/", hosts=("127.0.0.1",))
