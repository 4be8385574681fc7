"""Everything in a store, moved into another: of each engine into each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.store.backends import BACKENDS, Backend
from tests.store.kept import HASHED, Kept
from zibaldone.access.key import ApiKey
from zibaldone.access.principal import Tenant
from zibaldone.errors import ConfigurationError, Conflict
from zibaldone.exchange import migrate
from zibaldone.exchange.migrate import Migration, TableReport
from zibaldone.index.worker import IndexWorker
from zibaldone.limits import Limits
from zibaldone.model.consult import Message, SentFile, Session, SessionKey, Spent, Usage
from zibaldone.model.instant import now_us
from zibaldone.model.job import NewJob, Schedule, Setback
from zibaldone.model.pulled import PulledBlock, PulledRow
from zibaldone.model.vector import np
from zibaldone.store.port import Store, Writer
from zibaldone.store.tables import BY_NAME, TABLES, Digest, fingerprint

pytestmark = pytest.mark.engine("sqlite", reason="each test names its engines itself")

OTHER = Tenant("other")
PAIRS = [(one, two) for one in BACKENDS for two in BACKENDS]
ACROSS = ("sqlite", "postgres")


@dataclass(frozen=True, slots=True)
class Move:
    source: Backend
    destination: Backend


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Backend]]:
    made: list[Backend] = []

    def make_one(engine: str) -> Backend:
        folder = tmp_path / f"{engine}{len(made)}"
        folder.mkdir()
        made.append(BACKENDS[engine](folder))
        return made[-1]

    yield make_one
    for backend in made:
        backend.close()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "TRANSFER_ROWS", 3)


def ignore(rows: int) -> None:
    del rows


def fill(store: Store) -> None:
    """Some of everything."""
    kept = Kept(store, Limits())
    metadata = {"z": 1, "a": 1.0, "big": 2**53 + 1, "nested": {"b": [1, 2.5, None], "a": "é"}}
    kept.create("notes/one", "# One\n\nA giraffe.\n\n## Two\n\nMore.", metadata=metadata)
    kept.create("notes/tagged", "words", tags=("Red", "Ünïcode"), title="Titled 'quoted' \\ text")
    kept.create("notes/long", "\n\n".join(f"Paragraph {n} about llamas. " * 40 for n in range(12)))
    kept.create("registries/skipped", "not embedded")
    kept.create("empty", "")
    kept.create("notes/one", "in another namespace", OTHER)
    kept.create("memory/team/one", "Last week Ada joined Acme Corporation in Oslo.")
    kept.create("gone", "will be deleted")
    kept.delete("gone")
    kept.patch("notes/one", "giraffe", "zebra")
    kept.patch("notes/one", "zebra", "okapi")
    asyncio.run(IndexWorker(store, HASHED).drain())
    kept.create("waiting", "has no vector yet")
    key = ApiKey("k1", b"\x00\xff" * 16, "a key", "other", "team/", ("read",), ("mcp",), 1, 2, None)
    kept.write(lambda writer: writer.api_keys.add(key))
    schedule = Schedule("nightly", "0 3 * * *", "reindex", "default", {"b": 1, "a": 2}, 5, None)

    def work(upkeep: Any) -> None:
        upkeep.schedules.put(schedule)
        upkeep.queue.add("other", [NewJob("sync", subject="s", payload={"n": 1.0, "m": 2})])
        (leased,) = upkeep.queue.lease("sync", limit=1, now_us=9, until_us=99, owner="w")
        upkeep.queue.park([Setback(leased, "it failed")], now_us=10)
        upkeep.queue.add("default", [NewJob("sync", unique_key="u", not_before_us=7)])

    asyncio.run(store.upkeep(work))
    definition = {"chunking": {"by": "structure"}, "pull": {"url": "sqlite:x"}}
    source_id = asyncio.run(
        store.upkeep(
            lambda upkeep: upkeep.sources.add("other", "posts", "pulled", definition, at_us=3)
        )
    )
    kept.write(lambda writer: _remember_rows(writer, source_id), OTHER)
    kept.write(_converse, OTHER)


def _converse(writer: Writer) -> None:
    key = SessionKey("k1", "reviewer", "é")
    writer.sessions.put(Session(key, turns=1, usage=Usage(9, 8, 7, 6), cost=0.5, state={"b": 1.0}))
    writer.sessions.put_messages(key, [Message("user", "é \u0000"), Message("assistant", "a")], 0)
    writer.sessions.put_stable(key, ["p/a.py"], 3)
    writer.sessions.put_sent(key, {"p/a.py": SentFile(1, 2**60, "d"), "p/b": SentFile(0, 0)})
    writer.sessions.spend("k1", 20_000, Spent(9, 0.1))


def _remember_rows(writer: Writer, source_id: int) -> None:
    writer.pulled.begin(source_id, 5)
    writer.pulled.put_rows(source_id, [PulledRow("posts:1", 1, -(2**63), b"\x00\xff")])
    writer.pulled.put_block(source_id, PulledBlock(1, 1, b"digest", '["é"]', True))


def run(move: Move, *, restart: bool = False) -> list[TableReport]:
    return asyncio.run(run_between(move, restart=restart))


async def run_between(move: Move, *, restart: bool = False) -> list[TableReport]:
    source, destination = opened(move.source), opened(move.destination)
    try:
        migration = Migration(source, destination)
        await migration.begin(restart=restart)
        await migration.copy(ignore)
        return await migration.verify(ignore)
    finally:
        source.close()
        destination.close()


def opened(backend: Backend) -> Store:
    return backend.open(Limits(), for_transfer=True)


def filled(backend: Backend) -> Backend:
    store = backend.open(Limits())
    fill(store)
    store.close()
    return backend


def contents(backend: Backend) -> dict[str, tuple[int, str]]:
    """Rows and hash of every table."""

    def digests(work: Any) -> dict[str, tuple[int, str]]:
        found = {}
        for table in TABLES:
            digest = Digest(table)
            digest.add(work.transfer.read(table, None, rows_max=10**6, bytes_max=10**9))
            found[table.name] = (digest.rows, digest.hex)
        return found

    store = opened(backend)
    try:
        return asyncio.run(store.upkeep(digests, write=False))
    finally:
        store.close()


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_all_of_it_is_there_and_works(make: Callable[[str], Backend], one: str, two: str) -> None:
    move = Move(filled(make(one)), make(two))
    before = contents(move.source)
    reports = run(move)
    assert {report.name: (report.rows, report.digest) for report in reports} == before
    assert contents(move.destination) == before
    assert contents(move.source) == before, "the source is only read"
    assert all(report.rows for report in reports), "every table has something to prove"
    source, destination = (backend.open(Limits()) for backend in (move.source, move.destination))
    try:
        checked = asyncio.run(destination.check(thorough=True))
        assert checked.ok, checked.problems
        for tenant in (Tenant(), OTHER, Tenant(prefix="notes/")):
            assert seen_by(destination, tenant) == seen_by(source, tenant)
        kept = Kept(destination, Limits())
        assert kept.found("okapi") == {"notes/one"}
        assert kept.found('"about llamas"') == {"notes/long"}
        kept.create("after", "a new document, found by its words")
        kept.patch("notes/one", "okapi", "quagga")
        assert kept.found("quagga") == {"notes/one"}
        assert asyncio.run(IndexWorker(destination, HASHED).drain()).failed == 0
        assert asyncio.run(destination.check(thorough=True)).ok
    finally:
        source.close()
        destination.close()


def seen_by(store: Store, tenant: Tenant) -> Any:
    """What a tenant reads, in the order and with the types that it was written with."""

    def read(reader: Any) -> Any:
        listed = reader.documents.listing("", limit=100).heads
        documents = [reader.documents.get(name) for name in [head.document_id for head in listed]]
        histories = [
            [
                reader.revisions.get(document, revision.revision)
                for revision in reader.revisions.page(document, before=None, limit=100)
            ]
            for document in [*documents, reader.documents.get("gone")]
            if document is not None
        ]
        return (
            [head.document_id for head in listed],
            [(document, repr(document.metadata), document.storage_key) for document in documents],
            histories,
            reader.jobs.page(limit=100),
            reader.audit.page(None, limit=100),
            reader.api_keys.all(),
            reader.sources.counts(),
            reader.vectors.coverage(HASHED.identity),
        )

    return asyncio.run(store.read(tenant, read))


@pytest.mark.parametrize(("one", "two"), [ACROSS, tuple(reversed(ACROSS))])
def test_vectors_are_the_same_as_far_as_the_contract_goes(
    make: Callable[[str], Backend], one: str, two: str
) -> None:
    move = Move(filled(make(one)), make(two))
    run(move)
    question = HASHED.embed(["a paragraph about llamas"])[0]
    found = []
    for backend in (move.source, move.destination):
        store = backend.open(Limits())
        found.append(
            asyncio.run(
                store.read(
                    Tenant(),
                    lambda reader: reader.vectors.search(HASHED.identity, question, 20),
                )
            )
        )
        store.close()
    before, after = map(dict, found)
    assert before.keys() == after.keys()
    assert before == pytest.approx(after, abs=0.01)


def test_there_and_back_is_what_it_was(make: Callable[[str], Backend]) -> None:
    """Rounding apart, that is: vectors are rounded once, in the first engine."""
    first, middle, last = filled(make("sqlite")), make("postgres"), make("sqlite")
    run(Move(first, middle))
    run(Move(middle, last))
    vectors = "SELECT model_id, chunk_key, vector FROM vectors ORDER BY 1, 2"
    assert first.query(vectors) == last.query(vectors)
    assert contents(first) == contents(last)


class Ended(Exception):
    """As if the process had been killed."""


class ShortLived:
    """A store whose process ends in the middle of one of its writes."""

    def __init__(self, store: Store, writes: int) -> None:
        self._store = store
        self._writes = writes

    @property
    def description(self) -> str:
        return self._store.description

    async def upkeep(self, work: Callable[[Any], Any], *, write: bool = True) -> Any:
        if not write:
            return await self._store.upkeep(work, write=False)
        self._writes -= 1

        def cut_short(upkeep: Any) -> Any:
            result = work(upkeep)
            if self._writes < 0:
                raise Ended
            return result

        return await self._store.upkeep(cut_short)


def begin_and_end(move: Move, writes: int) -> bool:
    """Migrate until the process ends after so many writes; whether it came to the end of it."""
    source, destination = opened(move.source), opened(move.destination)
    short_lived: Any = ShortLived(destination, writes)

    async def work() -> None:
        migration = Migration(source, short_lived)
        await migration.begin()
        await migration.copy(ignore)
        await migration.verify(ignore)

    try:
        asyncio.run(work())
    except Ended:
        return False
    finally:
        source.close()
        destination.close()
    return True


class TestGoingOn:
    @pytest.mark.parametrize(("one", "two"), [ACROSS, tuple(reversed(ACROSS))])
    def test_it_goes_on_where_it_was(
        self, make: Callable[[str], Backend], one: str, two: str
    ) -> None:
        move = Move(filled(make(one)), make(two))
        assert not begin_and_end(move, writes=1)
        tries = 1
        while not begin_and_end(move, writes=5):
            with pytest.raises(ConfigurationError, match=r"not complete\. Run that command again"):
                move.destination.open(Limits())
            tries += 1
        assert tries > 5
        assert contents(move.destination) == contents(move.source)
        move.destination.open(Limits()).close()

    def test_only_from_the_same_source(self, make: Callable[[str], Backend]) -> None:
        move = Move(filled(make("sqlite")), make("sqlite"))
        assert not begin_and_end(move, writes=8)
        with pytest.raises(Conflict, match=r"is being filled from .*--restart"):
            run(Move(filled(make("sqlite")), move.destination))

    @pytest.mark.parametrize("two", BACKENDS)
    def test_not_if_the_source_has_changed_unless_it_begins_anew(
        self, make: Callable[[str], Backend], two: str
    ) -> None:
        move = Move(filled(make("sqlite")), make(two))
        assert not begin_and_end(move, writes=30)
        store = move.source.open(Limits())
        Kept(store, Limits()).create("more", "words")
        store.close()
        with pytest.raises(Conflict, match=r"source was changed.*--restart"):
            run(move)
        run(move, restart=True)
        assert contents(move.destination) == contents(move.source)

    def test_two_at_a_time_do_not_mix(self, make: Callable[[str], Backend]) -> None:
        move = Move(filled(make("sqlite")), make("sqlite"))

        async def both() -> list[Any]:
            source, destination = opened(move.source), opened(move.destination)
            migrations = [Migration(source, destination) for _ in range(2)]
            try:
                await migrations[0].begin()
                await migrations[1].begin()
                outcomes = await asyncio.gather(
                    *(migration.copy(ignore) for migration in migrations), return_exceptions=True
                )
                for migration, outcome in zip(migrations, outcomes, strict=True):
                    if outcome is None:
                        await migration.verify(ignore)
                return list(outcomes)
            finally:
                source.close()
                destination.close()

        outcomes = asyncio.run(both())
        assert any(isinstance(outcome, Conflict) for outcome in outcomes)
        if None in outcomes:
            assert contents(move.destination) == contents(move.source)


class TestRefused:
    @pytest.mark.parametrize("two", BACKENDS)
    def test_a_destination_that_is_not_empty(
        self, make: Callable[[str], Backend], two: str
    ) -> None:
        move = Move(filled(make("sqlite")), filled(make(two)))
        before = contents(move.destination)
        with pytest.raises(Conflict, match=r"is not empty: it holds \d+ documents"):
            run(move)
        with pytest.raises(Conflict, match="is not empty"):
            run(move, restart=True)
        assert contents(move.destination) == before
        move.destination.open(Limits()).close()

    def test_one_that_a_server_has_only_looked_at_is_empty(
        self, make: Callable[[str], Backend]
    ) -> None:
        """It has a model and a schedule of its own by then."""
        move = Move(filled(make("sqlite")), make("sqlite"))
        store = move.destination.open(Limits())
        schedule = Schedule("mine", "0 3 * * *", "reindex", "default", {}, 5, None)

        def look(work: Any) -> None:
            work.models.id("another model", 3, 1)
            work.schedules.put(schedule)

        asyncio.run(store.upkeep(look))
        store.close()
        run(move)
        assert contents(move.destination) == contents(move.source)

    def test_a_store_that_is_served(self, make: Callable[[str], Backend]) -> None:
        for served in ("source", "destination"):
            move = Move(filled(make("sqlite")), make("sqlite"))
            store = (move.source if served == "source" else move.destination).open(Limits())

            def claim(work: Any) -> None:
                model_id = work.models.id(HASHED.identity, HASHED.dimensions, 1)
                work.models.claim(1, model_id, now_us())

            asyncio.run(store.upkeep(claim))
            store.close()
            with pytest.raises(Conflict, match="is being served"):
                run(move)

    def test_the_same_store(self, make: Callable[[str], Backend]) -> None:
        backend = make("sqlite")
        with pytest.raises(Conflict, match="the same store"):
            run(Move(backend, backend))


class TestVerified:
    @pytest.mark.parametrize("two", BACKENDS)
    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE bodies SET body = body || ' ' WHERE document_key = 1",
            "DELETE FROM document_tags WHERE tag = 'red'",
            "UPDATE api_keys SET revoked_at_us = 9",
            "DELETE FROM vectors WHERE chunk_key = (SELECT max(chunk_key) FROM vectors)",
            "UPDATE documents SET metadata = '{}' WHERE document_key = 1",
        ],
    )
    def test_what_differs_is_told_and_the_store_stays_incomplete(
        self, make: Callable[[str], Backend], two: str, damage: str
    ) -> None:
        move = Move(filled(make("sqlite")), make(two))
        source, destination = opened(move.source), opened(move.destination)

        async def work() -> None:
            migration = Migration(source, destination)
            await migration.begin()
            await migration.copy(ignore)
            move.destination.execute(damage)
            await migration.verify(ignore)

        try:
            with pytest.raises(Conflict, match=f"{damage.split()[1 + (damage[0] == 'D')]}: "):
                asyncio.run(work())
        finally:
            source.close()
            destination.close()
        with pytest.raises(ConfigurationError, match="not complete"):
            move.destination.open(Limits())

    def test_a_change_of_the_source_meanwhile(self, make: Callable[[str], Backend]) -> None:
        """Here one that no counter of the source tells of: a key was revoked."""
        move = Move(filled(make("sqlite")), make("sqlite"))
        source, destination = opened(move.source), opened(move.destination)

        async def work() -> None:
            migration = Migration(source, destination)
            await migration.begin()
            await migration.copy(ignore)
            await source.write(Tenant(), lambda writer: writer.api_keys.revoke("k1", 1))
            await migration.verify(ignore)

        try:
            with pytest.raises(Conflict, match=r"api_keys: .*source was changed"):
                asyncio.run(work())
        finally:
            source.close()
            destination.close()

    @pytest.mark.parametrize("one", BACKENDS)
    @pytest.mark.parametrize(("change", "rows_left"), [("a document", 0), ("a key", 4)])
    def test_a_change_at_the_end_of_the_comparison(
        self, make: Callable[[str], Backend], one: str, change: str, rows_left: int
    ) -> None:
        """A document after the last row. Nothing but its row tells of a key, so that is last."""
        move = Move(filled(make(one)), make("sqlite"))
        source, destination = opened(move.source), opened(move.destination)
        other = opened(move.source)
        changes: dict[str, Callable[[], Any]] = {
            "a document": lambda: Kept(other, Limits()).patch("notes/one", "okapi", "quagga"),
            "a key": lambda: Kept(other, Limits()).write(
                lambda writer: writer.api_keys.revoke("k1", 1)
            ),
        }

        async def work() -> None:
            migration = Migration(source, destination)
            await migration.begin()
            await migration.copy(ignore)
            left, due = 2 * await migration.total() - rows_left, [changes[change]]

            def count(rows: int) -> None:
                nonlocal left
                left -= rows
                if left <= 0 and due:
                    with ThreadPoolExecutor(1) as thread:
                        thread.submit(due.pop()).result()

            await migration.verify(count)

        try:
            with pytest.raises(Conflict, match="source was changed"):
                asyncio.run(work())
        finally:
            for store in (source, destination, other):
                store.close()


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_keys_are_not_used_again(make: Callable[[str], Backend], one: str, two: str) -> None:
    """Also those of chunks that were removed before."""
    move = Move(make(one), make(two))
    store = move.source.open(Limits())
    kept = Kept(store, Limits())
    kept.create("first", "words")
    kept.create("last", "words that go")
    kept.delete("last")
    store.close()
    ((highest,),) = move.source.query("SELECT max(chunk_key) FROM chunks")
    run(move)
    store = move.destination.open(Limits())
    Kept(store, Limits()).create("new", "words")
    store.close()
    ((key, document_key),) = move.destination.query(
        "SELECT c.chunk_key, c.document_key FROM chunks c JOIN documents d USING (document_key) "
        "WHERE d.document_id = 'new'"
    )
    assert key > highest + 1
    assert document_key == 3


DERIVED = {
    "sqlite": {
        *("index_workers", "vector_changes", "sqlite_sequence", "chunk_terms"),
        *(f"chunk_terms_{part}" for part in ("config", "data", "docsize", "idx")),
        *("vector_mirrors", "vector_mirror_changes", "term_scheme", "unsettled_terms"),
    },
    "postgres": {
        *("index_workers", "usage_changes", "migrations", "probe", "chunk_terms", "unposted"),
        *("removed_terms", "segments", "postings", "posting_waste", "term_statistics"),
        *("vector_mirrors", "vector_mirror_changes", "term_scheme", "new_terms"),
    },
}
"""What an engine makes itself, or what belongs to the processes that use it."""

OWN_COLUMNS = {"sqlite": set(), "postgres": {"namespace", "document_key"}}
"""Repeated from the document, where the description has them not."""


@pytest.mark.parametrize("engine", BACKENDS)
def test_the_description_has_every_table_and_column(
    make: Callable[[str], Backend], engine: str
) -> None:
    """A new one must be moved, too: add it to store/tables.py, or to what is derived."""
    backend = make(engine)
    backend.open(Limits()).close()
    if engine == "sqlite":
        listed = backend.query(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c "
            "WHERE t.type = 'table'"
        )
    else:
        listed = backend.query(
            "SELECT table_name::text, column_name::text FROM information_schema.columns "
            "WHERE table_schema = 'zibaldone'"
        )
    columns: dict[str, set[str]] = {}
    for table, column in listed:
        columns.setdefault(table, set()).add(column)
    assert columns.keys() - DERIVED[engine] == BY_NAME.keys()
    for table in TABLES:
        assert columns[table.name] - set(table.names) <= OWN_COLUMNS[engine], table.name
        assert set(table.names) <= columns[table.name], table.name


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_batch_is_bounded_in_bytes(make: Callable[[str], Backend], engine: str) -> None:
    backend = make(engine)
    store = backend.open(Limits())
    kept = Kept(store, Limits())
    for number in range(5):
        kept.create(f"d{number}", f"{number}" * 10_000)
    bodies = BY_NAME["bodies"]

    def read(after: Any, rows_max: int, bytes_max: int) -> list[int]:
        rows = kept.upkeep(
            lambda work: work.transfer.read(bodies, after, rows_max=rows_max, bytes_max=bytes_max),
            write=False,
        )
        return [row[0] for row in rows]

    assert read(None, 100, 10**6) == [1, 2, 3, 4, 5]
    assert read((2,), 2, 10**6) == [3, 4]
    assert read(None, 100, 1) == [1], "one at least"
    assert read((1,), 100, 25_000) in ([2, 3], [2, 3, 4])
    assert read((5,), 100, 1) == []
    store.close()


def test_a_hash_tells_rows_apart() -> None:
    table = BY_NAME["bodies"]

    def of(*rows: tuple[Any, ...]) -> str:
        digest = Digest(table)
        digest.add(rows)
        return digest.hex

    assert of((1, "a"), (2, "b")) == of((1, "a"), (2, "b"))
    others = [of((1, "a")), of((1, "a2"), (2, "b")), of((1, None)), of((1, "")), of((2, "a"))]
    assert len({of((1, "a"), (2, "b")), *others}) == len(others) + 1


def test_a_vector_keeps_its_fingerprint_when_it_is_rounded() -> None:
    generator = np.random.default_rng(1)
    for size in (1, 3, 384, 4_096):
        vector = generator.standard_normal(size).astype(np.float32)
        vector /= np.linalg.norm(vector)
        stored = fingerprint(vector.tobytes())
        packed = np.frombuffer(stored, np.int8).astype(np.float32)
        again = packed / np.linalg.norm(packed)
        assert fingerprint(again.astype(np.float32).tobytes()) == stored
        assert fingerprint(again.astype(np.float16).astype(np.float32).tobytes()) == stored
    assert fingerprint(np.zeros(4, np.float32).tobytes()) == bytes(4)
    assert fingerprint(b"") == b""
