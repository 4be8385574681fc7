"""Where the rows of a sync go. `keep/` implements it; the two do not know each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from zibaldone.access.principal import Tenant
from zibaldone.model.incoming import Imported
from zibaldone.model.pulled import PulledBlock, PulledRow, RowDocument

Run = TypeVar("Run")


class Destination(Protocol[Run]):
    """Every call after `begin` raises Conflict if another run of the source has begun since."""

    async def begin(self, tenant: Tenant, source_id: int, source_name: str, run: int) -> Run: ...

    async def write(
        self, run: Run, pairs: Sequence[tuple[RowDocument, PulledRow]]
    ) -> list[Imported]:
        """Store rows as documents, each with what is remembered of it; their outcomes in order."""
        ...

    async def seal(
        self, run: Run, rows: Sequence[PulledRow], moved: Sequence[str], block: PulledBlock
    ) -> None:
        """Remember a block, rows with another mark, and rows that come to the block unchanged."""
        ...

    async def drop_blocks(self, run: Run, blocks: Sequence[int]) -> None: ...

    async def delete(self, run: Run, document_ids: Sequence[str]) -> int:
        """Delete documents, softly, and forget their rows; how many there were."""
        ...

    async def finish(self, run: Run) -> None: ...
