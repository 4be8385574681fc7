"""patch_document: replace exact text, or add some at an end."""

from __future__ import annotations

from pydantic import Field

from zibaldone.errors import InvalidArgument
from zibaldone.keep.patch import Replacement, patching
from zibaldone.limits import PATCH_REPLACEMENTS_MAX
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, LastKnownRevision, Written
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class PatchReplacement(Arguments):
    old_str: str
    new_str: str
    replace_all: bool = False


class PatchDocument(Arguments):
    path: DocumentPath
    old_str: str | None = Field(None, description="Exact text; must occur once")
    new_str: str | None = None
    replace_all: bool = False
    replacements: list[PatchReplacement] = Field(
        [], max_length=PATCH_REPLACEMENTS_MAX, description="Several at once, all or none, in order"
    )
    append: str = Field("", description="Text to add at the end")
    prepend: str = Field("", description="Or at the start")
    last_known_revision: LastKnownRevision = None


class Patched(Written):
    replaced: int
    """Places that were replaced."""


def _replacements(given: PatchDocument) -> list[Replacement]:
    several = [
        Replacement(edit.old_str, edit.new_str, edit.replace_all) for edit in given.replacements
    ]
    has_more = bool(several or given.append or given.prepend)
    if given.old_str is None and given.new_str is None and has_more:
        return several
    if given.old_str is None:
        raise InvalidArgument(
            "Give old_str and new_str, replacements, append or prepend.", field="old_str"
        )
    if given.new_str is None:
        raise InvalidArgument("new_str is missing ('' deletes the text).", field="new_str")
    if several:
        raise InvalidArgument(
            "Give old_str and new_str, or replacements, not both.", field="replacements"
        )
    return [Replacement(given.old_str, given.new_str, given.replace_all)]


async def handle(call: Call, given: PatchDocument) -> Patched:
    document_id = normalize.document_id(given.path)
    replacements = _replacements(given)
    edit = patching(
        document_id,
        replacements,
        call.actor,
        call.runtime.limits,
        last_known_revision=given.last_known_revision,
        prepended=given.prepend,
        appended=given.append,
    )
    document, change = await call.write(edit)
    return {
        "id": document_id,
        "status": "patched",
        "revision": document.revision,
        "replaced": change.replaced,
    }


TOOL = ToolSpec(
    name="patch_document",
    title="Patch a document",
    description=(
        "Replace an exact passage of a document's body, append or prepend. Fails with AMBIGUOUS "
        "if old_str occurs more than once, NOT_FOUND_IN_CONTENT if never."
    ),
    arguments=PatchDocument,
    result=Patched,
    effect="write",
    handler=handle,
    document=lambda given: given.path,
    request_bytes_max=None,
)
