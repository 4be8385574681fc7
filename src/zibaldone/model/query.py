"""What a search asks for, and what it may be restricted to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """What a search asks for. Words are as written, case folded; `text.lookups` has their forms.

    | written                | field       | meaning                                          |
    |------------------------|-------------|--------------------------------------------------|
    | `word`                 | terms       | wanted; the more of them the better              |
    | `wor*`                 | prefixes    | any word that begins so (two characters or more) |
    | `about "two words"`    | wishes      | chunks with them side by side come first         |
    | `"two words"` alone    | phrases     | required, side by side                           |
    | `+"two words"`         | phrases     | the same beside other words                      |
    | `title:word`           | title_terms | required in the title; also `title:"two words"`  |
    | `-word` `-"two words"` | excluded    | must not be there                                |

    A query that reads like a sentence is taken as one: in it `-word`, `title:word` and `wor*` are
    words like any other, as in "what does grep -v do" (`plain_operators`). With quotes (`-"word"`)
    they are meant anywhere. It reads like a sentence if it has twelve plain words, or four of which
    one is a function word of English, or two and ends with a full stop or a question mark.

    Everything else is literal: AND, OR, NEAR, brackets, a quote without its partner, `-` inside a
    word. Words of unspaced scripts become overlapping pairs of characters. A query that only
    excludes asks for nothing and finds nothing.
    """

    terms: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[tuple[str, ...], ...] = ()
    title_terms: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    wishes: tuple[tuple[str, ...], ...] = ()
    """Quotations beside other words; each counts like one more word. Their own words are among the
    terms, too."""
    plain_operators: tuple[str, ...] = ()
    """What looked like operators but was taken as words, since the query reads like a sentence."""
    language: str = ""
    """Of the words, as `text.language` tells it; empty if it is English or unsure."""
    spare_terms: tuple[str, ...] = ()
    """Terms behind the first QUERY_TERMS_MAX. They take the place of terms that are more common
    (`find.rarest`); nothing else looks them up."""
    ignored: int = 0
    """Words left out because the query needed more than QUERY_TERMS_MAX lookups."""

    @property
    def is_empty(self) -> bool:
        return not (self.terms or self.phrases or self.wishes or self.title_terms or self.prefixes)


@dataclass(frozen=True, slots=True)
class Filter:
    """All conditions hold together; None (or an empty prefix) does not restrict.

    An empty tuple admits nothing, except for `tags_all` and `without_ids`, where it does not
    restrict. Unknown ids, names and tags match nothing and are no error. Ids, names and tags are
    compared byte by byte.
    """

    prefix: str = ""
    source_ids: tuple[int, ...] | None = None
    source_names: tuple[str, ...] | None = None
    document_ids: tuple[str, ...] | None = None
    without_ids: tuple[str, ...] | None = None
    """Documents that are not wanted."""
    min_score: float | None = None
    """The least `Facets.score` (votes of a post), not a relevance. Without a score: no match."""
    post_type_ids: tuple[int, ...] | None = None
    tags_any: tuple[str, ...] | None = None
    """Folded and each once (`text.facets.folded_tags`), like the next."""
    tags_all: tuple[str, ...] | None = None
    created_after_us: int | None = None
    """`Facets.created_us` is this or later."""
    created_before_us: int | None = None
    """`Facets.created_us` is earlier than this."""
    updated_after_us: int | None = None
    """The document was written at this time or later; so with the next."""
    updated_before_us: int | None = None


NO_FILTER = Filter()
