"""/health, which really tries the parts, and /metrics."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

import zibaldone
from zibaldone.access.principal import Tenant
from zibaldone.errors import ZibaldoneError
from zibaldone.index.sweep import Lag, lag
from zibaldone.jobs.supervisor import Supervisor
from zibaldone.tools.spec import Runtime
from zibaldone.web.auth import Authenticator
from zibaldone.web.http import HttpScope, Receive, Send, send_body, send_json

_PROBE = Tenant(namespace="health")


class Health:
    """/health is open to all and says no secrets; /metrics wants a key where keys are in use."""

    def __init__(
        self, runtime: Runtime, authenticator: Authenticator, background: Supervisor
    ) -> None:
        self._runtime = runtime
        self._authenticator = authenticator
        self._background = background

    async def health(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        services = {
            "store": await self._store(),
            "embedder": self._embedder(),
            "index": await self._index(),
            "background": self._background.status(),
        }
        healthy = all(service["status"] in ("ok", "off") for service in services.values())
        answer = {
            "status": "healthy" if healthy else "degraded",
            "version": zibaldone.__version__,
            "services": services,
        }
        # Without vectors it still answers, by keyword: no reason to be taken out of service.
        is_usable = services["store"]["status"] == "ok"
        await send_json(scope, send, 200 if is_usable else 503, answer)

    async def _store(self) -> dict[str, Any]:
        """Take the write lock and read: a store that cannot be used says so here."""
        started_s = time.perf_counter()
        try:
            await self._runtime.store.write(_PROBE, lambda writer: writer.documents.get("probe"))
            await self._runtime.store.read(
                _PROBE, lambda reader: reader.documents.get("probe"), is_small=True
            )
        except ZibaldoneError as error:
            return {"status": "error", "code": error.code, "message": error.message}
        return {"status": "ok", "ms": round((time.perf_counter() - started_s) * 1000, 3)}

    def _embedder(self) -> dict[str, Any]:
        embedder = self._runtime.embedder
        if embedder is None:
            return {"status": "off", "message": "No embedding model: keyword search only."}
        found = {
            "status": "ok" if embedder.problem is None else "error",
            "model": embedder.name,
            "identity": embedder.identity,
            "is_used": embedder.is_used,
        }
        return found if embedder.problem is None else {**found, "message": embedder.problem}

    async def _index(self) -> dict[str, Any]:
        if self._runtime.index is None:
            return {"status": "off"}
        try:
            found = await lag(self._runtime.store)
        except ZibaldoneError as error:
            return {"status": "error", "code": error.code, "message": error.message}
        return {
            **_standing(self._runtime.index.rival, found),
            "pending": found.pending,
            "failed": found.failed,
            "vector_sync_lag_seconds": round(found.oldest_seconds, 3),
            "youngest_pending_seconds": round(found.youngest_seconds, 3),
            "alert": found.alert,
        }

    async def metrics(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        await self._authenticator.authenticate(scope)
        await self._index()  # brings the lag up to date
        headers = [(b"content-type", CONTENT_TYPE_LATEST.encode())]
        await send_body(scope, send, 200, generate_latest(), headers)


def _standing(rival: str | None, found: Lag) -> dict[str, Any]:
    if rival is not None:
        message = (
            f"Another process indexes the same store with {rival}; this one makes no vectors "
            "until that one has ended. Give both the same embedder, or stop one."
        )
        return {"status": "standby", "message": message, "model_in_use": rival}
    return {"status": "late" if found.alert else "incomplete" if found.failed else "ok"}
