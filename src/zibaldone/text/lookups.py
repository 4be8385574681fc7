"""What a query asks of the keyword index, as index terms: the same for every engine.

A word is looked up under several terms (folded and as written, in parts and whole). How a lookup is
written for an engine, and how hits are ranked, is the engine's business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from zibaldone.model.query import Query
from zibaldone.text.language import STEM_MARK, content_stem, function_words, has_stems, is_empty
from zibaldone.text.stem import stem
from zibaldone.text.words import clusters, fold_accents, forms, is_unspaced, pairs


class Lookup(NamedTuple):
    term: str
    is_prefix: bool = False
    """Any term that begins so."""


Alternatives = tuple[Lookup, ...]
"""Any of them will do."""


@dataclass(frozen=True, slots=True)
class PhraseLookup:
    terms: tuple[str, ...]
    """Side by side, in one run."""
    is_open: bool
    """The last term may be the beginning of a longer one."""
    marked: tuple[str, ...]
    """Terms with a sign or an accent that was written: they have to be there too, anywhere."""


_PARTS_MAX = 32
_CONTENT_WEIGHT_MAX = 3
_STEM_WEIGHT = 2
"""How often a stem is asked for beside the word itself: at 1 the mean over twelve languages is
.004 lower, at 3 it is the same."""

_HYPHENATED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")

# Endings that the stemmer removes. A prefix that stops inside one of them is no prefix of the stem
# (`configurat*`, stem `configur`), so the completed word is asked for as well.
_STEMMED_ENDINGS = tuple(
    """ational ation ators ization izer alism alize aliti ality iveness fulness ousness ivity bility
    ative icate icity ical ness ance ence able ible ement ment ent ant ism ate ous ive ize ion
    ing ed er es ies ly""".split()  # noqa: SIM905
)


def wanted_lookups(query: Query) -> list[Alternatives]:
    """What brings chunks: each of these counts, and the more of them the better."""
    alone = len(query.terms) == 1
    language = query.language
    terms = _telling(query.terms, language)
    weight = _content_weight(terms, language)
    wanted = [
        group
        for term in terms
        for group in _in_language(term, _word_lookups(term, alone=alone), language, weight)
    ]
    wanted += map(_prefix_lookups, query.prefixes)
    wanted = list(dict.fromkeys(wanted))
    if not language and any(term != fold_accents(term) for term in query.terms):
        # An accented word is asked for twice, exact and folded. To keep its weight equal, so is
        # every other word.
        wanted = [group * 2 if len(group) == 1 else group for group in wanted]
    return [_stemmed(group) for group in wanted]


def title_lookups(query: Query) -> list[Alternatives]:
    """What has to be in the title, all of it."""
    return [
        _stemmed(group)
        for term in query.title_terms
        for group in _in_language(term, _word_lookups(term, alone=True), query.language)
    ]


def phrase_lookup(words: tuple[str, ...]) -> PhraseLookup:
    """Words side by side. Where a sign or an accent is written, it has to be there too."""
    terms: list[str] = []
    marked: list[str] = []
    for word in words:
        made = forms(word)
        terms += made.parts
        if word[-1] in "+#":
            marked.append(made.wholes[0])
        marked += (w for w, bare in zip(made.written, made.parts, strict=True) if w != bare)
    is_open = False
    if is_unspaced(words[-1]):
        if len(forms(words[-1]).parts) > 1:
            del terms[-1]  # the run may go on in the text
        else:
            is_open = True
    return PhraseLookup(tuple(map(stem, terms)), is_open, tuple(map(stem, marked)))


def lookup_count(word: str) -> int:
    """How many lookups a word costs."""
    return len(_word_lookups(word, alone=True))


def _telling(words: Sequence[str], language: str) -> Sequence[str]:
    """Without the short function words of a language that has stems, if there are others."""
    kept = [word for word in words if not is_empty(word, language)]
    return kept if not function_words(language).issuperset(kept) else words


def _content_weight(words: Sequence[str], language: str) -> int:
    """How much more words count that are no function words: all of them together outweigh these.

    Not in Vietnamese and others without stems: there they are syllables of other words, too.
    """
    if not has_stems(language):
        return 1
    count = sum(word in function_words(language) for word in words)
    others = len(words) - count
    return min(_CONTENT_WEIGHT_MAX, max(1, -(-count // others))) if others else 1


def _in_language(
    word: str, groups: list[Alternatives], language: str, weight: int = 1
) -> list[Alternatives]:
    """The lookups of a word with its stem. A function word counts less than the others: where all
    texts are in one language it is in most of them, but among other texts it looks rare."""
    if not language or is_unspaced(word):
        return groups
    stems = ["" if word[-1] in "+#" else content_stem(w, language) for w in forms(word).written]
    if word in function_words(language):
        return [
            (Lookup(found),) if found else group[:1]
            for group, found in zip(groups, stems, strict=False)
        ]
    return [
        (group + (Lookup(found),) * _STEM_WEIGHT if found else (group * 2)[: max(2, len(group))])
        * weight
        for group, found in zip(groups, stems, strict=False)
    ]


def _stemmed(group: Alternatives) -> Alternatives:
    """Last of all: of two words with one stem, each counts."""
    return tuple(
        Lookup(term if term[0] == STEM_MARK else stem(term), is_prefix) for term, is_prefix in group
    )


def _word_lookups(word: str, *, alone: bool) -> list[Alternatives]:
    if is_unspaced(word):
        run = clusters(word)
        return [(Lookup(pair),) for pair in pairs(run)] or [(Lookup(word, is_prefix=True),)]
    made = forms(word)
    if word[-1] in "+#":  # without its sign it would be another word
        return [(Lookup(made.wholes[0]),)]
    groups = [
        tuple(map(Lookup, dict.fromkeys(alternatives)))
        for alternatives in zip(made.parts, made.written, strict=True)
    ][:_PARTS_MAX]
    # In prose a hyphen joins two words; asking for them as one more term would weigh them more
    # than their neighbours in the query.
    if made.wholes and (alone or not _HYPHENATED.fullmatch(word)):
        groups[0] += (Lookup(made.wholes[0]),)
    return groups


def _prefix_lookups(prefix: str) -> Alternatives:
    bare = fold_accents(prefix)
    begun = (Lookup(start, is_prefix=True) for start in dict.fromkeys((bare, prefix)))
    completed = (
        bare + ending[length:]
        for ending in _STEMMED_ENDINGS
        for length in range(1, len(ending))
        if bare.endswith(ending[:length])
    )
    return (*begun, *map(Lookup, dict.fromkeys(completed)))
