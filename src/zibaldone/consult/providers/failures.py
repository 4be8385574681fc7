"""What a failed request to a provider means: whose fault it is, and whether to try again."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from zibaldone.consult.providers.values import clean
from zibaldone.errors import (
    ProviderBusy,
    ProviderRefused,
    ProviderUnavailable,
    SessionFull,
    ZibaldoneError,
)
from zibaldone.limits import PROVIDER_REASON_CHARS_MAX
from zibaldone.model.assistant import Assistant

_RETRY_AFTER_SECONDS_MAX = 86_400.0
_OK, _BAD_REQUEST, _NO_CREDIT, _TOO_LARGE, _INVALID, _TOO_MANY = 200, 400, 402, 413, 422, 429
_CLIENT_ERRORS = range(300, 500)
_PERHAPS_ANOTHER_API = frozenset({_BAD_REQUEST, 404, 405, _INVALID})
_PAUSE_STATUSES = frozenset({408, 409, 425, _TOO_MANY})

_FULL_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_FULL_WORDS = re.compile(
    r"maximum context length|context (window|length|size)|exceed(s|ed)? (the )?context"
    r"|prompt is too long|input is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_EMPTY_ACCOUNT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
_BUSY_KINDS = frozenset({"rate_limit_error", "rate_limit_exceeded"})
_REFUSED_KINDS = frozenset(
    {
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "invalid_prompt",
    }
)


@dataclass(frozen=True, slots=True)
class Setback:
    error: ZibaldoneError
    is_passing: bool = False
    """The same request may succeed in a moment."""
    wait_seconds: float | None = None
    """What the provider asks for."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a provider says of an error."""

    status: int
    code: str = ""
    kind: str = ""
    reason: str = ""
    wait_seconds: float | None = None

    @property
    def is_full(self) -> bool:
        is_about_request = self.status in (_OK, _BAD_REQUEST, _INVALID, 500)
        return self.status == _TOO_LARGE or (
            is_about_request
            and (
                self.code in _FULL_CODES
                or self.kind in _FULL_CODES
                or _FULL_WORDS.search(self.reason) is not None
            )
        )


def said_in(status: int, body: Any, headers: Mapping[str, str], key: str) -> Said:
    """Read an error of either provider, or of a server that only resembles them."""
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error if isinstance(error, dict) else {"message": error}
    return Said(
        status=status,
        code=_short(fields.get("code"), key),
        kind=_short(fields.get("type"), key),
        reason=_short(fields.get("message"), key),
        wait_seconds=_wait_seconds(headers),
    )


def _short(value: Any, key: str) -> str:
    """One line of it, without the key: some servers repeat it."""
    if not isinstance(value, str):
        return ""
    line = " ".join(clean(value[: 4 * PROVIDER_REASON_CHARS_MAX]).split())
    if key:
        line = line.replace(key, "***")
    return "".join(char for char in line if char.isprintable())[:PROVIDER_REASON_CHARS_MAX]


def _wait_seconds(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        given = headers.get(name)
        if given is None:
            continue
        try:
            wanted = float(given) * unit
        except ValueError:
            try:
                moment = email.utils.parsedate_to_datetime(given)
            except (TypeError, ValueError):
                continue
            wanted = (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds()
        if not math.isnan(wanted):
            return min(max(0.0, wanted), _RETRY_AFTER_SECONDS_MAX)
    return None


def of_answer(said: Said, assistant: Assistant, *, hint: str = "") -> Setback:
    """The setback of an answer that is an error, by its status or in its stream."""
    if said.is_full:
        return Setback(full(assistant))
    words = f' It says: "{said.reason}"' if said.reason else ""
    details: dict[str, Any] = {"assistant": assistant.name}
    if said.status != _OK:
        details["provider_status"] = said.status
    is_empty_account = said.code in _EMPTY_ACCOUNT or said.kind in _EMPTY_ACCOUNT
    if is_empty_account or said.status == _NO_CREDIT:
        return Setback(_refused(assistant, "the account has no credit left.", words, details))
    if said.status in _PAUSE_STATUSES or said.kind in _BUSY_KINDS or said.code in _BUSY_KINDS:
        if said.wait_seconds is not None:
            details["retry_after_seconds"] = said.wait_seconds
        busy = ProviderBusy(
            f"The provider of assistant {assistant.name} is busy. Try again later.{words}",
            retryable=True,
            **details,
        )
        return Setback(busy, is_passing=True, wait_seconds=said.wait_seconds)
    is_refused = said.status in _CLIENT_ERRORS
    if is_refused or (said.status == _OK and said.kind in _REFUSED_KINDS):
        what = _what_to_check(said.status, assistant)
        words += hint if said.status in _PERHAPS_ANOTHER_API else ""
        return Setback(_refused(assistant, what, words, details))
    status = f" ({said.status})" if said.status != _OK else ""
    error = ProviderUnavailable(
        f"The provider of assistant {assistant.name} failed{status}. Try again later.{words}",
        retryable=True,
        **details,
    )
    return Setback(error, is_passing=True, wait_seconds=said.wait_seconds)


def full(assistant: Assistant) -> SessionFull:
    return SessionFull(
        f"The session no longer fits into the context window of assistant {assistant.name} "
        f"({assistant.model}). Go on with a new session_id, or with fewer files.",
        assistant=assistant.name,
    )


def unavailable(assistant: Assistant, what: str) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"The provider of assistant {assistant.name} {what}. Try again later.",
        assistant=assistant.name,
        retryable=True,
    )


def _refused(
    assistant: Assistant, what: str, words: str, details: dict[str, Any]
) -> ProviderRefused:
    message = f"The provider of assistant {assistant.name} refuses the request: {what}{words}"
    return ProviderRefused(message, retryable=False, **details)


def _what_to_check(status: int, assistant: Assistant) -> str:
    table = f"assistants.{assistant.name}"
    match status:
        case 401 if assistant.api_key_env:
            return (
                f"check the key in the environment variable {assistant.api_key_env} "
                f"({table}.api_key_env)."
            )
        case 401:
            return f"it wants a key. Set {table}.api_key_env."
        case 403:
            return f"the key may not use this model. Check {table}.model and {table}.api_key_env."
        case 404 | 405:
            return f"there is no such model or URL. Check {table}.model and {table}.base_url."
        case 301 | 302 | 303 | 307 | 308:
            return f"it redirects, which is not followed. Check {table}.base_url."
    return "it is not valid." if status == _OK else f"it is not valid ({status})."
