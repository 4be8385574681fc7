"""Logging to stderr, without document contents or secrets: JSON lines, or text for people."""

from __future__ import annotations

import logging
import os
import sys
import time

import click
import orjson

from zibaldone.limits import LOG_LINE_CHARS_MAX
from zibaldone.model.instant import now_us, to_iso
from zibaldone.settings import LogFormat

_NOISY = ("httpx2", "httpcore2")
"""They log the URL of every request, and a URL may contain a token."""

_AUDIT = "zibaldone.audit"
_COLORS = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}


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


class TextLines(logging.Formatter):
    """The local time, the level if it is not info, and the message; a traceback below it."""

    def __init__(self, *, has_color: bool) -> None:
        super().__init__()
        self._has_color = has_color

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.name == _AUDIT:
            message = _change(message)
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        if self._has_color:
            at = click.style(at, dim=True)
            color = _COLORS.get(record.levelno)
            level = click.style(level, fg=color, bold=True) if level and color else level
        line = f"{at} {level}{_printable(_cut(message))}"
        if record.exc_info:
            exception = _cut(self.formatException(record.exc_info))
            line += "".join(f"\n  {_printable(part)}" for part in exception.splitlines())
        return line


def _change(message: str) -> str:
    """A line of the audit log in words: the key, the tool, the document and the outcome."""
    try:
        change = orjson.loads(message)
        parts = (change["key"], change["tool"], change["document"])
        return f"{' '.join(part for part in parts if part)}: {change['outcome']}"
    except (KeyError, TypeError, ValueError):
        return message


def _printable(text: str) -> str:
    """Without control characters: a path comes from other people and could steer the terminal."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _cut(text: str) -> str:
    """The end of a long text too: it says where a traceback ended."""
    if len(text) <= LOG_LINE_CHARS_MAX:
        return text
    half = LOG_LINE_CHARS_MAX // 2
    return f"{text[:half]} … {text[-half:]}"


def is_text(log_format: LogFormat) -> bool:
    """Whether people read the log; `auto` is text on a terminal."""
    if log_format == "auto":
        return sys.stderr.isatty()
    return log_format == "text"


def has_color() -> bool:
    """On a terminal, unless its user does not want it (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.name == "nt":
        return False
    return sys.stderr.isatty()


def configure(level: str, log_format: LogFormat = "auto") -> None:
    handler = logging.StreamHandler(sys.stderr)
    text = is_text(log_format)
    handler.setFormatter(TextLines(has_color=has_color()) if text else JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
    if text:
        # What uvicorn says about the start, cli/start.py says for people.
        logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.getLogger().level))
