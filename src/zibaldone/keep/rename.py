"""Give a document another path; its history goes with it."""

from __future__ import annotations

from dataclasses import replace

from zibaldone.errors import Conflict, InvalidArgument
from zibaldone.keep.commit import Actor, Change, next_instant_us, require_live, vector_status
from zibaldone.keep.update import require_revision
from zibaldone.keep.writing import Edit, Seen
from zibaldone.model.document import KB_SOURCE_ID, parent_of
from zibaldone.store.port import Reader, Writer
from zibaldone.text.chunk_changes import Checkpoint


def renaming(
    document_id: str, new_id: str, actor: Actor, *, last_known_revision: int | None = None
) -> Edit[Change]:
    """The next revision of the document has the new path, and so have all before it."""
    if new_id == document_id:
        raise InvalidArgument("new_path is the path that it has.", field="new_path")

    def look(reader: Reader | Writer) -> Seen:
        seen = Seen(reader.documents.get(document_id))
        require_live(seen.document, document_id)
        taken = reader.documents.peek(new_id, 0)
        if taken is not None:
            state = "exists already" if taken.is_live else "was deleted, and its history is kept"
            raise Conflict(
                f"A document {new_id!r} {state}. Choose another path.", document_id=new_id
            )
        return seen

    def decide(seen: Seen, _: Checkpoint) -> Change:
        before = require_live(seen.document, document_id)
        require_revision(before, last_known_revision)
        if before.source_id != KB_SOURCE_ID:
            raise InvalidArgument(
                "A document of a source has the path that its source gives it.", field="path"
            )
        is_in_its_folder = before.parent_id == parent_of(document_id)
        after = replace(
            before,
            document_id=new_id,
            parent_id=parent_of(new_id) if is_in_its_folder else before.parent_id,
            revision=before.revision + 1,
            updated_at_us=next_instant_us(before),
            updated_by=actor.key_id,
            operation="rename",
            vector_status=vector_status(new_id, before.body),
            vector_error=None,
        )
        return Change(before, after)

    return Edit(document_id, look=look, decide=decide)
