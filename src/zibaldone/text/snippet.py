"""Where the words of a query stand in a chunk, and the stretch of it that is shown for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, zip_longest

from zibaldone.limits import TERM_CHARS_MAX
from zibaldone.model.query import Query
from zibaldone.text.language import function_words, has_stems, language_stem
from zibaldone.text.stem import stem
from zibaldone.text.words import (
    aligned_fold,
    camel_parts,
    clusters,
    fold_accents,
    forms,
    has_camel,
    is_unspaced,
    lexeme_spans,
    pairs,
    part_spans,
)

Match = tuple[int, int, str]
"""Where a word of the query stands, (start, end), and the stem by which it was places."""

_SPACE = re.compile(r"\s")
_SLACK_CHARS = 40


def snippet(text: str, query: Query, chars_max: int) -> tuple[str, int]:
    """The stretch of a text that holds most of the query's words, and where it begins."""
    return cut(text, matches(text, query), chars_max)


def matches(text: str, query: Query) -> list[Match]:
    return sorted(_matches(text, query))


def spans(places: Sequence[Match], start: int, end: int) -> list[tuple[int, int]]:
    """Matches inside of a stretch, counted from its beginning; in order, not overlapping."""
    joined: list[tuple[int, int]] = []
    for first, last, _ in places:
        if first < start or last > end:
            continue
        if joined and first - start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last - start, joined[-1][1]))
        else:
            joined.append((first - start, last - start))
    return joined


def cut(text: str, places: Sequence[Match], chars_max: int) -> tuple[str, int]:
    """The stretch that holds most of the matches, and where it begins."""
    first, last = _best_window(places, chars_max)
    spare = max(0, chars_max - (last - first))
    start = max(0, min(first - spare // 3, len(text) - chars_max))
    end = min(len(text), start + chars_max)
    if 0 < start < first and not text[start - 1].isspace():
        space = _SPACE.search(text, start, min(first, start + _SLACK_CHARS))
        start = space.end() if space else start
    if end < len(text) and not text[end].isspace():
        floor = max(last, start + 1, end - _SLACK_CHARS)
        end = next((i for i in range(end - 1, floor - 1, -1) if text[i].isspace()), end)
    shown = text[start:end].rstrip()
    return shown.lstrip(), start + len(shown) - len(shown.lstrip())


def _best_window(places: Sequence[Match], chars_max: int) -> tuple[int, int]:
    """The first and last character of the densest group of matches that fits."""
    best, best_score = (0, 0), (0, 0)
    inside: dict[str, int] = {}
    tail = 0
    for count, (start, end, key) in enumerate(places, 1):
        inside[key] = inside.get(key, 0) + 1
        while tail < count - 1 and end - places[tail][0] > chars_max:
            left = places[tail][2]
            inside[left] -= 1
            if not inside[left]:
                del inside[left]
            tail += 1
        score = (len(inside), count - tail)
        if score > best_score:
            best, best_score = (places[tail][0], max(end, start)), score
    return best


def _matches(text: str, query: Query) -> Iterator[Match]:
    """Every place where a word of the query stands, with the stem that it matched."""
    quoted = chain.from_iterable((*query.phrases, *query.wishes))
    words: Sequence[str] = (*query.terms, *query.spare_terms, *query.title_terms, *quoted)
    language = query.language if has_stems(query.language) else ""
    words = [word for word in words if word not in function_words(language)] or words
    sought = frozenset(chain.from_iterable(map(_sought_stems, words)))
    initials = {key[0] for key in sought}  # a stem begins as its word does; stemming is slow
    if language:
        sought |= {language_stem(part, language) for word in words for part in forms(word).written}
    prefixes = tuple(map(fold_accents, query.prefixes))
    folded, places = aligned_fold(text)
    camel = has_camel(text)
    for begin, lexeme in lexeme_spans(folded):
        plain = lexeme.isascii() and lexeme.isalnum()
        for offset, length, form in [(0, len(lexeme), lexeme)] if plain else _pieces(lexeme):
            is_prefixed = bool(prefixes) and form.startswith(prefixes)
            if not is_prefixed and not language and form[0] not in initials:
                continue
            key = language_stem(lexeme[offset : offset + length], language)
            key = key if key in sought else stem(form)
            if is_prefixed or key in sought:
                last = begin + offset + length - 1
                end = last + 1
                while places[end] == places[last]:  # one character may have become several
                    end += 1
                yield places[begin + offset], places[end], key
        if camel:
            start, end = places[begin], places[begin + len(lexeme)]
            keys = map(stem, chain.from_iterable(camel_parts(text[start:end])))
            yield from ((start, end, key) for key in keys if key in sought)


def _sought_stems(term: str) -> Iterable[str]:
    if is_unspaced(term):
        return pairs(clusters(term)) or (term,)
    made = forms(term)
    if term[-1] in "+#":
        return map(stem, made.wholes[:1])
    return map(stem, chain(made.parts, made.wholes[:1]))


def _pieces(lexeme: str) -> Iterable[tuple[int, int, str]]:
    """The forms of a lexeme with the stretch of it that each covers: offset, length, form."""
    if is_unspaced(lexeme):
        return _unspaced_pieces(clusters(lexeme))
    return (_word_pieces_cached if len(lexeme) <= TERM_CHARS_MAX else _word_pieces)(lexeme)


def _unspaced_pieces(run: list[str]) -> Iterator[tuple[int, int, str]]:
    offset = 0
    for here, following in zip_longest(run, run[1:], fillvalue=""):
        yield offset, len(here), here
        yield offset, len(here) + len(following), here + following
        offset += len(here)


def _word_pieces(lexeme: str) -> list[tuple[int, int, str]]:
    parts = list(part_spans(lexeme))
    pieces = [(at, len(part), fold_accents(part[:TERM_CHARS_MAX])) for at, part in parts]
    if parts[0][1] != lexeme:
        pieces.append((0, len(lexeme), fold_accents(lexeme)[:TERM_CHARS_MAX]))
    return pieces


_word_pieces_cached = lru_cache(maxsize=16_384)(_word_pieces)
