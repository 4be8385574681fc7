"""zibaldone key: API keys."""

from __future__ import annotations

import re
import secrets
from typing import Any

import click

from zibaldone.access.key import ApiKey, secret_hash
from zibaldone.access.principal import EFFECTS, NAMESPACE_DEFAULT, Effect, Tenant
from zibaldone.cli import context
from zibaldone.errors import InvalidArgument, NotFound
from zibaldone.model.instant import from_iso, now_us, to_iso
from zibaldone.text import normalize

_SPAN = re.compile(r"(\d+)([smhdw])")
_SPAN_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SECRET_START = "zib_"  # noqa: S105 - a prefix by which secret scanners recognise one


@click.group()
def key() -> None:
    """Manage API keys."""


@key.command()
@click.option("--label", default="", help="What the key is for.")
@click.option(
    "--namespace", default=NAMESPACE_DEFAULT, show_default=True, help="Namespace it can see."
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    help="Allow only this profile (repeatable).",
)
@click.option(
    "--effect",
    "effects",
    multiple=True,
    type=click.Choice(EFFECTS),
    help="Allow only this (repeatable); default: read, write and delete.",
)
@click.option("--prefix", default="", help="Allow only paths that start with this.")
@click.option("--expires", help="Lifetime such as 90d or 12h, or an ISO date and time.")
@context.json_option
@click.pass_obj
def create(
    options: context.Options,
    /,
    label: str,
    namespace: str,
    profiles: tuple[str, ...],
    effects: tuple[Effect, ...],
    prefix: str,
    expires: str | None,
    as_json: bool,
) -> None:
    """Create a key. Its secret is printed once and not stored."""
    from zibaldone.wiring.catalogue import build_catalogue

    known = {profile.name for profile in build_catalogue(options.settings()).profiles}
    if unknown := set(profiles) - known:
        raise InvalidArgument(
            f"There is no profile {min(unknown)!r}; there are {', '.join(sorted(known))}.",
            field="profile",
        )
    at_us = now_us()
    secret = _SECRET_START + secrets.token_urlsafe(32)
    new = ApiKey(
        key_id="key_" + secrets.token_hex(6),
        secret_hash=secret_hash(secret),
        label=normalize.title(label),
        namespace=normalize.namespace(namespace),
        path_prefix=normalize.prefix(prefix),
        effects=effects or ("read", "write", "delete"),
        profiles=profiles or None,
        created_at_us=at_us,
        expires_at_us=None if expires is None else _expiry_us(expires, at_us),
    )
    with context.opened(options) as session:
        store = session.runtime.store
        session.run(store.write(Tenant(), lambda writer: writer.api_keys.add(new)))
    if as_json:
        context.echo_json({**_as_dict(new), "secret": secret})
    else:
        click.echo(f"{new.key_id} created. Its secret, shown only once:\n\n  {secret}\n")
        click.echo("Send it as 'Authorization: Bearer …' or 'x-api-key: …'.")


@key.command("list")
@context.json_option
@click.pass_obj
def list_keys(options: context.Options, /, as_json: bool) -> None:
    """List the keys, without their secrets."""
    with context.opened(options) as session:
        store = session.runtime.store
        keys = session.run(store.read(Tenant(), lambda reader: reader.api_keys.all()))
    if as_json:
        context.echo_json({"keys": [_as_dict(known) for known in keys]})
        return
    if not keys:
        click.echo("There are no keys: only this machine can reach the server.")
    for known in keys:
        row = _as_dict(known)
        may = ",".join(known.effects)
        where = f"{known.namespace}:{known.path_prefix or '*'}"
        click.echo(f"{known.key_id}  {row['state']:<8} {where:<24} {may:<20} {known.label}")


@key.command()
@click.argument("key_id")
@context.json_option
@click.pass_obj
def revoke(options: context.Options, /, key_id: str, as_json: bool) -> None:
    """Revoke a key. A running server refuses it within a second."""
    with context.opened(options) as session:
        store = session.runtime.store
        done = session.run(
            store.write(Tenant(), lambda writer: writer.api_keys.revoke(key_id, now_us()))
        )
    if not done:
        raise NotFound(
            f"There is no active key {key_id!r}. 'zibaldone key list' shows all keys.",
            key_id=key_id,
        )
    if as_json:
        context.echo_json({"key_id": key_id, "state": "revoked"})
    else:
        click.echo(f"{key_id} revoked.")


def _as_dict(known: ApiKey) -> dict[str, Any]:
    state = "valid" if known.is_valid(now_us()) else "expired"
    if known.revoked_at_us is not None:
        state = "revoked"
    return {
        "key_id": known.key_id,
        "label": known.label,
        "state": state,
        "namespace": known.namespace,
        "prefix": known.path_prefix,
        "effects": list(known.effects),
        "profiles": None if known.profiles is None else list(known.profiles),
        "created_at": to_iso(known.created_at_us),
        "expires_at": None if known.expires_at_us is None else to_iso(known.expires_at_us),
    }


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
