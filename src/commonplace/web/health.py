"""/health, which really tries the parts, and /metrics."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

import commonplace
from commonplace.access.principal import Scope
from commonplace.errors import CommonplaceError
from commonplace.tools.spec import Runtime
from commonplace.web.auth import Authenticator
from commonplace.web.http import HttpScope, Receive, Send, send_body, send_json

_PROBE = Scope(namespace="health")


class Health:
    """/health is open to all and says no secrets; /metrics wants a key where keys are in use."""

    def __init__(self, runtime: Runtime, authenticator: Authenticator) -> None:
        self._runtime = runtime
        self._authenticator = authenticator

    async def health(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        services = {"store": await self._store()}
        healthy = all(service["status"] == "ok" for service in services.values())
        answer = {
            "status": "healthy" if healthy else "degraded",
            "version": commonplace.__version__,
            "services": services,
        }
        await send_json(scope, send, 200 if healthy else 503, answer)

    async def _store(self) -> dict[str, Any]:
        """Take the write lock and read: a file that cannot be used says so here."""
        started_s = time.perf_counter()
        try:
            await self._runtime.store.write(_PROBE, lambda writer: writer.documents.get("probe"))
            self._runtime.store.read_now(_PROBE, lambda reader: reader.documents.get("probe"))
        except CommonplaceError as error:
            return {"status": "error", "code": error.code, "message": error.message}
        return {"status": "ok", "ms": round((time.perf_counter() - started_s) * 1000, 3)}

    async def metrics(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        await self._authenticator.authenticate(scope)
        headers = [(b"content-type", CONTENT_TYPE_LATEST.encode())]
        await send_body(scope, send, 200, generate_latest(), headers)
