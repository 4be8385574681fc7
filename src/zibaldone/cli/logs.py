"""Logging: one JSON object per line on stderr, without document contents or secrets."""

from __future__ import annotations

import logging
import sys

import orjson

from zibaldone.model.instant import now_us, to_iso

_NOISY = ("httpx2", "httpcore2")
"""They log the URL of every request, and a URL may contain a token."""


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": to_iso(now_us()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def configure(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
