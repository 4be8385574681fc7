"""Patch a document: replace exact text in its body, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zibaldone.errors import Ambiguous, InvalidArgument, NotFoundInContent
from zibaldone.keep.commit import Actor, Change, commit, require_live
from zibaldone.keep.update import Changes, changed, require_revision
from zibaldone.keep.writing import Edit, Seen
from zibaldone.limits import Limits
from zibaldone.model.document import Document
from zibaldone.store.port import Writer
from zibaldone.text.chunk_changes import Checkpoint, never_ends
from zibaldone.text.replace import count, replace

_QUICK = 16
"""How many times quicker a text is searched and replaced than cut and indexed, at least."""


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
    edit = patching(
        document_id, replacements, actor, limits, last_known_revision=last_known_revision
    )
    change = edit.decide(edit.look(writer), never_ends)
    return commit(writer, change.before, change.after, actor), change.replaced


@dataclass(frozen=True, slots=True)
class PatchChange(Change):
    replaced: int
    """Places that were replaced."""


def patching(
    document_id: str,
    replacements: Sequence[Replacement],
    actor: Actor,
    limits: Limits,
    *,
    last_known_revision: int | None = None,
    prepended: str = "",
    appended: str = "",
) -> Edit[PatchChange]:
    """The same as an edit; texts may be put before and after what the replacements give."""

    def decide(seen: Seen, checkpoint: Checkpoint) -> PatchChange:
        before = require_live(seen.document, document_id)
        require_revision(before, last_known_revision)
        bytes_max = limits.document_body_bytes_max
        body, count = apply(before.body, replacements, bytes_max, checkpoint)
        body = _joined(_joined(prepended, body), appended)
        after = changed(before, Changes(body=body), actor, limits, "patch")
        return PatchChange(before, after, count)

    return Edit(
        document_id,
        look=lambda reader: Seen(reader.documents.get(document_id)),
        decide=decide,
        text_chars=len(prepended) + len(appended),
        work_chars=lambda seen: _work_chars(seen.chars, replacements),
    )


def _joined(first: str, second: str) -> str:
    """The second text begins on a line of its own."""
    if not first or not second or first.endswith("\n") or second.startswith("\n"):
        return first + second
    return f"{first}\n{second}"


def _work_chars(chars: int, replacements: Sequence[Replacement]) -> int:
    """What the replacements may cost, as the length of a text to be cut and indexed.

    A text of a kilobyte can grow to megabytes, be searched there a hundred times, and shrink again.
    """
    longest = searched = 0
    for replacement in replacements:
        places = chars // max(len(replacement.old), 1) if replacement.every else 1
        chars += places * max(len(replacement.new) - len(replacement.old), 0)
        longest = max(longest, chars)
        searched += chars
    return max(longest, searched // _QUICK)


def apply(
    body: str,
    replacements: Sequence[Replacement],
    chars_max: int,
    checkpoint: Checkpoint = never_ends,
) -> tuple[str, int]:
    """Apply the replacements in order, each on the result of those before it."""
    replaced = 0
    for number, replacement in enumerate(replacements):
        checkpoint()
        if not replacement.old:
            raise InvalidArgument("old_str is empty: it matches everywhere.", field="old_str")
        places = count(body, replacement.old)
        if not places:
            raise NotFoundInContent(
                "old_str is not in the document, character for character. Read it again.",
                replacement=number,
            )
        if not replacement.every and not _is_single(body, replacement.old):
            raise Ambiguous(
                f"old_str is in the document {max(places, 2)} times. Give more of the text around "
                "the place you mean, or set replace_all.",
                count=max(places, 2),
                replacement=number,
            )
        _refuse_growth(body, replacement, places, chars_max)
        body = replace(body, replacement.old, replacement.new)
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
