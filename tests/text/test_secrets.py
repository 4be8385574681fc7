"""What counts as a secret, and how long looking for it takes."""

from __future__ import annotations

import time

import pytest

from zibaldone.text.secrets import redact

KEY = "MIIEpAIBAAKCAQEA" + "abcdefghijklmnopqrstuvwxyz0123456789" * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id AKIAIOSFODNN7EXAMPLE.", "id [redacted: AWS key]."),
        ("t=ghp_" + "a1B2" * 9, "t=[redacted: GitHub token]"),
        ("'sk-proj-" + "a1B2" * 6 + "'", "'[redacted: API key]'"),
        ("zib_" + "a1B2" * 10, "[redacted: Zibaldone key]"),
        ("xoxb-1234567890-abc", "[redacted: Slack token]"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl", "[redacted: JSON web token]"),
        ("t=jwt-eyJhbGciOiJI.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl", "t=[redacted: JSON web token]"),
        ("postgresql://me:hunter2@db/x", "postgresql://me:[redacted: password]@db/x"),
        ('API_KEY = "9f8e7d6c5b4a39281706"', 'API_KEY = "[redacted: key]"'),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "aws_secret_access_key = [redacted: key]",
        ),
        ("password: Tr0ub4dor-and-3-more", "password: [redacted: password]"),
        (
            f"a\n-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----\nb",
            "a\n[redacted: private key]\nb",
        ),
        (f"-----BEGIN PRIVATE KEY-----\n{KEY}\n", "[redacted: private key]"),
    ],
)
def test_secrets_are_taken_out(text: str, expected: str) -> None:
    assert redact(text).text == expected
    assert redact(text).count == 1


@pytest.mark.parametrize(
    "text",
    [
        "token = get_token_from_environment_variable",
        "key = 9f8e7d6c5b4a39281706",
        "primary_key: user_identifier_column2",
        "sk-learn-is-a-library-for-learning",
        "-----BEGIN PRIVATE KEY-----",
        "http://localhost:8321/path@x",
        "password = input('Password: ')",
        "secret = settings.secret_key_of_the_server",
        "SHA-256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----------END X-----",
        "-sk-",
        "://aaaa:bbb",
        "token=a1",
        "eyJaaaaaaaaaaaaa.",
        "-eyJ",
        "secret = ",
        "\n",
    ],
)
def test_hostile_text_takes_no_longer(text: str) -> None:
    long = text * (2_000_000 // len(text))
    started = time.thread_time()
    redact(long)
    assert time.thread_time() - started < 5


def test_a_long_text_is_looked_at_in_pieces() -> None:
    secret = "AKIAIOSFODNN7EXAMPLE\n"
    text = ("x" * 1_000 + "\n" + secret) * 200
    assert redact(text).count == 200
    assert redact(text).text == text.replace(secret, "[redacted: AWS key]\n")
