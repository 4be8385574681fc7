"""/health, which tests the parts by using them, and /metrics."""

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
    """/health is open to everyone, without secrets; /metrics needs a key if keys are used."""

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
        # Without vectors keyword search still works, so a load balancer should not remove it.
        is_usable = services["store"]["status"] == "ok"
        await send_json(scope, send, 200 if is_usable else 503, answer)

    async def _store(self) -> dict[str, Any]:
        """Write and read once, to see whether the store works."""
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
        state = {
            "status": "ok" if embedder.problem is None else "error",
            "model": embedder.name,
            "identity": embedder.identity,
            "is_used": embedder.is_used,
        }
        return state if embedder.problem is None else {**state, "message": embedder.problem}

    async def _index(self) -> dict[str, Any]:
        if self._runtime.index is None:
            return {"status": "off"}
        try:
            current = await lag(self._runtime.store)
        except ZibaldoneError as error:
            return {"status": "error", "code": error.code, "message": error.message}
        return {
            **_index_status(self._runtime.index.rival, current),
            "pending": current.pending,
            "failed": current.failed,
            "vector_sync_lag_seconds": round(current.oldest_seconds, 3),
            "youngest_pending_seconds": round(current.youngest_seconds, 3),
            "alert": current.alert,
        }

    async def metrics(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        await self._authenticator.authenticate(scope)
        await self._index()  # updates the lag metrics
        headers = [(b"content-type", CONTENT_TYPE_LATEST.encode())]
        await send_body(scope, send, 200, generate_latest(), headers)


def _index_status(rival: str | None, current: Lag) -> dict[str, Any]:
    if rival is not None:
        message = (
            f"Another process indexes the same store with {rival}; this one makes no vectors "
            "until that one ends. Use the same embedder in both, or stop one."
        )
        return {"status": "standby", "message": message, "model_in_use": rival}
    return {"status": "late" if current.alert else "incomplete" if current.failed else "ok"}
