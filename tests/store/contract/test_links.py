"""Links between documents: what a name leads to, the same on every engine."""

from __future__ import annotations

from functools import partial

from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.model.document import Document
from zibaldone.model.link import Links
from zibaldone.store.port import Writer


def _put(writer: Writer, document: Document, names: tuple[str, ...]) -> None:
    writer.links.put(document, Links((), names))


def test_a_name_that_many_have_hides_no_other(kept: Kept) -> None:
    for path in ("a/1", "a/2", "a/3", "z/only"):
        document = kept.create(path, "text", Tenant())
        names = ("only",) if path == "z/only" else ("same", "equal")
        kept.write(partial(_put, document=document, names=names), Tenant())

    def found(tenant: Tenant, each: int) -> dict[str, list[str]]:
        named = kept.read(
            lambda reader: reader.links.with_names(["same", "only", "none"], each=each), tenant
        )
        return {name: [one.document_id for one in some] for name, some in named.items()}

    assert found(Tenant(), 2) == {"same": ["a/1", "a/2"], "only": ["z/only"]}
    assert found(Tenant(prefix="a/"), 1) == {"same": ["a/1"]}
    assert found(Tenant("other"), 2) == {}
