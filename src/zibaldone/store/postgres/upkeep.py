"""The engine's side of `store.upkeep`: by subject, across namespaces."""

from __future__ import annotations

from functools import cached_property

from zibaldone.store.postgres.chunks import ChunkTable
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.consistency import ConsistencyUpkeep
from zibaldone.store.postgres.mirrors import MirrorUpkeep
from zibaldone.store.postgres.models import ModelUpkeep
from zibaldone.store.postgres.queue import QueueUpkeep
from zibaldone.store.postgres.schedules import ScheduleUpkeep
from zibaldone.store.postgres.sources import SourceUpkeep
from zibaldone.store.postgres.term_scheme import TermUpkeep
from zibaldone.store.postgres.transfer import TransferUpkeep
from zibaldone.store.postgres.usage import UsageUpkeep
from zibaldone.store.postgres.vector_upkeep import VectorUpkeep


class Upkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    @cached_property
    def queue(self) -> QueueUpkeep:
        return QueueUpkeep(self._transaction)

    @cached_property
    def schedules(self) -> ScheduleUpkeep:
        return ScheduleUpkeep(self._transaction)

    @cached_property
    def models(self) -> ModelUpkeep:
        return ModelUpkeep(self._transaction)

    @cached_property
    def vectors(self) -> VectorUpkeep:
        return VectorUpkeep(self._transaction)

    @cached_property
    def consistency(self) -> ConsistencyUpkeep:
        return ConsistencyUpkeep(self._transaction)

    @cached_property
    def sources(self) -> SourceUpkeep:
        return SourceUpkeep(self._transaction)

    @cached_property
    def usage(self) -> UsageUpkeep:
        return UsageUpkeep(self._transaction)

    @cached_property
    def chunks(self) -> ChunkTable:
        return ChunkTable(self._transaction)

    @cached_property
    def terms(self) -> TermUpkeep:
        return TermUpkeep(self._transaction)

    @cached_property
    def transfer(self) -> TransferUpkeep:
        return TransferUpkeep(self._transaction)

    @cached_property
    def mirrors(self) -> MirrorUpkeep:
        return MirrorUpkeep(self._transaction)
