"""What a caller sends does not fill the disk with log lines."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.drivers.keys import create_key
from tests.drivers.mcp import JSON, SSE, Mcp
from tests.drivers.server import Server
from zibaldone.cli.logs import JsonLines, TextLines
from zibaldone.limits import LOG_LINE_CHARS_MAX


@pytest.mark.parametrize("accept", [JSON, SSE])
def test_refused_calls_with_long_paths(data: Path, accept: str) -> None:
    key = create_key(data, "--effect", "read")
    with Server(data) as server:
        before = len(server.log())
        for tool in ("delete_document", "upload_document", "patch_document"):
            params = {"name": tool, "arguments": {"path": "p" * 2_000_000, "content": "x"}}
            Mcp(server.client, headers=key.headers).rpc("tools/call", params, accept=accept)
            given = {"path": "q" * 2_000_000, "content": "x"}
            server.client.post("/documents", json=given, headers=key.headers)
        lines = server.log()[before:]
        assert lines.count('"message"') >= 6
        assert len(lines) < 6 * 4_000


FORMATS = [JsonLines(), TextLines(has_color=False)]


@pytest.mark.parametrize("lines", FORMATS, ids=["json", "text"])
def test_any_message_is_cut(lines: logging.Formatter) -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "m" * 1_000_000, None, None)
    assert len(lines.format(record)) < LOG_LINE_CHARS_MAX + 500


@pytest.mark.parametrize("lines", FORMATS, ids=["json", "text"])
def test_any_traceback_is_cut(lines: logging.Formatter) -> None:
    """Its end stays: it says what happened."""
    problem = ValueError("m" * 1_000_000 + " in the end")
    found = (ValueError, problem, None)
    record = logging.LogRecord("x", logging.ERROR, "", 0, "failed", None, found)
    written = lines.format(record)
    assert len(written) < LOG_LINE_CHARS_MAX + 500
    assert "ValueError" in written
    assert "in the end" in written
