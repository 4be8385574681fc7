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
from dataclasses import dataclass
from itertools import chain

from zibaldone.limits import (
    INDEX_TERMS_MAX,
    QUERY_BYTES_MAX,
    QUERY_TERMS_MAX,
    TERM_CHARS_MAX,
)
from zibaldone.text.words import (
    STOP_WORDS,
    camel_parts,
    clusters,
    fold_accents,
    fold_case,
    forms,
    is_unspaced,
    lexemes,
    pairs,
)

FTS5_TOKENIZER = "porter unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cn Cf'"
"""The `tokenize=` of the index. Only spaces and control characters separate: a term stays one."""

GAP = "|"
"""Stands between runs of terms, so that no phrase spans them; no query can ask for it."""

_QUOTED = re.compile(r'(?<![^\s(])(-|title:)?"([^"]*)"(?!\w)')
_EXCLUDING = re.compile(r"-\.?\w")
_HYPHENATED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_PARTS_ASKED_MAX = 32

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
            if _EXCLUDING.match(written):
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
        # Required parts come first: without one of them the search would be wider than asked. But
        # what is excluded leaves half of the room to what is wanted, or nothing would be.
        phrases = tuple(filter(None, map(self._fitting, dict.fromkeys(self.phrases))))
        title_terms = tuple(filter(self._fits, dict.fromkeys(self.title_terms)))
        kept_back = self._room // 2 if self.terms or self.prefixes else 0
        self._room -= kept_back
        excluded = tuple(filter(None, map(self._fitting, dict.fromkeys(self.excluded))))
        self._room += kept_back
        return Query(
            phrases=phrases,
            title_terms=title_terms,
            excluded=excluded,
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
            cut = "".join(clusters(word)[: max(1, self._room)]) if is_unspaced(word) else word
            if not self._fits(cut):
                self._ignored += len(words) - len(kept) - 1
                break
            kept.append(cut)
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
