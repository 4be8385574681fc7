"""zibaldone backup, and restore of a backup, as an operator runs them."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands
from tests.drivers.engines import backend_of, engine_of
from tests.drivers.rag import HASHED, wait_until_indexed
from tests.drivers.server import Server, clean_environment
from zibaldone.errors import Conflict
from zibaldone.store.sqlite.backup import install

AUDIT = "SELECT audit_key, at_us, principal, action, document_id, revision, outcome FROM audit"
DOCUMENTS = (
    "SELECT document_id, revision, title, content_hash, created_at_us, updated_at_us, deleted_at_us"
    " FROM documents ORDER BY document_id"
)
REVISIONS = "SELECT document_key, revision, written_at_us, operation, body FROM revisions"
WORKERS = "SELECT 1 FROM index_workers"


class Writing(threading.Thread):
    """A client that writes document after document and changes each, until it is stopped."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._ending = threading.Event()
        self.written = 0
        self.problem: BaseException | None = None
        self.reached = threading.Event()
        """Set when there is something to back up."""

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                path = f"notes/{self.written:04}"
                self._server.create(path, f"first words of {path}")
                change = {"old_str": "first", "new_str": "second"}
                self._server.client.patch(f"/documents/{path}", json=change).raise_for_status()
                self.written += 1
                if self.written == 20:
                    self.reached.set()
        except BaseException as problem:
            self.problem = problem
            self.reached.set()

    def stop(self) -> None:
        self._ending.set()
        self.join(30)
        if self.problem is not None:
            raise self.problem


def test_of_one_moment_while_a_server_writes(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "kb.backup"
    with Server(data, environment=HASHED) as server:
        server.create("gone", "deleted before the backup")
        server.client.delete("/documents/gone").raise_for_status()
        server.create("found", "a giraffe among acacias")
        wait_until_indexed(server)
        writing = Writing(server)
        writing.start()
        assert writing.reached.wait(30)
        before = writing.written
        made = Commands(data).json("backup", str(file))
        assert backend_of(data).query(WORKERS)
        until_s = time.monotonic() + 30
        while writing.written == before and time.monotonic() < until_s:
            time.sleep(0.01)
        after = writing.written
        writing.stop()
        refused = Commands(data)("restore", str(file), "--force")
    assert "counts" in made, made
    assert after > before, "writers still wait"
    assert refused.exit_code == 5
    assert "Stop the server" in refused.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if "partial" in path.name) == []

    elsewhere = tmp_path / "elsewhere"
    cli = Commands(elsewhere)
    restored = cli.json("restore", str(file))
    assert "counts" in restored, restored
    ours, theirs = backend_of(data), backend_of(elsewhere)
    audit, all_audit = (each.query(f"{AUDIT} ORDER BY audit_key") for each in (theirs, ours))
    assert audit == all_audit[: len(audit)]
    # A moment: all that was written up to a line of the audit log, and nothing after it.
    assert 3 + 2 * before <= len(audit) <= len(all_audit)
    last = {document_id: revision for *_, document_id, revision, _outcome in audit}
    documents = theirs.query(DOCUMENTS)
    assert {document_id: revision for document_id, revision, *_ in documents} == last
    revisions = set(map(repr, ours.query(REVISIONS)))
    assert set(map(repr, theirs.query(REVISIONS))) <= revisions
    same = {repr(row) for row in ours.query(DOCUMENTS)}
    assert all(repr(row) in same for row in documents if row[1] == 2)
    counts = made["counts"]
    assert counts == restored["counts"]
    assert counts["documents"] + counts["deleted_documents"] == len(documents)
    assert counts["deleted_documents"] == 1
    assert counts["vectors"] >= 1
    assert theirs.query(WORKERS) == [], "no process of the place that it was made in"
    assert theirs.broken_invariants() == {}
    assert cli.json("doctor", "--thorough")["ok"] is True
    assert cli.json("search", "giraffe")["results"][0]["document_id"] == "found"
    assert cli.json("put", "after", stdin="words")["revision"] == 1


def test_what_is_there_is_replaced_only_by_force_and_kept(cli: Commands, tmp_path: Path) -> None:
    file = str(tmp_path / "kb.backup")
    cli.ok("put", "a", stdin="one")
    shown = cli.ok("backup", file)
    assert shown.startswith("Backed up the ")
    assert "verified" in shown
    assert cli.error("backup", file) == (5, "CONFLICT")
    cli.ok("put", "b", stdin="two")
    assert cli.error("restore", file) == (5, "CONFLICT")
    assert cli.ids() == ["a", "b"]
    answer = cli.json("restore", file, "--force")
    assert cli.ids() == ["a"]
    kept = Path(answer["kept"])
    assert kept.parent == cli.data
    other = str(tmp_path / "kept.db")
    if engine_of(cli.data) == "sqlite":  # the file itself
        kept.rename(other)
    else:  # a backup
        cli.ok("--store", other, "restore", str(kept))
    assert cli.ok("--store", other, "ls", "--all").splitlines() == ["a", "b"]
    assert cli("backup", file, "--force").exit_code == 0


def test_from_one_engine_to_the_other(cli: Commands, tmp_path: Path) -> None:
    """The file is the same whatever the engine, so each can be restored on the other."""
    file, second, other = (str(tmp_path / name) for name in ("1.backup", "2.backup", "other.db"))
    cli.ok("put", "a", stdin="one")
    cli.ok("patch", "a", "--old", "one", "--new", "two")
    cli.ok("backup", file)
    cli.ok("--store", other, "restore", file)
    assert cli.ok("--store", other, "get", "a", "--revision", "1") == "one"
    cli.ok("--store", other, "put", "b", stdin="three")
    cli.ok("--store", other, "backup", second)
    cli.ok("restore", second, "--force")
    assert cli.ids() == ["a", "b"]
    assert cli.json("doctor", "--thorough")["ok"] is True


KILLED = """
import os, signal, sys
from zibaldone.cli.main import main
{where}
def die(*arguments, **more):
    os.kill(os.getpid(), signal.SIGKILL)

{what} = die
main(sys.argv[1:])
"""


def killed(data: Path, where: str, what: str, *arguments: str) -> None:
    script = KILLED.format(where=where, what=what)
    result = subprocess.run(
        [sys.executable, "-c", script, "--data", str(data), *arguments],
        env=clean_environment(data=data),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == -9, result.stderr


def test_a_kill_leaves_nothing_half(cli: Commands, tmp_path: Path) -> None:
    file = tmp_path / "kb.backup"
    cli.ok("put", "a", stdin="one")
    module = "from zibaldone.store.sqlite import backup"
    killed(cli.data, module, "backup.seal", "backup", str(file))
    assert not file.exists()
    killed(cli.data, module, "backup.publish", "backup", str(file))
    assert not file.exists()
    cli.ok("backup", str(file))
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    cli.ok("put", "b", stdin="two")
    if engine_of(cli.data) == "sqlite":
        killed(cli.data, module, "backup.install", "restore", str(file), "--force")
        assert cli.ids() == ["a", "b"]
        killed(cli.data, module, "backup.os.link", "restore", str(file), "--force")
        assert cli.ids() == ["a", "b"]
    else:
        module = "from zibaldone.store.postgres.transfer import TransferUpkeep"
        killed(cli.data, module, "TransferUpkeep.titles", "restore", str(file), "--force")
        assert cli.ids() == ["a", "b"]  # it was busy keeping these
        killed(cli.data, module, "TransferUpkeep.settle", "restore", str(file), "--force")
        refused = cli("ls")
        assert refused.exit_code == 2
        assert "not complete" in refused.stderr
    answer = cli.json("restore", str(file), "--force")
    assert cli.ids() == ["a"]
    assert answer["counts"]["documents"] == 1
    assert list(cli.data.glob(".*")) == []


@pytest.mark.engine("sqlite", reason="the file is the same whatever the engine")
class TestDamaged:
    @pytest.fixture
    def file(self, cli: Commands, tmp_path: Path) -> Path:
        for number in range(3):
            cli.ok("put", f"notes/{number}", stdin=f"document {number} about heliotrope " * 40)
        file = tmp_path / "kb.backup"
        cli.ok("backup", str(file))
        return file

    def refused(self, file: Path) -> str:
        target = file.parent / "elsewhere"
        result = Commands(target)("restore", str(file), "--json")
        error = json.loads(result.stdout)["error"]
        assert (result.exit_code, error["code"]) == (7, "STORAGE_CORRUPT"), error
        assert not (target / "zibaldone.db").exists()
        return str(error["message"])

    def test_one_letter_is_another(self, file: Path) -> None:
        content = file.read_bytes()
        assert content.count(b"document 1 about heliotrope") >= 2
        file.write_bytes(
            content.replace(b"document 1 about heliotrope", b"document 1 about geliotrope")
        )
        message = self.refused(file)
        assert "damaged or was changed after it was made" in message
        assert "bodies" in message

    @pytest.mark.parametrize("place", [0, 200, 5_000, 100_000])
    def test_zeros_somewhere(self, file: Path, place: int) -> None:
        with file.open("r+b") as opened:
            opened.seek(place)
            opened.write(bytes(4096))
        assert "damaged" in self.refused(file)

    def test_cut_off(self, file: Path) -> None:
        os.truncate(file, file.stat().st_size // 2)
        assert "damaged" in self.refused(file)

    def test_not_a_backup(self, file: Path) -> None:
        file.write_bytes(b"")
        assert "not a backup" in self.refused(file)
        file.write_text("no database at all")
        assert "not a backup" in self.refused(file)


@pytest.mark.engine("sqlite", reason="the file is the same whatever the engine")
class TestRefused:
    def error(self, cli: Commands, *arguments: str) -> tuple[int, str, str]:
        result = cli(*arguments, "--json")
        error = json.loads(result.stdout)["error"]
        return result.exit_code, error["code"], error["message"]

    def test_other_files(self, cli: Commands, tmp_path: Path) -> None:
        cli.ok("put", "a", stdin="one")
        foreign = tmp_path / "foreign.db"
        with sqlite3.connect(foreign) as raw:
            raw.execute("CREATE TABLE t (x)")
        assert self.error(cli, "--store", str(foreign), "backup", str(tmp_path / "x"))[0] == 2
        assert not (tmp_path / "x").exists()
        elsewhere = Commands(tmp_path / "elsewhere")
        code, _, message = self.error(elsewhere, "restore", str(foreign))
        assert (code, message) == (2, "foreign.db is an SQLite database of another program.")
        code, _, message = self.error(elsewhere, "restore", str(cli.data / "zibaldone.db"))
        assert code == 2
        assert "was not made by 'zibaldone backup'" in message
        file = tmp_path / "newer.backup"
        cli.ok("backup", str(file))
        with sqlite3.connect(file) as raw:
            raw.execute("PRAGMA user_version = 9999")
        code, _, message = self.error(elsewhere, "restore", str(file))
        assert code == 2
        assert "Upgrade Zibaldone first" in message
        assert not (tmp_path / "elsewhere" / "zibaldone.db").exists()

    def test_places_that_cannot_be(self, cli: Commands, tmp_path: Path) -> None:
        file = str(tmp_path / "kb.backup")
        assert self.error(cli, "backup", file)[0] == 2
        assert not cli.data.exists()
        cli.ok("put", "a", stdin="one")
        itself = str(cli.data / "zibaldone.db")
        assert self.error(cli, "backup", itself, "--force")[:2] == (5, "CONFLICT")
        assert self.error(cli, "backup", str(tmp_path))[:2] == (5, "CONFLICT")
        assert self.error(cli, "backup", str(tmp_path / "no" / "x"))[:2] == (4, "NOT_FOUND")
        code, _, message = self.error(cli, "restore", "notes/a")
        assert code == 4
        assert "no file notes/a, and no document has that path" in message
        assert cli("restore", "a", "1", "--force").exit_code == 2
        assert cli("restore", file, "--if-revision", "1").exit_code == 2
        assert cli.ids() == ["a"]

    def test_a_damaged_store_is_replaced_by_force_and_kept(
        self, cli: Commands, tmp_path: Path
    ) -> None:
        file = str(tmp_path / "kb.backup")
        cli.ok("put", "a", stdin="one")
        cli.ok("backup", file)
        database = cli.data / "zibaldone.db"
        wreck = b"no database at all" * 1000
        database.write_bytes(wreck)
        code, _, message = self.error(cli, "restore", file)
        assert code == 5
        assert "is damaged" in message
        answer: dict[str, Any] = cli.json("restore", file, "--force")
        assert Path(answer["kept"]).read_bytes() == wreck
        assert cli.ids() == ["a"]


@pytest.mark.engine("sqlite", reason="the store is a file")
class TestWhatIsBeside:
    def test_a_log_without_its_file_is_kept_and_not_mixed_in(
        self, cli: Commands, tmp_path: Path
    ) -> None:
        """Somebody moved the file away, and left the log of a server that was killed."""
        file, database = str(tmp_path / "kb.backup"), cli.data / "zibaldone.db"
        cli.ok("put", "a", stdin="one")
        cli.ok("backup", file)
        script = (
            "import os, signal, sqlite3, sys; raw = sqlite3.connect(sys.argv[1]);"
            "raw.execute(\"UPDATE bodies SET body = 'of the log'\"); raw.commit();"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        subprocess.run([sys.executable, "-c", script, str(database)], check=False, timeout=60)
        database.unlink()
        log = database.with_name("zibaldone.db-wal").read_bytes()
        assert b"of the log" in log
        answer = cli.json("restore", file)
        assert cli.ok("get", "a") == "one"
        assert Path(answer["kept"]).read_bytes() == log

    @pytest.mark.parametrize("force", [False, True])
    def test_what_was_written_while_the_backup_was_read_is_not_lost(
        self, cli: Commands, tmp_path: Path, force: bool
    ) -> None:
        cli.ok("put", "a", stdin="one")
        made, kept = tmp_path / "made.db", tmp_path / "kept.db"
        cli.ok("--store", str(made), "put", "b", stdin="two")
        database = cli.data / "zibaldone.db"
        if not force:
            with pytest.raises(Conflict, match="was filled"):
                install(made, database, kept, force=False)
            assert cli.ids() == ["a"]
            return
        assert install(made, database, kept, force=True) == kept
        assert cli.ids() == ["b"]
        assert cli.ok("--store", str(kept), "ls", "--all").splitlines() == ["a"]


@pytest.mark.engine("sqlite", reason="the store is a file")
@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_folders_that_a_restore_makes_are_private(cli: Commands, tmp_path: Path) -> None:
    cli.ok("put", "a", stdin="words")
    cli.ok("backup", str(tmp_path / "kb.backup"))
    data = tmp_path / "home" / "share" / "zibaldone"
    Commands(data).ok("restore", str(tmp_path / "kb.backup"))
    for made in (data, *data.parents[:2]):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700, made
