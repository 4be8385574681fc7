"""A query in the words of the keyword index: what has to be there, what counts, and how much.

The weights are those that the other engine gives by the way it writes a query: what is required
counts twice beside words that are not, and a word that is asked for in two forms counts in each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from zibaldone.model.query import Query
from zibaldone.store.postgres.terms import IN_TITLE, quoted
from zibaldone.text.lookups import Lookup, phrase_lookup, title_lookups, wanted_lookups


@dataclass(frozen=True, slots=True)
class Part:
    """Terms that stand side by side; mostly it is one."""

    terms: tuple[str, ...]
    is_open: bool = False
    """The last term may be the beginning of a longer one."""

    @property
    def is_phrase(self) -> bool:
        return len(self.terms) > 1

    @property
    def closed(self) -> tuple[str, ...]:
        """The terms that have to be there as they are."""
        return self.terms[:-1] if self.is_open else self.terms

    @property
    def tsquery(self) -> str:
        return " <-> ".join(map(quoted, self.terms)) + (":*" if self.is_open else "")


Group = tuple[Part, ...]
"""Any of these will do."""


@dataclass(frozen=True)
class Asked:
    groups: Sequence[Group]
    """Each of them has to be met."""
    weights: Mapping[Part, int]
    """What counts. Parts of `groups` are all among them."""
    excluded: Sequence[Group]
    """None of them may be met; here all parts of a group have to be there together."""

    @classmethod
    def of(cls, query: Query) -> Asked:
        """The query must not be empty."""
        required: list[Group] = [(part,) for words in query.phrases for part in _phrase(words)]
        required += [_parts(group, IN_TITLE) for group in title_lookups(query)]
        wanted = [_parts(group) for group in wanted_lookups(query)]
        weights = Counter(chain.from_iterable((*required, *required) if wanted else required))
        weights.update(chain.from_iterable(wanted))
        any_word = tuple(dict.fromkeys(chain.from_iterable(wanted)))
        return cls(
            groups=list(dict.fromkeys(required)) or [any_word],
            weights=weights,
            excluded=[_phrase(words) for words in query.excluded],
        )

    @cached_property
    def terms(self) -> list[str]:
        """Every term that is looked up as it is."""
        return list(dict.fromkeys(chain.from_iterable(part.closed for part in self.weights)))

    @cached_property
    def beginnings(self) -> list[str]:
        """Every beginning of a term that is looked up."""
        return list(dict.fromkeys(part.terms[-1] for part in self.weights if part.is_open))

    @property
    def phrases(self) -> list[Part]:
        return [part for part in self.weights if part.is_phrase]

    @cached_property
    def any_term(self) -> str:
        """A tsquery for whatever has one of the terms."""
        words = [*map(quoted, self.terms), *(f"{quoted(start)}:*" for start in self.beginnings)]
        return " | ".join(words)

    @cached_property
    def tsquery(self) -> str:
        """What a chunk has to meet to be found."""
        needed = " & ".join(f"({' | '.join(_each(group))})" for group in self.groups)
        return f"({needed}) & {self._none_excluded}" if self.excluded else needed

    @property
    def _none_excluded(self) -> str:
        return " & ".join(f"!({' & '.join(_each(group))})" for group in self.excluded)

    @property
    def unwanted(self) -> str | None:
        """What it must not meet."""
        return " | ".join(f"({' & '.join(_each(group))})" for group in self.excluded) or None


def _parts(lookups: Iterable[Lookup], mark: str = "") -> Group:
    return tuple(Part((mark + lookup.term,), lookup.is_prefix) for lookup in lookups)


def _phrase(words: tuple[str, ...]) -> Group:
    phrase = phrase_lookup(words)
    return Part(phrase.terms, phrase.is_open), *(Part((term,)) for term in phrase.marked)


def _each(group: Group) -> Iterable[str]:
    return (f"({part.tsquery})" for part in group)
