"""Every setting, once: name, type, default, help. Flags > environment > file → frozen Settings.

In the environment a setting is `ZIBALDONE_<NAME>`; in `zibaldone.toml` it is `<name> = …`.
Bounds (see limits.py) are settings of the same name. A name that is not known is an error.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from zibaldone.errors import ConfigurationError
from zibaldone.limits import Limits

ENV_PREFIX = "ZIBALDONE_"
FILE_NAME = "zibaldone.toml"
_CONFIG_KEY = "config"

NotificationStatus = Literal["auto", "202", "204"]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text")
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError("a whole number")
    try:
        return int(value)
    except ValueError:
        raise ValueError("not a whole number") from None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError("a number")
    try:
        return float(value)
    except ValueError:
        raise ValueError("not a number") from None


def _path(value: object) -> Path:
    return Path(_text(value)).expanduser()


def _texts(value: object) -> tuple[str, ...]:
    """A TOML array, or words with commas between them."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list | tuple):
        return tuple(_text(part) for part in value)
    raise TypeError("a list of texts")


def _paths(value: object) -> tuple[Path, ...]:
    return tuple(_path(part) for part in _texts(value))


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false", "1", "0", "yes", "no"):
        return value.lower() in ("true", "1", "yes")
    raise TypeError("true or false")


def _table(value: object) -> dict[str, Any]:
    """A TOML table; in the environment, a JSON object."""
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, dict):
        raise TypeError("a table")
    return value


def _one_of(*words: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        text = str(value)
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return read


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    read: Callable[[object], Any]
    default: Any
    help: str


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "data",
        _path,
        Path(platformdirs.user_data_dir("zibaldone", appauthor=False)),
        "Folder of the database; the default follows the platform's convention.",
    ),
    Setting("host", _text, "127.0.0.1", "Address to serve on."),
    Setting("port", _integer, 8321, "Port to serve on."),
    Setting(
        "log_level", _one_of("debug", "info", "warning", "error"), "info", "How much is logged."
    ),
    Setting(
        "allowed_hosts",
        _texts,
        (),
        "Host header values to accept beside the loopback names and the address served on.",
    ),
    Setting(
        "allowed_origins",
        _texts,
        (),
        "Origins of web pages that may call the server (CORS); none by default.",
    ),
    Setting("ingest_roots", _paths, (), "Folders that ingest_document may read; none by default."),
    Setting(
        "ingest_hosts", _texts, (), "Hosts that ingest_document may fetch from; none by default."
    ),
    Setting(
        "notification_status",
        _one_of("auto", "202", "204"),
        "auto",
        "HTTP status of a notification: auto is 202 for a client that sends MCP-Protocol-Version, "
        "204 for one that does not.",
    ),
    Setting(
        "profiles",
        _table,
        {},
        "Profiles of your own: a table of name = [tools]; served at /mcp-<name>.",
    ),
    Setting(
        "capability_routes",
        _table,
        {"gpt-mcp": "gpt"},
        "For clients that cannot send headers: word = profile serves /<word>/<api key>/mcp.",
    ),
    Setting(
        "public_full_profile",
        _flag,
        False,
        "Serve /mcp-gpt-full to callers from other machines too.",
    ),
    Setting(
        "public_url",
        _text,
        "",
        "The address clients use, e.g. https://kb.example.org; needed for OAuth.",
    ),
    Setting("oauth_issuer", _text, "", "Issuer whose access tokens are accepted; none by default."),
    Setting(
        "oauth_audience",
        _text,
        "",
        "The audience a token must be made for; default: public_url.",
    ),
    Setting(
        "embedder",
        _one_of("auto", "minilm", "fast", "multilingual", "remote", "hashed", "none"),
        "auto",
        "Where vectors come from: minilm, fast or multilingual on this machine, or a remote "
        "server; auto is minilm if it is installed, else none.",
    ),
    Setting("embedding_url", _text, "", "Remote embedder: address that /embeddings is added to."),
    Setting("embedding_model", _text, "", "Remote embedder: name of the model."),
    Setting("embedding_dimensions", _integer, 0, "Remote embedder: length of its vectors."),
    Setting("embedding_api_key", _text, "", "Remote embedder: its key; never logged."),
    *(
        Setting(
            field.name,
            _integer if isinstance(field.default, int) else _number,
            field.default,
            "A bound; see the limits reference.",
        )
        for field in dataclasses.fields(Limits)
    ),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Settings:
    data: Path
    host: str
    port: int
    log_level: str
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    ingest_roots: tuple[Path, ...]
    ingest_hosts: tuple[str, ...]
    notification_status: NotificationStatus
    profiles: dict[str, Any]
    capability_routes: dict[str, Any]
    public_full_profile: bool
    public_url: str
    oauth_issuer: str
    oauth_audience: str
    embedder: str
    embedding_url: str
    embedding_model: str
    embedding_dimensions: int
    embedding_api_key: str
    limits: Limits


def load(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    config: Path | None = None,
) -> Settings:
    """Gather the settings; a flag that is None was not given."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
    values.update(_from_file(config or _config_file(environment)))
    values.update(_from_environment(environment))
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    values.update(_checked(given, "the option --{}"))
    return _settings(values)


def _settings(values: dict[str, Any]) -> Settings:
    if not 0 <= values["port"] <= 65535:
        raise ConfigurationError(f"port: {values['port']} is not between 0 and 65535.")
    bounds = {field.name: values.pop(field.name) for field in dataclasses.fields(Limits)}
    for name, bound in bounds.items():
        if not bound > 0:
            raise ConfigurationError(f"{name}: {bound} is not above 0.")
    return Settings(limits=Limits(**bounds), **values)


def _config_file(environment: Mapping[str, str]) -> Path | None:
    named = environment.get(ENV_PREFIX + _CONFIG_KEY.upper())
    if named:
        return Path(named)
    user_config = Path(platformdirs.user_config_dir("zibaldone", appauthor=False))
    for folder in (Path.cwd(), user_config):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    return None


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        with file.open("rb") as opened:
            content = tomllib.load(opened)
    except OSError as problem:
        raise ConfigurationError(f"{file} cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{file} is not valid TOML: {problem}") from None
    return _checked(content, f"'{{}}' in {file}")


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    given = {
        name[len(ENV_PREFIX) :].lower(): value
        for name, value in environment.items()
        if name.startswith(ENV_PREFIX) and name != ENV_PREFIX + _CONFIG_KEY.upper()
    }
    return _checked(given, f"the environment variable {ENV_PREFIX}{{}}", str.upper)


def _checked(
    given: Mapping[str, Any], where: str, spelled: Callable[[str], str] = str
) -> dict[str, Any]:
    values = {}
    for name, value in given.items():
        place = where.format(spelled(name))
        setting = BY_NAME.get(name)
        if setting is None:
            raise ConfigurationError(f"Unknown setting: {place}.{_nearest(name, spelled)}")
        try:
            values[name] = setting.read(value)
        except (TypeError, ValueError) as problem:
            raise ConfigurationError(f"{place}: {value!r} is not right ({problem}).") from None
    return values


def _nearest(name: str, spelled: Callable[[str], str]) -> str:
    near = difflib.get_close_matches(name, BY_NAME, n=1)
    return f" Did you mean {spelled(near[0])!r}?" if near else ""
