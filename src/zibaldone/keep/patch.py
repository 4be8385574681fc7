"""Patch a document: replace exact text in its body, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zibaldone.errors import Ambiguous, InvalidArgument, NotFoundInContent
from zibaldone.keep.commit import Actor, commit, live_document
from zibaldone.keep.update import Changes, changed, require_revision
from zibaldone.limits import Limits
from zibaldone.model.document import Document
from zibaldone.store.port import Writer


@dataclass(frozen=True, slots=True)
class Replacement:
    old: str
    new: str
    every: bool = False
    """Replace all matches; otherwise there must be exactly one."""


def patch(
    writer: Writer,
    document_id: str,
    replacements: Sequence[Replacement],
    actor: Actor,
    limits: Limits,
    *,
    last_known_revision: int | None = None,
) -> tuple[Document, int]:
    """The stored document and how many places were replaced."""
    before = live_document(writer, document_id)
    require_revision(before, last_known_revision)
    body, count = apply(before.body, replacements, limits.document_body_bytes_max)
    after = changed(before, Changes(body=body), actor, limits, "patch")
    return commit(writer, before, after, actor), count


def apply(body: str, replacements: Sequence[Replacement], chars_max: int) -> tuple[str, int]:
    """Apply the replacements in order, each on the result of those before it."""
    replaced = 0
    for number, replacement in enumerate(replacements):
        if not replacement.old:
            raise InvalidArgument("old_str is empty: it matches everywhere.", field="old_str")
        if replacement.old not in body:
            raise NotFoundInContent(
                "old_str is not in the document, character for character. Read it again.",
                replacement=number,
            )
        places = body.count(replacement.old)
        if not replacement.every and not _is_single(body, replacement.old):
            raise Ambiguous(
                f"old_str is in the document {max(places, 2)} times. Give more of the text around "
                "the place you mean, or set replace_all.",
                count=max(places, 2),
                replacement=number,
            )
        _refuse_growth(body, replacement, places, chars_max)
        body = body.replace(replacement.old, replacement.new)
        replaced += places
    return body, replaced


def _is_single(text: str, wanted: str) -> bool:
    """Matches that overlap count too: 'aa' stands twice in 'aaa', so the place is not clear."""
    return text.find(wanted, text.find(wanted) + 1) < 0


def _refuse_growth(body: str, replacement: Replacement, places: int, chars_max: int) -> None:
    """Before the new body is built: many places times a long text would fill the memory."""
    size_chars = len(body) + places * (len(replacement.new) - len(replacement.old))
    if size_chars > chars_max:
        raise InvalidArgument(
            f"The content would have {size_chars} characters; {chars_max} bytes are allowed.",
            field="new_str",
            bytes_max=chars_max,
        )
