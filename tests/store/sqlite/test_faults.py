"""Faults of the machine: full, read-only, damaged, locked. Clear words, and nothing half done."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from tests.drivers.server import COMMAND, Server, clean_environment, free_port, run_cli
from tests.store.kept import Kept
from tests.store.sqlite.invariants import broken_invariants
from zibaldone.errors import Internal, NotFound, StorageCorrupt, StorageFull, ZibaldoneError
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.port import Reader
from zibaldone.store.sqlite.faults import as_storage_error
from zibaldone.text.query import parse_query

BODY = ("x" * 5_000 + " room. ") * 40
"""Takes much room for little work: few words are in it."""

IS_ROOT = os.name == "posix" and os.geteuid() == 0


def assert_plain(text: str) -> None:
    """Words for an operator, not the inside of the program."""
    assert "Traceback" not in text, text
    assert "apsw." not in text, text


# Full


def write_until_full(server: Server, prefix: str) -> int:
    """How many documents fit; the one that did not is not there in part either."""
    for number in range(400):
        path = f"{prefix}/{number}"
        answer = server.client.post("/documents", json={"path": path, "content": BODY})
        if answer.status_code != 201:
            error = answer.json()
            assert (answer.status_code, error["code"]) == (507, "STORAGE_FULL"), answer.text
            assert "nothing was written" in error["message"]
            assert server.client.get(f"/documents/{path}").status_code == 404
            return number
    raise AssertionError("it never got full")


def assert_reads_work(server: Server, path: str) -> None:
    assert server.client.get(f"/documents/{path}").json()["content"] == BODY
    assert server.client.get("/documents").json()["count"] >= 1
    assert server.client.get("/search", params={"query": "room"}).status_code == 200


def assert_stays_full(server: Server, path: str) -> None:
    """Full is no broken state: each write is refused alike, changes of what is there too."""
    for _ in range(3):
        answer = server.client.put(f"/documents/{path}", json={"content": BODY * 9})
        assert (answer.status_code, answer.json()["code"]) == (507, "STORAGE_FULL")
    assert server.client.get(f"/documents/{path}").json()["revision"] == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    if not IS_ROOT or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small disk; the file size limit stands in for it")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_refuses_writes_until_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(8 * 1024 * 1024))
    with Server(small_disk / "data") as server:
        assert write_until_full(server, "a") > 2
        assert_reads_work(server, "a/0")
        assert_stays_full(server, "a/1")
        ballast.unlink()
        assert write_until_full(server, "b") > 2
        assert_plain(server.log())
    assert broken_invariants(small_disk / "data" / DATABASE_NAME) == {}


def test_a_server_starts_and_reads_on_a_full_disk_or_says_why_not(small_disk: Path) -> None:
    with Server(small_disk / "data") as server:
        count = write_until_full(server, "a")
    with (small_disk / "rest").open("wb", buffering=0) as rest, contextlib.suppress(OSError):
        while True:
            rest.write(bytes(4096))
    listed = run_cli("ls", "--json", data=small_disk / "data")
    assert_plain(listed.stdout + listed.stderr)
    if listed.returncode == 0:
        assert listed.stdout.count('"document_id"') == min(count, 50)
    else:
        assert listed.returncode == 7
        assert "STORAGE_FULL" in listed.stdout + listed.stderr
    (small_disk / "rest").unlink()
    assert run_cli("ls", data=small_disk / "data").returncode == 0


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs limits set from outside")
def test_a_file_that_may_not_grow_refuses_writes_until_it_may(data: Path) -> None:
    """The same without a disk of its own: the system refuses to lengthen the server's files."""
    with Server(data) as server:
        server.create("a/0", BODY)
        pid, before = (
            server.process.pid,
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE),
        )
        longest = max(file.stat().st_size for file in data.iterdir())
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (longest + 200_000, before[1]))
        write_until_full(server, "b")
        assert_reads_work(server, "a/0")
        assert_stays_full(server, "a/0")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        server.create("c", BODY)
        assert_plain(server.log())
    assert broken_invariants(data / DATABASE_NAME) == {}


def test_a_database_at_its_largest_refuses_writes_until_it_may_grow(data: Path) -> None:
    store = open_store(store_url(data), Limits())
    kept = Kept(store, Limits())
    raw = store._writer._connection.raw  # type: ignore[attr-defined]
    kept.create("a", BODY)
    raw.execute(f"PRAGMA max_page_count = {raw.execute('PRAGMA page_count').get + 20}").fetchall()
    with pytest.raises(StorageFull):  # noqa: PT012 - which of them it is depends on the page size
        for number in range(20):
            kept.create(f"b/{number}", BODY)
    number = len(kept.ids("b/"))
    assert kept.get(f"b/{number}") is None
    assert kept.found("room", prefix="a") == {"a"}
    raw.execute("PRAGMA max_page_count = 4294967294").fetchall()
    kept.create("c", BODY)
    store.close()
    assert broken_invariants(data / DATABASE_NAME) == {}


def test_of_writes_that_wait_together_a_full_database_keeps_only_whole_ones(data: Path) -> None:
    store = open_store(store_url(data), Limits())
    kept = Kept(store, Limits())
    raw = store._writer._connection.raw  # type: ignore[attr-defined]
    kept.create("a", BODY)
    raw.execute(f"PRAGMA max_page_count = {raw.execute('PRAGMA page_count').get + 300}").fetchall()
    with ThreadPoolExecutor(20) as threads:
        attempts = [threads.submit(kept.create, f"b/{number:02}", BODY) for number in range(20)]
    outcomes = [attempt.exception() for attempt in attempts]
    assert all(outcome is None or isinstance(outcome, StorageFull) for outcome in outcomes)
    assert any(outcomes)
    acknowledged = [f"b/{number:02}" for number, error in enumerate(outcomes) if error is None]
    assert kept.ids("b/") == acknowledged
    store.close()
    assert broken_invariants(data / DATABASE_NAME) == {}


# Read-only


def run_bound_by_permissions(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    """Permission bits mean nothing to root, until it lays the right to ignore them down."""
    rights = "-dac_override,-dac_read_search"
    bound = ["setpriv", "--bounding-set", rights, "--inh-caps", rights] if IS_ROOT else []
    return subprocess.run(
        [*bound, *COMMAND, "--data", str(data), *arguments],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=60,
        check=False,
    )


@pytest.fixture
def closable(tmp_path: Path) -> Iterator[Path]:
    """A folder with a database, to which rights are about to be taken away."""
    if IS_ROOT and shutil.which("setpriv") is None:
        pytest.skip("root needs setpriv to be refused anything")
    store = open_store(store_url(tmp_path / "deep" / "data"), Limits())
    Kept(store, Limits()).create("a", "zebra")
    store.close()
    yield tmp_path / "deep" / "data"
    (tmp_path / "deep").chmod(0o755)
    for folder in (tmp_path / "deep").iterdir():
        folder.chmod(0o755)


def close_folder(data: Path) -> None:
    data.chmod(0o555)


def close_file(data: Path) -> None:
    (data / DATABASE_NAME).chmod(0o444)


def hide_file(data: Path) -> None:
    (data / DATABASE_NAME).chmod(0o000)


def close_empty_folder(data: Path) -> None:
    (data / DATABASE_NAME).unlink()
    data.chmod(0o555)


def close_folder_above(data: Path) -> None:
    shutil.rmtree(data)
    data.parent.chmod(0o555)


@pytest.mark.parametrize(
    "close", [close_folder, close_file, hide_file, close_empty_folder, close_folder_above]
)
def test_what_may_not_be_written_is_named(closable: Path, close: Callable[[Path], None]) -> None:
    close(closable)
    done = run_bound_by_permissions("serve", "--port", str(free_port()), data=closable)
    assert done.returncode == 7, done
    assert_plain(done.stdout + done.stderr)
    assert "STORAGE_READ_ONLY" in done.stderr
    assert str(closable) in done.stderr


def test_a_read_only_disk_is_named(small_disk: Path) -> None:
    store = open_store(store_url(small_disk / "data"), Limits())
    Kept(store, Limits()).create("a", "zebra")
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = run_cli("put", "b", "-", data=small_disk / "data", stdin="text")
    assert done.returncode == 7, done
    assert "STORAGE_READ_ONLY" in done.stderr
    assert_plain(done.stdout + done.stderr)


def test_what_the_system_refuses_is_told_apart() -> None:
    import errno

    path = Path("zibaldone.db")
    codes = {
        (apsw.IOError("disk I/O error"), errno.ENOSPC): "STORAGE_FULL",
        (apsw.IOError("disk I/O error"), errno.EDQUOT): "STORAGE_FULL",
        (apsw.IOError("disk I/O error"), errno.EROFS): "STORAGE_READ_ONLY",
        (apsw.IOError("disk I/O error"), errno.EIO): "STORAGE_UNAVAILABLE",
        (apsw.IOError("disk I/O error"), 0): "STORAGE_UNAVAILABLE",
        (apsw.CantOpenError("unable to open"), errno.EMFILE): "STORAGE_UNAVAILABLE",
        (apsw.FullError("full"), 0): "STORAGE_FULL",
        (apsw.ReadOnlyError("attempt to write"), 0): "STORAGE_READ_ONLY",
        (apsw.BusyError("locked"), 0): "STORAGE_UNAVAILABLE",
        (apsw.ProtocolError("locking protocol"), 0): "STORAGE_UNAVAILABLE",
        (apsw.CorruptError("malformed"), 0): "STORAGE_CORRUPT",
        (apsw.InterruptError("interrupted"), 0): "DEADLINE_EXCEEDED",
        (apsw.SQLError("no such column: d.title"), 0): "STORAGE_CORRUPT",
        (apsw.SQLError("near SELEC: syntax error"), 0): "INTERNAL",
        (apsw.ConstraintError("CHECK constraint failed"), 0): "INTERNAL",
    }
    found = {key: as_storage_error(key[0], path, key[1]).code for key in codes}
    assert found == codes


# Damaged, or not a database at all


def start_fails(data: Path) -> subprocess.CompletedProcess[str]:
    done = run_cli("serve", "--port", str(free_port()), data=data)
    assert_plain(done.stdout + done.stderr)
    return done


@pytest.mark.parametrize(
    "content",
    [b"Dear diary,\n" * 500, b"\x00" * 8192, b"SQLite", os.urandom(9_000)],
    ids=["text", "zeros", "short", "noise"],
)
def test_a_file_that_is_no_database_is_named_and_left_alone(data: Path, content: bytes) -> None:
    data.mkdir()
    (data / DATABASE_NAME).write_bytes(content)
    with pytest.raises(StorageCorrupt, match="is not an SQLite database"):
        open_store(store_url(data), Limits())
    assert [(file.name, file.read_bytes()) for file in data.iterdir()] == [(DATABASE_NAME, content)]


def test_a_server_does_not_start_on_a_file_that_is_no_database(data: Path) -> None:
    data.mkdir()
    (data / DATABASE_NAME).write_text("Dear diary,\n" * 500)
    done = start_fails(data)
    assert done.returncode == 7
    assert "STORAGE_CORRUPT" in done.stderr


def test_a_check_of_a_file_that_is_gone_says_so(data: Path) -> None:
    store = open_store(store_url(data), Limits())
    (data / DATABASE_NAME).unlink()
    with pytest.raises(ZibaldoneError, match="No such file"):
        asyncio.run(store.check())
    store.close()


def test_a_folder_in_place_of_the_file_is_named(data: Path) -> None:
    (data / DATABASE_NAME).mkdir(parents=True)
    done = start_fails(data)
    assert done.returncode == 2
    assert str(data / DATABASE_NAME) in done.stderr
    assert "directory" in done.stderr


def test_a_file_in_place_of_the_folder_is_named(data: Path) -> None:
    data.write_text("no folder")
    done = start_fails(data)
    assert done.returncode == 2
    assert str(data) in done.stderr


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in use, to be damaged in copies."""
    folder = tmp_path_factory.mktemp("sound")
    store = open_store(store_url(folder), Limits())
    kept = Kept(store, Limits())
    for number in range(60):
        body = f"# Title {number}\n\nZebra número {number}. " + "Some words. " * 10 * (number % 7)
        kept.create(f"d/{number:02}", body, title=f"T{number}", metadata={"n": number})
    for number in range(0, 60, 2):
        kept.update(f"d/{number:02}", title=f"New {number}")
    store.close()
    return folder / DATABASE_NAME


def damage(file: Path, chance: random.Random) -> None:
    """Overwrite a part of the file behind its first page, in one of the ways disks do."""
    content = bytearray(file.read_bytes())
    kind = chance.choice(("byte", "zeros", "noise", "swap", "cut"))
    at = chance.randrange(4096, len(content) - 4096)
    page = at // 4096 * 4096
    match kind:
        case "byte":
            for _ in range(40):
                content[chance.randrange(4096, len(content))] ^= 1 << chance.randrange(8)
        case "zeros":
            content[page : page + 4096] = bytes(4096)
        case "noise":
            content[at : at + 512] = chance.randbytes(512)
        case "swap":
            other = chance.randrange(1, len(content) // 4096) * 4096
            content[page : page + 4096] = content[other : other + 4096]
        case "cut":
            del content[page:]
    file.write_bytes(content)


def look_at_everything(kept: Kept, number: int) -> None:
    def work(reader: Reader) -> None:
        document = reader.documents.get(f"d/{number:02}")
        reader.documents.heads("", limit=100)
        reader.documents.heads("d/", limit=10, offset=30)
        reader.documents.listing("", limit=100)
        reader.lexical.search(parse_query(f"zebra {number}"), limit=10)
        reader.audit.page(None, limit=100)
        if document is not None:
            reader.revisions.page(document, before=None, limit=10)
            reader.revisions.get(document, 1)

    kept.read(work, is_small=True)


def test_damage_in_the_middle_is_always_said_in_the_same_way(sound: Path, tmp_path: Path) -> None:
    """Whatever is broken, callers get STORAGE_CORRUPT; what reads do not notice, the check does."""
    found = {"reads": 0, "checks": 0}
    for seed in range(60):
        folder = tmp_path / str(seed)
        folder.mkdir()
        shutil.copyfile(sound, folder / DATABASE_NAME)
        damage(folder / DATABASE_NAME, random.Random(seed))
        try:
            store = open_store(store_url(folder), Limits())
        except StorageCorrupt:
            continue
        kept = Kept(store, Limits())
        is_noticed = False
        for number in range(60):
            try:
                look_at_everything(kept, number)
            except StorageCorrupt:
                is_noticed = True
        for number in range(0, 60, 20):
            # Where the damage took an index entry or a row that others belong to, that is said.
            with contextlib.suppress(StorageCorrupt, NotFound, Internal):
                kept.update(f"d/{number:02}", body="new")
        check = asyncio.run(store.check(thorough=True))
        found["reads"] += is_noticed
        found["checks"] += not check.ok
        assert_plain(" ".join(check.problems))
        store.close()
    assert found["reads"] > 10, "else the damage is not where anybody looks"
    assert found["checks"] >= found["reads"]


def test_a_body_that_is_no_longer_what_was_written_is_found(sound: Path, tmp_path: Path) -> None:
    content = sound.read_bytes()
    assert content.count("número 33".encode()) >= 2  # in the body and in its passage
    (tmp_path / DATABASE_NAME).write_bytes(
        content.replace("número 33".encode(), "número 34".encode())
    )
    store = open_store(store_url(tmp_path), Limits())
    check = asyncio.run(store.check(thorough=True))
    assert check.problems == ("The body of 'd/33' is not the one that was written.",)
    assert asyncio.run(store.check()).ok
    store.close()


def test_a_server_on_a_damaged_file_serves_what_it_can(sound: Path, data: Path) -> None:
    data.mkdir()
    content = bytearray(sound.read_bytes())
    connection = apsw.Connection(str(sound))
    (page,) = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = 'bodies' AND pagetype = 'leaf' LIMIT 1 OFFSET 1"
    ).fetchone()  # type: ignore[misc]
    connection.close()
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    (data / DATABASE_NAME).write_bytes(content)
    with Server(data) as server:
        answers = {n: server.client.get(f"/documents/d/{n:02}") for n in range(60)}
        bad = [answer for answer in answers.values() if answer.status_code != 200]
        assert 0 < len(bad) < 60
        for answer in bad:
            error = answer.json()
            assert (answer.status_code, error["code"]) == (503, "STORAGE_CORRUPT")
            assert "doctor" in error["message"]
        for number, answer in answers.items():
            if answer.status_code == 200:
                assert f"número {number}." in answer.json()["content"]
        assert server.client.get("/documents").status_code == 200
        assert_plain(server.log())
    done = run_cli("doctor", "--thorough", data=data)
    assert done.returncode == 1
    assert_plain(done.stdout + done.stderr)


# Locked


@pytest.fixture
def locking(data: Path) -> Iterator[apsw.Connection]:
    """Another process, about to keep the write lock."""
    open_store(store_url(data), Limits()).close()
    connection = apsw.Connection(str(data / DATABASE_NAME))
    connection.set_busy_timeout(20_000)  # a server that starts writes, too
    yield connection
    connection.close()


def test_a_lock_held_too_long_is_said_and_a_short_one_is_waited_for(
    data: Path, locking: apsw.Connection
) -> None:
    environment = {"ZIBALDONE_WRITE_WAIT_SECONDS_MAX": "1"}
    new = {"path": "a", "content": "text"}
    with Server(data, environment=environment) as server, ThreadPoolExecutor(1) as threads:
        locking.execute("BEGIN IMMEDIATE")
        answer = server.client.post("/documents", json=new)
        assert (answer.status_code, answer.json()["code"]) == (503, "STORAGE_UNAVAILABLE")
        assert "locked" in answer.json()["message"]
        assert server.client.get("/documents").json()["count"] == 0
        waiting = threads.submit(server.client.post, "/documents", json=new)
        for _ in range(3):  # reads do not wait, the write does
            assert server.client.get("/documents/a").status_code == 404
        assert not waiting.done()
        locking.execute("ROLLBACK")
        assert waiting.result(20).status_code == 201
        assert_plain(server.log())


def test_a_new_file_that_another_process_is_making_is_waited_for(data: Path) -> None:
    """Here it takes too long."""
    data.mkdir()
    connection = apsw.Connection(str(data / DATABASE_NAME))
    connection.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ZibaldoneError) as refused:
        open_store(store_url(data), replace(Limits(), write_wait_seconds_max=0.1))
    assert refused.value.code == "STORAGE_UNAVAILABLE"
    connection.execute("ROLLBACK")
    connection.close()
    open_store(store_url(data), Limits()).close()


def test_a_process_that_runs_out_of_file_handles_says_so(data: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from zibaldone.limits import Limits\n"
        "from zibaldone.store.open import open_store, store_url\n"
        "from zibaldone.errors import ZibaldoneError\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))\n"
        "try: open_store(store_url(Path(sys.argv[1])), Limits())\n"
        "except ZibaldoneError as error: print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(data)],
        capture_output=True, text=True, env=clean_environment(), timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("STORAGE_UNAVAILABLE\n", "")
