"""The engine's side of `store.upkeep`: by subject, across namespaces."""

from __future__ import annotations

from functools import cached_property

import apsw

from zibaldone.store.sqlite.chunks import ChunkTable
from zibaldone.store.sqlite.consistency import ConsistencyUpkeep
from zibaldone.store.sqlite.mirrors import MirrorUpkeep
from zibaldone.store.sqlite.models import ModelUpkeep
from zibaldone.store.sqlite.queue import QueueUpkeep
from zibaldone.store.sqlite.schedules import ScheduleUpkeep
from zibaldone.store.sqlite.sources import SourceUpkeep
from zibaldone.store.sqlite.term_scheme import TermUpkeep
from zibaldone.store.sqlite.term_steps import TermSteps
from zibaldone.store.sqlite.transfer import TransferUpkeep
from zibaldone.store.sqlite.usage import UsageUpkeep
from zibaldone.store.sqlite.vector_upkeep import VectorUpkeep


class Upkeep:
    def __init__(self, raw: apsw.Connection, later: TermSteps | None = None) -> None:
        self._raw = raw
        self._later = later

    @cached_property
    def queue(self) -> QueueUpkeep:
        return QueueUpkeep(self._raw)

    @cached_property
    def schedules(self) -> ScheduleUpkeep:
        return ScheduleUpkeep(self._raw)

    @cached_property
    def models(self) -> ModelUpkeep:
        return ModelUpkeep(self._raw)

    @cached_property
    def vectors(self) -> VectorUpkeep:
        return VectorUpkeep(self._raw)

    @cached_property
    def consistency(self) -> ConsistencyUpkeep:
        return ConsistencyUpkeep(self._raw)

    @cached_property
    def sources(self) -> SourceUpkeep:
        return SourceUpkeep(self._raw)

    @cached_property
    def usage(self) -> UsageUpkeep:
        return UsageUpkeep(self._raw)

    @cached_property
    def chunks(self) -> ChunkTable:
        return ChunkTable(self._raw, self._later)

    @cached_property
    def terms(self) -> TermUpkeep:
        return TermUpkeep(self._raw)

    @cached_property
    def transfer(self) -> TransferUpkeep:
        return TransferUpkeep(self._raw)

    @cached_property
    def mirrors(self) -> MirrorUpkeep:
        return MirrorUpkeep(self._raw)
