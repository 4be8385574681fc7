"""zibaldone export: every live document as a file, with all its fields in one manifest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zibaldone.cli import context
from zibaldone.exchange.export import Values
from zibaldone.exchange.export import export as export_documents
from zibaldone.limits import HISTORY_LIMIT_MAX, LIST_LIMIT_MAX

if TYPE_CHECKING:
    from zibaldone.cli.session import Session


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--prefix", default="", help="Only documents whose path starts so.")
@click.option("--force", is_flag=True, help="Write into a folder that holds files already.")
@context.json_option
@click.pass_context
def export(ctx: click.Context, folder: Path, prefix: str, force: bool, as_json: bool) -> None:
    """Write the documents into a folder, one file each.

    DIR/documents.jsonl holds every field and revision; `import DIR` reads it all back. Deleted
    documents are not exported.
    """
    with context.opened(ctx.obj) as session:
        library = ToolLibrary(session)
        exported = session.run(export_documents(library, folder, prefix=prefix, force=force))
    if as_json:
        context.echo_json(asdict(exported))
    else:
        for problem in exported.problems:
            name, reason = (context.printable(problem[part]) for part in ("path", "reason"))
            click.echo(f"failed: {name}: {reason}", err=True)
        click.echo(
            f"{exported.documents} documents, {exported.revisions} earlier revisions, "
            f"{exported.renamed} with another file name, {exported.failed} failed"
        )
    if exported.failed:
        ctx.exit(1)


class ToolLibrary:
    """The documents, read through the tools."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def document_ids(self, prefix: str) -> AsyncIterator[str]:
        cursor = None
        while True:
            page = await self._read(
                "list_documents", prefix=prefix, limit=LIST_LIMIT_MAX, cursor=cursor
            )
            for item in page["items"]:
                yield item["document_id"]
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    async def document(self, document_id: str) -> Values:
        return await self._read("get_document_for_rewrite", path=document_id)

    async def history(self, document_id: str) -> AsyncIterator[Values]:
        before = None
        while True:
            page = await self._read(
                "document_history", path=document_id, limit=HISTORY_LIMIT_MAX, before=before
            )
            for head in page["revisions"]:
                yield head
            before = page["next_before"]
            if before is None:
                return

    async def revision(self, document_id: str, revision: int) -> Values:
        return await self._read("document_revision", path=document_id, revision=revision)

    async def _read(self, tool: str, **arguments: Any) -> Values:
        return self._session.values(await self._session.ask(tool, arguments))
