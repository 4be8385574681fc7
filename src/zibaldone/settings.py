"""Every setting, declared once as a field of `Settings`: type, reader, default, help.

An option wins over the environment, the environment over the file. In the environment a setting is
`ZIBALDONE_<NAME>`; in `zibaldone.toml` it is `<name> = …`. The limits in limits.py are settings of
the same name. An unknown name is an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import platformdirs

from zibaldone.errors import ConfigurationError
from zibaldone.limits import Limits

ENV_PREFIX = "ZIBALDONE_"
FILE_NAME = "zibaldone.toml"
_CONFIG_KEY = "config"

_USER_DATA = Path(platformdirs.user_data_dir("zibaldone", appauthor=False))
MODELS_FOLDER = _USER_DATA / "models"
"""Of installed embedding models, whatever `data` is: they contain code, and code is never loaded
from a folder that may have come with somebody's documents."""

T = TypeVar("T")
Word = TypeVar("Word", bound=str)

NotificationStatus = Literal["auto", "202", "204"]
RerankerDialect = Literal["auto", "tei", "cohere"]
LogFormat = Literal["auto", "text", "json"]


# Readers turn what a file or the environment holds into a value. They raise ValueError with what
# the value must be: "must be text".


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def _integer(value: object) -> int:
    try:
        if isinstance(value, int | str) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    raise ValueError("must be a whole number")


def _number(value: object) -> float:
    try:
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    except ValueError:
        pass
    raise ValueError("must be a number")


def _path(value: object) -> Path:
    return Path(_text(value)).expanduser()


def _texts(value: object) -> tuple[str, ...]:
    """A TOML array of strings, or one string separated by commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise ValueError("must be a list of text values")


def _paths(value: object) -> tuple[Path, ...]:
    return tuple(_path(part) for part in _texts(value))


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false", "1", "0", "yes", "no"):
        return value.lower() in ("true", "1", "yes")
    raise ValueError("must be true or false")


def _table(value: object) -> dict[str, Any]:
    """A TOML table; in the environment, a JSON object."""
    if isinstance(value, str):
        with contextlib.suppress(json.JSONDecodeError):
            value = json.loads(value)
    if not isinstance(value, dict):
        raise ValueError("must be a table (in the environment, a JSON object)")
    return value


def _tables(value: object) -> dict[str, Any]:
    """A table of tables."""
    tables = _table(value)
    if not all(isinstance(table, dict) for table in tables.values()):
        raise ValueError("must be a table of tables, such as [sources.NAME]")
    return tables


def _one_of(*words: Word) -> Callable[[object], Word]:
    def read(value: object) -> Word:
        for word in words:
            if str(value) == word:
                return word
        raise ValueError(f"must be one of {', '.join(words)}")

    return read


def _setting(
    read: Callable[[object], T],
    default: T,
    help: str,  # noqa: A002 - as in click
    *,
    is_secret: bool = False,
) -> T:
    """A field of `Settings` that users can set."""
    described: T = field(
        default_factory=lambda: default,
        metadata={"setting": (read, default, help, is_secret)},
    )
    return described


@dataclass(frozen=True, slots=True)
class Settings:
    data: Path = _setting(
        _path,
        _USER_DATA,
        "Folder of the data; the default follows the platform's convention.",
    )
    store: str = _setting(
        _text,
        "",
        "Where documents are kept: a path, sqlite:PATH or postgresql://USER:PASSWORD@HOST/NAME; "
        "default: zibaldone.db in `data`.",
        is_secret=True,
    )
    sources: dict[str, Any] = _setting(
        _tables,
        {},
        "Tables of your own databases to keep searchable, each a table [sources.NAME]; see "
        "docs/howto/pull.md.",
        is_secret=True,
    )
    assistants: dict[str, Any] = _setting(
        _tables,
        {},
        "Other models that can be asked, each a table [assistants.NAME]; see "
        "docs/howto/consult.md.",
    )
    memory_assistant: str = _setting(
        _text,
        "",
        "Name of the assistant that reads what is written to memory and lists its entities and "
        "facts, in the background; none by default. See docs/howto/memory.md.",
    )
    read_store: str = _setting(
        _text,
        "",
        "URL of a replica of the PostgreSQL database in `store`, which all reads go to.",
        is_secret=True,
    )
    vectors: str = _setting(
        _text,
        "",
        "An index for vectors beside the store: qdrant://host:port/collection; none by default.",
        is_secret=True,
    )
    host: str = _setting(_text, "127.0.0.1", "Address to serve on.")
    port: int = _setting(_integer, 8321, "Port to serve on.")
    log_level: str = _setting(
        _one_of("debug", "info", "warning", "error"), "info", "Least severe log level to write."
    )
    log_format: LogFormat = _setting(
        _one_of("auto", "text", "json"),
        "auto",
        "How the log is written to stderr: auto is text on a terminal, else JSON lines.",
    )
    allowed_hosts: tuple[str, ...] = _setting(
        _texts,
        (),
        "Host header values to accept, in addition to the loopback names and `host`.",
    )
    allowed_origins: tuple[str, ...] = _setting(
        _texts, (), "Origins of web pages that may call the server (CORS); none by default."
    )
    ingest_roots: tuple[Path, ...] = _setting(
        _paths, (), "Folders that ingest_document may read; none by default."
    )
    ingest_hosts: tuple[str, ...] = _setting(
        _texts, (), "Hosts that ingest_document may fetch from; none by default."
    )
    notification_status: NotificationStatus = _setting(
        _one_of("auto", "202", "204"),
        "auto",
        "HTTP status of a notification: auto is 202 for a client that sends MCP-Protocol-Version, "
        "204 for one that does not.",
    )
    profiles: dict[str, Any] = _setting(
        _table, {}, "Your own profiles: a table of name = [tools]; served at /mcp-<name>."
    )
    capability_routes: dict[str, Any] = _setting(
        _table,
        {"gpt-mcp": "gpt"},
        "For clients that cannot send headers: word = profile serves /<word>/<api key>/mcp.",
    )
    public_full_profile: bool = _setting(
        _flag, False, "Serve /mcp-gpt-full to callers from other machines too."
    )
    public_url: str = _setting(
        _text, "", "The URL clients use, e.g. https://kb.example.org; required for OAuth."
    )
    oauth_issuer: str = _setting(
        _text, "", "Issuer whose access tokens are accepted; none by default."
    )
    oauth_audience: str = _setting(
        _text, "", "The audience that a token must have; default: public_url."
    )
    embedder: str = _setting(
        _one_of("auto", "minilm", "fast", "multilingual", "remote", "hashed", "none"),
        "auto",
        "Where vectors come from: minilm, fast or multilingual on this machine, or a remote "
        "server; auto is the first of minilm, multilingual and fast that is installed, else none.",
    )
    embedding_url: str = _setting(
        _text, "", "Remote embedder: base URL; /embeddings is appended to it."
    )
    embedding_model: str = _setting(_text, "", "Remote embedder: name of the model.")
    embedding_dimensions: int = _setting(_integer, 0, "Remote embedder: length of its vectors.")
    embedding_api_key: str = _setting(
        _text, "", "Remote embedder: its API key; never logged.", is_secret=True
    )
    reranker: str = _setting(
        _text,
        "",
        "URL of a /rerank endpoint that decides the order of the best hits of search_knowledge; "
        "none by default. See docs/howto/rerank.md.",
    )
    reranker_model: str = _setting(
        _text, "", "Reranker: name of its model, if the server wants one."
    )
    reranker_dialect: RerankerDialect = _setting(
        _one_of("auto", "tei", "cohere"),
        "auto",
        "Reranker: how it is asked. tei: Text Embeddings Inference; cohere: Cohere, Jina, vLLM, "
        "llama.cpp; auto finds out.",
    )
    reranker_api_key: str = _setting(
        _text, "", "Reranker: its API key; never logged.", is_secret=True
    )
    push_to: str = _setting(
        _text, "", "zibaldone push: URL of the memory server, if --to is not given."
    )
    push_key: str = _setting(
        _text, "", "zibaldone push: API key of the memory server; never logged.", is_secret=True
    )
    push_backend: str = _setting(
        _text,
        "",
        "zibaldone push: the database behind a Graphiti server, neo4j or falkordb; queries are "
        "escaped for falkordb only. Default: MADEINOZ_KNOWLEDGE_DB, else neo4j.",
    )
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known about one setting, for reading it and for the documentation."""

    name: str
    read: Callable[[object], Any]
    default: Any
    help: str
    is_secret: bool = False


SETTINGS: tuple[Setting, ...] = (
    *(
        Setting(declared.name, *declared.metadata["setting"])
        for declared in dataclasses.fields(Settings)
        if "setting" in declared.metadata
    ),
    *(
        Setting(
            limit.name,
            _number if "float" in str(limit.type) else _integer,
            limit.default,
            "A limit; see the limits reference.",
        )
        for limit in dataclasses.fields(Limits)
    ),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def load(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    config: Path | None = None,
) -> Settings:
    """Read the settings from all places. A flag that is None was not given."""
    environment = os.environ if environment is None else environment
    values = _from_file(config_file(environment, config))
    values |= _from_environment(environment)
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    values |= _read(given, lambda name: "--" + name.replace("_", "-"))
    return _settings(values)


def _settings(values: dict[str, Any]) -> Settings:
    names = [limit.name for limit in dataclasses.fields(Limits)]
    limits = {name: values.pop(name) for name in names if name in values}
    for name, limit in limits.items():
        if not limit > 0:
            raise ConfigurationError(f"{name} must be greater than 0, not {limit}.")
    settings = Settings(limits=Limits(**limits), **values)
    if not 0 <= settings.port <= 65535:
        raise ConfigurationError(f"port must be between 0 and 65535, not {settings.port}.")
    return settings


def config_file(environment: Mapping[str, str], given: Path | None = None) -> Path | None:
    """The settings file in force: the given one, that of the environment, or one found."""
    if given is not None:
        return given
    named = environment.get(ENV_PREFIX + _CONFIG_KEY.upper())
    if named:
        return Path(named)
    return next((file for file in found_files() if file.is_file()), None)


def found_files() -> tuple[Path, Path]:
    """Where a settings file is looked for, if none is named."""
    user_config = Path(platformdirs.user_config_dir("zibaldone", appauthor=False))
    return Path.cwd() / FILE_NAME, user_config / FILE_NAME


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        with file.open("rb") as opened:
            content = tomllib.load(opened)
    except OSError as problem:
        raise ConfigurationError(f"Cannot read {file}: {problem.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{file} is not valid TOML: {problem}.") from None
    return _read(content, repr, f" in {file}")


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    given = {
        name[len(ENV_PREFIX) :].lower(): value
        for name, value in environment.items()
        if name.startswith(ENV_PREFIX) and name != ENV_PREFIX + _CONFIG_KEY.upper()
    }
    return _read(given, lambda name: ENV_PREFIX + name.upper())


def _read(given: Mapping[str, Any], spell: Callable[[str], str], where: str = "") -> dict[str, Any]:
    """Read what one place gives; `spell` writes a setting's name as that place does."""
    values = {}
    for name, value in given.items():
        setting = BY_NAME.get(name)
        if setting is None:
            near = difflib.get_close_matches(name, BY_NAME, n=1)
            hint = f" Did you mean {spell(near[0])}?" if near else ""
            raise ConfigurationError(f"Unknown setting {spell(name)}{where}.{hint}")
        try:
            values[name] = setting.read(value)
        except ValueError as problem:
            but = "" if setting.is_secret else f", not {value!r}"
            raise ConfigurationError(f"{spell(name)}{where} {problem}{but}.") from None
    return values
