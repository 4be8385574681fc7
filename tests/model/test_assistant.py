"""Assistants as they are read from the settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from zibaldone.errors import ConfigurationError
from zibaldone.limits import ASSISTANTS_MAX
from zibaldone.model.assistant import Assistant, Prices, read_assistants


def problems_of(**values: Any) -> list[str]:
    table = {"provider": "openai", "model": "gpt-x", **values}
    with pytest.raises(ConfigurationError) as refused:
        read_assistants({"reviewer": table})
    return list(refused.value.details["problems"])


def test_the_form_of_the_documentation_is_read(tmp_path: Path) -> None:
    tables = tomllib.loads(f"""
        [reviewer]
        provider = "openai"
        base_url = "http://127.0.0.1:9000/v1/"
        model = "gpt-x"
        api_key_env = "REVIEWER_KEY"
        context_tokens = 200000
        output_tokens = 8000
        roots = ["{tmp_path}"]
        [reviewer.prices]
        input = 2.5
        cached = 0.25
        output = 10
        [claude]
        provider = "anthropic"
        model = "claude-x"
    """)
    read = read_assistants(tables)
    assert read["reviewer"] == Assistant(
        name="reviewer",
        provider="openai",
        model="gpt-x",
        base_url="http://127.0.0.1:9000/v1",
        api_key_env="REVIEWER_KEY",
        context_tokens=200_000,
        output_tokens=8_000,
        roots=(str(tmp_path.resolve()),),
        prices=Prices(input=2.5, cached=0.25, output=10.0),
    )
    assert read["claude"] == Assistant(name="claude", provider="anthropic", model="claude-x")


def test_no_assistants_are_none() -> None:
    assert read_assistants({}) == {}


def test_roots_are_resolved_and_given_once(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    roots = [str(tmp_path / "link"), str(tmp_path / "real"), str(tmp_path / "real" / "..")]
    read = read_assistants({"a": {"provider": "openai", "model": "m", "roots": roots}})
    real = tmp_path.resolve()
    assert read["a"].roots == (str(real / "real"), str(real))


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_assistants(
            {
                "Bad Name": {"provider": "openai", "model": "m"},
                "one": {"provider": "gemini", "context_tokens": "many", "modell": "m"},
                "two": "gpt-x",
            }
        )
    assert refused.value.details["problems"] == [
        (
            "assistants.Bad Name: the name must begin with a small letter and be made of small "
            "letters, digits and '_', at most 40."
        ),
        "assistants.one.provider: must be one of openai, anthropic.",
        "assistants.one.context_tokens: must be a whole number.",
        "assistants.one.model: is missing.",
        "assistants.one.modell: is unknown; did you mean 'model'?",
        "assistants.two: must be a table.",
        "assistants.two.provider: is missing: openai or anthropic.",
        "assistants.two.model: is missing.",
    ]
    assert refused.value.message == " ".join(refused.value.details["problems"])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"output_tokens": 128_000}, "output_tokens: must be less than context_tokens"),
        ({"inline_tokens": 125_000}, "inline_tokens: must leave room for the answer: at most 120"),
        ({"context_tokens": 0}, "context_tokens: must be from 1 to 100000000"),
        ({"output_tokens": True}, "output_tokens: must be a whole number"),
        ({"roots": ["project"]}, "roots: must be absolute; 'project' is not"),
        ({"roots": "/project"}, "roots: must be a list of folders"),
        ({"roots": ["/a"] * 101}, "roots: may have 100 folders"),
        ({"base_url": "127.0.0.1:9000"}, "base_url: must be a URL such as"),
        ({"base_url": "http://host:port/v1"}, "base_url: must be a URL such as"),
        ({"base_url": "https://me:secret@host/v1"}, "base_url: must have no user, password"),
        ({"model": 4}, "model: must be text"),
        ({"model": "x" * 2_001}, "model: has more than 2000 characters"),
        ({"prices": {"input": -1}}, "prices.input: must be from 0 to 1e+09"),
        ({"prices": {"inputs": 1}}, "prices.inputs: is unknown; did you mean 'input'?"),
        ({"prices": 3}, "prices: must be a table"),
        ({"redact": "no"}, "redact: must be true or false"),
        ({"provider": "anthropic", "hosted_store": True}, 'is for provider = "openai" only'),
        ({"provider": "anthropic", "api": "chat"}, 'is for provider = "openai" only'),
        ({"api": "soap"}, "api: must be one of auto, responses, chat"),
    ],
)
def test_a_problem_says_what_the_value_must_be(values: dict[str, Any], problem: str) -> None:
    (only,) = problems_of(**values)
    assert problem in only
    assert only.startswith("assistants.reviewer.")


@pytest.mark.parametrize(
    "values",
    [{"api_key_env": "sk-proj-abc"}, {"base_url": "https://me:sk-proj-abc@host/v1"}],
)
def test_a_key_in_the_wrong_place_is_refused_and_not_repeated(values: dict[str, Any]) -> None:
    (only,) = problems_of(**values)
    assert "sk-proj-abc" not in only


def test_the_number_of_assistants_is_bounded() -> None:
    table = {"provider": "openai", "model": "m"}
    with pytest.raises(ConfigurationError, match=f"at most {ASSISTANTS_MAX} are read"):
        read_assistants({f"a{number}": table for number in range(ASSISTANTS_MAX + 1)})
