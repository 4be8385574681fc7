"""Both engines on the same texts: how good their keyword searches are, and where they differ.

    python -m benchmarks.engines --data DIR --postgres URL [--sets cranfield,chunkeval]

DIR is as for `benchmarks.quality`. URL is that of an empty database; what it is filled with stays
there. Each set goes into a namespace of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from benchmarks.quality import RetrievalSet, ndcg, read_set
from zibaldone.access.principal import Tenant
from zibaldone.keep.commit import Actor
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.store.open import open_store, store_url
from zibaldone.store.port import Reader, Store, Writer
from zibaldone.text.query import parse_query

_ACTOR = Actor("benchmark", "")
_PER_WRITE = 100
_K = 50

Ranked = list[tuple[str, str, float]]
"""Document, chunk, score."""


def fill(store: Store, tenant: Tenant, found: RetrievalSet) -> None:
    documents = list(found.documents.items())
    for start in range(0, len(documents), _PER_WRITE):

        def write(writer: Writer, start: int = start) -> None:
            for name, (title, text) in documents[start : start + _PER_WRITE]:
                new = NewDocument(name, text or title, title=title[:900], mime="text/plain")
                create(writer, new, _ACTOR, Limits())

        asyncio.run(store.write(tenant, write))


def search(store: Store, tenant: Tenant, words: str) -> Ranked:
    def look(reader: Reader) -> Ranked:
        hits = reader.lexical.search(parse_query(words), limit=_K)
        views = reader.chunks.views(key for key, _ in hits)
        return [(views[key].document_id, views[key].chunk_id, score) for key, score in hits]

    return asyncio.run(store.read(tenant, look))


def compare(found: RetrievalSet, embedded: Store, postgres: Store) -> str:
    tenant = Tenant(f"benchmark-{found.name}")
    fill(embedded, tenant, found)
    fill(postgres, tenant, found)
    gains, differing, largest = [0.0, 0.0], 0, 0.0
    for name, words in found.queries.items():
        both = [search(store, tenant, words) for store in (embedded, postgres)]
        for number, ranked in enumerate(both):
            ids = list(dict.fromkeys(document for document, _, _ in ranked))
            gains[number] += ndcg(ids, found.relevant[name]) / len(found.queries)
        ours, theirs = ({chunk: score for _, chunk, score in ranked} for ranked in both)
        differing += list(ours) != list(theirs)
        shared = ours.keys() & theirs.keys()
        largest = max([largest, *(abs(ours[chunk] - theirs[chunk]) for chunk in shared)])
    return (
        f"| {found.name} | {gains[0]:.4f} | {gains[1]:.4f} | "
        f"{differing} of {len(found.queries)} | {largest:.0e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--sets", default="cranfield,chunkeval,xquad_en,xquad_de,xquad_vi")
    parser.add_argument("--queries", type=int, help="only the first N queries of each set")
    given = parser.parse_args()
    print("| nDCG@10 | embedded | PostgreSQL | lists that differ | largest difference of a score |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        # Words are counted over all namespaces, so both hold the same ones.
        embedded = open_store(store_url(Path(folder)), Limits())
        postgres = open_store(given.postgres, Limits())
        for name in given.sets.split(","):
            found = read_set(given.data / name, given.queries)
            print(compare(found, embedded, postgres), flush=True)
        postgres.close()
        embedded.close()


if __name__ == "__main__":
    main()
