"""The blocking half of a sync: reads rows, finds what differs, makes documents of it.

One thread runs all of this. It holds the rows of one block, never those of a table.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from operator import itemgetter

from zibaldone.errors import SourceUnavailable, ZibaldoneError
from zibaldone.limits import (
    SYNC_BLOCK_BYTES,
    SYNC_BLOCK_ROWS,
    SYNC_FETCH_ROWS,
    SYNC_SETTLE_SECONDS,
    SYNC_STEP_SECONDS,
)
from zibaldone.model.pulled import PulledBlock, PulledRow, RowDocument
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.blocks import Cutter, Segment
from zibaldone.pull.connect import Connection, Stream, open_source
from zibaldone.pull.definition import Plan, plan
from zibaldone.pull.mapping import RowError
from zibaldone.pull.values import Row, encoded, instant_seconds, is_zero_date, text

_DAY_SECONDS = 86_400
_EPOCH_UNITS = (1.0, 1e3, 1e6)
_KEY_CHARS_MAX = 200
_ROW_BYTES = 200
"""Of a row beside its long texts, about."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that did not become a document."""

    key: str
    reason: str


@dataclass(slots=True)
class Examined:
    """What is to be done about the rows of a segment."""

    moved: list[str] = field(default_factory=list)
    """Unchanged rows that belong to another block."""
    unchanged: int = 0
    failures: list[Failure] = field(default_factory=list)
    wanted: list[Wanted] = field(default_factory=list)
    """Rows to be read whole."""
    left_blocks: set[int] = field(default_factory=set)
    """Stored blocks that rows of this segment belonged to."""
    is_settled: bool = True


@dataclass(frozen=True, slots=True)
class Wanted:
    row: Row
    document_id: str
    mark: int
    known: PulledRow | None


@dataclass(slots=True)
class Loaded:
    pairs: list[tuple[RowDocument, PulledRow]] = field(default_factory=list)
    """To be stored as documents."""
    same: list[PulledRow] = field(default_factory=list)
    """Their content is as it was; only what is remembered differs."""
    moved: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    """Document → the row's key, for reports."""
    known: dict[str, PulledRow] = field(default_factory=dict)
    """What is remembered of those that are to be stored."""
    unchanged: int = 0
    is_settled: bool = True


@dataclass(slots=True)
class Step:
    confirmed_rows: int
    segment: Segment | None
    is_end: bool


class SourceRows:
    def __init__(
        self,
        definition: SourceDefinition,
        environment: Mapping[str, str],
        *,
        is_full: bool,
        is_tolerant: bool = False,
    ) -> None:
        self._definition = definition
        self._environment = environment
        self._is_full = is_full
        self._is_tolerant = is_tolerant
        self._stack = ExitStack()
        self._connections: list[Connection] = []
        self._is_cancelled = False
        self._fetch_rows = 16
        self.plan: Plan
        self._cutter: Cutter
        self._second: Connection | None = None
        self._stream: Stream | None = None
        self._now_s = 0.0
        self._is_light = False
        self._light_places: tuple[int, ...] = ()
        self._watermark: int | None = None

    # Opening and closing

    def open(self, blocks: Sequence[PulledBlock]) -> int | None:
        """Open the snapshot; about how many rows there are, None where asking takes long."""
        connection = self._connect(is_stream=True)
        self.plan = plan(connection, self._definition)
        self._now_s = connection.now()
        has_light = self.plan.has_light
        self._is_light = has_light and not self._is_full and bool(blocks)
        whole = tuple(dict.fromkeys((*self.plan.mapper.columns, *self.plan.light_columns)))
        self._whole_columns = whole
        columns = self.plan.light_columns if self._is_light else whole
        kinds = {column.name: column.kind for column in self.plan.info.columns}
        self._long_places = [
            place for place, name in enumerate(whole) if kinds[name] in ("long", "other", "binary")
        ]
        self._light_places = tuple(whole.index(name) for name in self.plan.light_columns)
        self._watermark = columns.index(self._definition.watermark) if has_light else None
        expected = sum(block.rows for block in blocks) or self._estimate(connection)
        stream = self._stream = connection.stream(self.plan.select(columns))
        self._cutter = Cutter(
            stream.fetch if self._is_light else partial(self._fetch_whole, stream),
            blocks,
            key_length=len(self._definition.key),
            light=None if self._is_light else self._light_of_whole,
            seed=self.plan.mapper.fingerprint,
            is_full=self._is_full and has_light,
            weigh=None if self._is_light else self._weigh,
            block_rows=SYNC_BLOCK_ROWS,
        )
        return expected

    def _connect(self, *, is_stream: bool) -> Connection:
        connection = open_source(
            self._definition,
            self._environment,
            is_stream=is_stream,
            is_tolerant=self._is_tolerant,
        )
        self._connections.append(connection)
        self._stack.enter_context(connection)
        if self._is_cancelled:
            raise SourceUnavailable("The sync was stopped.", reason="cancelled")
        return connection

    def _estimate(self, connection: Connection) -> int | None:
        if self.plan.info.is_view:
            return None
        try:
            ((count,),) = connection.rows(self.plan.count())
        except ZibaldoneError:
            return None
        return int(count)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stack.close()

    def cancel(self) -> None:
        """From another thread: stop the statement that runs."""
        self._is_cancelled = True
        for connection in list(self._connections):
            connection.cancel()

    # Reading

    def step(self) -> Step:
        """Go on until something has to be looked at, or the time is over."""
        until_s = time.monotonic() + SYNC_STEP_SECONDS
        confirmed = 0
        while True:
            segment = self._cutter.next()
            if segment is None:
                return Step(confirmed, None, True)
            if not segment.is_confirmed:
                return Step(confirmed, segment, False)
            confirmed += len(segment.rows)
            if time.monotonic() > until_s:
                return Step(confirmed, None, False)

    @property
    def confirmed(self) -> set[int]:
        return self._cutter.confirmed

    def confirm(self, block: PulledBlock) -> None:
        self._cutter.confirm(block)

    def forget(self, blocks: set[int]) -> None:
        self._cutter.forget(blocks)

    def ids(self, segment: Segment) -> list[str]:
        """Of the rows that have one."""
        found = []
        for row in segment.rows:
            try:
                found.append(self.plan.mapper.document_id(row))
            except RowError:
                continue
        return found

    def examine(
        self,
        segment: Segment,
        known: Mapping[str, PulledRow],
        *,
        block: int,
        is_of_this_run: Callable[[int], bool],
    ) -> Examined:
        examined = Examined()
        seen: set[str] = set()
        lights = self._light(segment.rows)
        for row, light in zip(segment.rows, lights, strict=True):
            try:
                document_id = self.plan.mapper.document_id(row)
            except RowError as error:
                examined.failures.append(Failure(self._key(row), str(error)))
                continue
            remembered = known.get(document_id)
            if document_id in seen or (
                remembered is not None
                and remembered.block != block
                and is_of_this_run(remembered.block)
            ):
                examined.failures.append(
                    Failure(self._key(row), "another row of this source has the same key")
                )
                continue
            seen.add(document_id)
            if remembered is not None and remembered.block != block:
                examined.left_blocks.add(remembered.block)
            mark = self._mark(light) if self._is_row_settled(row) else 0
            if mark == 0:
                examined.is_settled = False
            is_same = remembered is not None and mark != 0 and remembered.mark == mark
            if is_same and remembered is not None and not self._must_read_all:
                examined.unchanged += 1
                if remembered.block != block:
                    examined.moved.append(document_id)
            else:
                examined.wanted.append(Wanted(row, document_id, mark, remembered))
        if examined.failures:
            examined.is_settled = False
        return examined

    @property
    def _must_read_all(self) -> bool:
        """Whether a mark is no proof: it was asked to compare everything."""
        return self._is_full and self.plan.has_light

    def load(self, wanted: Sequence[Wanted], block: int) -> tuple[Loaded, int]:
        """Read some of these rows whole, from the first on; and how many that were."""
        loaded = Loaded()
        count = min(len(wanted), self._fetch_rows) if self._is_light else len(wanted)
        batch = wanted[:count]
        if self._is_light:
            whole = self._read_by_key([item.row for item in batch])
        else:
            whole = {item.row[: self._key_length]: item.row for item in batch}
        for item in batch:
            row = whole.get(item.row[: self._key_length])
            if row is None:
                self._note_missing(item, block, loaded)
                continue
            self._compare(item, row, block, loaded)
        return loaded, count

    @property
    def _key_length(self) -> int:
        return len(self._definition.key)

    def _note_missing(self, item: Wanted, block: int, loaded: Loaded) -> None:
        """It is in one of the two snapshots only, so it went meanwhile: the next sync will tell."""
        loaded.is_settled = False
        if self._second is None:
            loaded.failures.append(
                Failure(self._key(item.row), "it cannot be read again by its key")
            )
        if item.known is not None:
            loaded.same.append(PulledRow(item.document_id, block, 0, item.known.content))

    def _compare(self, item: Wanted, row: Row, block: int, loaded: Loaded) -> None:
        mark = item.mark
        if self._is_light:
            (light,) = self._light_of_whole([row])
            if tuple(light) != tuple(item.row):
                mark, loaded.is_settled = 0, False
        mapper = self.plan.mapper
        row = row[: len(mapper.columns)]
        content = mapper.content(row)
        pulled = PulledRow(item.document_id, block, mark, content)
        if item.known is not None and item.known.content == content:
            loaded.unchanged += 1
            if item.known.mark != mark:
                loaded.same.append(pulled)
            elif item.known.block != block:
                loaded.moved.append(item.document_id)
            return
        loaded.keys[item.document_id] = self._key(row)
        if item.known is not None:
            loaded.known[item.document_id] = item.known
        loaded.pairs.append((mapper.document(row), pulled))

    def _read_by_key(self, rows: Sequence[Row]) -> dict[Row, Row]:
        keys = [row[: self._key_length] for row in rows]
        read = self._by_key().rows(self.plan.select_keys(self._whole_columns, keys))
        self._weigh(read)
        return {row[: self._key_length]: row for row in read}

    def _by_key(self) -> Connection:
        """The connection on which rows are read by their keys while others are streamed.

        Those of MySQL do one thing at a time, so there is a second one, opened when it is needed.
        Its snapshot is younger: what changed in between is seen as unsettled, and read again by
        the next sync.
        """
        if self._connections[0].dialect_name != "mysql":
            return self._connections[0]
        if self._second is None:
            self._second = self._connect(is_stream=False)
        return self._second

    def _fetch_whole(self, stream: Stream, count: int) -> Sequence[Row]:
        return stream.fetch(min(count, self._fetch_rows))

    def _weigh(self, rows: Sequence[Row]) -> list[int]:
        """The sizes of rows, by their long columns. Fewer rows are read while they are large."""
        weights = [_ROW_BYTES] * len(rows)
        for place in self._long_places:
            for number, row in enumerate(rows):
                value = row[place]
                if isinstance(value, str | bytes):
                    weights[number] += len(value)
        self._adapt(sum(weights))
        return weights

    def _adapt(self, weight: int) -> None:
        if weight > SYNC_BLOCK_BYTES // 2:
            self._fetch_rows = max(1, self._fetch_rows // 8)
        elif weight < SYNC_BLOCK_BYTES // 8:
            self._fetch_rows = min(SYNC_FETCH_ROWS, self._fetch_rows * 2)

    # Marks

    def _light(self, rows: Sequence[Row]) -> Sequence[Row]:
        return rows if self._is_light else self._light_of_whole(rows)

    def _light_of_whole(self, rows: Sequence[Row]) -> Sequence[Row]:
        places = self._light_places
        if len(places) == len(self._whole_columns):
            return rows
        if len(places) == 1:  # the key is its own watermark
            return [(row[places[0]],) for row in rows]
        return list(map(itemgetter(*places), rows))

    def _mark(self, light: Row) -> int:
        digest = hashlib.blake2b(
            encoded(light), digest_size=8, key=self.plan.mapper.fingerprint
        ).digest()
        return int.from_bytes(digest, "big", signed=True) or 1

    def _is_row_settled(self, row: Row) -> bool:
        """Whether a later edit is sure to change the watermark."""
        if self._watermark is None:
            return True  # the mark is over everything there is
        value = row[self._watermark]
        if value is None:
            return False
        if isinstance(value, int | float) and not isinstance(value, bool):
            # A count of seconds since 1970 has ticks like any clock.
            return all(abs(value / unit - self._now_s) > _DAY_SECONDS for unit in _EPOCH_UNITS)
        moment_s = instant_seconds(value)
        if moment_s is None:
            return not (isinstance(value, str) and (not value or is_zero_date(value)))
        is_day = (isinstance(value, date) and not isinstance(value, datetime)) or (
            isinstance(value, str) and len(value.strip()) <= len("2026-01-31")
        )
        tick_s = _DAY_SECONDS if is_day else 0
        return moment_s < self._now_s - SYNC_SETTLE_SECONDS - tick_s

    def _key(self, row: Row) -> str:
        """A row's key in a report."""
        values = [text(value) or repr(value) for value in row[: self._key_length]]
        return ",".join(values)[:_KEY_CHARS_MAX]
