"""What the keyword index stores for a text, and what a query asks of it.

The index is an FTS5 table with the columns title, heading and body, fed with our terms joined by
spaces. Its tokenizer only has to split at spaces and to stem, so every printable character is a
token character for it (`FTS5_TOKENIZER`). A text becomes two runs of terms:

    run one   the words in reading order, case and accents folded, identifiers in their parts,
              unspaced scripts as overlapping pairs; phrases are looked for here
    GAP
    run two   further forms: identifiers whole (`json_extract`, `c++`), words as written where
              folding changed them (`việt`), the parts of camelCase words

Run two makes no false phrase: its terms hold a sign or a mark that no phrase term has, or stand
behind a GAP of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest

from commonplace.limits import (
    INDEX_TERMS_MAX,
    QUERY_BYTES_MAX,
    QUERY_TERMS_MAX,
    TERM_CHARS_MAX,
)
from commonplace.text.stem import stem
from commonplace.text.words import (
    aligned_fold,
    camel_parts,
    clusters,
    fold_accents,
    fold_case,
    forms,
    is_unspaced,
    lexeme_spans,
    lexemes,
    pairs,
    part_spans,
)

FTS5_TOKENIZER = "porter unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cn Cf'"
"""The `tokenize=` of the index. Only spaces and control characters separate: a term stays one."""

GAP = "|"
"""Stands between runs of terms, so that no phrase spans them; no query can ask for it."""

STOP_WORDS = frozenset(  # a text reads better than 130 literals
    """a about above after again against all am an and any are as at be because been before being
    below between both but by can could d did do does doing down during each few for from further
    had has have having he her here hers him his how i if in into is it its itself just ll m me
    more most my no nor not now of off on once only or other our out over own re s same she should
    so some such t than that the their them then there these they this those through to too under
    until up ve very was we were what when where which while who whom why will with would you
    your""".split()  # noqa: SIM905
)
"""English only: lists of other languages hold English content words (German `die`, `war`, `man`),
and the ranking gives frequent words little weight anyway."""

_QUOTED = re.compile(r'(?<![^\s(])(-|title:)?"([^"]*)"(?!\w)')
_HYPHENATED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_PARTS_ASKED_MAX = 32
_SNIPPET_SLACK_CHARS = 40

# Endings that the index's stemmer removes. A prefix that stops inside one of them is no prefix of
# the stem (`configurat*`, stem `configur`), so the completed word is asked for as well.
_STEMMED_ENDINGS = tuple(
    """ational ation ators ization izer alism alize aliti ality iveness fulness ousness ivity bility
    ative icate icity ical ness ance ence able ible ement ment ent ant ism ate ous ive ize ion
    ing ed er es ies ly""".split()  # noqa: SIM905
)


def index_terms(text: str) -> list[str]:
    """The terms to index for a text: its words in order, then GAP and the further forms."""
    text = text[: INDEX_TERMS_MAX * TERM_CHARS_MAX]
    words: list[str] = []
    further: list[str] = []
    for lexeme in lexemes(fold_case(text)):
        if lexeme.isalnum() and lexeme.isascii():
            words.append(lexeme[:TERM_CHARS_MAX])
        else:
            found = forms(lexeme)
            words += found.parts
            further += found.further
    for parts in camel_parts(text):
        further += (GAP, *parts)
    if further:
        words += (GAP, *further)
    return words[:INDEX_TERMS_MAX]


@dataclass(frozen=True, slots=True)
class Query:
    """What a search asks for. Words are as written, case folded; `to_fts5` adds their forms.

    | written          | field       | meaning                                           |
    |------------------|-------------|---------------------------------------------------|
    | `word`           | terms       | wanted; the more of them the better               |
    | `wor*`           | prefixes    | any word that begins so (two characters or more)  |
    | `"two words"`    | phrases     | required, side by side                            |
    | `title:word`     | title_terms | required in the title                             |
    | `-word` `-"a b"` | excluded    | must not be there                                 |

    Everything else is literal: AND, OR, NEAR, brackets, a quote without its partner, `-` inside a
    word. Words of unspaced scripts become overlapping pairs of characters. A query that only
    excludes asks for nothing and finds nothing.
    """

    terms: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[tuple[str, ...], ...] = ()
    title_terms: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    ignored: int = 0
    """Words left out because the query needed more than QUERY_TERMS_MAX lookups."""

    @property
    def is_empty(self) -> bool:
        return not (self.terms or self.phrases or self.title_terms or self.prefixes)


def parse_query(query: str) -> Query:
    """Read a query. Never raises, whatever the text."""
    literal = fold_case(query[:QUERY_BYTES_MAX])
    draft = _Draft()
    position = 0
    for quoted in _QUOTED.finditer(literal):
        draft.read(literal[position : quoted.start()])
        words = tuple(lexemes(quoted[2]))
        if quoted[1] == "title:":
            draft.title_terms += words
        elif words:
            (draft.excluded if quoted[1] else draft.phrases).append(words)
        position = quoted.end()
    draft.read(literal[position:])
    return draft.finish()


class _Draft:
    """A query while it is read."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self.phrases: list[tuple[str, ...]] = []
        self.excluded: list[tuple[str, ...]] = []
        self.title_terms: list[str] = []
        self.prefixes: list[str] = []
        self._room = QUERY_TERMS_MAX
        self._ignored = 0

    def read(self, literal: str) -> None:
        for written in literal.split():
            if written[0] == "-" and written[1:2].isalnum():
                self.excluded.append(tuple(lexemes(written)))
            elif written.startswith("title:") and (words := lexemes(written[6:])):
                self.title_terms += words
            else:
                self._read_plain(written)

    def _read_plain(self, written: str) -> None:
        starred = written.rstrip(".,;:!?)]")
        for lexeme in lexemes(written):
            if is_unspaced(lexeme):
                self.terms += pairs(clusters(lexeme)) or [lexeme]
            elif len(lexeme) > 1 and starred.endswith(lexeme + "*"):
                self.prefixes.append(lexeme)
            else:
                self.terms.append(lexeme)

    def finish(self) -> Query:
        content = [term for term in self.terms if term not in STOP_WORDS]
        if content or self.phrases or self.title_terms or self.prefixes:
            self.terms = content
        # Required parts come first: without one of them the search would be wider than asked.
        return Query(
            phrases=tuple(filter(None, map(self._fitting, dict.fromkeys(self.phrases)))),
            title_terms=tuple(filter(self._fits, dict.fromkeys(self.title_terms))),
            excluded=tuple(filter(None, map(self._fitting, dict.fromkeys(self.excluded)))),
            prefixes=tuple(filter(self._fits, dict.fromkeys(self.prefixes))),
            terms=tuple(filter(self._fits, dict.fromkeys(self.terms))),
            ignored=self._ignored,
        )

    def _fits(self, term: str) -> bool:
        cost = len(_groups(term, lone=True))
        if cost > self._room:
            self._ignored += 1
            return False
        self._room -= cost
        return True

    def _fitting(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """As much of a phrase, from its start, as there is room for."""
        kept: list[str] = []
        for word in words:
            cut = "".join(clusters(word)[: self._room]) if is_unspaced(word) else word
            if self._room and self._fits(cut):
                kept.append(cut)
            else:
                self._ignored += len(words) - len(kept)
                break
        return tuple(kept)


def to_fts5(query: Query, *, require_all: bool = False) -> str:
    """The MATCH expression for a query, or "" when it asks for nothing (then do not run it).

    `require_all` wants every term instead of any: fewer rows to rank, for a first try.
    """
    if query.is_empty:
        return ""
    required = [_phrase(words) for words in query.phrases]
    if query.title_terms:
        title = chain.from_iterable(_groups(term, lone=True) for term in query.title_terms)
        required.append(f"(title : ({' AND '.join(map(_any_of, title))}))")
    wanted = wanted_groups(query)
    if require_all:
        found = " AND ".join([*required, *map(_any_of, wanted)])
    else:
        must, may = " AND ".join(required), " OR ".join(chain.from_iterable(wanted))
        found = f"({must}) AND ({must} OR {may})" if must and may else must or may
    return without_excluded(query, found)


def without_excluded(query: Query, found: str) -> str:
    """What an expression finds, less what the query leaves out."""
    if not query.excluded:
        return found
    return f"({found}) NOT ({' OR '.join(map(_phrase, query.excluded))})"


def wanted_groups(query: Query) -> list[tuple[str, ...]]:
    """What brings passages: in each group, any of the alternatives will do."""
    lone = len(query.terms) == 1
    groups = [group for term in query.terms for group in _groups(term, lone=lone)]
    groups += map(_prefix_group, query.prefixes)
    groups = list(dict.fromkeys(groups))
    if any(term != fold_accents(term) for term in query.terms):
        # An accented word is asked for twice, exact and folded. To keep its weight equal, so is
        # every other word.
        groups = [group * 2 if len(group) == 1 else group for group in groups]
    return groups


def _groups(term: str, *, lone: bool) -> list[tuple[str, ...]]:
    """What has to be looked up for a term: in each group, any of the alternatives will do."""
    if is_unspaced(term):
        run = clusters(term)
        return [(_quoted(pair),) for pair in pairs(run)] or [(_quoted(term) + " *",)]
    found = forms(term)
    if term[-1] in "+#":  # without its sign it would be another word
        return [(_quoted(found.wholes[0]),)]
    groups = [
        tuple(map(_quoted, dict.fromkeys(alternatives)))
        for alternatives in zip(found.parts, found.written, strict=True)
    ][:_PARTS_ASKED_MAX]
    # In prose a hyphen joins two words; asking for them as one more term would weigh them more
    # than their neighbours in the query.
    if found.wholes and (lone or not _HYPHENATED.fullmatch(term)):
        groups[0] += (_quoted(found.wholes[0]),)
    return groups


def _prefix_group(prefix: str) -> tuple[str, ...]:
    bare = fold_accents(prefix)
    begun = dict.fromkeys((f"{_quoted(bare)} *", f"{_quoted(prefix)} *"))
    completed = (
        _quoted(bare + ending[length:])
        for ending in _STEMMED_ENDINGS
        for length in range(1, len(ending))
        if bare.endswith(ending[:length])
    )
    return (*begun, *dict.fromkeys(completed))


def _phrase(words: tuple[str, ...]) -> str:
    """Words side by side. Where a sign or an accent is written, it has to be there too."""
    terms: list[str] = []
    marked: list[str] = []
    for word in words:
        found = forms(word)
        terms += found.parts
        if word[-1] in "+#":
            marked.append(found.wholes[0])
        marked += (w for w, bare in zip(found.written, found.parts, strict=True) if w != bare)
    if not is_unspaced(words[-1]):
        phrase = _quoted(" ".join(terms))
    elif len(forms(words[-1]).parts) > 1:
        phrase = _quoted(" ".join(terms[:-1]))  # the run may go on in the text
    else:
        phrase = _quoted(" ".join(terms)) + " *"
    return f"({' AND '.join([phrase, *map(_quoted, marked)])})" if marked else phrase


def _any_of(group: tuple[str, ...]) -> str:
    return group[0] if len(group) == 1 else f"({' OR '.join(group)})"


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def highlight_spans(text: str, query: Query) -> list[tuple[int, int]]:
    """Where the words of a query stand in a text: (start, end) in order, not overlapping."""
    spans: list[tuple[int, int]] = []
    for start, end, _ in sorted(_matches(text, query)):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def snippet(text: str, query: Query, chars_max: int) -> tuple[str, int]:
    """The stretch of a text that holds most of the query's words, and where it begins."""
    first, last = _best_window(sorted(_matches(text, query)), chars_max)
    spare = max(0, chars_max - (last - first))
    start = max(0, min(first - spare // 3, len(text) - chars_max))
    end = min(len(text), start + chars_max)
    if 0 < start < first and not text[start - 1].isspace():
        space = re.compile(r"\s").search(text, start, min(first, start + _SNIPPET_SLACK_CHARS))
        start = space.end() if space else start
    if end < len(text) and not text[end].isspace():
        floor = max(last, start + 1, end - _SNIPPET_SLACK_CHARS)
        end = next((i for i in range(end - 1, floor - 1, -1) if text[i].isspace()), end)
    shown = text[start:end].rstrip()
    return shown.lstrip(), start + len(shown) - len(shown.lstrip())


def _best_window(matches: list[tuple[int, int, str]], chars_max: int) -> tuple[int, int]:
    """The first and last character of the densest group of matches that fits."""
    best, best_score = (0, 0), (0, 0)
    inside: dict[str, int] = {}
    tail = 0
    for count, (start, end, key) in enumerate(matches, 1):
        inside[key] = inside.get(key, 0) + 1
        while tail < count - 1 and end - matches[tail][0] > chars_max:
            left = matches[tail][2]
            inside[left] -= 1
            if not inside[left]:
                del inside[left]
            tail += 1
        score = (len(inside), count - tail)
        if score > best_score:
            best, best_score = (matches[tail][0], max(end, start)), score
    return best


def _matches(text: str, query: Query) -> Iterator[tuple[int, int, str]]:
    """Every place where a word of the query stands, with the stem that it matched."""
    words = (*query.terms, *query.title_terms, *chain.from_iterable(query.phrases))
    sought = frozenset(chain.from_iterable(map(_sought_stems, words)))
    prefixes = tuple(map(fold_accents, query.prefixes))
    folded, places = aligned_fold(text)
    for begin, lexeme in lexeme_spans(folded):
        for offset, length, form in _pieces(lexeme):
            key = stem(form)
            if key not in sought and not (prefixes and form.startswith(prefixes)):
                continue
            start, last = places[begin + offset], begin + offset + length - 1
            end = last + 1
            while places[end] == places[last]:  # one character may have become several
                end += 1
            yield start, places[end], key
        start, end = places[begin], places[begin + len(lexeme)]
        for parts in camel_parts(text[start:end]):
            yield from ((start, end, key) for key in map(stem, parts) if key in sought)


def _sought_stems(term: str) -> Iterable[str]:
    if is_unspaced(term):
        return pairs(clusters(term)) or (term,)
    found = forms(term)
    if term[-1] in "+#":
        return map(stem, found.wholes[:1])
    return map(stem, chain(found.parts, found.wholes[:1]))


def _pieces(lexeme: str) -> Iterator[tuple[int, int, str]]:
    """The forms of a lexeme with the stretch of it that each covers: offset, length, form."""
    if is_unspaced(lexeme):
        run = clusters(lexeme)
        offset = 0
        for here, following in zip_longest(run, run[1:], fillvalue=""):
            yield offset, len(here), here
            yield offset, len(here) + len(following), here + following
            offset += len(here)
        return
    parts = list(part_spans(lexeme))
    for offset, part in parts:
        yield offset, len(part), fold_accents(part[:TERM_CHARS_MAX])
    if parts[0][1] != lexeme:
        yield 0, len(lexeme), fold_accents(lexeme)[:TERM_CHARS_MAX]
