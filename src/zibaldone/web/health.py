"""/live, /health, which really tries the parts, and /metrics.

/health answers within a second, whatever the parts do. The store is probed beside all
other work (`Store.probe`). Whether readers and the writer get on is told by a read and a write of
no work that queue like any other; one of each at most is under way, and one that is still waiting
is not waited for again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

import zibaldone
from zibaldone.access.decide import require_effect
from zibaldone.access.principal import Tenant
from zibaldone.errors import DeadlineExceeded, StorageUnavailable, ZibaldoneError
from zibaldone.index.sweep import Lag, measured_lag
from zibaldone.jobs.supervisor import Supervisor
from zibaldone.limits import HEALTH_SECONDS_MAX, STUCK_SECONDS
from zibaldone.model.instant import to_iso
from zibaldone.pull.live import SourceLag
from zibaldone.pull.metrics import publish
from zibaldone.store.port import ReadStoreStatus, Store
from zibaldone.tools.spec import Runtime
from zibaldone.web.auth import Authenticator, is_remote
from zibaldone.web.http import HttpScope, Receive, Send, send_body, send_json
from zibaldone.web.lag import loop_lag

_PROBE = Tenant(namespace="health")
_AUTHENTICATION_SECONDS_MAX = 0.2
_BRIEF_MEMBERS = ("status", "code")
_SOUND = frozenset({"ok", "off", "busy"})
_LAG_SECONDS_MAX = 1.0
"""A longer stop of the event loop is worth telling. A crowded machine can cause it too."""

Service = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """What a look at the store found."""

    lag: Lag | None
    problem: ZibaldoneError | None
    refused_write: ZibaldoneError | None
    ms: float


class Health:
    """Open to all are /live and the outline of /health; counts and messages are the operator's."""

    def __init__(
        self, runtime: Runtime, authenticator: Authenticator, background: Supervisor
    ) -> None:
        self._runtime = runtime
        self._authenticator = authenticator
        self._background = background
        self._sampler = Sampler(runtime.store)
        store = runtime.store
        self._readers = Errand(lambda: store.read(_PROBE, lambda reader: None))
        self._writer = Errand(
            lambda: store.write(_PROBE, lambda writer: writer.documents.get("probe"))
        )

    async def live(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        await send_json(scope, send, 200, {"status": "alive", "version": zibaldone.__version__})

    async def health(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        is_operator, services = await asyncio.gather(self._is_operator(scope), self._services())
        is_healthy = all(
            service["status"] in _SOUND for name, service in services.items() if name != "loop"
        )
        # Without vectors it still answers by keyword, without room it still reads: no reason to be
        # taken out of service.
        parts = (services["store"], services["readers"], services["writes"])
        is_usable = all(part["status"] in ("ok", "busy", "refused") for part in parts)
        answer: dict[str, Any] = {
            "status": "healthy" if is_healthy else "degraded",
            "version": zibaldone.__version__,
            "services": services if is_operator else _brief(services),
        }
        if self._runtime.store_mark and not is_remote(scope):
            answer["store_mark"] = self._runtime.store_mark
        await send_json(scope, send, 200 if is_usable else 503, answer)

    async def metrics(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        """Counts of all tenants together: for the operator."""
        del receive
        require_effect(await self._authenticator.authenticate(scope), "admin")
        await self._sampler.sample()  # brings the lag up to date
        if self._runtime.live is not None:
            publish(self._runtime.live.lags())
        headers = [(b"content-type", CONTENT_TYPE_LATEST.encode())]
        await send_body(scope, send, 200, generate_latest(), headers)

    async def _is_operator(self, scope: HttpScope) -> bool:
        try:
            async with asyncio.timeout(_AUTHENTICATION_SECONDS_MAX):
                principal = await self._authenticator.authenticate(scope)
        except (ZibaldoneError, TimeoutError):
            return False
        return "admin" in principal.effects

    async def _services(self) -> dict[str, Service]:
        sample, readers, writes = await asyncio.gather(
            self._sampler.sample(), self._readers.status(), self._writer.status()
        )
        if sample is None:
            store: Service = {"status": "stuck", "message": "The store cannot be read in time."}
        elif sample.problem is not None:
            store = _failed(sample.problem)
        else:
            store = {"status": "ok", "ms": sample.ms}
        if sample is not None and sample.refused_write is not None:
            writes = {**_failed(sample.refused_write), "status": "refused"}
        late_s = loop_lag.seconds
        read_store = self._runtime.store.read_store_status
        return {
            "store": store,
            **({} if read_store is None else {"read_store": _read_store(read_store)}),
            "readers": readers,
            "writes": writes,
            "loop": {
                "status": "ok" if late_s < _LAG_SECONDS_MAX else "slow",
                "lag_seconds": round(late_s, 3),
            },
            "embedder": self._embedder(),
            "index": self._index(sample),
            **self._vectors(),
            "sources": self._sources(),
            "background": self._background.status(),
        }

    def _sources(self) -> Service:
        """As the task that follows sources saw them last; the store is not asked."""
        lags = [] if self._runtime.live is None else self._runtime.live.lags()
        if not lags:
            return {"status": "off"}
        return {
            "status": "late" if any(lag.is_late for lag in lags) else "ok",
            "sources": [_source(lag) for lag in lags],
        }

    def _embedder(self) -> Service:
        embedder = self._runtime.embedder
        if embedder is None:
            return {"status": "off", "message": "No embedding model: keyword search only."}
        service = {
            "status": "ok" if embedder.problem is None else "error",
            "model": embedder.name,
            "identity": embedder.identity,
            "is_used": embedder.is_used,
        }
        return service if embedder.problem is None else {**service, "message": embedder.problem}

    def _vectors(self) -> dict[str, Service]:
        """The index beside the store, where there is one."""
        if self._runtime.vector_feed is None:
            return {}
        feed = self._runtime.vector_feed
        index = feed.index
        status = "busy" if feed.is_behind else "ok"
        service: Service = {"status": status, "index": index.address.description}
        if index.problem is not None:
            message = f"{index.problem}; the vectors in the store are searched instead."
            service |= {"status": "error", "message": message}
        return {"vectors": service}

    def _index(self, sample: Sample | None) -> Service:
        if self._runtime.index is None:
            return {"status": "off"}
        if sample is None:
            return {"status": "unknown"}
        if sample.lag is None:
            return _failed(sample.problem or StorageUnavailable("The store cannot be read."))
        return {
            **_index_status(self._runtime.index.rival, sample.lag),
            "pending": sample.lag.pending,
            "failed": sample.lag.failed,
            "vector_sync_lag_seconds": round(sample.lag.oldest_seconds, 3),
            "youngest_pending_seconds": round(sample.lag.youngest_seconds, 3),
            "alert": sample.lag.alert,
        }


class Sampler:
    """Looks at the store; all who ask meanwhile share one look."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looking: asyncio.Task[Sample | None] | None = None

    async def sample(self) -> Sample | None:
        """None: the store cannot be read in time."""
        looking = self._looking
        if looking is None or looking.done() or looking.get_loop().is_closed():
            looking = self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(looking)

    async def _look(self) -> Sample | None:
        started_s = time.perf_counter()
        lag, problem, refused = None, None, None
        try:
            probe = await self._store.probe(lambda work: work.consistency.lag())
            lag, refused = measured_lag(probe.result), probe.refused_write
        except DeadlineExceeded:
            return None
        except ZibaldoneError as error:
            problem = error
        except Exception as error:
            problem = StorageUnavailable(f"The store cannot be looked at: {error}")
        ms = round((time.perf_counter() - started_s) * 1000, 3)
        return Sample(lag, problem, refused, ms)


class Errand:
    """Work of no weight that queues like any other: how long it waits tells how the queue does."""

    def __init__(self, begin: Callable[[], Awaitable[object]]) -> None:
        self._begin = begin
        self._running: asyncio.Future[object] | None = None
        self._begun_s = 0.0

    async def status(self) -> Service:
        running = self._running
        if running is None or running.done() or running.get_loop().is_closed():
            running = self._running = asyncio.ensure_future(self._begin())
            self._begun_s = time.monotonic()
        begun_s = self._begun_s
        await asyncio.wait((running,), timeout=HEALTH_SECONDS_MAX)
        waited_s = time.monotonic() - begun_s
        if not running.done():
            is_stuck = waited_s > STUCK_SECONDS
            return {
                "status": "stuck" if is_stuck else "busy",
                "waiting_seconds": round(waited_s, 1),
            }
        problem = None if running.cancelled() else running.exception()
        if isinstance(problem, ZibaldoneError):
            return _failed(problem)
        if problem is not None:
            raise problem
        return {"status": "ok", "ms": round(waited_s * 1000, 3)}


def _source(lag: SourceLag) -> Service:
    return {
        "source": lag.name,
        "namespace": lag.namespace,
        "enabled": lag.enabled,
        "mode": lag.mode,
        "lag_seconds": None if lag.seconds is None else round(lag.seconds, 3),
        "last_sync": None if lag.last_sync_at_us is None else to_iso(lag.last_sync_at_us),
        "is_late": lag.is_late,
        "problem": lag.problem,
    }


def _read_store(status: ReadStoreStatus) -> Service:
    service = {"status": status.status}
    return {**service, "message": status.message} if status.message else service


def _failed(error: ZibaldoneError) -> Service:
    return {"status": "error", "code": error.code, "message": error.message}


def _brief(services: dict[str, Service]) -> dict[str, Service]:
    return {
        name: {member: service[member] for member in _BRIEF_MEMBERS if member in service}
        for name, service in services.items()
    }


def _index_status(rival: str | None, lag: Lag) -> Service:
    if rival is not None:
        message = (
            f"Another process indexes the same store with {rival}; this one makes no vectors "
            "until that one ends. Use the same embedder in both, or stop one."
        )
        return {"status": "standby", "message": message, "model_in_use": rival}
    return {"status": "late" if lag.alert else "incomplete" if lag.failed else "ok"}
