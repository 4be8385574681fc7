"""Taking obvious secrets out of a text before somebody else reads it.

Only what can be told by its form: private keys, tokens with a known prefix, passwords in URLs, and
values that are assigned to a name such as `api_key` and look random. The time it takes is that of
reading the text a few times, whatever the text is: quantifiers are possessive or short.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Redacted:
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    hints: tuple[str, ...]
    """A text without any of them is not searched."""
    pattern: re.Pattern[str]


def _rule(kind: str, hints: str, pattern: str) -> _Rule:
    return _Rule(kind, tuple(hints.split()), re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})"))


_RULES = (
    _rule("AWS key", "AKIA ASIA", r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _rule(
        "GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_[A-Za-z0-9_]{60,}+",
    ),
    _rule("GitLab token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}+"),
    _rule(
        "API key",
        "sk- k_live_",
        r"sk-(?=[A-Za-z_-]{0,20}[0-9A-Z])[A-Za-z0-9_-]{20,}+|[srp]k_live_[A-Za-z0-9]{16,}+",
    ),
    _rule("Google key", "AIza GOCSPX-", r"(?:AIza|GOCSPX-)[A-Za-z0-9_-]{24,}+"),
    _rule("Slack token", "xox", r"xox[abposr]-[A-Za-z0-9-]{10,}+"),
    _rule("Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{30,}+"),
    _rule("npm token", "npm_", r"npm_[A-Za-z0-9]{36,}+"),
    _rule("PyPI token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}+"),
    _rule("Zibaldone key", "zib_", r"zib_[A-Za-z0-9_-]{30,}+"),
    _rule(
        "JSON web token",
        "eyJ",
        # From where the first part begins: it is looked at once, not from each `-eyJ` within it.
        r"(?<![_-])[A-Za-z0-9_-]{13,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+",
    ),
)
_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_PEM_LINES = re.compile(r"(?:\\[nr]|\s)*+(?:[A-Za-z0-9+/=]{16,}+(?:\\[nr]|[\s\"'])*+)++")
_PEM_CHARS_MIN = 40
_PEM_CHARS_MAX = 20_000
_URL = re.compile(r"://([A-Za-z0-9._~%+-]{0,100}+):([^\s:/@\"'<>{}$]{3,200}+)(?=@[A-Za-z0-9\[])")
# Spelled out instead of ignoring case: so the search can skip to the first letters.
_ASSIGNED = re.compile(
    r"(key|Key|KEY|secret|Secret|SECRET|token|Token|TOKEN|passwd|PASSWD|password|Password|PASSWORD)"
    r"([\"']?\s{0,4}+(?:=>|:=|=|:)\s{0,4}+[\"']?)([A-Za-z0-9+/_.~-]{16,200}+={0,2}+)(?![\w(\[])"
)
_KEY_OF = re.compile(r"(?i)(?:api|access|account|auth|client|private|secret)[_-]?\Z")
_KEY_OF_CHARS = 10
_ASSIGNED_HINTS = ("key", "secret", "token", "passw", "KEY", "SECRET", "TOKEN", "PASSW")
_RANDOM_BITS_MIN = 3.3
_RANDOM_BITS_MIN_ONE_DIGIT = 4.4
_SLICE_CHARS = 65_536


def redact(text: str) -> Redacted:
    """The text with `[redacted: KIND]` where a secret was, and how many there were."""
    total = 0
    if "PRIVATE KEY" in text:
        text, total = _redact_private_keys(text)
    rules = [rule for rule in _RULES if any(hint in text for hint in rule.hints)]
    has_urls = "://" in text and "@" in text
    has_names = any(hint in text for hint in _ASSIGNED_HINTS)
    if not (rules or has_urls or has_names):
        return Redacted(text, total)
    pieces = []
    # An expression holds the interpreter's lock until it has seen all that it is given.
    for piece in _slices(text):
        for rule in rules:
            piece, found = rule.pattern.subn(f"[redacted: {rule.kind}]", piece)  # noqa: PLW2901
            total += found
        if has_urls:
            piece, found = _URL.subn(r"://\1:[redacted: password]", piece)  # noqa: PLW2901
            total += found
        if has_names:
            piece, found = _redact_assigned(piece)  # noqa: PLW2901
            total += found
        pieces.append(piece)
    return Redacted("".join(pieces), total)


def _slices(text: str) -> Iterator[str]:
    """The text in pieces that end with a line, unless a line is very long."""
    start = 0
    while len(text) - start > _SLICE_CHARS:
        end = text.rfind("\n", start, start + _SLICE_CHARS) + 1 or start + _SLICE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]


def _redact_private_keys(text: str) -> tuple[str, int]:
    """A key that was cut off counts too; a header without a key does not."""
    pieces = []
    total = 0
    start = 0
    end = _PEM_END.search(text)
    for begin in _PEM_BEGIN.finditer(text):
        if begin.start() < start:
            continue
        if end is not None and end.start() < begin.end():
            end = _PEM_END.search(text, begin.end())
        lines = _PEM_LINES.match(text, begin.end())
        is_whole = end is not None and (
            _PEM_CHARS_MIN <= end.start() - begin.end() <= _PEM_CHARS_MAX
        )
        if is_whole and end is not None:
            stop = end.end()
        elif lines is not None and lines.end() - lines.start() >= _PEM_CHARS_MIN:
            stop = lines.end()
        else:
            continue
        pieces += [text[start : begin.start()], "[redacted: private key]"]
        total += 1
        start = stop
    return "".join([*pieces, text[start:]]), total


def _redact_assigned(text: str) -> tuple[str, int]:
    total = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal total
        kind = match[1].lower()
        before = text[max(0, match.start() - _KEY_OF_CHARS) : match.start()]
        if (kind == "key" and not _KEY_OF.search(before)) or not _looks_random(match[3]):
            return match[0]
        total += 1
        return f"{match[1]}{match[2]}[redacted: {kind}]"

    return _ASSIGNED.sub(replace, text), total


def _looks_random(value: str) -> bool:
    """Names of variables and paths have words; keys have digits among letters and no pattern."""
    digits = sum(char.isdigit() for char in value)
    if digits == 0 or not any(char.isalpha() for char in value):
        return False
    length = len(value)
    bits = -sum(n / length * math.log2(n / length) for n in Counter(value).values())
    return bits >= (_RANDOM_BITS_MIN if digits > 1 else _RANDOM_BITS_MIN_ONE_DIGIT)
