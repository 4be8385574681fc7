"""When a conversation's files are written anew instead of appended to.

Appending keeps every byte that was sent, so that the provider's cache serves it; the price is that
outdated copies stay. A rewrite costs the whole prompt once. docs/explain/pack.md has the reasons
for the numbers.
"""

from __future__ import annotations

from typing import Literal

from zibaldone.limits import (
    PACK_STALE_IDLE_SHARE_MAX,
    PACK_STALE_SHARE_MAX,
    PACK_STALE_TOKENS_MIN,
)

Reason = Literal["", "superseded", "cache_expired", "window", "not_stable"]


def rewrite_reason(
    *,
    base_tokens: int,
    superseded_tokens: int,
    idle_seconds: float | None,
    cache_seconds: int,
    is_window_exceeded: bool,
) -> Reason:
    """Why the files are to be written anew; empty if they are not.

    `base_tokens` is what all their copies would take after appending, `superseded_tokens` what of
    it would be out of date.
    """
    if base_tokens <= 0 or superseded_tokens <= 0:
        return ""
    if is_window_exceeded:
        return "window"
    if superseded_tokens < PACK_STALE_TOKENS_MIN:
        return ""
    share = superseded_tokens / base_tokens
    if share > PACK_STALE_SHARE_MAX:
        return "superseded"
    is_expired = idle_seconds is not None and idle_seconds > cache_seconds
    if is_expired and share > PACK_STALE_IDLE_SHARE_MAX:
        return "cache_expired"
    return ""
