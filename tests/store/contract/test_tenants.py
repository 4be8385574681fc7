"""Tenants: what is outside a caller's namespace or folder does not exist for it, by any way in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.embed.hashed import Hashed
from zibaldone.errors import Conflict, Forbidden
from zibaldone.index.worker import IndexWorker
from zibaldone.model.document import Document
from zibaldone.model.job import VECTORS, NewJob
from zibaldone.model.query import Filter
from zibaldone.store import port
from zibaldone.store.port import AuditEntry, Reader
from zibaldone.text.query import parse_query

HOME = Tenant(namespace="home")
AWAY = Tenant(namespace="away")
TEAM = Tenant(namespace="home", prefix="team/")
NEIGHBOUR = Tenant(namespace="home", prefix="team/x")

SECRET = "team/secret"
SECRET_JOB = "0" * 26
MODEL = Hashed()
GIRAFFE = MODEL.embed(["giraffe"])[0]
EVERY_KEY = range(1, 9)
MIRROR = "elsewhere"
EVERY_DOCUMENT = "SELECT * FROM documents JOIN bodies USING (document_key) ORDER BY document_key"


@pytest.fixture
def secret(kept: Kept) -> Document:
    """One document with a history, of which the tenants below see everything or nothing.

    It has its vector, and waits for another, as one does that changed meanwhile.
    """
    kept.create(SECRET, "the zebra", HOME, tags=("animal",))
    kept.update(SECRET, HOME, body="the giraffe")
    asyncio.run(IndexWorker(kept.store, MODEL).drain())
    document = kept.update(SECRET, HOME, metadata={"k": "v"})
    job = NewJob(VECTORS, subject=str(document.storage_key), job_id=SECRET_JOB)
    kept.write(lambda writer: writer.queue.add([job]), HOME)
    asyncio.run(kept.store.upkeep(lambda upkeep: upkeep.mirrors.begin(MIRROR, 1)))
    return document


Look = Callable[[Reader, Document], Any]

LOOKS: dict[str, Look] = {
    "documents.get": lambda reader, _: reader.documents.get(SECRET),
    "documents.peek": lambda reader, _: reader.documents.peek(SECRET, 3),
    "documents.heads": lambda reader, _: reader.documents.heads("", limit=9),
    "documents.heads by prefix": lambda reader, _: reader.documents.heads("team/", limit=9),
    "documents.heads by id": lambda reader, _: reader.documents.heads(SECRET, limit=9),
    "documents.heads after": lambda reader, _: reader.documents.heads("", after="a", limit=9),
    "documents.listing": lambda reader, _: reader.documents.listing("", limit=9).count,
    "documents.listing by prefix": lambda reader, _: (
        reader.documents.listing("team/", limit=9).count
    ),
    "documents.folders": lambda reader, _: reader.documents.folders("", limit=9),
    "documents.heads_here": lambda reader, _: reader.documents.heads_here(
        SECRET.rpartition("/")[0] + "/", limit=9
    ),
    "documents.recent": lambda reader, _: [
        head for head in reader.documents.recent("team/", limit=9) if head.document_id == SECRET
    ],
    "revisions.page": lambda reader, secret: reader.revisions.page(secret, before=None, limit=9),
    "revisions.get": lambda reader, secret: reader.revisions.get(secret, 1),
    "lexical.search": lambda reader, _: reader.lexical.search(parse_query("giraffe"), limit=9),
    "lexical.search by prefix": lambda reader, _: reader.lexical.search(
        parse_query("giraffe"), limit=9, wanted=Filter(prefix="team/")
    ),
    "lexical.matching": lambda reader, _: reader.lexical.matching(
        parse_query("giraffe"), EVERY_KEY
    ),
    "chunks.source_names": lambda reader, _: reader.chunks.source_names([SECRET]),
    "chunks.documents_of": lambda reader, _: reader.chunks.documents_of(EVERY_KEY),
    "chunks.stored": lambda reader, secret: reader.chunks.stored(secret),
    "chunks.views": lambda reader, _: reader.chunks.views(EVERY_KEY),
    "chunks.views_at": lambda reader, _: reader.chunks.views_at([(SECRET, 0)]),
    "sources.counts": lambda reader, _: [
        source for source in reader.sources.counts() if source.documents or source.chunks
    ],
    "vectors.search": lambda reader, _: reader.vectors.search(MODEL.identity, GIRAFFE, 9),
    "vectors.search by prefix": lambda reader, _: reader.vectors.search(
        MODEL.identity, GIRAFFE, 9, Filter(prefix="team/")
    ),
    "vectors.search by id": lambda reader, _: reader.vectors.search(
        MODEL.identity, GIRAFFE, 9, Filter(document_ids=(SECRET,))
    ),
    "vectors.search by tag": lambda reader, _: reader.vectors.search(
        MODEL.identity, GIRAFFE, 9, Filter(tags_any=("animal",))
    ),
    "vectors.scores": lambda reader, _: reader.vectors.scores(MODEL.identity, GIRAFFE, EVERY_KEY),
    "vectors.passing": lambda reader, _: reader.vectors.passing(EVERY_KEY),
    "vectors.passing by tag": lambda reader, _: reader.vectors.passing(
        EVERY_KEY, Filter(tags_any=("animal",))
    ),
    "vectors.unmirrored": lambda reader, _: reader.vectors.unmirrored(MIRROR, 9),
    "vectors.coverage": lambda reader, _: reader.vectors.coverage(MODEL.identity).pending,
    "jobs.get": lambda reader, _: reader.jobs.get(SECRET_JOB),
    "jobs.head": lambda reader, _: reader.jobs.head(SECRET_JOB),
    "jobs.page": lambda reader, _: reader.jobs.page(limit=9),
    "jobs.page of a kind": lambda reader, _: reader.jobs.page(
        kind=VECTORS, state="queued", limit=9
    ),
    "audit.page": lambda reader, _: reader.audit.page(None, limit=9),
    "audit.page of a document": lambda reader, _: reader.audit.page(SECRET, limit=9),
}
"""Every way to read, asking for the secret as directly as it can."""


def test_the_looks_cover_every_read_of_the_port() -> None:
    protocols = {
        "documents": port.DocumentReads,
        "revisions": port.RevisionReads,
        "chunks": port.ChunkReads,
        "lexical": port.LexicalReads,
        "vectors": port.VectorReads,
        "jobs": port.JobReads,
        "sources": port.SourceReads,
        "audit": port.AuditReads,
    }
    parts = {name for name in vars(Reader) if not name.startswith("_")}
    # The keys are the operator's, no tenant's; `within` reads nothing. Sources, and what is
    # remembered of the rows pulled from them, belong to a namespace as a whole, sessions to a key,
    # and episodes have a folder of their own: test_sources.py, test_sessions.py and test_memory.py
    # look at them from outside.
    assert protocols.keys() == parts - {
        "api_keys",
        "within",
        "pulled",
        "sessions",
        "memory",
        "links",
    }
    offered = {
        f"{part}.{method}"
        for part, protocol in protocols.items()
        for method in vars(protocol)
        if not method.startswith("_")
    }
    of_the_deleted = {"documents.deleted"}  # the secret is live: looked at below
    of_sources = {"sources.all", "sources.get", "sources.named"}
    of_keys = {"jobs.open_of"}  # a count of one key's jobs: test_jobs.py looks at it from outside
    # Counts of the whole index, as BM25 uses them.
    of_the_index = {"lexical.chunk_counts", "lexical.frequencies"}
    others = of_the_deleted | of_sources | of_keys | of_the_index
    assert offered - others == {look.split(" ")[0] for look in LOOKS}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_nothing_is_seen_from_outside(kept: Kept, secret: Document, look: Look) -> None:
    for tenant in (AWAY, NEIGHBOUR, Tenant(), Tenant(namespace="home", prefix="team/secret/")):
        assert not kept.read(lambda reader: look(reader, secret), tenant), tenant
        assert not kept.read(lambda reader: look(reader, secret), tenant, is_small=True), tenant


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_everything_is_seen_from_inside(kept: Kept, secret: Document, look: Look) -> None:
    for tenant in (HOME, TEAM, Tenant(namespace="home", prefix=SECRET)):
        assert kept.read(lambda reader: look(reader, secret), tenant), tenant
        assert kept.read(lambda reader: look(reader, secret), tenant, is_small=True), tenant


def test_deleted_documents_are_seen_from_inside_only(kept: Kept) -> None:
    kept.create(SECRET, "the zebra", HOME)
    kept.delete(SECRET, HOME)

    def seen(tenant: Tenant) -> list[str]:
        heads = kept.read(lambda reader: reader.documents.deleted("", limit=9), tenant)
        return [head.document_id for head in heads]

    for tenant in (HOME, TEAM, Tenant(namespace="home", prefix=SECRET)):
        assert seen(tenant) == [SECRET], tenant
    for tenant in (AWAY, NEIGHBOUR, Tenant(), Tenant(namespace="home", prefix="team/secret/")):
        assert seen(tenant) == [], tenant


def test_namespaces_hold_the_same_ids_apart(kept: Kept) -> None:
    kept.create("a", "home zebra", HOME)
    kept.create("a", "away zebra", AWAY)
    kept.update("a", AWAY, body="away again")
    at_home, away = kept.get("a", HOME), kept.get("a", AWAY)
    assert at_home is not None
    assert away is not None
    assert (at_home.body, at_home.revision) == ("home zebra", 1)
    assert (away.body, away.revision) == ("away again", 2)
    assert [hit.text for hit in kept.search("zebra", HOME)] == ["home zebra"]
    assert kept.search("zebra", AWAY) == []


def test_a_writer_reads_no_further_than_a_reader(kept: Kept, secret: Document) -> None:
    for tenant in (AWAY, NEIGHBOUR):
        for look in (look for name, look in LOOKS.items() if not name.startswith("vectors.")):
            assert not kept.write(lambda writer, look=look: look(writer, secret), tenant)  # type: ignore[misc]


def test_a_writer_changes_nothing_outside(kept: Kept, secret: Document, backend: Backend) -> None:
    before = backend.query(EVERY_DOCUMENT)
    with pytest.raises(Conflict):
        kept.write(lambda writer: writer.documents.replace(secret, secret), AWAY)
    with pytest.raises(Forbidden):
        kept.write(lambda writer: writer.documents.replace(secret, secret), NEIGHBOUR)
    with pytest.raises(Forbidden):
        kept.write(lambda writer: writer.documents.insert(secret), NEIGHBOUR)
    assert backend.query(EVERY_DOCUMENT) == before
    assert backend.query("SELECT count(*) FROM revisions") == [(2,)]


def test_sources_of_another_namespace_are_not_even_named(kept: Kept, backend: Backend) -> None:
    for number, namespace in enumerate(("home", "away"), 50):
        backend.execute(
            "INSERT INTO sources (source_id, namespace, name, kind, enabled, created_at_us) "
            f"VALUES ({number}, '{namespace}', 'posts of {namespace}', 'database', 1, 0)"
        )
    for tenant, own in ((HOME, {"posts of home"}), (AWAY, {"posts of away"}), (Tenant(), set())):
        for is_small in (False, True):
            counts = kept.read(lambda reader: reader.sources.counts(), tenant, is_small=is_small)
            assert {source.name for source in counts} == {"kb", *own}


def test_an_audit_line_belongs_to_the_namespace_it_was_written_in(kept: Kept) -> None:
    line = AuditEntry(at_us=1, principal="p", action="delete", document_id="a/b", outcome="refused")
    kept.write(lambda writer: writer.audit.add(line), AWAY)
    assert kept.read(lambda reader: reader.audit.page(None, limit=9), AWAY) == [line]
    assert kept.read(lambda reader: reader.audit.page(None, limit=9), HOME) == []
