"""What a caller may do. Every refusal of a known caller is decided here."""

from __future__ import annotations

from zibaldone.access.principal import Effect, Principal
from zibaldone.errors import Forbidden, InsufficientScope

SCOPE_START = "zibaldone:"


def scope_of(effect: Effect) -> str:
    """The OAuth scope that grants an effect."""
    return SCOPE_START + effect


def require_effect(principal: Principal, effect: Effect) -> None:
    if effect in principal.effects:
        return
    if principal.by_token:  # its client can ask the issuer for this scope
        scope = scope_of(effect)
        raise InsufficientScope(f"The token lacks the scope {scope}.", scopes=[scope])
    raise Forbidden(f"This key may not {effect}.", needed=effect)


def require_document(principal: Principal, document_id: str) -> None:
    """Refuse a write outside the caller's folder. A read there just finds nothing."""
    prefix = principal.tenant.prefix
    if not document_id.startswith(prefix):
        raise Forbidden(
            f"This key may only write under {prefix!r}.", field="path", allowed_prefix=prefix
        )


def require_tool_of_profiles(principal: Principal, tool: str) -> None:
    """A caller that is limited to profiles may call their tools only, whatever the way in."""
    if principal.profiles is not None and tool not in principal.tools:
        raise Forbidden(f"The profiles of this key do not have the tool {tool!r}.", tool=tool)


def require_profile(principal: Principal, profile: str) -> None:
    if principal.profiles is not None and profile not in principal.profiles:
        raise Forbidden(f"This key may not use the profile {profile!r}.", profile=profile)
