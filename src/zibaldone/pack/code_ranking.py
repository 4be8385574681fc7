"""How files of code are ranked for a question. Pure: what is known of each file in, scores out.

On top of keyword and vector scores of files:

- words of the question in the file's name or folders count, and so do words in the names that a
  file defines;
- what defines a symbol that the question names comes before what uses it;
- tests, examples, benchmarks, type stubs, vendored and generated files come after sources, unless
  the question asks for them.

The reasons and what each rule gains are in docs/explain/code-search.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from zibaldone.text.stem import stem
from zibaldone.text.terms import index_terms
from zibaldone.text.words import STOP_WORDS

VECTOR_SHARE = 0.5
"""Of the fused score."""

NAMES_SHARE = 0.2
"""What a full match with the names that a file defines adds to a score of at most 1."""
PATH_SHARE = 0.4
"""The same for its path."""
SYMBOL_SHARE = 0.6
"""The same for the definition of a symbol that the question names."""

_FOLDER_WORTH = 0.5
"""A word in the name of a folder, against one in the name of the file."""
_BEGINNING_WORTH = 0.5
"""A word of which only the beginning agrees (`auth`, `authentication`), against the same word."""
_BEGINNING_CHARS_MIN = 3

_SYMBOL_CHARS_MIN = 3
_SYMBOLS_MAX = 16
_QUERY_TERMS_MAX = 64

_TOKEN = re.compile(r"[^\W\d][\w$]*+(?:(?:\.|::|->|#|/)[^\W\d][\w$]*+)*+(?:\(\))?")
_JOINT = re.compile(r"\.|::|->|#|/")
_CODE_SHAPE = re.compile(r"_|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_STOP_TERMS = STOP_WORDS | {stem(word) for word in STOP_WORDS}


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of files that is rarely what a question is after."""

    worth: float
    """What the score of such a file is multiplied by."""
    path: re.Pattern[str]
    asked: re.Pattern[str]
    """A question that has this is after such files."""


def _role(worth: float, path: str, asked: str) -> Role:
    return Role(worth, re.compile(path, re.IGNORECASE), re.compile(asked, re.IGNORECASE))


ROLES = (
    _role(
        0.5,
        r"(?:^|/)(?:__)?(?:tests?|specs?|e2e|testdata|test[-_]?suite|fixtures?|mocks?|__mocks__"
        r"|__snapshots__)(?:__)?/"
        r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*[-_.](?:tests?|spec)\.[^/.]+)$"
        r"|(?:^|/)[^/]*(?-i:[A-Za-z0-9]Tests?)\.[^/.]+$",
        r"\b(?:unit|integration)?tests?\b|\btest(?:ed|ing|_\w+)\b|\bspecs?\b|\bfixtures?\b"
        r"|\bmock(?:s|ed)?\b|\b(?-i:Test[A-Z]|\w+Test\b)",
    ),
    _role(
        0.5,
        r"(?:^|/)(?:examples?|samples?|demos?|tutorials?|playground)/|(?:^|/)examples?\.[^/.]+$",
        r"\b(?:examples?|samples?|demos?|tutorials?)\b",
    ),
    _role(
        0.5,
        r"(?:^|/)(?:bench|benches|benchmarks?|perf)/|(?:^|/)(?:bench_[^/]*|[^/]*_bench\.[^/.]+)$",
        r"\bbench(?:mark(?:s|ed|ing)?)?\b|\bperformance\b|\bhow fast\b",
    ),
    _role(0.7, r"\.pyi$|\.d\.[cm]?ts$", r"\bstubs?\b|\btyp(?:e|es|ing)\b|\bannotations?\b"),
    _role(
        0.7,
        r"(?:^|/)(?:vendor|vendored|_vendor|third[-_]?party|node_modules|dist|generated)/"
        r"|\.min\.(?:js|css)$|_pb2(?:_grpc)?\.pyi?$|\.pb\.go$|[-.]lock$|(?:^|/)package-lock\.json$",
        r"\bvendor(?:ed)?\b|\bgenerated\b|\block ?file\b|\bprotobuf\b",
    ),
    _role(
        0.7,
        r"(?:^|/)(?:changelog|changes|history|news|releases?|licen[cs]e|copying|authors|notice)"
        r"(?:\.[^/.]+)?$",
        r"\bchange ?logs?\b|\breleased?s?\b|\bversions?\b|\blicen[cs]\w*\b|\bauthors?\b"
        r"|\bhistory\b",
    ),
)


@dataclass(frozen=True, slots=True)
class CodeQuery:
    """A question, read for code."""

    text: str
    terms: tuple[str, ...]
    """Index terms, without those that only join others."""
    symbols: tuple[str, ...]
    """Names as code writes them: `parse_url`, `HTTPServer`, the last part of `asyncio.run`."""
    is_bare: bool
    """It is nothing but symbols."""


def read_query(text: str) -> CodeQuery:
    terms = list(dict.fromkeys(terms_of(text)))
    content = [term for term in terms if term not in _STOP_TERMS] or terms
    tokens = _TOKEN.findall(text)
    is_bare = len(tokens) == 1 and tokens[0] == text.strip()
    symbols = (_symbol(token, is_bare=is_bare) for token in tokens)
    named = tuple(dict.fromkeys(symbol for symbol in symbols if symbol))[:_SYMBOLS_MAX]
    return CodeQuery(text, tuple(content[:_QUERY_TERMS_MAX]), named, is_bare)


def _symbol(token: str, *, is_bare: bool) -> str:
    """The name that a token stands for; empty for a word of a sentence."""
    name = _JOINT.split(token.removesuffix("()"))[-1]
    looks_like_code = token.endswith("()") or _JOINT.search(token) or _CODE_SHAPE.search(token)
    is_long_enough = len(name) >= _SYMBOL_CHARS_MIN
    return name if is_long_enough and (is_bare or looks_like_code) else ""


def terms_of(text: str) -> list[str]:
    return [term for run in index_terms(text) for term in run]


@dataclass(frozen=True, slots=True)
class PathTerms:
    name: frozenset[str]
    folders: frozenset[str]


def path_terms(path: str) -> PathTerms:
    folders, _, name = path.rpartition("/")
    stem_of_name = name.partition(".")[0] or name
    return PathTerms(name_terms(stem_of_name), name_terms(folders))


def name_terms(text: str) -> frozenset[str]:
    """The terms of a name in code, or of several: their parts, and names in capitals whole."""
    return frozenset(terms_of(text.replace("_", " ").replace("-", " "))) - {""}


def path_match(query: CodeQuery, path: PathTerms, rarities: Mapping[str, float]) -> float:
    """How much of a question is in a path, from 0 to 1; rare words count more."""
    total = sum(rarities.values())
    if not total:
        return 0.0
    return sum(rarities[term] * _worth(term, path) for term in query.terms) / total


def _worth(term: str, path: PathTerms) -> float:
    if term in path.name:
        return 1.0
    if any(_begins_alike(term, word) for word in path.name):
        return _BEGINNING_WORTH
    return _FOLDER_WORTH if term in path.folders else 0.0


def _begins_alike(term: str, word: str) -> bool:
    shorter, longer = sorted((term, word), key=len)
    return len(shorter) >= _BEGINNING_CHARS_MIN and longer.startswith(shorter)


def roles_of(path: str) -> frozenset[int]:
    """The roles of a file, by their places in ROLES."""
    return frozenset(place for place, role in enumerate(ROLES) if role.path.search(path))


def asked_roles(question: str) -> frozenset[int]:
    """The roles that a question asks for."""
    return frozenset(place for place, role in enumerate(ROLES) if role.asked.search(question))


def worth_of(roles: frozenset[int], asked: frozenset[int]) -> float:
    """What the score of a file is multiplied by."""
    return min((ROLES[role].worth for role in roles - asked), default=1.0)
