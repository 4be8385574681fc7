"""The command line in this process: `main` itself, with its exit codes, but without a start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import click
from click.testing import CliRunner, Result

from tests.drivers.engines import store_environment
from zibaldone.cli.main import main


class _Main:
    """`main` in the shape in which click's runner wants a command."""

    name = "zibaldone"

    def main(self, args: list[str], **_: Any) -> None:
        main(list(args))


class Commands:
    def __init__(self, data: Path) -> None:
        self.data = data

    def __call__(self, *arguments: str, stdin: str | bytes | None = None) -> Result:
        command = cast("click.Command", _Main())
        given = ["--data", str(self.data), *arguments]
        runner = CliRunner(env=store_environment(self.data))
        result = runner.invoke(command, given, input=stdin)
        if not isinstance(result.exception, SystemExit | None):
            raise result.exception
        return result

    def ok(self, *arguments: str, stdin: str | bytes | None = None) -> str:
        """The output of a command that has to succeed."""
        result = self(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str, stdin: str | bytes | None = None) -> Any:
        """The answer of a command, whatever its exit code."""
        return json.loads(self(*arguments, "--json", stdin=stdin).stdout)

    def error(self, *arguments: str, stdin: str | bytes | None = None) -> tuple[int, str]:
        """The exit code and the error code of a command that has to fail."""
        result = self(*arguments, "--json", stdin=stdin)
        return result.exit_code, json.loads(result.stdout)["error"]["code"]

    def ids(self) -> list[str]:
        return self.ok("ls", "--all").splitlines()

    def everything(self) -> list[Any]:
        """All live documents with all their revisions, to compare two stores."""
        found = []
        for document_id in self.ids():
            document = self.json("get", document_id)
            history = self.json("history", document_id, "--all")["revisions"]
            numbers = [str(one["revision"]) for one in history]
            states = [self.json("get", document_id, "--revision", number) for number in numbers]
            found.append((document, states))
        return found
