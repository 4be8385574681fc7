"""Remove a source with its documents."""

from __future__ import annotations

from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.model.instant import now_us
from zibaldone.pull.destination import Destination
from zibaldone.store.port import Store

_BATCH = 2_000
_RELEASE_BATCH = 20_000


async def remove_source(
    store: Store, destination: Destination[Any], source_id: int, namespace: str, name: str
) -> int:
    """Delete the source's documents, softly, then the source; how many documents that were.

    They can be restored afterwards, as documents of the built-in source. A sync that runs stops.
    Cut short, it can be repeated.
    """
    tenant = Tenant(namespace)
    last = await store.read(tenant, lambda reader: reader.pulled.last_run(source_id))
    number = max(now_us(), (last.run if last is not None else 0) + 2**24)
    run = await destination.begin(tenant, source_id, name, number)
    blocks = await store.read(tenant, lambda reader: reader.pulled.blocks(source_id))
    await destination.drop_blocks(run, [block.block for block in blocks])
    deleted = 0
    while True:
        ids = await store.read(
            tenant, lambda reader: reader.pulled.lost(source_id, _BATCH), seconds_max=60.0
        )
        if not ids:
            break
        deleted += await destination.delete(run, ids)
    while await store.upkeep(lambda upkeep: upkeep.sources.release(source_id, _RELEASE_BATCH)):
        pass
    await store.upkeep(lambda upkeep: upkeep.sources.remove(source_id))
    return deleted
