"""create_key, list_keys, revoke_key, delete_keys: who may call. For the operator only."""

from __future__ import annotations

import re
import secrets
from typing import Literal

from typing_extensions import TypedDict

from zibaldone.access.key import ApiKey, secret_hash
from zibaldone.access.principal import NAMESPACE_DEFAULT, Effect, Tenant
from zibaldone.errors import Conflict, InvalidArgument, NotFound
from zibaldone.model.instant import from_iso, now_us, to_iso
from zibaldone.store.port import Writer
from zibaldone.text import normalize
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_SPAN = re.compile(r"(\d+)([smhdw])")
_SPAN_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SECRET_START = "zib_"  # noqa: S105 - a prefix by which secret scanners recognise one
_EFFECTS_DEFAULT: tuple[Effect, ...] = ("read", "write", "delete")


class CreateKey(Arguments):
    label: str = ""
    namespace: str = NAMESPACE_DEFAULT
    prefix: str = ""
    effects: list[Effect] = []
    profiles: list[str] = []
    expires: str | None = None


class ListKeys(Arguments):
    pass


class RevokeKey(Arguments):
    key_id: str


class DeleteKeys(Arguments):
    key_ids: list[str]
    may_open: bool = False
    """Delete the last key too: then no key is needed any more."""


class KeyInfo(TypedDict):
    key_id: str
    label: str
    state: Literal["valid", "expired", "revoked"]
    namespace: str
    prefix: str
    effects: list[Effect]
    profiles: list[str] | None
    created_at: str
    expires_at: str | None


class NewKey(KeyInfo):
    secret: str
    """Shown only here; only its hash is stored."""


class Keys(TypedDict):
    keys: list[KeyInfo]


class RevokedKey(TypedDict):
    key_id: str
    state: Literal["revoked"]


class DeletedKeys(TypedDict):
    deleted: list[str]
    is_open: bool
    """No key is left: callers on this machine need none."""


async def handle_create(call: Call, given: CreateKey) -> NewKey:
    at_us = now_us()
    secret = _SECRET_START + secrets.token_urlsafe(32)
    key = ApiKey(
        key_id="key_" + secrets.token_hex(6),
        secret_hash=secret_hash(secret),
        label=normalize.title(given.label),
        namespace=normalize.namespace(given.namespace),
        path_prefix=normalize.folder(given.prefix),
        effects=tuple(given.effects) or _EFFECTS_DEFAULT,
        profiles=tuple(given.profiles) or None,
        created_at_us=at_us,
        expires_at_us=None if given.expires is None else _expiry_us(given.expires, at_us),
    )
    await call.runtime.store.write(Tenant(), lambda writer: writer.api_keys.add(key))
    return {**_key_info(key), "secret": secret}


async def handle_list(call: Call, given: ListKeys) -> Keys:
    del given
    keys = await call.runtime.store.read(Tenant(), lambda reader: reader.api_keys.all())
    return {"keys": [_key_info(key) for key in keys]}


async def handle_revoke(call: Call, given: RevokeKey) -> RevokedKey:
    is_revoked = await call.runtime.store.write(
        Tenant(), lambda writer: writer.api_keys.revoke(given.key_id, now_us())
    )
    if not is_revoked:
        raise NotFound(
            f"There is no active key {given.key_id!r}. 'zibaldone key list' shows all keys.",
            key_id=given.key_id,
        )
    return {"key_id": given.key_id, "state": "revoked"}


async def handle_delete(call: Call, given: DeleteKeys) -> DeletedKeys:
    wanted = list(dict.fromkeys(given.key_ids))

    def delete(writer: Writer) -> bool:
        left = {key.key_id for key in writer.api_keys.all()}
        if unknown := [key_id for key_id in wanted if key_id not in left]:
            raise NotFound(
                f"There is no key {unknown[0]!r}. 'zibaldone key list' shows all keys.",
                key_id=unknown[0],
            )
        is_open = left == {*wanted}
        if is_open and wanted and not given.may_open:
            raise Conflict(
                "No key would be left: whoever reaches the server from this machine could read "
                "and write everything. If you want that, say so with --yes."
            )
        for key_id in wanted:
            writer.api_keys.delete(key_id)
        return is_open

    is_open = await call.runtime.store.write(Tenant(), delete)
    return {"deleted": wanted, "is_open": is_open}


def _key_info(key: ApiKey) -> KeyInfo:
    return {
        "key_id": key.key_id,
        "label": key.label,
        "state": _state(key),
        "namespace": key.namespace,
        "prefix": key.principal.tenant.prefix,
        "effects": list(key.effects),
        "profiles": None if key.profiles is None else list(key.profiles),
        "created_at": to_iso(key.created_at_us),
        "expires_at": None if key.expires_at_us is None else to_iso(key.expires_at_us),
    }


def _state(key: ApiKey) -> Literal["valid", "expired", "revoked"]:
    if key.revoked_at_us is not None:
        return "revoked"
    return "valid" if key.is_valid(now_us()) else "expired"


def _expiry_us(text: str, at_us: int) -> int:
    span = _SPAN.fullmatch(text.strip())
    try:
        if span is not None:
            return at_us + int(span.group(1)) * _SPAN_SECONDS[span.group(2)] * 1_000_000
        return from_iso(text)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"{text!r} must be a lifetime such as 90d or an ISO date and time.", field="expires"
        ) from None


CREATE = ToolSpec(
    name="create_key",
    title="Create an API key",
    description="Create a key; its secret is in this answer and stored nowhere.",
    arguments=CreateKey,
    result=NewKey,
    effect="admin",
    handler=handle_create,
    is_local=True,
)
LIST = ToolSpec(
    name="list_keys",
    title="List API keys",
    description="List the keys, ended ones too, without their secrets.",
    arguments=ListKeys,
    result=Keys,
    effect="admin",
    handler=handle_list,
    is_local=True,
)
REVOKE = ToolSpec(
    name="revoke_key",
    title="Revoke an API key",
    description="End a key; a running server refuses it within a second.",
    arguments=RevokeKey,
    result=RevokedKey,
    effect="admin",
    handler=handle_revoke,
    is_local=True,
)
DELETE = ToolSpec(
    name="delete_keys",
    title="Delete API keys",
    description="Forget keys; where no key is left, callers on this machine need none.",
    arguments=DeleteKeys,
    result=DeletedKeys,
    effect="admin",
    handler=handle_delete,
    is_local=True,
)
