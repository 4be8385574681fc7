"""Logging: one JSON object per line on stderr, without document contents or secrets."""

from __future__ import annotations

import logging
import sys

import orjson

from zibaldone.limits import LOG_LINE_CHARS_MAX
from zibaldone.model.instant import now_us, to_iso

_NOISY = ("httpx2", "httpcore2")
"""They log the URL of every request, and a URL may contain a token."""


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": to_iso(now_us()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _cut(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = _cut(self.formatException(record.exc_info))
        return orjson.dumps(line, default=str).decode()


def _cut(text: str) -> str:
    """The end of a long text too: it says where a traceback ended."""
    if len(text) <= LOG_LINE_CHARS_MAX:
        return text
    half = LOG_LINE_CHARS_MAX // 2
    return f"{text[:half]} … {text[-half:]}"


def configure(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
