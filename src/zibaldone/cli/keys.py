"""zibaldone key: API keys."""

from __future__ import annotations

import click

from zibaldone.access.principal import EFFECTS, NAMESPACE_DEFAULT, Effect
from zibaldone.cli import context
from zibaldone.errors import InvalidArgument


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
    help="Allow only the tools of this profile (repeatable), over REST too.",
)
@click.option(
    "--effect",
    "effects",
    multiple=True,
    type=click.Choice(EFFECTS),
    help="Allow only this (repeatable); default: read, write and delete.",
)
@click.option("--prefix", default="", help="Allow only documents in this folder.")
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
    arguments = {
        "label": label,
        "namespace": namespace,
        "prefix": prefix,
        "effects": list(effects),
        "profiles": list(profiles),
        "expires": expires,
    }
    answer = context.run_tool(options, "create_key", arguments)
    if as_json:
        context.echo_json(answer)
    else:
        click.echo(f"{answer['key_id']} created. Its secret, shown only once:\n")
        click.echo(f"  {answer['secret']}\n")
        click.echo("Send it as 'Authorization: Bearer …' or 'x-api-key: …'.")


@key.command("list")
@context.json_option
@click.pass_obj
def list_keys(options: context.Options, /, as_json: bool) -> None:
    """List the keys, without their secrets."""
    answer = context.run_tool(options, "list_keys", {})
    if as_json:
        context.echo_json(answer)
        return
    if not answer["keys"]:
        click.echo("There are no keys: only this machine can reach the server.")
    for known in answer["keys"]:
        effects = ",".join(known["effects"])
        place = f"{known['namespace']}:{known['prefix'] or '*'}"
        click.echo(
            f"{known['key_id']}  {known['state']:<8} {place:<24} {effects:<20} {known['label']}"
        )


@key.command()
@click.argument("key_id")
@context.json_option
@click.pass_obj
def revoke(options: context.Options, /, key_id: str, as_json: bool) -> None:
    """Revoke a key. A running server refuses it within a second."""
    answer = context.run_tool(options, "revoke_key", {"key_id": key_id})
    if as_json:
        context.echo_json(answer)
    else:
        click.echo(f"{key_id} revoked.")
