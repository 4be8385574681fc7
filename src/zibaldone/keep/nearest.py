"""What may have been meant by the path of a document that is not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from zibaldone.errors import NotFound
from zibaldone.limits import LIST_FOLDERS_MAX, NEAR_PATHS_LOOKED_AT, NEAR_PATHS_MAX
from zibaldone.model.query import Filter
from zibaldone.store.port import Reader
from zibaldone.text.links import names_of
from zibaldone.text.query import parse_query
from zibaldone.text.words import fold_case, lexemes

_ALIKE = 0.6
"""How alike two paths, or their last parts, have to be; 1 is the same."""

_COMPARED_CHARS = 100
_WORDS_MAX = 8


def explained(reader: Reader, error: NotFound) -> NotFound:
    """An error about a missing document, with what became of it or what may have been meant."""
    missing = error.details.get("document_id")
    # The second: the document is there, a revision of it is not.
    if not isinstance(missing, str) or "revision" in error.details:
        return error
    part = reader.documents.peek(missing, 0)
    if part is not None and not part.is_live:
        # One that was imported as deleted has no earlier revision: its own is what it was.
        earlier = reader.revisions.page(part, before=None, limit=1)
        last = earlier[0].revision if earlier else part.revision
        return NotFound(
            f"{error.message} It was deleted; restore_document (or 'zibaldone restore') brings "
            f"back its revision {last}.",
            **error.details,
            deleted=True,
            restorable_revision=last,
        )
    if reader.documents.heads(f"{missing}/", limit=1):
        return NotFound(
            f"{error.message} It is a folder; list_documents (or 'zibaldone ls') with the prefix "
            f"{missing + '/'!r} shows what is in it.",
            **error.details,
            folder=f"{missing}/",
        )
    return with_near_paths(error, near_paths(reader, missing))


def nothing_under(reader: Reader, prefix: str) -> str | None:
    """What to say of a prefix that no path has; None: some have it."""
    if not prefix or reader.documents.heads(prefix, limit=1):
        return None
    near = ", ".join(map(repr, _near_prefixes(reader, prefix)))
    return f"No path starts with {prefix!r}." + (f" Near it: {near}." if near else "")


def _near_prefixes(reader: Reader, missing: str) -> list[str]:
    """The folders at the same level that are most like a prefix under which there is nothing."""
    name = missing.rstrip("/")
    parent, slash, last = name.rpartition("/")
    while parent and not reader.documents.heads(parent + slash, limit=1):
        parent, slash, last = parent.rpartition("/")  # the mistake is further up
    folders = reader.documents.folders(parent + slash, limit=LIST_FOLDERS_MAX)
    there = [folder.prefix for folder in folders]
    scored = sorted((-_ratio(last, path[len(parent + slash) : -1]), path) for path in there)
    return [path for likeness, path in scored if -likeness >= _ALIKE][:NEAR_PATHS_MAX]


def near_paths(reader: Reader, missing: str) -> list[str]:
    """The most similar paths that the caller can see, the best first."""
    scored = sorted((-_likeness(missing, path), path) for path in set(_candidates(reader, missing)))
    return [path for likeness, path in scored if -likeness >= _ALIKE][:NEAR_PATHS_MAX]


def with_near_paths(error: NotFound, near: Sequence[str]) -> NotFound:
    if not near:
        return error
    named = ", ".join(repr(path) for path in near)
    return NotFound(f"{error.message} Near it: {named}.", **error.details, near=list(near))


def _candidates(reader: Reader, missing: str) -> Iterator[str]:
    folder, slash, name = missing.rpartition("/")
    start = folder + slash
    # Those of the folder that begin alike, fewer and fewer characters, then any of the folder.
    length = len(name)
    lengths = {*range(max(length - 3, 0), length + 1), length * 2 // 3, length // 3, 0}
    for kept in sorted(lengths, reverse=True):
        for head in reader.documents.heads(start + name[:kept], limit=NEAR_PATHS_LOOKED_AT):
            yield head.document_id
    # The name may be right and the folder wrong,
    named = reader.links.with_names(names_of(missing, ""), each=NEAR_PATHS_LOOKED_AT)
    for documents in named.values():
        yield from (document.document_id for document in documents)
    if folder:  # or both nearly right.
        for head in reader.documents.heads(folder[: len(folder) // 2], limit=NEAR_PATHS_LOOKED_AT):
            yield head.document_id
    stem = name.partition(".")[0]
    words = " ".join(lexemes(fold_case(stem[:_COMPARED_CHARS].replace("_", " ")))[:_WORDS_MAX])
    if words:
        hits = reader.lexical.search(
            parse_query(words), limit=NEAR_PATHS_LOOKED_AT, wanted=Filter()
        )
        for view in reader.chunks.views(key for key, _ in hits).values():
            yield view.document_id


def _likeness(missing: str, path: str) -> float:
    """Of the whole paths or of their names, whichever is more alike."""
    whole = _ratio(missing, path)
    name, other = (part.rpartition("/")[2].partition(".")[0] for part in (missing, path))
    return max(whole, 0.95 * _ratio(name, other))


def _ratio(first: str, second: str) -> float:
    matcher = SequenceMatcher(
        None, first[-_COMPARED_CHARS:].lower(), second[-_COMPARED_CHARS:].lower(), autojunk=False
    )
    return 0.0 if matcher.quick_ratio() < _ALIKE else matcher.ratio()
