"""API keys, made as an operator makes them: with the command."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.drivers.engines import store_environment
from zibaldone.cli.main import commands


@dataclass(frozen=True, slots=True)
class Key:
    key_id: str
    secret: str

    @property
    def headers(self) -> dict[str, str]:
        return {"x-api-key": self.secret}


def create_key(data: Path, *options: str, store: str = "") -> Key:
    made = json.loads(key_command(data, "create", "--json", *options, store=store).stdout)
    return Key(made["key_id"], made["secret"])


def key_command(data: Path, *arguments: str, store: str = "") -> Any:
    """`zibaldone key …` in this process: a new one for each key would take most of the time."""
    unset = {name: None for name in os.environ if name.startswith("ZIBALDONE_")}
    environment = {**unset, **store_environment(data)}
    given = ["--data", str(data), *(["--store", store] if store else []), "key", *arguments]
    return CliRunner(env=environment, catch_exceptions=False).invoke(commands, given)
