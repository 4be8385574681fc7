"""zibaldone ask: a turn with an assistant, in this process."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zibaldone.access.principal import EFFECTS
from zibaldone.cli import context, texts
from zibaldone.cli.vectors import finish_vectors
from zibaldone.errors import InvalidArgument

if TYPE_CHECKING:
    from zibaldone.consult.turn import Consulting, TurnRequest

_WAIT_SECONDS = 600.0
_PAUSE_SECONDS = 0.5


@click.command()
@click.argument("assistant")
@click.argument("instructions")
@click.option("--session", "session_id", default="cli", show_default=True, help="Its name.")
@click.option("--context", "paths", multiple=True, help="File or folder to know throughout.")
@click.option("--attach", "attachments", multiple=True, help="File or folder to search this time.")
@click.option("--priority", "priority", multiple=True, help="Context to put into the prompt first.")
@click.option("--format", "output_format", default="", help="How to write the answer.")
@click.option("--schema", help="File with the JSON Schema that the answer has to fit.")
@click.option("--effort", type=click.Choice(["minimal", "low", "medium", "high"]))
@click.option("--store-answer", help="Also write the answer as a document at this path.")
@context.json_option
@click.pass_obj
def ask(
    options: context.Options,
    /,
    assistant: str,
    instructions: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Ask an assistant about files; the answer is printed as it comes.

    INSTRUCTIONS is the question; '-' reads it from standard input. Paths are relative to where you
    are. What was sent and what it cost goes to standard error.
    """
    with context.opened(options, if_missing="create") as session:
        consulting = session.runtime.consulting
        if consulting is None:
            raise context.no_assistant()
        if assistant not in consulting.assistants:
            names = ", ".join(consulting.assistants)
            raise InvalidArgument(f"There is no assistant {assistant!r}; there are {names}.")
        bytes_max = session.runtime.limits.request_body_bytes_max
        payload = _payload(assistant, _instructions(instructions, bytes_max), given, bytes_max)
        answer = session.run(_take_turn(consulting, payload, as_json=as_json))
        if given["store_answer"]:
            answer["stored"] = session.call(
                "upload_document",
                {
                    "path": given["store_answer"],
                    "content": answer["answer"],
                    "title": payload["instructions"][:120].strip(),
                    "metadata": {
                        "source": "consult",
                        **{name: answer[name] for name in ("assistant", "session_id", "turn")},
                    },
                    "upsert": True,
                },
            )
            finish_vectors(session, is_brief=True)
    if as_json:
        context.echo_json(answer)
    else:
        _echo_numbers(answer)


def _instructions(given: str, bytes_max: int) -> str:
    return texts.read_text("-", bytes_max) if given == "-" else given


def _payload(
    assistant: str, instructions: str, given: dict[str, Any], bytes_max: int
) -> dict[str, Any]:
    schema = None if given["schema"] is None else texts.read_json(given["schema"], bytes_max)
    if schema is not None and not isinstance(schema, dict):
        raise InvalidArgument("The schema must be a JSON object.", field="schema")
    return {
        "assistant": assistant,
        "session_id": given["session_id"],
        "instructions": instructions,
        "output_format": given["output_format"],
        "context": [str(Path(path).absolute()) for path in given["paths"]],
        "attachments": [str(Path(path).absolute()) for path in given["attachments"]],
        "priority_context": [str(Path(path).absolute()) for path in given["priority"]],
        "structured_output_schema": schema,
        "reasoning_effort": given["effort"],
        "effects": list(EFFECTS),
    }


async def _take_turn(
    consulting: Consulting, payload: dict[str, Any], *, as_json: bool
) -> dict[str, Any]:
    from zibaldone.access.principal import LOCAL
    from zibaldone.consult.job import turn_request
    from zibaldone.consult.turn import Watch

    async def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    async def keep_quiet(text: str) -> None:
        del text

    request = turn_request(f"cli-{secrets.token_hex(8)}", LOCAL.key_id, payload)
    watch = Watch(on_text=keep_quiet if as_json else write)
    return await _when_free(consulting, request, watch)


async def _when_free(consulting: Consulting, request: TurnRequest, watch: Any) -> dict[str, Any]:
    """The turn, when no other turn of the session runs."""
    import asyncio
    import time

    from zibaldone.access.principal import LOCAL
    from zibaldone.consult.turn import SessionBusy
    from zibaldone.errors import Conflict

    until_s = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            return dict(await consulting.take_turn(LOCAL.tenant, request, watch))
        except SessionBusy:
            if time.monotonic() > until_s:
                raise Conflict("Another turn of the session is still running.") from None
            await asyncio.sleep(_PAUSE_SECONDS)


def _echo_numbers(answer: dict[str, Any]) -> None:
    tokens = answer["tokens"]
    click.echo()
    click.echo(
        f"[{answer['assistant']}/{answer['session_id']} turn {answer['turn']}] "
        f"sent {answer['sent']['count']}, unchanged {answer['unchanged']['count']}, "
        f"in store {answer['store']['count']}, attached {answer['attachments']['count']}, "
        f"left out {answer['left_out']['count']}; "
        f"tokens in {tokens['input']} ({tokens['cached']} cached), out {tokens['output']}, "
        f"saved {tokens['saved']}; cost {answer['cost']:.4f}",
        err=True,
    )
    for note in answer["notes"]:
        click.echo(f"[note] {context.printable(note)}", err=True)
    if answer["redacted"]:
        click.echo(f"[note] {answer['redacted']} secrets were taken out", err=True)
