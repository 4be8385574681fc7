"""A query in the words of the keyword index: what has to be there, what counts, and how much.

The weights are those that the other engine gives by the way it writes a query: what is required
counts twice beside words that are not, and a word that is asked for in two forms counts in each.
A phrase with a sign or an accent is several parts that have to be there together.
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


Together = tuple[Part, ...]
"""All of these have to be there; mostly it is one."""

Group = tuple[Together, ...]
"""Any of these will do."""


@dataclass(frozen=True)
class Asked:
    groups: Sequence[Group]
    """Each of them has to be met."""
    weights: Mapping[Part, int]
    """What counts wherever it is."""
    wishes: Sequence[Together]
    """Of several parts, which count where they are all together."""
    excluded: Sequence[Together]
    """None of them may be met."""

    @classmethod
    def of(cls, query: Query) -> Asked:
        """The query must not be empty."""
        required: list[Group] = [((part,),) for words in query.phrases for part in _phrase(words)]
        required += [_group(group, IN_TITLE) for group in title_lookups(query)]
        wanted = [_group(group) for group in wanted_lookups(query)]
        # A quotation counts like a word, one of a single word not twice.
        quoted = ((_phrase(words),) for words in query.wishes)
        wanted += [group for group in quoted if group not in wanted]
        counted = [*required, *required, *wanted] if wanted else required
        alternatives = list(chain.from_iterable(counted))
        any_of_them = tuple(dict.fromkeys(chain.from_iterable(wanted)))
        return cls(
            groups=list(dict.fromkeys(required)) or [any_of_them],
            weights=Counter(together[0] for together in alternatives if len(together) == 1),
            wishes=[together for together in alternatives if len(together) > 1],
            excluded=[_phrase(words) for words in query.excluded],
        )

    @cached_property
    def parts(self) -> list[Part]:
        """Everything that is looked up."""
        return list(dict.fromkeys((*self.weights, *chain.from_iterable(self.wishes))))

    @cached_property
    def is_any(self) -> bool:
        """Whether all that counts also brings chunks."""
        return len(self.groups) == 1 and set(self.groups[0]) == {
            *((part,) for part in self.weights),
            *self.wishes,
        }

    def is_required(self, part: Part) -> bool:
        return any(group == ((part,),) for group in self.groups)

    @cached_property
    def terms(self) -> list[str]:
        """Every term that is looked up as it is."""
        return list(dict.fromkeys(chain.from_iterable(part.closed for part in self.parts)))

    @cached_property
    def beginnings(self) -> list[str]:
        """Every beginning of a term that is looked up."""
        return list(dict.fromkeys(part.terms[-1] for part in self.parts if part.is_open))

    @cached_property
    def any_term(self) -> str:
        """A tsquery for whatever has one of the terms."""
        words = [*map(quoted, self.terms), *(f"{quoted(start)}:*" for start in self.beginnings)]
        return " | ".join(words)

    @cached_property
    def tsquery(self) -> str:
        """What a chunk has to meet to be found."""
        needed = " & ".join(f"({_any(group)})" for group in self.groups)
        return f"({needed}) & !({self.unwanted})" if self.excluded else needed

    @property
    def unwanted(self) -> str | None:
        """What it must not meet."""
        return _any(self.excluded) or None


def _any(group: Iterable[Together]) -> str:
    return " | ".join(
        f"({' & '.join(f'({part.tsquery})' for part in together)})" for together in group
    )


def _group(lookups: Iterable[Lookup], mark: str = "") -> Group:
    return tuple((Part((mark + lookup.term,), lookup.is_prefix),) for lookup in lookups)


def _phrase(words: tuple[str, ...]) -> Together:
    phrase = phrase_lookup(words)
    return Part(phrase.terms, phrase.is_open), *(Part((term,)) for term in phrase.marked)
