"""Every error a caller can see. Each leaf has a stable code and an HTTP status.

    ZibaldoneError
    ├── RequestError                      the caller can fix it
    │   ├── InvalidArgument               INVALID_ARGUMENT        422
    │   ├── BadRequest                    BAD_REQUEST             400
    │   ├── InvalidUsage                  INVALID_USAGE           400
    │   ├── Interrupted                   INTERRUPTED             400
    │   ├── Unauthenticated               UNAUTHENTICATED         401
    │   ├── Forbidden                     FORBIDDEN               403
    │   ├── InsufficientScope             INSUFFICIENT_SCOPE      403
    │   ├── NotFound                      NOT_FOUND               404
    │   ├── StoreNotFound                 STORE_NOT_FOUND         404
    │   ├── MethodNotAllowed              METHOD_NOT_ALLOWED      405
    │   ├── RequestTimeout                REQUEST_TIMEOUT         408
    │   ├── Conflict                      CONFLICT                409
    │   ├── Ambiguous                     AMBIGUOUS               409
    │   ├── NotFoundInContent             NOT_FOUND_IN_CONTENT    409
    │   ├── SessionFull                   SESSION_FULL            409
    │   ├── PayloadTooLarge               PAYLOAD_TOO_LARGE       413
    │   ├── UrlTooLong                    URL_TOO_LONG            414
    │   ├── MisdirectedRequest            MISDIRECTED_REQUEST     421
    │   ├── LimitExceeded                 LIMIT_EXCEEDED          422
    │   ├── TooManyRequests               TOO_MANY_REQUESTS       429
    │   │   └── RateLimited               RATE_LIMITED            429
    │   ├── BudgetExceeded                BUDGET_EXCEEDED         429
    │   ├── QuotaExceeded                 QUOTA_EXCEEDED          507
    │   ├── RemoteDenied                  REMOTE_DENIED           401
    │   ├── HeadersTooLarge               HEADERS_TOO_LARGE       431
    │   └── ResponseTooLarge              RESPONSE_TOO_LARGE      422
    ├── ServiceError                      the operator can fix it
    │   ├── NotImplementedYet             NOT_IMPLEMENTED         501
    │   ├── NotConfigured                 NOT_CONFIGURED          501
    │   ├── InstallFailed                 INSTALL_FAILED          502
    │   ├── DeadlineExceeded              DEADLINE_EXCEEDED       504
    │   ├── EmbeddingFailed               EMBEDDING_FAILED        503
    │   │   └── EmbedderUnavailable       EMBEDDER_UNAVAILABLE    503
    │   ├── VectorsUnavailable            VECTORS_LOADING         503
    │   ├── TooManyConnections            TOO_MANY_CONNECTIONS    503
    │   ├── ShuttingDown                  SHUTTING_DOWN           503
    │   ├── IssuerUnavailable             ISSUER_UNAVAILABLE      503
    │   ├── SourceUnavailable             SOURCE_UNAVAILABLE      503
    │   ├── RemoteFailed                  REMOTE_FAILED           502
    │   ├── RemoteUnavailable             REMOTE_UNAVAILABLE      503
    │   ├── ProviderRefused               PROVIDER_REFUSED        502
    │   ├── ProviderBusy                  PROVIDER_BUSY           503
    │   ├── ProviderUnavailable           PROVIDER_UNAVAILABLE    503
    │   ├── StorageUnavailable            STORAGE_UNAVAILABLE     503
    │   ├── StorageFull                   STORAGE_FULL            507
    │   ├── StorageReadOnly               STORAGE_READ_ONLY       503
    │   ├── StorageCorrupt                STORAGE_CORRUPT         503
    │   └── Internal                      INTERNAL                500
    └── ConfigurationError                CONFIGURATION           the process does not start

A message says what happened and what to do; `details` holds the machine-readable part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class ZibaldoneError(Exception):
    code: ClassVar[str] = "INTERNAL"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = details

    def as_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "status": self.status,
            "message": self.message,
            "details": dict(self.details),
        }


class RequestError(ZibaldoneError):
    code = "BAD_REQUEST"
    status = 400


class InvalidArgument(RequestError):
    code = "INVALID_ARGUMENT"
    status = 422


class BadRequest(RequestError):
    pass


class InvalidUsage(RequestError):
    """A command with an unknown option, or without an argument that it needs."""

    code = "INVALID_USAGE"


class Interrupted(RequestError):
    """A command that Ctrl-C ended."""

    code = "INTERRUPTED"


class Unauthenticated(RequestError):
    code = "UNAUTHENTICATED"
    status = 401
    challenge: str = "Bearer"
    """Value of the WWW-Authenticate header."""


class Forbidden(RequestError):
    code = "FORBIDDEN"
    status = 403


class InsufficientScope(RequestError):
    """The access token is valid but lacks a scope; its client can request one that has it."""

    code = "INSUFFICIENT_SCOPE"
    status = 403
    challenge: str = "Bearer"


class NotFound(RequestError):
    code = "NOT_FOUND"
    status = 404


class StoreNotFound(RequestError):
    """A command that only reads was pointed at a place where nothing was ever stored."""

    code = "STORE_NOT_FOUND"
    status = 404


class MethodNotAllowed(RequestError):
    code = "METHOD_NOT_ALLOWED"
    status = 405


class RequestTimeout(RequestError):
    code = "REQUEST_TIMEOUT"
    status = 408


class Conflict(RequestError):
    code = "CONFLICT"
    status = 409


class Ambiguous(RequestError):
    code = "AMBIGUOUS"
    status = 409


class NotFoundInContent(RequestError):
    code = "NOT_FOUND_IN_CONTENT"
    status = 409


class SessionFull(RequestError):
    """What is to be sent no longer fits into the assistant's context window."""

    code = "SESSION_FULL"
    status = 409


class PayloadTooLarge(RequestError):
    code = "PAYLOAD_TOO_LARGE"
    status = 413


class UrlTooLong(RequestError):
    code = "URL_TOO_LONG"
    status = 414


class MisdirectedRequest(RequestError):
    """The Host header names another server."""

    code = "MISDIRECTED_REQUEST"
    status = 421


class LimitExceeded(RequestError):
    code = "LIMIT_EXCEEDED"
    status = 422


class TooManyRequests(RequestError):
    code = "TOO_MANY_REQUESTS"
    status = 429


class HeadersTooLarge(RequestError):
    code = "HEADERS_TOO_LARGE"
    status = 431


class RateLimited(TooManyRequests):
    """The key has used up its requests of this minute."""

    code = "RATE_LIMITED"


class BudgetExceeded(RequestError):
    """The key has used up what it may spend on assistants today; nothing was sent."""

    code = "BUDGET_EXCEEDED"
    status = 429


class QuotaExceeded(RequestError):
    """The namespace would hold more than the operator allows it; nothing was stored."""

    code = "QUOTA_EXCEEDED"
    status = 507


class RemoteDenied(RequestError):
    """The server that notes are pushed to does not accept our key."""

    code = "REMOTE_DENIED"
    status = 401


class ResponseTooLarge(RequestError):
    code = "RESPONSE_TOO_LARGE"
    status = 422


class ServiceError(ZibaldoneError):
    pass


class NotImplementedYet(ServiceError):
    code = "NOT_IMPLEMENTED"
    status = 501


class NotConfigured(ServiceError):
    code = "NOT_CONFIGURED"
    status = 501


class InstallFailed(ServiceError):
    """An embedding model could not be installed; what was there before is still there."""

    code = "INSTALL_FAILED"
    status = 502


class DeadlineExceeded(ServiceError):
    code = "DEADLINE_EXCEEDED"
    status = 504


class EmbeddingFailed(ServiceError):
    code = "EMBEDDING_FAILED"
    status = 503


class EmbedderUnavailable(EmbeddingFailed):
    """The model is unavailable; nothing is wrong with the text."""

    code = "EMBEDDER_UNAVAILABLE"
    status = 503


class RerankerUnavailable(ServiceError):
    """The reranker did not answer, or not as it should; searches go on without it."""

    code = "RERANKER_UNAVAILABLE"
    status = 503


class VectorsUnavailable(ServiceError):
    """The engine cannot search vectors now, for instance while it still reads them into memory."""

    code = "VECTORS_LOADING"
    status = 503


class TooManyConnections(ServiceError):
    code = "TOO_MANY_CONNECTIONS"
    status = 503


class ShuttingDown(ServiceError):
    code = "SHUTTING_DOWN"
    status = 503


class IssuerUnavailable(ServiceError):
    """A token cannot be verified because the keys of its issuer are unavailable."""

    code = "ISSUER_UNAVAILABLE"
    status = 503


class SourceUnavailable(ServiceError):
    """A database that rows are pulled from cannot be used now, or refuses us."""

    code = "SOURCE_UNAVAILABLE"
    status = 503


class RemoteFailed(ServiceError):
    """The server that notes are pushed to answered that it will not, or cannot, do this."""

    code = "REMOTE_FAILED"
    status = 502


class RemoteUnavailable(ServiceError):
    """The server that notes are pushed to cannot be reached, or is busy; try again later."""

    code = "REMOTE_UNAVAILABLE"
    status = 503


class ProviderRefused(ServiceError):
    """The provider of a model refuses the request; the same one would be refused again."""

    code = "PROVIDER_REFUSED"
    status = 502


class ProviderBusy(ServiceError):
    """The provider of a model asks for a pause, longer than a call can wait."""

    code = "PROVIDER_BUSY"
    status = 503


class ProviderUnavailable(ServiceError):
    """The provider of a model cannot be reached, or its answer is not complete."""

    code = "PROVIDER_UNAVAILABLE"
    status = 503


class StorageUnavailable(ServiceError):
    code = "STORAGE_UNAVAILABLE"
    status = 503


class StorageFull(ServiceError):
    code = "STORAGE_FULL"
    status = 507


class StorageReadOnly(ServiceError):
    code = "STORAGE_READ_ONLY"
    status = 503


class StorageCorrupt(ServiceError):
    code = "STORAGE_CORRUPT"
    status = 503


class Internal(ServiceError):
    code = "INTERNAL"
    status = 500


class ConfigurationError(ZibaldoneError):
    code = "CONFIGURATION"
    status = 500
