"""An assistant: another model that can be asked, and what it may see.

`read_assistants` reads them from the settings and reports all problems at once. A key is never in
here: `api_key_env` names the environment variable that holds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from zibaldone.errors import ConfigurationError
from zibaldone.limits import (
    ASSISTANT_CACHE_SECONDS_MAX,
    ASSISTANT_CONTEXT_TOKENS_MAX,
    ASSISTANT_NAME_CHARS_MAX,
    ASSISTANT_PRICE_MAX,
    ASSISTANT_ROOTS_MAX,
    ASSISTANT_SECONDS_MAX,
    ASSISTANT_TEXT_CHARS_MAX,
    ASSISTANTS_MAX,
)
from zibaldone.model.source import nearest

ProviderName = Literal["openai", "anthropic"]
Api = Literal["auto", "responses", "chat"]
Encoding = Literal["auto", "o200k", "cl100k", "estimate"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Prices:
    """Per million tokens, in the user's currency; 0 is unknown or free."""

    input: float = 0.0
    cached: float = 0.0
    cache_write: float = 0.0
    output: float = 0.0


@dataclass(frozen=True, slots=True)
class Assistant:
    name: str
    """Its tool is chat_with_<name>."""
    provider: ProviderName
    model: str
    base_url: str = ""
    """Empty: the provider's own."""
    api_key_env: str = ""
    """Name of the environment variable with the key. Empty: no key is sent."""
    context_tokens: int = 128_000
    output_tokens: int = 8_000
    inline_tokens: int = 0
    """Room for files in the prompt. 0: three quarters of what the answer leaves."""
    roots: tuple[str, ...] = ()
    """Files are read below these folders only: absolute, without symbolic links."""
    prices: Prices = Prices()
    api: Api = "auto"
    """For openai. auto: Responses where the server has it, found out once; else Chat
    Completions."""
    encoding: Encoding = "auto"
    """How tokens are counted. auto: by the name of the model; an estimate for unknown families."""
    cache_seconds: int = 300
    """How long the provider keeps a prompt cached: decides when a rewrite costs nothing."""
    knowledge: bool = False
    """May search the knowledge base, as the caller and within what the caller sees."""
    hosted_store: bool = False
    """OpenAI's vector store holds what does not fit into the prompt, in place of an index here."""
    stable_inline: bool = True
    """False: every turn sends all files again (the flag enable_stable_inline_list, off)."""
    redact: bool = True
    """Obvious secrets are taken out of what is sent."""
    seconds_max: int = 600
    """Of one turn."""


def read_assistants(tables: Mapping[str, Any]) -> dict[str, Assistant]:
    """Read the setting `assistants`. ConfigurationError names every problem."""
    problems: list[str] = []
    if len(tables) > ASSISTANTS_MAX:
        problems.append(f"assistants: there are {len(tables)}; at most {ASSISTANTS_MAX} are read.")
    assistants = {
        name: _Reading(name, table, problems).assistant()
        for name, table in list(tables.items())[:ASSISTANTS_MAX]
    }
    if problems:
        raise ConfigurationError(" ".join(problems), problems=problems)
    return assistants


class _Reading:
    """Reads one table and notes what is wrong with it."""

    def __init__(self, name: str, table: object, problems: list[str], path: str = "") -> None:
        self._name = name
        self._problems = problems
        self._path = path or f"assistants.{name[:ASSISTANT_NAME_CHARS_MAX]}"
        self._values: Mapping[str, Any] = {}
        if isinstance(table, Mapping):
            self._values = table
        else:
            self._problem("", "must be a table")

    def assistant(self) -> Assistant:
        if not _NAME.fullmatch(self._name) or len(self._name) > ASSISTANT_NAME_CHARS_MAX:
            self._problem(
                "",
                "the name must begin with a small letter and be made of small letters, digits and "
                f"'_', at most {ASSISTANT_NAME_CHARS_MAX}",
            )
        provider = self._choice("provider", get_args(ProviderName), is_required=True)
        context = self._integer("context_tokens", 1, ASSISTANT_CONTEXT_TOKENS_MAX)
        output = self._integer("output_tokens", 1, ASSISTANT_CONTEXT_TOKENS_MAX)
        inline = self._integer("inline_tokens", 0, ASSISTANT_CONTEXT_TOKENS_MAX)
        if output >= context:
            self._problem("output_tokens", f"must be less than context_tokens, which is {context}")
        elif inline > context - output:
            self._problem(
                "inline_tokens", f"must leave room for the answer: at most {context - output}"
            )
        if provider == "anthropic":
            for option in ("api", "hosted_store"):
                if option in self._values:
                    self._problem(option, 'is for provider = "openai" only')
        read = Assistant(
            name=self._name,
            provider=cast("ProviderName", provider),
            model=self._text("model", is_required=True),
            base_url=self._base_url(),
            api_key_env=self._api_key_env(),
            context_tokens=context,
            output_tokens=output,
            inline_tokens=inline,
            roots=self._roots(),
            prices=self._prices(),
            api=cast("Api", self._choice("api", get_args(Api))),
            encoding=cast("Encoding", self._choice("encoding", get_args(Encoding))),
            cache_seconds=self._integer("cache_seconds", 0, ASSISTANT_CACHE_SECONDS_MAX),
            knowledge=self._flag("knowledge"),
            hosted_store=self._flag("hosted_store"),
            stable_inline=self._flag("stable_inline"),
            redact=self._flag("redact"),
            seconds_max=self._integer("seconds_max", 1, ASSISTANT_SECONDS_MAX),
        )
        self._refuse_unknown({item.name for item in fields(Assistant)} - {"name"})
        return read

    def prices(self) -> Prices:
        read = Prices(**{item.name: self._price(item.name) for item in fields(Prices)})
        self._refuse_unknown({item.name for item in fields(Prices)})
        return read

    def _prices(self) -> Prices:
        if "prices" not in self._values:
            return Prices()
        path = f"{self._path}.prices"
        return _Reading(self._name, self._values["prices"], self._problems, path).prices()

    def _price(self, name: str) -> float:
        given = self._values.get(name, 0.0)
        if isinstance(given, bool) or not isinstance(given, int | float):
            self._problem(name, "must be a number")
        elif not 0 <= given <= ASSISTANT_PRICE_MAX:
            self._problem(name, f"must be from 0 to {ASSISTANT_PRICE_MAX:g}")
        else:
            return float(given)
        return 0.0

    def _base_url(self) -> str:
        url = self._text("base_url")
        if not url:
            return ""
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
            _ = parts.port
        except ValueError:
            is_usable = False
            parts = urlsplit("")
        if not is_usable:
            self._problem("base_url", "must be a URL such as http://127.0.0.1:9000/v1")
        elif parts.username is not None or parts.query or parts.fragment:
            self._problem(
                "base_url",
                "must have no user, password or parameters: a key is read from api_key_env",
            )
        return url.rstrip("/")

    def _api_key_env(self) -> str:
        name = self._text("api_key_env")
        if name and not _VARIABLE.fullmatch(name):
            self._problem(
                "api_key_env", "must be the name of an environment variable, not the key itself"
            )
            return ""
        return name

    def _roots(self) -> tuple[str, ...]:
        given = self._values.get("roots", ())
        is_list = isinstance(given, list | tuple) and all(
            isinstance(root, str) and root and "\0" not in root for root in given
        )
        if not is_list:
            self._problem("roots", "must be a list of folders")
            return ()
        if len(given) > ASSISTANT_ROOTS_MAX:
            self._problem("roots", f"may have {ASSISTANT_ROOTS_MAX} folders")
            return ()
        roots: list[str] = []
        for root in given:
            try:
                path = Path(root).expanduser()
            except RuntimeError:  # no such user
                path = Path(root)
            if not path.is_absolute():
                self._problem(
                    "roots", f"must be absolute; {root[:ASSISTANT_TEXT_CHARS_MAX]!r} is not"
                )
                continue
            try:
                roots.append(str(path.resolve()))
            except (OSError, RuntimeError):  # a loop of symbolic links
                self._problem("roots", f"cannot be read: {root[:ASSISTANT_TEXT_CHARS_MAX]!r}")
        return tuple(dict.fromkeys(roots))

    def _text(self, name: str, *, is_required: bool = False) -> str:
        given = self._values.get(name, "")
        if not isinstance(given, str) or not given.isprintable():
            self._problem(name, "must be text")
            return ""
        if len(given) > ASSISTANT_TEXT_CHARS_MAX:
            self._problem(name, f"has more than {ASSISTANT_TEXT_CHARS_MAX} characters")
            return ""
        if is_required and not given.strip():
            self._problem(name, "is missing")
        return given.strip()

    def _choice(self, name: str, choices: tuple[str, ...], *, is_required: bool = False) -> str:
        if is_required and name not in self._values:
            self._problem(name, f"is missing: {' or '.join(choices)}")
            return choices[0]
        given = self._values.get(name, choices[0])
        if given not in choices:
            self._problem(name, f"must be one of {', '.join(choices)}")
            return choices[0]
        return str(given)

    def _flag(self, name: str) -> bool:
        default = bool(_DEFAULTS[name])
        given = self._values.get(name, default)
        if not isinstance(given, bool):
            self._problem(name, "must be true or false")
            return default
        return given

    def _integer(self, name: str, least: int, most: int) -> int:
        default = int(_DEFAULTS[name])
        given = self._values.get(name, default)
        if isinstance(given, bool) or not isinstance(given, int):
            self._problem(name, "must be a whole number")
            return default
        if not least <= given <= most:
            self._problem(name, f"must be from {least} to {most}")
            return default
        return given

    def _refuse_unknown(self, known: set[str]) -> None:
        for name in sorted(map(str, self._values.keys() - known)):
            hint = nearest(name, known)
            self._problem(name, "is unknown" + (f"; did you mean {hint!r}?" if hint else ""))

    def _problem(self, name: str, text: str) -> None:
        place = f"{self._path}.{name[:ASSISTANT_NAME_CHARS_MAX]}" if name else self._path
        self._problems.append(f"{place}: {text}{'' if text.endswith('?') else '.'}")


_DEFAULTS: dict[str, Any] = {item.name: item.default for item in fields(Assistant)}
