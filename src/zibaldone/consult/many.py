"""What several answers to one question have in common, and what only some of them say."""

from __future__ import annotations

import re
from collections.abc import Mapping

from typing_extensions import TypedDict

from zibaldone.limits import CONSULT_COMPARED_CHARS_MAX, CONSULT_DIFFERENCES_MAX

_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
_WORD = re.compile(r"\w+")
_WORDS_MIN = 2
_SHARED_OVERLAP = 0.5
"""Of the words of the shorter of two sentences; more, and they say the same."""

_COMMON = frozenset({
    *("a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "does", "for", "from"),
    *("has", "have", "if", "in", "is", "it", "its", "of", "on", "or", "should", "so", "that"),
    *("the", "their", "them", "there", "this", "to", "was", "were", "will", "with", "would"),
    *("you", "your"),
})  # fmt: skip


class Difference(TypedDict):
    text: str
    said_by: list[str]


class Comparison(TypedDict):
    agreed: list[str]
    """Sentences of the first answer that the others have too, in other words maybe."""
    differences: list[Difference]
    """Sentences that only some answers have, and whose they are."""


def compare(answers: Mapping[str, str]) -> Comparison:
    """Sentences are compared by their words. It says where to look, not who is right."""
    sentences = {name: _sentences(text) for name, text in answers.items()}
    agreed: list[str] = []
    differences: list[Difference] = []
    told: list[frozenset[str]] = []
    for name, own in sentences.items():
        for text, words in own:
            if any(_is_alike(words, other) for other in told):
                continue
            told.append(words)
            said_by = [
                other
                for other, theirs in sentences.items()
                if other == name or any(_is_alike(words, their) for _, their in theirs)
            ]
            if len(said_by) == len(sentences):
                agreed.append(text)
            else:
                differences.append({"text": text, "said_by": said_by})
    return {
        "agreed": agreed[:CONSULT_DIFFERENCES_MAX],
        "differences": _balanced(differences),
    }


def _balanced(differences: list[Difference]) -> list[Difference]:
    """As many of each answer, where not all fit."""
    by_first: dict[str, list[Difference]] = {}
    for difference in differences:
        by_first.setdefault(difference["said_by"][0], []).append(difference)
    chosen: list[Difference] = []
    for rank in range(CONSULT_DIFFERENCES_MAX):
        for own in by_first.values():
            if rank < len(own) and len(chosen) < CONSULT_DIFFERENCES_MAX:
                chosen.append(own[rank])
    return [difference for difference in differences if difference in chosen]


def _sentences(text: str) -> list[tuple[str, frozenset[str]]]:
    found: list[tuple[str, frozenset[str]]] = []
    for part in _SENTENCE.split(text[:CONSULT_COMPARED_CHARS_MAX]):
        sentence = part.strip(" \t-*#>`")
        words = frozenset(_WORD.findall(sentence.casefold())) - _COMMON
        if len(words) >= _WORDS_MIN or (words and len(sentence) > 1 and not found):
            found.append((sentence, words))
    return found


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _SHARED_OVERLAP * min(len(one), len(other))
