"""What is wrong with a memory: doubles, secrets, what no longer holds, what is never found."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from zibaldone.find.memory import Question, search_episodes
from zibaldone.limits import AUDIT_TERMS_MAX, MEMORY_READ_CHARS_MAX
from zibaldone.model.memory import EpisodeHead, StoredFact
from zibaldone.store.port import Reader
from zibaldone.text.facts import sentences
from zibaldone.text.query import parse_query
from zibaldone.text.terms import index_terms

NEAR_SHARE = 0.8
"""Of the three-word sequences that two texts have: then they are nearly the same."""

_BANDS, _ROWS = 8, 3
"""Of a signature: texts that agree in one band are compared."""

_FOUND_AMONG = 10

_SECRETS = {
    "private key": re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"),
    "AWS key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    "API key": re.compile(r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])?[A-Za-z0-9_-]{20,}"),
    "Slack token": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    "JSON web token": re.compile(r"(?<![\w-])[\w-]{13,}+\.eyJ[\w-]{10,}+\.[\w-]{5,}"),
    "password": re.compile(
        r"(?i)\b(?:password|passwd|secret|api[_-]?key)\s*[:=]\s*[^\s\"'`<>]{6,}"
    ),
    "URL with a password": re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,60}:[^\s:/@]{3,60}@"),
}


@dataclass(frozen=True, slots=True)
class Read:
    """What is looked at of an episode."""

    head: EpisodeHead
    digest: str
    shingles: frozenset[int]
    secrets: tuple[str, ...]
    question: str
    """What it should be found by: its title and its first sentence."""


def read_episode(head: EpisodeHead, title: str, body: str) -> Read:
    text = body[:MEMORY_READ_CHARS_MAX]
    terms = [term for run in index_terms(text)[:1] for term in run][:AUDIT_TERMS_MAX]
    first = next(sentences(text), "")
    return Read(
        head,
        hashlib.blake2b(" ".join(body.split()).casefold().encode(), digest_size=16).hexdigest(),
        frozenset(_hashed(" ".join(terms[at : at + 3])) for at in range(max(1, len(terms) - 2))),
        tuple(kind for kind, pattern in _SECRETS.items() if pattern.search(body)),
        f"{title} {first}"[:300],
    )


def duplicates(episodes: Iterable[Read]) -> list[list[str]]:
    """Documents with the same text, group by group of memory."""
    same: dict[tuple[str, str], list[str]] = {}
    for one in episodes:
        same.setdefault((one.head.group_id, one.digest), []).append(one.head.document_id)
    return [documents for documents in same.values() if len(documents) > 1]


def near_duplicates(episodes: Sequence[Read]) -> list[tuple[str, str, float]]:
    """Pairs of a group that have most words in the same order, but are not the same."""
    buckets: dict[tuple[str, int, tuple[int, ...]], list[int]] = {}
    pairs: dict[tuple[int, int], float] = {}
    for number, one in enumerate(episodes):
        for band in _bands(one.shingles):
            bucket = buckets.setdefault((one.head.group_id, *band), [])
            for other in bucket[-20:]:
                if (other, number) not in pairs and episodes[other].digest != one.digest:
                    both = episodes[other].shingles
                    pairs[other, number] = len(both & one.shingles) / len(both | one.shingles)
            bucket.append(number)
    return [
        (episodes[one].head.document_id, episodes[two].head.document_id, round(share, 3))
        for (one, two), share in pairs.items()
        if share >= NEAR_SHARE
    ]


def never_found(reader: Reader, episodes: Iterable[Read]) -> list[str]:
    """Documents that a search for their own title and first sentence does not find."""
    lost = []
    for one in episodes:
        query = parse_query(one.question)
        asked = Question(one.question, query, None, [one.head.group_id])
        hits = [] if query.is_empty else search_episodes(reader, asked, limit=_FOUND_AMONG).hits
        if one.head.document_id not in {hit.chunk.document_id for hit in hits}:
            lost.append(one.head.document_id)
    return lost


def contradicted(facts: Iterable[StoredFact]) -> list[StoredFact]:
    return [stored for stored in facts if stored.invalid_at_us is not None]


def stale(facts: Iterable[StoredFact], before_us: int) -> list[StoredFact]:
    """What can change, holds, and was not said again since."""
    return [
        stored
        for stored in facts
        if stored.fact.slot and stored.invalid_at_us is None and stored.fact.valid_at_us < before_us
    ]


def _bands(shingles: frozenset[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The smallest hashes under different orders: equal ones are as likely as texts are alike."""
    for band in range(_BANDS):
        yield (
            band,
            tuple(
                min((shingle * _odd(band * _ROWS + row)) & 0xFFFFFFFF for shingle in shingles)
                for row in range(_ROWS)
            ),
        )


def _odd(number: int) -> int:
    return (2654435761 * (2 * number + 1)) | 1


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")
