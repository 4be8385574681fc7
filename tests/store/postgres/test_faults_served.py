"""The same faults as a client and an operator meet them: the command's words, HTTP's codes.

Everywhere: what is wrong and what to do about it, no traceback, no password, no half write.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.drivers.postgres import PASSWORD, ROLE, Databases, PostgresServer, plain_account
from tests.drivers.server import Server, parsed, run_cli

HANG_SECONDS_MAX = 30.0
RETRYABLE = {"STORAGE_UNAVAILABLE", "DEADLINE_EXCEEDED"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One of our own: it asks for passwords, and is stopped in between."""
    with PostgresServer(passwords=True) as running:
        yield running


@pytest.fixture(scope="module")
def databases(server: PostgresServer) -> Databases:
    return Databases(server.url)


@pytest.fixture
def name(databases: Databases) -> Iterator[str]:
    made = databases.create()
    yield made
    databases.drop(made)


@pytest.fixture
def url(databases: Databases, name: str) -> str:
    return databases.url(name)


@pytest.fixture
def admin(databases: Databases, name: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(databases.admin_url(name), autocommit=True) as connection:
        yield connection


@contextmanager
def serving(folder: Path, url: str, **settings: str) -> Iterator[Server]:
    environment = {"ZIBALDONE_STORE": url}
    environment |= {f"ZIBALDONE_{name.upper()}": value for name, value in settings.items()}
    with Server(folder / "data", environment=environment) as running:
        yield running
    assert "Traceback" not in running.log()
    assert f"password={PASSWORD}" not in running.log()


def refusal(url: str, folder: Path) -> str:
    """What `serve` says instead of serving; `doctor` says it too."""
    environment = {"ZIBALDONE_STORE": url}
    served = run_cli("serve", data=folder / "data", environment=environment)
    assert served.returncode != 0
    assert "Traceback" not in served.stdout + served.stderr
    said = " ".join(served.stderr.split())
    seen = parsed(run_cli("doctor", "--json", data=folder / "data", environment=environment))
    assert not seen["ok"]
    (finding,) = [one for one in seen["findings"] if one["subject"] == "database"]
    assert finding["status"] == "fail"
    assert finding["text"] in said
    assert finding["advice"]
    return said


def stored(server: Server) -> dict[str, int]:
    """The documents there are, with their revisions."""
    found: dict[str, int] = {}
    cursor: dict[str, str] = {}
    while True:
        page = server.client.get("/documents", params={"limit": 100, **cursor}).json()
        found |= {one["document_id"]: one["revision"] for one in page["items"]}
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


def failed(answer: httpx.Response, status: int, code: str) -> str:
    """The message of a refusal, which must be this one."""
    assert answer.status_code == status, answer.text
    error = answer.json()
    assert error["code"] == code, error
    message: str = error["message"]
    return message


class TestStarting:
    def test_a_wrong_password(self, url: str, tmp_path: Path) -> None:
        said = refusal(url.replace(f"password={PASSWORD}", "password=hidden"), tmp_path)
        assert "refuses the password" in said
        assert "Correct the user and the password" in said
        assert "hidden" not in said

    def test_a_missing_database(self, databases: Databases, tmp_path: Path) -> None:
        said = refusal(databases.url("no_such_database"), tmp_path)
        assert "There is no such database" in said
        assert "CREATE DATABASE" in said

    def test_pgvector_that_was_not_added(
        self, url: str, admin: psycopg.Connection, tmp_path: Path
    ) -> None:
        admin.execute("DROP SCHEMA zibaldone CASCADE")
        admin.execute("DROP EXTENSION vector CASCADE")
        said = refusal(url, tmp_path)
        assert "lacks the extension pgvector" in said
        assert "CREATE EXTENSION vector" in said

    def test_pgvector_that_is_not_on_the_server(
        self, url: str, databases: Databases, admin: psycopg.Connection, tmp_path: Path
    ) -> None:
        """PostgreSQL 18 looks for extensions where it is told to: here, where there are none."""
        admin.execute("DROP SCHEMA zibaldone CASCADE")
        admin.execute("DROP EXTENSION vector CASCADE")
        database = admin.info.dbname
        databases.execute(f"ALTER DATABASE {database} SET extension_control_path = '/nowhere'")
        databases.execute(f"ALTER ROLE {ROLE} SUPERUSER")
        try:
            said = refusal(url, tmp_path)
        finally:
            databases.execute(f"ALTER ROLE {ROLE} NOSUPERUSER")
        assert "lacks pgvector. Install 0.8 or newer there" in said

    def test_pgvector_that_is_too_old(
        self, url: str, admin: psycopg.Connection, tmp_path: Path
    ) -> None:
        admin.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
        said = refusal(url, tmp_path)
        assert "has pgvector 0.7.4; 0.8 or newer is needed" in said
        assert "ALTER EXTENSION vector UPDATE" in said

    def test_a_server_that_is_too_old(
        self, url: str, admin: psycopg.Connection, tmp_path: Path
    ) -> None:
        """Not an old server, but one that says so of itself."""
        admin.execute(
            "CREATE SCHEMA old; GRANT USAGE ON SCHEMA old TO public; "
            "CREATE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql AS $$ "
            "SELECT CASE $1 WHEN 'server_version_num' THEN '150004' "
            "ELSE pg_catalog.current_setting($1) END $$"
        )
        admin.execute(
            f"ALTER ROLE {ROLE} IN DATABASE {admin.info.dbname} "
            "SET search_path = old, pg_catalog, public".encode()
        )
        said = refusal(url, tmp_path)
        assert "runs PostgreSQL 15; 16 or newer is needed" in said

    def test_no_connection_left(self, databases: Databases, url: str, tmp_path: Path) -> None:
        databases.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT 0")
        try:
            said = refusal(url, tmp_path)
        finally:
            databases.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT -1")
        assert "no connection left" in said
        assert "connections_max" in said


class TestServing:
    def test_a_user_who_may_only_read(
        self, url: str, admin: psycopg.Connection, tmp_path: Path
    ) -> None:
        with serving(tmp_path, url) as writer:
            writer.create("a", "zebra")
        admin.execute(
            "DROP ROLE IF EXISTS only_reads; CREATE ROLE only_reads LOGIN PASSWORD 'test'; "
            "GRANT USAGE ON SCHEMA zibaldone TO only_reads; "
            "GRANT SELECT ON ALL TABLES IN SCHEMA zibaldone TO only_reads"
        )
        try:
            with serving(tmp_path, url.replace(f"user={ROLE}", "user=only_reads")) as reader:
                assert reader.client.get("/documents/a").json()["content"] == "zebra"
                answer = reader.client.get("/search", params={"query": "zebra"})
                assert answer.json()["results"][0]["document_id"] == "a"
                body = {"path": "b", "content": "text"}
                said = failed(reader.client.post("/documents", json=body), 503, "STORAGE_READ_ONLY")
                assert "Make it the owner of the schema" in said
                health = reader.client.get("/health")
                assert health.json()["status"] == "degraded"
                assert stored(reader) == {"a": 1}
        finally:
            admin.execute("DROP OWNED BY only_reads; DROP ROLE only_reads")

    def test_no_connection_left_while_serving(
        self, databases: Databases, url: str, admin: psycopg.Connection, tmp_path: Path
    ) -> None:
        with serving(tmp_path, url) as running:
            running.create("a")
            databases.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT 0")
            try:
                _end_connections(admin)
                body = {"path": "b", "content": "text"}
                said = failed(
                    running.client.post("/documents", json=body), 503, "STORAGE_UNAVAILABLE"
                )
                assert "no connection left" in said
                said = failed(running.client.get("/documents/a"), 503, "STORAGE_UNAVAILABLE")
                assert "max_connections" in said
            finally:
                databases.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT -1")
            assert stored(running) == {"a": 1}
            running.create("b")

    def test_a_statement_timeout_of_the_server(
        self, url: str, admin: psycopg.Connection, tmp_path: Path
    ) -> None:
        """An operator's own `statement_timeout`; what is slow is a lock that another holds."""
        with serving(tmp_path, url) as running:
            running.create("a")
            admin.execute(
                f"ALTER DATABASE {admin.info.dbname} SET statement_timeout = '300ms'".encode()
            )
            _end_connections(admin)
            with _locked(admin, "audit"):
                answer = running.client.put("/documents/a", json={"content": "other"})
                error = answer.json()
                assert answer.status_code in (503, 504), answer.text
                assert error["code"] in RETRYABLE
            assert stored(running) == {"a": 1}
            assert running.client.put("/documents/a", json={"content": "other"}).is_success
            assert stored(running) == {"a": 2}


def _end_connections(admin: psycopg.Connection) -> None:
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND usename = %s",
        (ROLE,),
    )


@contextmanager
def _locked(admin: psycopg.Connection, table: str) -> Iterator[None]:
    with admin.transaction():
        admin.execute(f"LOCK TABLE zibaldone.{table} IN ACCESS EXCLUSIVE MODE".encode())
        yield


class TestRoom:
    """A real full disk: a database in a tablespace on a file system of 24 MB."""

    @pytest.fixture
    def small(self, server: PostgresServer, tmp_path: Path) -> Iterator[Path]:
        if os.geteuid() != 0 or shutil.which("mount") is None:
            pytest.skip("only root can mount a small file system")
        account = plain_account()
        assert account is not None
        folder = Path(str(conninfo_to_dict(server.url)["host"])) / "small"
        folder.mkdir()
        options = f"size=24m,uid={account.pw_uid},gid={account.pw_gid},mode=700"
        mounting = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        done = subprocess.run(mounting, capture_output=True, text=True, check=False)
        if done.returncode:
            folder.rmdir()
            pytest.skip(f"no small file system can be mounted: {done.stderr.strip()}")
        yield folder
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()

    @pytest.fixture
    def small_url(self, small: Path, databases: Databases, name: str) -> Iterator[str]:
        databases.execute(f"CREATE TABLESPACE small LOCATION '{small}'")
        databases.execute(f"ALTER DATABASE {name} SET TABLESPACE small")
        yield databases.url(name)
        databases.drop(name)
        databases.execute("DROP TABLESPACE small")

    def test_nothing_half_is_stored_and_it_goes_on_once_there_is_room(
        self, small: Path, small_url: str, tmp_path: Path
    ) -> None:
        words = " ".join(f"word{number}" for number in range(40_000))
        with serving(tmp_path, small_url) as running:
            acknowledged = []
            for number in range(200):
                body = {"path": f"d{number}", "content": words + str(number)}
                answer = running.client.post("/documents", json=body)
                if answer.status_code != 201:
                    break
                acknowledged.append(f"d{number}")
            said = failed(answer, 507, "STORAGE_FULL")
            assert "No space left" in said
            assert "nothing was written" in said
            assert set(stored(running)) == set(acknowledged)
            assert running.client.get(f"/documents/d{number}").status_code == 404
            health = running.client.get("/health")
            assert health.json()["status"] == "degraded", health.text
            seen = run_cli("doctor", data=running.data, environment={"ZIBALDONE_STORE": small_url})
            assert "Traceback" not in seen.stdout + seen.stderr
            subprocess.run(["mount", "-o", "remount,size=96m", str(small)], check=True)
            running.create(f"d{number}", words)
            running.create("last", words)
            assert set(stored(running)) == {*acknowledged, f"d{number}", "last"}
            _eventually(lambda: running.client.get("/health").json()["status"] == "healthy")
        thorough = run_cli(
            "doctor",
            "--thorough",
            data=tmp_path / "data",
            environment={"ZIBALDONE_STORE": small_url},
        )
        assert thorough.returncode == 0, thorough.stdout


def _eventually(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + HANG_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


class TestRestarts:
    def test_in_the_middle_of_writes(
        self, server: PostgresServer, url: str, tmp_path: Path
    ) -> None:
        """Each write is answered 201, or by an error that says to try again and is then tried
        again. In the end each document is there once, with one revision and its whole text."""
        writers, each = 4, 25
        conflicts: list[str] = []
        problems: list[str] = []
        with serving(tmp_path, url) as running:

            def write(writer: int) -> None:
                with httpx.Client(base_url=running.url, timeout=60, trust_env=False) as client:
                    for number in range(each):
                        _write_until_stored(client, f"w{writer}/{number}", conflicts, problems)

            threads = [threading.Thread(target=write, args=(one,)) for one in range(writers)]
            for thread in threads:
                thread.start()
            for _ in range(3):
                time.sleep(0.4)
                server.pause()
                time.sleep(0.4)
                server.resume()
            for thread in threads:
                thread.join(HANG_SECONDS_MAX * 2)
                assert not thread.is_alive()
            assert problems == []
            expected = {f"w{one}/{number}": 1 for one in range(writers) for number in range(each)}
            assert stored(running) == expected
            for document_id in expected:
                body = running.client.get(f"/documents/{document_id}").json()["content"]
                assert body == f"text of {document_id}"
        seen = run_cli(
            "doctor",
            "--thorough",
            data=tmp_path / "data",
            environment={"ZIBALDONE_STORE": url},
        )
        assert seen.returncode == 0, seen.stdout


def _write_until_stored(
    client: httpx.Client, path: str, conflicts: list[str], problems: list[str]
) -> None:
    is_unknown = False
    until_s = time.monotonic() + HANG_SECONDS_MAX
    while time.monotonic() < until_s:
        body: dict[str, Any] = {"path": path, "content": f"text of {path}"}
        answer = client.post("/documents", json=body)
        if answer.status_code == 201:
            return
        error = answer.json()
        if error["code"] == "CONFLICT" and is_unknown:
            conflicts.append(path)  # it had been stored, as the error said it might
            return
        if answer.status_code not in (503, 504) or error["code"] not in RETRYABLE:
            problems.append(f"{path}: {answer.status_code} {answer.text}")
            return
        is_unknown = is_unknown or error.get("details", {}).get("outcome") == "unknown"
        time.sleep(0.05)
    problems.append(f"{path}: never stored")


class TestDoctor:
    def test_a_store_that_is_well(self, url: str, tmp_path: Path) -> None:
        environment = {"ZIBALDONE_STORE": url}
        data = tmp_path / "data"
        assert run_cli("put", "a", data=data, environment=environment, stdin="x").returncode == 0
        for thorough in ((), ("--thorough",)):
            seen = run_cli("doctor", *thorough, "--json", data=data, environment=environment)
            assert seen.returncode == 0, seen.stdout
            findings = {one["subject"]: one for one in parsed(seen)["findings"]}
            assert findings["postgresql"]["text"].startswith("server ")
            assert findings["database"]["status"] == "ok"
            assert "schema " in findings["database"]["text"]
        shown = run_cli("doctor", data=data, environment=environment)
        assert f"password={PASSWORD}" not in shown.stdout

    def test_damage_is_told(self, url: str, admin: psycopg.Connection, tmp_path: Path) -> None:
        environment = {"ZIBALDONE_STORE": url}
        data = tmp_path / "data"
        assert run_cli("put", "a", data=data, environment=environment, stdin="x").returncode == 0
        admin.execute("UPDATE zibaldone.bodies SET body = 'y'")
        seen = run_cli("doctor", "--thorough", "--json", data=data, environment=environment)
        assert seen.returncode == 1
        (finding,) = [one for one in parsed(seen)["findings"] if one["status"] == "fail"]
        assert "The body of 'a' is not the one that was written" in finding["text"]
        assert "Restore a backup" in finding["advice"]
