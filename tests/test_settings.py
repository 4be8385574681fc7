"""Settings from options, the environment and a file; what is refused, and in which words."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from zibaldone import settings
from zibaldone.embed.open import EMBEDDERS
from zibaldone.errors import ConfigurationError
from zibaldone.limits import Limits
from zibaldone.settings import load


def test_defaults() -> None:
    loaded = load(environment={})
    assert loaded == settings.Settings()
    assert loaded.port == 8321
    assert loaded.limits == Limits()
    assert loaded.capability_routes == {"gpt-mcp": "gpt"}


def test_an_option_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "zibaldone.toml"
    file.write_text("port = 1\nhost = 'a'\nlog_level = 'debug'\nrequests_max = 7")
    environment = {"ZIBALDONE_PORT": "2", "ZIBALDONE_HOST": "b", "ZIBALDONE_CONFIG": str(file)}
    loaded = load({"port": 3, "host": None}, environment)
    assert (loaded.port, loaded.host, loaded.log_level) == (3, "b", "debug")
    assert loaded.limits.requests_max == 7
    assert load({"port": 3}, {}, file).host == "a"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("data", "~/x", Path("~/x").expanduser()),
        ("allowed_hosts", "a, b,,c ", ("a", "b", "c")),
        ("ingest_roots", "/a,/b", (Path("/a"), Path("/b"))),
        ("public_full_profile", "YES", True),
        ("public_full_profile", "0", False),
        ("profiles", '{"mine": ["get_document"]}', {"mine": ["get_document"]}),
        ("notification_status", "204", "204"),
        ("embedding_dimensions", "384", 384),
    ],
)
def test_values_in_the_environment(name: str, text: str, value: object) -> None:
    loaded = load(environment={"ZIBALDONE_" + name.upper(): text})
    assert getattr(loaded, name) == value


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"PORT": "many"}, "ZIBALDONE_PORT must be a whole number, not 'many'."),
        ({"PORT": "99999"}, "port must be between 0 and 65535, not 99999."),
        ({"TOOL_SECONDS_MAX": "long"}, "ZIBALDONE_TOOL_SECONDS_MAX must be a number, not 'long'."),
        ({"TOOL_SECONDS_MAX": "0"}, "tool_seconds_max must be greater than 0, not 0.0."),
        ({"TOOL_SECONDS_MAX": "nan"}, "tool_seconds_max must be greater than 0, not nan."),
        ({"REQUESTS_MAX": "-1"}, "requests_max must be greater than 0, not -1."),
        ({"PROT": "1"}, "Unknown setting ZIBALDONE_PROT. Did you mean ZIBALDONE_PORT?"),
        ({"QQQ": "1"}, "Unknown setting ZIBALDONE_QQQ."),
        (
            {"PROFILES": "[]"},
            "ZIBALDONE_PROFILES must be a table (in the environment, a JSON object), not '[]'.",
        ),
        (
            {"LOG_LEVEL": "loud"},
            "ZIBALDONE_LOG_LEVEL must be one of debug, info, warning, error, not 'loud'.",
        ),
    ],
)
def test_refusals_in_the_environment(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        load(environment={f"ZIBALDONE_{name}": value for name, value in environment.items()})
    assert refusal.value.message == message


@pytest.mark.parametrize("limit", dataclasses.fields(Limits), ids=lambda limit: limit.name)
@pytest.mark.parametrize("value", [0, -1])
def test_no_limit_is_0_or_less(limit: dataclasses.Field[Any], value: int, tmp_path: Path) -> None:
    """None of them means "no limit" by it, and none of them can work with it."""
    written = float(value) if "float" in str(limit.type) else value
    message = f"{limit.name} must be greater than 0, not {written}."
    file = tmp_path / "zibaldone.toml"
    file.write_text(f"{limit.name} = {value}")
    places: tuple[dict[str, Any], ...] = (
        {"environment": {f"ZIBALDONE_{limit.name.upper()}": str(value)}},
        {"environment": {}, "config": file},
        {"environment": {}, "flags": {limit.name: value}},
    )
    for place in places:
        with pytest.raises(ConfigurationError) as refusal:
            load(**place)
        assert refusal.value.message == message
    assert getattr(load({limit.name: 1}, {}).limits, limit.name) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("host = 3", "'host' in FILE must be text, not 3."),
        ("port = true", "'port' in FILE must be a whole number, not True."),
        ("allowed_hosts = [1]", "'allowed_hosts' in FILE must be a list of text values, not [1]."),
        ("log_levle = 'info'", "Unknown setting 'log_levle' in FILE. Did you mean 'log_level'?"),
        ("embedding_api_key = 12345", "'embedding_api_key' in FILE must be text."),
        ("port = ", "FILE is not valid TOML: Invalid value (at end of document)."),
    ],
)
def test_refusals_in_the_file(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "zibaldone.toml"
    file.write_text(content)
    with pytest.raises(ConfigurationError) as refusal:
        load(environment={}, config=file)
    assert refusal.value.message == message.replace("FILE", str(file))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Cannot read .*: No such file or directory"):
        load(environment={}, config=tmp_path / "missing.toml")


def test_every_field_but_the_limits_is_a_setting_and_every_limit_is_one() -> None:
    fields = [field.name for field in dataclasses.fields(settings.Settings)]
    limits = [field.name for field in dataclasses.fields(Limits)]
    assert [setting.name for setting in settings.SETTINGS] == [*fields[:-1], *limits]
    assert fields[-1] == "limits"
    assert all(setting.help.endswith(".") for setting in settings.SETTINGS)


def test_the_embedders_that_can_be_set_are_those_that_can_be_opened() -> None:
    for kind in EMBEDDERS:
        assert load({"embedder": kind}, {}).embedder == kind
    with pytest.raises(ConfigurationError, match=", ".join(EMBEDDERS)):
        load({"embedder": "other"}, {})
