"""One collection of Qdrant: the vectors of one model, found again by the keys of their chunks."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar
from uuid import UUID, uuid5

from zibaldone import extras
from zibaldone.access.principal import Tenant
from zibaldone.errors import ConfigurationError, VectorsUnavailable
from zibaldone.limits import QDRANT_ANSWER_BYTES_MAX
from zibaldone.model.query import Filter
from zibaldone.model.vector import Vectors
from zibaldone.store.port import Scored
from zibaldone.store.qdrant.address import Address
from zibaldone.store.qdrant.filters import FIELDS, conditions, folders_of
from zibaldone.store.upkeep import MirroredChunk

T = TypeVar("T")

_POINTS = UUID("6f1f0a52-5d0a-5c11-9a3e-0b6f3f2c7d41")
"""Ids of points are made from this, the model and the chunk: writing a chunk twice is one point."""

_QUERY_SECONDS_MAX = 2
_WRITE_SECONDS_MAX = 60
_POINTS_PER_REQUEST = 256
_KEY_MAX = 2**63 - 1
_LIST_MIN = 128
"""What its graph keeps in mind on the way (`hnsw_ef`), or twice what is asked for."""


class QdrantIndex:
    """Raises VectorsUnavailable, and nothing else, when Qdrant fails."""

    def __init__(self, address: Address, identity: str, dimensions: int) -> None:
        if extras.missing(["qdrant_client"]):
            command = extras.install_command("qdrant")
            raise ConfigurationError(f"vectors: qdrant-client is not installed. Run: {command}")
        self.address = address
        self.identity = identity
        self.dimensions = dimensions
        self.problem: str | None = None
        """Why it could not be used the last time."""
        digest = hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()
        self._collection = f"{address.collection}-{digest}"
        self._clients: tuple[Any, Any] | None = None
        self._models: Any = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """As the store calls it."""
        return f"{self.address.name}/{self._collection}"

    @property
    def is_connected(self) -> bool:
        return self._clients is not None

    @property
    def is_usable(self) -> bool:
        """Whether a search should try it. After a failure the feed finds out first: no search waits
        for a server that hangs, but those that were the first to notice."""
        return self.is_connected and self.problem is None

    def connect(self) -> None:
        """Import its library, which takes a second, and see whether it answers."""

        def ask() -> None:
            if self._clients is None:
                self._models = extras.require("qdrant", "qdrant_client.models")
                self._clients = self._connected()
            self._clients[0].collection_exists(self._collection)

        self._guarded(ask)

    def _connected(self) -> tuple[Any, Any]:
        made = extras.require("qdrant", "qdrant_client").QdrantClient
        address = self.address
        if address.is_local:
            place = {"path": address.folder} if address.folder else {"location": ":memory:"}
            local = made(**place, force_disable_check_same_thread=True)
            return local, local
        server: dict[str, Any] = {"url": address.url, "api_key": address.api_key or None}
        server["check_compatibility"] = False  # it warns, and asks once more
        reading, writing = (
            made(**server, timeout=seconds_max, event_hooks={"response": [_bounding(seconds_max)]})
            for seconds_max in (_QUERY_SECONDS_MAX, _WRITE_SECONDS_MAX)
        )
        return reading, writing

    def exists(self) -> bool:
        return self._guarded(lambda: bool(self._reading.collection_exists(self._collection)))

    def create(self) -> None:
        """Make the collection anew, empty."""

        def make() -> None:
            client, models = self._writing, self._models
            if client.collection_exists(self._collection):
                client.delete_collection(self._collection)
            client.create_collection(
                self._collection,
                vectors_config=models.VectorParams(
                    size=self.dimensions, distance=models.Distance.COSINE
                ),
            )
            for name, kind in FIELDS.items():
                if not self.address.is_local:  # there it would have no effect, and warn
                    client.create_payload_index(self._collection, name, field_schema=kind)

        self._guarded(make)

    def count(self) -> int:
        return self._guarded(lambda: int(self._reading.count(self._collection).count))

    def search(self, vector: Vectors, limit: int, tenant: Tenant, wanted: Filter) -> list[Scored]:
        def ask() -> list[Scored]:
            models = self._models
            effort = models.SearchParams(hnsw_ef=max(_LIST_MIN, 2 * limit))
            answer = self._reading.query_points(
                self._collection,
                query=vector.tolist(),
                query_filter=models.Filter.model_validate(conditions(tenant, wanted)),
                search_params=None if self.address.is_local else effort,  # all are compared there
                limit=limit,
                with_payload=["chunk_key"],
            )
            return [_scored(point) for point in answer.points[:limit]]

        return self._guarded(ask)

    def apply(self, document_keys: Sequence[int], chunks: Iterable[MirroredChunk]) -> None:
        """Make this all that it has of these documents. Doing it twice changes nothing."""

        def write() -> None:
            client, models = self._writing, self._models
            points = [self._point(chunk) for chunk in chunks]
            for start in range(0, len(points), _POINTS_PER_REQUEST):
                client.upsert(self._collection, points[start : start + _POINTS_PER_REQUEST])
            ids = [models.HasIdCondition(has_id=[point.id for point in points])] if points else []
            of_documents = models.FieldCondition(
                key="document_key", match=models.MatchAny(any=list(document_keys))
            )
            client.delete(self._collection, models.Filter(must=[of_documents], must_not=ids))

        if document_keys:
            self._guarded(write)

    def _point(self, chunk: MirroredChunk) -> Any:
        payload = {
            "chunk_key": chunk.chunk_key,
            "document_key": chunk.document_key,
            "namespace": chunk.namespace,
            "document_id": chunk.document_id,
            "folders": folders_of(chunk.document_id),
            "source_id": chunk.source_id,
            "created_us": chunk.created_us,
            "score": chunk.score,
            "post_type": chunk.post_type,
            "tags": list(chunk.tags),
        }
        return self._models.PointStruct(
            id=self.point_id(chunk.chunk_key), vector=chunk.vector.tolist(), payload=payload
        )

    def point_id(self, chunk_key: int) -> str:
        return str(uuid5(_POINTS, f"{self.identity}/{chunk_key}"))

    def close(self) -> None:
        for client in set(self._clients or ()):
            client.close()

    @property
    def _reading(self) -> Any:
        return self._client(0)

    @property
    def _writing(self) -> Any:
        return self._client(1)

    def _client(self, number: int) -> Any:
        if self._clients is None:
            raise ConnectionError("it is not connected yet")
        return self._clients[number]

    def _guarded(self, work: Callable[[], T]) -> T:
        """Whatever the library raises says that Qdrant cannot be used; the store is asked then."""
        # The one inside this process is not made for several threads.
        with self._lock if self.address.is_local else nullcontext():
            try:
                result = work()
            except Exception as problem:
                reason = (str(problem).splitlines() or [""])[0] or type(problem).__name__
                self.problem = f"{self.address.description} cannot be used: {reason[:200]}"
                raise VectorsUnavailable(self.problem) from problem
        self.problem = None
        return result


def _scored(point: Any) -> Scored:
    """A point that somebody else made is a hit that the store does not know."""
    key, score = (point.payload or {}).get("chunk_key"), point.score
    if type(key) is int and 0 < key <= _KEY_MAX and math.isfinite(score):
        return key, float(score)
    return 0, 0.0


def _bounding(seconds_max: float) -> Callable[[Any], None]:
    """For its HTTP client, which waits so long for each piece of an answer, and reads all of it."""

    def pieces(stream: Any) -> Iterator[bytes]:
        size, until_s = 0, time.monotonic() + seconds_max
        for piece in stream:
            size += len(piece)
            if size > QDRANT_ANSWER_BYTES_MAX:
                raise ValueError("its answer is too large")
            if time.monotonic() > until_s:
                raise TimeoutError("its answer takes too long")
            yield piece

    def bound(response: Any) -> None:
        response.headers.pop("content-encoding", None)  # unpacked, a small answer could be huge
        stream = response.stream

        class Bounded(type(stream)):  # type: ignore[misc]
            """Of the class that the client expects, which belongs to a library of its own."""

            def __init__(self) -> None:
                pass

            def __iter__(self) -> Iterator[bytes]:
                return pieces(stream)

            def close(self) -> None:
                stream.close()

        response.stream = Bounded()

    return bound
