"""A keyword search on a large index, in steps: the rarer words first, all of them if need be.

To rank a chunk costs FTS5 some fifty times as much as to count it, and a word that is in every
tenth chunk says little about any. So the words that bring chunks are the rarest ones, as many
as are together in `ranked_max` chunks; the commoner ones still count in the scores of what these
bring. Only a search that finds too little that way goes on to the next step. The last step is the
plain search, so nothing that holds a word of the query is out of reach. A quotation that is as
common is left out: its words are there, and that they stand side by side says as little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from zibaldone.model.query import Query
from zibaldone.store.sqlite.match import phrase, to_fts5, wanted_groups, without_excluded

Groups = Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Tier:
    match: str
    times: int = 1
    """How often each word stands in the expression: FTS5 adds its score up as often."""


def tiers(query: Query, chunks_with: Callable[[str], int], ranked_max: int) -> list[Tier]:
    """The expressions to try in turn; the last one is the plain search.

    `chunks_with` says in how many chunks an expression is found; it need not count beyond
    `ranked_max`.
    """
    if query.terms:
        wishes = [wish for wish in query.wishes if chunks_with(phrase(wish)) <= ranked_max]
        query = replace(query, wishes=tuple(wishes))
    groups = wanted_groups(query)
    everything = Tier(to_fts5(query))
    if query.phrases or query.title_terms or len(groups) < 2:
        return [everything]  # what is required bounds the work already, or there is no choice
    rare, common = _parted(groups, chunks_with, ranked_max)
    if not common:
        return [everything]
    if not rare:
        all_words = Tier(to_fts5(query, require_all=True))
        return [all_words, _led_by(query, common[:1], common[1:]), everything]
    led = _led_by(query, rare, common)
    if len(common) == 1:
        return [led, everything]
    return [led, Tier(without_excluded(query, _all_of(common))), everything]


def _parted(
    groups: Groups, chunks_with: Callable[[str], int], ranked_max: int
) -> tuple[Groups, Groups]:
    """The rarest that are together in few enough chunks, and the others, rarest first.

    Those in more than `ranked_max` chunks are not counted any further: they keep their order.
    """
    counts = {group: chunks_with(" OR ".join(group)) for group in groups}
    by_count = sorted(groups, key=lambda group: counts[group])
    left = ranked_max
    for taken, group in enumerate(by_count):
        left -= counts[group]
        if left < 0:
            return by_count[:taken], by_count[taken:]
    return by_count, ()


def _led_by(query: Query, leading: Groups, others: Groups) -> Tier:
    """Chunks with a leading word, scored by all words.

    Every word stands in it twice: the leading ones before and after the AND, the others after it.
    Were it not so, some would weigh more than in the plain search.
    """
    lead = " OR ".join(chain.from_iterable(leading))
    rest = " OR ".join(chain.from_iterable((*others, *others)))
    return Tier(without_excluded(query, f"({lead}) AND ({lead} OR {rest})"), times=2)


def _all_of(groups: Groups) -> str:
    return " AND ".join(f"({' OR '.join(group)})" for group in groups)
