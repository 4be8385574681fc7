"""May they? The only answer to that question."""

from __future__ import annotations

from zibaldone.access.principal import Effect, Principal
from zibaldone.errors import Forbidden


def require_effect(principal: Principal, effect: Effect) -> None:
    if effect not in principal.effects:
        raise Forbidden(f"This key may not {effect}.", needed=effect)


def require_document(principal: Principal, document_id: str) -> None:
    """A write outside the caller's folder is refused aloud; a read there finds nothing."""
    prefix = principal.tenant.prefix
    if not document_id.startswith(prefix):
        raise Forbidden(
            f"This key may only write under {prefix!r}.", field="path", allowed_prefix=prefix
        )


def require_profile(principal: Principal, profile: str) -> None:
    if principal.profiles is not None and profile not in principal.profiles:
        raise Forbidden(f"This key may not use the profile {profile!r}.", profile=profile)
