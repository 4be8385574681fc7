from __future__ import annotations

import ast
from pathlib import Path

import pytest

import zibaldone
from zibaldone.access.loopback import is_loopback, without_port


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost",
        "localhost.",
        "127.0.0.1",
        "127.0.0.2",
        "127.255.255.254",
        "::1",
        "[::1]",
        "0:0:0:0:0:0:0:1",
        "::ffff:127.0.0.1",
        "[::FFFF:127.0.0.1]",
        "::ffff:7f00:1",
    ],
)
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        "localhost..",
        "localhost.example.org",
        "mylocalhost",
        "127.0.0.1.example.org",
        "127.0.0.1@example.org",
        "127.0.0.1:80",
        "127.1",
        "0x7f000001",
        "2130706433",
        "\uff10127.0.0.1",
        "126.255.255.255",
        "128.0.0.1",
        "0.0.0.0",
        "::",
        "::2",
        "::ffff:10.0.0.1",
        "[127.0.0.1",
        "example.org",
    ],
)
def test_another_machine_or_no_host_at_all(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:8321", "LOCALHOST"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::1]:8321", "[::1]"),
        ("::1", "::1"),
        ("::1:8321", "::1:8321"),
        ("example.org:127.0.0.1", "example.org:127.0.0.1"),
        ("localhost:", "localhost:"),
        ("localhost:٣", "localhost:٣"),
        ("", ""),
    ],
)
def test_a_port_is_cut_off(authority: str, host: str) -> None:
    assert without_port(authority) == host


def test_nobody_else_decides() -> None:
    """Other modules may print or bind a loopback address, but not compare with one. In ingest/fetch
    `localhost` is part of the syntax of file URLs."""
    package = Path(zibaldone.__file__).parent
    deciding = []
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.Attribute):
                text = ast.unparse(node)
                if "'localhost" in text or "127.0.0.1" in text or ".is_loopback" in text:
                    deciding.append(file.relative_to(package).as_posix())
    assert set(deciding) == {"access/loopback.py", "ingest/fetch.py"}
