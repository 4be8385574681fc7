"""What Qdrant has is what the store has: nothing is missed, nothing shows that may not."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pytest

from tests.store.backends import BACKENDS, Backend
from tests.store.contract.test_vectors import MODEL, Vectors, unit_rows
from tests.store.kept import EVERYTHING, Kept
from tests.store.qdrant.mirrored import Mirrored
from zibaldone.access.principal import Tenant
from zibaldone.errors import ConfigurationError, StorageUnavailable, VectorsUnavailable
from zibaldone.limits import Limits
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.store.postgres.mirrors import MirrorUpkeep as PostgresMirrors
from zibaldone.store.qdrant import index
from zibaldone.store.qdrant.address import Address
from zibaldone.store.qdrant.feed import FeedState, VectorFeed
from zibaldone.store.qdrant.index import QdrantIndex
from zibaldone.store.sqlite.mirrors import MirrorUpkeep as SqliteMirrors
from zibaldone.store.upkeep import Upkeep

Floats = npt.NDArray[np.float32]
HANG_SECONDS_MAX = 30.0


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    opened = BACKENDS[request.param](tmp_path)
    yield opened
    opened.close()


class Case:
    """A store whose vectors the test chooses, and the Qdrant beside it."""

    def __init__(self, backend: Backend, url: str) -> None:
        self.backend = backend
        self.mirrored = Mirrored(backend, mode="noted", url=url)
        self.kept = Kept(self.mirrored.store, Limits())
        self.vectors = Vectors(self.kept, backend)
        self.asked = 0
        """Searches that Qdrant answered."""
        self._count_searches(self.mirrored.index)

    def _count_searches(self, index: QdrantIndex) -> None:
        search = index.search

        def counted(*arguments: Any) -> Any:
            found = search(*arguments)
            self.asked += 1
            return found

        index.search = counted  # type: ignore[method-assign, assignment]

    @property
    def index(self) -> QdrantIndex:
        return self.mirrored.index

    @property
    def feed(self) -> VectorFeed:
        return self.mirrored.feed

    def drain(self) -> None:
        asyncio.run(self.feed.drain())

    def state(self) -> FeedState:
        return asyncio.run(self.feed.state())

    def hits(
        self, query: Floats, k: int = 3, wanted: Filter = NO_FILTER, tenant: Tenant = EVERYTHING
    ) -> list[str]:
        keys = [key for key, _ in self.vectors.search(query, k, wanted, tenant)]
        found = self.kept.read(lambda reader: reader.chunks.documents_of(keys), tenant)
        return [found[key] for key in keys]

    def by_qdrant(self, *arguments: Any) -> list[str]:
        """The same; it has to be Qdrant that answers."""
        before = self.asked
        found = self.hits(*arguments)
        assert self.asked > before
        return found


@pytest.fixture
def case(backend: Backend) -> Iterator[Case]:
    made = Case(backend, "qdrant://:memory:")
    yield made
    made.mirrored.close()


A, B, C = unit_rows(3, 5)


def near(row: Floats) -> Floats:
    made: Floats = row + 0.01 * unit_rows(1, 6)[0]
    return (made / np.linalg.norm(made)).astype(np.float32)


class TestWhatIsNoted:
    def test_everything_that_was_there_is_taken_over(self, case: Case) -> None:
        case.vectors.create("a", A[None])
        case.vectors.create("b", B[None])
        case.vectors.create("c", C[None], Tenant("other"))
        case.drain()
        state = case.state()
        assert (state.points, state.pending, state.problem) == (3, 0, None)
        assert state.applied_seq > 0
        assert case.by_qdrant(near(B)) == ["b", "a"]
        assert case.by_qdrant(near(B), 1) == ["b"]

    def test_a_search_finds_what_qdrant_lacks_yet(self, case: Case) -> None:
        case.vectors.create("a", A[None])
        case.drain()
        case.vectors.create("b", B[None])
        assert case.state().pending == 1
        assert case.by_qdrant(near(B)) == ["b", "a"]
        assert case.by_qdrant(near(B), 3, Filter(document_ids=("a",))) == ["a"]
        assert case.by_qdrant(near(B), 3, Filter(document_ids=("b",))) == ["b"]
        case.drain()
        assert case.state().points == 2
        assert case.by_qdrant(near(B)) == ["b", "a"]

    def test_what_was_removed_is_not_found_and_goes(self, case: Case) -> None:
        case.vectors.create("a", A[None])
        case.vectors.create("b", B[None])
        case.drain()
        case.kept.delete("a")
        assert case.by_qdrant(near(A)) == ["b"]
        case.drain()
        assert case.state().points == 1
        assert case.by_qdrant(near(A)) == ["b"]

    def test_chunks_that_a_revision_drops_go(self, case: Case) -> None:
        document = case.vectors.create("a", np.stack([A, B]))
        case.drain()
        assert case.state().points == 2
        case.vectors.add(document, C[None])
        case.drain()
        assert case.state().points == 1
        assert case.by_qdrant(near(A)) == ["a"]

    def test_other_tags_for_the_same_vectors(self, case: Case) -> None:
        document = case.vectors.create("a", A[None], tags=("red",))
        case.vectors.create("b", B[None], tags=("red",))
        case.drain()
        changed = replace(
            document, revision=document.revision + 1, tags=("blue",), vector_status="ready"
        )
        case.kept.commit(document, changed)
        case.vectors.add(document, A[None])
        for _ in range(2):
            assert case.by_qdrant(near(A), 3, Filter(tags_any=("red",))) == ["b"]
            assert case.by_qdrant(near(A), 3, Filter(tags_any=("blue",))) == ["a"]
            case.drain()

    def test_too_many_at_once_are_left_to_the_store(
        self, case: Case, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("zibaldone.store.qdrant.vectors._NEW_DOCUMENTS_MAX", 1)
        case.vectors.create("a", A[None])
        case.drain()
        case.vectors.create("b", B[None])
        case.vectors.create("c", C[None])
        before = case.asked
        assert case.hits(near(B), 1) == ["b"]
        assert case.asked == before

    def test_without_a_mirror_nothing_is_noted(self, backend: Backend) -> None:
        store = backend.open(Limits())
        kept = Kept(store, Limits())
        Vectors(kept, backend).create("a", A[None])
        assert kept.upkeep(lambda work: work.mirrors.all()) == {}
        assert backend.query("SELECT count(*) FROM vector_mirror_changes") == [(0,)]
        assert kept.read(lambda reader: reader.vectors.unmirrored("x", 9)) is None
        store.close()


class TestWhoMaySee:
    def test_a_point_that_says_it_is_anothers(self, case: Case) -> None:
        """Qdrant filters by what a point says of itself; the store does not believe it."""
        case.vectors.create("mine", A[None], tags=("red",))
        theirs = case.vectors.create("theirs", near(A)[None], Tenant("other"), tags=("red",))
        case.drain()
        assert case.by_qdrant(A, 3, NO_FILTER, Tenant("other")) == ["theirs"]

        def forge(**lies: Any) -> None:
            keys = [theirs.storage_key or 0]
            chunks = case.kept.upkeep(lambda work: work.mirrors.chunks(case.vectors.model_id, keys))
            case.index.apply(keys, [replace(chunk, **lies) for chunk in chunks])

        forge(namespace=EVERYTHING.namespace)
        assert case.by_qdrant(near(A)) == ["mine"]
        forge(namespace="other", tags=("green",))
        assert case.by_qdrant(A, 3, Filter(tags_any=("green",)), Tenant("other")) == []

    @pytest.mark.parametrize("chunk_key", ["1; --", -1, 2**70, None, [1], 1.5])
    def test_a_point_of_somebody_else(self, case: Case, chunk_key: Any) -> None:
        """It takes a place among the hits of Qdrant, and does nothing else."""
        from qdrant_client.models import PointStruct

        case.vectors.create("a", A[None])
        case.drain()
        client = case.index._writing
        payload = {"chunk_key": chunk_key, "namespace": "default", "document_id": "a"}
        point = PointStruct(id=7, vector=near(A).tolist(), payload=payload)
        client.upsert(case.index._collection, [point])
        assert case.by_qdrant(near(A)) == ["a"]
        assert case.index.problem is None

    def test_the_filter_is_in_qdrant_too(self, case: Case) -> None:
        """If the store's check failed, another namespace would still not be found."""
        case.vectors.create("mine", A[None])
        case.vectors.create("theirs", near(A)[None], Tenant("other"))
        case.vectors.create("team/mine", B[None], Tenant("other"))
        case.drain()
        counts = {
            (tenant.namespace, tenant.prefix): len(case.index.search(A, 9, tenant, NO_FILTER))
            for tenant in (EVERYTHING, Tenant("other"), Tenant("other", "team/"), Tenant("no"))
        }
        assert list(counts.values()) == [1, 2, 1, 0]

    def test_hits_that_the_store_drops_are_made_up_for(self, case: Case) -> None:
        """`prefix` ends inside of a name: Qdrant cannot say that, the store can."""
        for number in range(60):
            case.vectors.create(f"d/a{number}", near(A)[None])
        case.vectors.create("d/b", B[None])
        case.drain()
        assert case.by_qdrant(A, 1, Filter(prefix="d/b")) == ["d/b"]
        assert len(case.by_qdrant(A, 5, Filter(prefix="d/a1"))) == 5


class TestFailures:
    def test_while_it_is_down_the_stores_vectors_are_searched(self, backend: Backend) -> None:
        case = Case(backend, "qdrant://:a-secret@127.0.0.1:1")
        try:
            with pytest.raises(VectorsUnavailable, match="cannot be used"):
                case.drain()
            case.vectors.create("a", A[None])
            assert case.hits(near(A)) == ["a"]
            coverage = case.kept.read(lambda reader: reader.vectors.coverage(MODEL))
            assert "Qdrant at http://127.0.0.1:1 cannot be used" in coverage.note
            assert "the vectors in the store were searched instead" in coverage.note
            assert "a-secret" not in coverage.note + case.index.name
            assert case.state().points is None
        finally:
            case.mirrored.close()

    def test_one_that_hangs_is_not_waited_for(self, backend: Backend) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            case = Case(backend, f"qdrant://127.0.0.1:{silent.getsockname()[1]}")
            try:
                started_s = time.monotonic()
                with pytest.raises(VectorsUnavailable, match="timed out"):
                    case.drain()
                assert time.monotonic() - started_s < HANG_SECONDS_MAX
                case.vectors.create("a", A[None])
                assert not case.index.is_usable
                assert case.hits(near(A)) == ["a"]
            finally:
                case.mirrored.close()

    @pytest.mark.parametrize("pause_seconds", [0.0, 0.01])
    def test_an_answer_without_end(
        self, backend: Backend, monkeypatch: pytest.MonkeyPatch, pause_seconds: float
    ) -> None:
        """At once or byte by byte: it is read up to a size, and for a while."""
        monkeypatch.setattr(index, "QDRANT_ANSWER_BYTES_MAX", 2**20)
        monkeypatch.setattr(index, "_QUERY_SECONDS_MAX", 1)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
        piece = b"[" if pause_seconds else b" " * 65536
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer() -> None:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(head)
                    while True:
                        connection.sendall(piece)
                        time.sleep(pause_seconds)

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            case = Case(backend, f"qdrant://127.0.0.1:{listener.getsockname()[1]}")
            try:
                reason = "takes too long" if pause_seconds else "too large"
                with pytest.raises(VectorsUnavailable, match=reason):
                    case.drain()
                thread.join(HANG_SECONDS_MAX)
                assert not thread.is_alive(), "the connection was not closed"
            finally:
                case.mirrored.close()

    def test_what_was_written_meanwhile_is_taken_over_when_it_is_back(
        self, case: Case, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        case.vectors.create("a", A[None])
        case.drain()
        clients = case.index._clients

        class Down:
            def __getattr__(self, name: str) -> Callable[..., Any]:
                def refuse(*_: Any, **__: Any) -> Any:
                    raise ConnectionError("refused")

                return refuse

        monkeypatch.setattr(case.index, "_clients", (Down(), Down()))
        case.vectors.create("b", B[None])
        assert case.hits(near(B)) == ["b", "a"]
        assert case.asked == 0
        coverage = case.kept.read(lambda reader: reader.vectors.coverage(MODEL))
        assert "refused" in coverage.note
        with pytest.raises(VectorsUnavailable):
            case.drain()
        assert asyncio.run(case.feed.pending()) == 1
        monkeypatch.setattr(case.index, "_clients", clients)
        case.drain()
        assert case.state().points == 2
        assert case.by_qdrant(near(B)) == ["b", "a"]
        assert case.kept.read(lambda reader: reader.vectors.coverage(MODEL)).note == ""

    @pytest.mark.parametrize("mirrors", [PostgresMirrors, SqliteMirrors])
    def test_a_crash_before_it_is_struck_off(
        self, case: Case, monkeypatch: pytest.MonkeyPatch, mirrors: type
    ) -> None:
        """It is written once more, to the same points."""
        case.vectors.create("a", np.stack([A, B]))

        def crash(*_: Any) -> bool:
            raise StorageUnavailable("power cut")

        case.drain()
        case.vectors.create("b", C[None])
        with monkeypatch.context() as patch:
            for each in (PostgresMirrors, SqliteMirrors):
                patch.setattr(each, "applied", crash)
            with pytest.raises(StorageUnavailable):
                case.drain()
        assert case.state().points == 3
        assert case.state().pending == 1
        case.drain()
        assert (case.state().points, case.state().pending) == (3, 0)

    def test_a_change_while_it_is_taken_over_stays_noted(
        self, case: Case, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        document = case.vectors.create("a", A[None])
        case.drain()
        case.vectors.add(document, B[None])
        apply = case.index.apply

        def change_meanwhile(*arguments: Any) -> None:
            apply(*arguments)
            other = Kept(case.mirrored.own, Limits())
            case.vectors.kept, before = other, case.vectors.kept
            try:
                case.vectors.add(document, C[None])
            finally:
                case.vectors.kept = before

        monkeypatch.setattr(case.index, "apply", change_meanwhile)
        asyncio.run(case.feed.step())
        monkeypatch.setattr(case.index, "apply", apply)
        assert asyncio.run(case.feed.pending()) == 1
        case.drain()
        (key,) = case.vectors.search(C, 1)
        assert key[1] == pytest.approx(1.0, abs=0.01)

    def test_a_collection_that_was_lost_is_filled_anew(self, case: Case) -> None:
        for name, row in (("a", A), ("b", B)):
            case.vectors.create(name, row[None])
        case.drain()
        assert case.index._clients is not None
        case.index._clients[0].delete_collection(case.index._collection)
        assert case.hits(near(B)) == ["b", "a"]
        assert case.asked == 0
        case.drain()
        assert case.by_qdrant(near(B)) == ["b", "a"]

    def test_rebuilding(self, case: Case) -> None:
        for name, row in (("a", A), ("b", B)):
            case.vectors.create(name, row[None])
        case.drain()
        asyncio.run(case.feed.rebuild())
        assert (case.state().points, case.state().pending) == (0, 2)
        assert case.hits(near(B)) == ["b", "a"]
        case.drain()
        assert (case.state().points, case.state().pending) == (2, 0)


class TestProcesses:
    def test_vectors_that_are_being_stored_when_it_begins(self, case: Case) -> None:
        """Their transaction does not know of it yet, and what it reads is not committed."""
        case.vectors.create("a", A[None])
        begun, over = threading.Event(), threading.Event()

        def store_slowly(work: Upkeep) -> None:
            work.vectors.put(case.vectors.model_id, [*case.vectors.by_key], B[None])
            begun.set()
            over.wait(HANG_SECONDS_MAX)

        storing = threading.Thread(target=case.kept.upkeep, args=(store_slowly,))
        storing.start()
        assert begun.wait(HANG_SECONDS_MAX)
        filling = threading.Thread(target=case.drain)
        filling.start()
        filling.join(1.0)
        over.set()
        storing.join(HANG_SECONDS_MAX)
        filling.join(HANG_SECONDS_MAX)
        case.drain()
        ((_, cosine),) = case.index.search(B, 1, EVERYTHING, NO_FILTER)
        assert cosine == pytest.approx(1.0, abs=0.01)

    def test_a_restart_goes_on_where_it_was(self, backend: Backend, tmp_path: Path) -> None:
        url = f"qdrant:{tmp_path / 'qdrant'}"
        first = Case(backend, url)
        first.vectors.create("a", A[None])
        first.drain()
        applied = first.state().applied_seq
        first.vectors.create("b", B[None])
        by_key, tenants = first.vectors.by_key, first.vectors.tenants
        first.mirrored.close()
        second = Case(backend, url)
        try:
            second.vectors.by_key, second.vectors.tenants = by_key, tenants
            state = second.state()
            assert (state.applied_seq, state.pending, state.points) == (applied, 1, 1)
            assert second.by_qdrant(near(B)) == ["b", "a"]
            second.drain()
            assert second.state().applied_seq > applied
            assert second.state().points == 2
        finally:
            second.mirrored.close()

    def test_one_fills_at_a_time(self, case: Case) -> None:
        name = case.index.name
        case.vectors.create("a", A[None])
        case.drain()

        def lease(owner: str, now_us: int) -> bool:
            return case.kept.upkeep(
                lambda work: work.mirrors.lease(name, owner, now_us=now_us, until_us=now_us + 100)
            )

        assert lease("one", 1_000)
        assert not lease("two", 1_050)
        assert lease("one", 1_050)
        assert lease("two", 1_151)
        assert not case.kept.upkeep(lambda work: work.mirrors.applied(name, "one", []))
        assert case.kept.upkeep(lambda work: work.mirrors.applied(name, "two", []))
        assert lease("three", -5_000)  # the other clock was ahead
        case.vectors.create("b", B[None])
        assert case.kept.upkeep(lambda work: work.mirrors.changes(name, 9)) != []
        assert case.kept.upkeep(lambda work: work.mirrors.end(name))
        assert not case.kept.upkeep(lambda work: work.mirrors.end(name))
        assert case.kept.upkeep(lambda work: work.mirrors.changes(name, 9)) == []

    def test_numbers_only_grow(self, case: Case) -> None:
        name = case.index.name
        seen = []
        for number in range(4):
            case.vectors.create(f"d{number}", A[None])
            if number == 0:
                asyncio.run(case.feed._check())
            changes = case.kept.upkeep(lambda work: work.mirrors.changes(name, 9))
            seen += [change.seq for change in changes]
            case.drain()
        assert seen == sorted(set(seen))
        state = case.kept.upkeep(lambda work: work.mirrors.state(name))
        assert state is not None
        assert state.applied_seq == seen[-1]


class TestAddresses:
    def test_forms(self) -> None:
        address = Address.parse("qdrant://:k%40y@kb.example.org/notes")
        assert address.url == "http://kb.example.org:6333"
        assert (address.collection, address.api_key) == ("notes", "k@y")
        assert Address.parse("qdrants://h:1").url == "https://h:1"
        assert Address.parse("qdrant://[::1]:9").url == "http://[::1]:9"
        assert Address.parse("qdrant:folder").folder == "folder"
        assert Address.parse("qdrant://:memory:").is_in_memory

    @pytest.mark.parametrize(
        "url",
        [
            *("", "qdrant:", "qdrant://", "http://h", "qdrant://h:port", "qdrant://h/a/b"),
            *("qdrant://:secret@/x", "qdrant://h?x=secret", "qdrant://h/%20"),
        ],
    )
    def test_malformed(self, url: str) -> None:
        with pytest.raises(ConfigurationError, match="not well formed") as caught:
            Address.parse(url)
        assert "secret" not in caught.value.message

    def test_ids_of_points_are_always_the_same(self) -> None:
        here, there = (
            QdrantIndex(Address.parse(url), "m", 3) for url in ("qdrant://h", "qdrant:f")
        )
        assert here.point_id(7) == there.point_id(7)
        assert UUID(here.point_id(7)).version == 5
        other = QdrantIndex(Address.parse("qdrant://h"), "another", 3)
        assert len({here.point_id(7), here.point_id(8), other.point_id(7)}) == 3
        assert here.name != other.name
