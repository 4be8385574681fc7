"""zibaldone key: API keys."""

from __future__ import annotations

import sys
import textwrap

import click

from zibaldone.access.principal import EFFECTS, NAMESPACE_DEFAULT, Effect
from zibaldone.cli import context
from zibaldone.errors import InvalidArgument

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")

_FIRST = (
    "This is the first key. From then on every client of the server needs a key, those on this "
    "machine too: without one, agents that are connected now are refused. The commands of "
    "'zibaldone' need none. 'zibaldone key delete' of the last key goes back to that."
)
_NONE_VALID = (
    "No valid key is left: every client is refused. Create a key, or delete all of them "
    "('zibaldone key delete --all') to let this machine in without one."
)
_OPENS = (
    "No key would be left. Then whoever reaches the server from this machine, or through a proxy "
    "on it, can read and write everything without a key. Other machines are not served."
)


@click.group()
def key() -> None:
    """Manage API keys.

    While there is no key, the server serves this machine only, and asks for none. Once there is
    one, every client needs a key, also if all keys have ended. Deleting the last key is the way
    back.
    """


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
@yes_option
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
    yes: bool,
    as_json: bool,
) -> None:
    """Create a key. Its secret is printed once and not stored.

    After the first key, every client needs one. On a terminal you are asked before that.
    """
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
    with context.opened(options, if_missing="create") as session:
        is_first = not session.call("list_keys", {})["keys"]
        # With an issuer every client is asked for a token or a key already.
        if is_first and not options.settings().oauth_issuer:
            _warn(_FIRST, "Create it?", is_asking=not (yes or as_json))
        answer = session.call("create_key", arguments)
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
        click.echo("There are no keys: this machine needs none, and no other is served.")
    for known in answer["keys"]:
        effects = ",".join(known["effects"])
        place = f"{known['namespace']}:{known['prefix'] or '*'}"
        click.echo(
            f"{known['key_id']}  {known['state']:<8} {place:<24} {effects:<20} {known['label']}"
        )
    _note_none_valid(answer)


@key.command()
@click.argument("key_id")
@context.json_option
@click.pass_obj
def revoke(options: context.Options, /, key_id: str, as_json: bool) -> None:
    """Revoke a key. A running server refuses it within a second.

    It stays in the list, and clients still need a key, also if none is valid any more.
    """
    with context.opened(options) as session:
        answer = session.call("revoke_key", {"key_id": key_id})
        keys = session.call("list_keys", {})
    if as_json:
        context.echo_json(answer)
    else:
        click.echo(f"{key_id} revoked.")
    _note_none_valid(keys)


@key.command()
@click.argument("key_ids", nargs=-1, metavar="KEY_ID...")
@click.option("--all", "is_all", is_flag=True, help="Delete every key.")
@yes_option
@context.json_option
@click.pass_obj
def delete(
    options: context.Options,
    /,
    key_ids: tuple[str, ...],
    is_all: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete keys. Without any key, this machine is served without one.

    Deleting the last key opens the server to every program on this machine, so you are asked; where
    there is no terminal, --yes is needed. A server that serves other machines stays closed.
    """
    if bool(key_ids) == is_all:
        raise click.UsageError("Give KEY_ID, or --all.")
    with context.opened(options) as session:
        known = {one["key_id"] for one in session.call("list_keys", {})["keys"]}
        wanted = sorted(known) if is_all else list(key_ids)
        may_open = yes
        if known and known <= {*wanted} and not yes and not as_json and sys.stdin.isatty():
            _warn(_OPENS, "Delete it?" if len(known) == 1 else "Delete them?", is_asking=True)
            may_open = True
        answer = session.call("delete_keys", {"key_ids": wanted, "may_open": may_open})
    if as_json:
        context.echo_json(answer)
        return
    for key_id in answer["deleted"]:
        click.echo(f"{context.printable(key_id)} deleted.")
    if answer["is_open"]:
        click.echo("There are no keys: this machine needs none, and no other is served.")


def _warn(text: str, question: str, *, is_asking: bool) -> None:
    """Say it on standard error; on a terminal ask, and give up if the answer is no."""
    click.echo(textwrap.fill(text, 79), err=True)
    if is_asking and sys.stdin.isatty() and not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        raise click.exceptions.Exit(1)


def _note_none_valid(answer: context.Answer) -> None:
    keys = answer["keys"]
    if keys and all(known["state"] != "valid" for known in keys):
        click.echo(textwrap.fill(_NONE_VALID, 79), err=True)
