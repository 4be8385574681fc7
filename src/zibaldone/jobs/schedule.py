"""Schedules: jobs that are added at times given as a cron expression, in UTC.

Schedules are stored. Any number of processes may look after them: whoever is first adds the run and
moves the schedule on, in one transaction. Runs that were missed while nobody was looking are made
up for by one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cronsim import CronSim, CronSimError

from zibaldone.access.principal import NAMESPACE_DEFAULT
from zibaldone.errors import InvalidArgument, ZibaldoneError
from zibaldone.limits import CRON_CHARS_MAX
from zibaldone.model.instant import now_us
from zibaldone.model.job import NewJob, Schedule
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Upkeep

_log = logging.getLogger("zibaldone.jobs")

_LOOK_SECONDS = 5.0
"""How soon a schedule that another process changed, or a clock that was set, is noticed."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def next_run_us(cron: str, after_us: int) -> int:
    """The first time after `after_us` that the expression names.

    InvalidArgument: it is not a cron expression, or names no time at all.
    """
    if len(cron) > CRON_CHARS_MAX:
        raise InvalidArgument(f"A cron expression has at most {CRON_CHARS_MAX} characters.")
    if len(cron.split()) != 5:
        raise _invalid(cron, "it must have five fields")
    after = _EPOCH + timedelta(microseconds=after_us)
    try:
        moment = next(CronSim(cron, after))
    except CronSimError as problem:
        raise _invalid(cron, str(problem).lower()) from None
    except StopIteration:
        raise _invalid(cron, "it names no date that exists") from None
    except (AssertionError, ValueError, TypeError, OverflowError):  # its parser, on odd input
        raise _invalid(cron, "it cannot be read") from None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _invalid(cron: str, why: str) -> InvalidArgument:
    return InvalidArgument(
        f"{cron!r} is not a cron expression: {why}. Give minute, hour, day of month, month and day "
        "of week, such as '*/15 * * * *' or '0 3 * * MON-FRI' (UTC).",
        field="cron",
    )


def new_schedule(
    name: str,
    cron: str,
    kind: str,
    *,
    namespace: str = NAMESPACE_DEFAULT,
    payload: Mapping[str, Any] | None = None,
    after_us: int | None = None,
) -> Schedule:
    """A schedule whose first run is the next time the expression names."""
    first_us = next_run_us(cron, now_us() if after_us is None else after_us)
    return Schedule(name, cron, kind, namespace, payload or {}, first_us)


def run_due(upkeep: Upkeep, now_us: int) -> list[str]:
    """Add the runs that are due and move their schedules on; the names of those that ran."""
    names = []
    for schedule in upkeep.schedules.all():
        next_us = _next_or_none(schedule, now_us)
        if next_us is None:
            continue
        if schedule.next_run_at_us > next_us:  # the clock was ahead when that was written
            upkeep.schedules.advance(
                schedule.name, expected_us=schedule.next_run_at_us, next_run_at_us=next_us
            )
        elif schedule.next_run_at_us <= now_us and upkeep.schedules.advance(
            schedule.name,
            expected_us=schedule.next_run_at_us,
            next_run_at_us=next_us,
            ran_at_us=now_us,
        ):
            # The unique key is the schedule, unless its payload has one that others use, too: a
            # run that takes longer than the time between two is not joined by the next one.
            run = NewJob(
                schedule.kind,
                subject=schedule.payload.get("subject"),
                payload=schedule.payload or None,
                unique_key=schedule.payload.get("unique_key", f"schedule:{schedule.name}"),
                created_at_us=now_us,
            )
            upkeep.queue.add(schedule.namespace, [run])
            names.append(schedule.name)
    return names


def _next_or_none(schedule: Schedule, now_us: int) -> int | None:
    """None for a stored expression that is of no use: it must not stop the other schedules."""
    try:
        return next_run_us(schedule.cron, now_us)
    except InvalidArgument:
        return None


class Scheduler:
    def __init__(
        self,
        store: Store,
        schedules: Sequence[Schedule] = (),
        *,
        on_run: Callable[[], None] = lambda: None,
        clock: Callable[[], int] = now_us,
    ) -> None:
        """`schedules` are put into the store at the start; `on_run` is called after a run."""
        self._store = store
        self._schedules = schedules
        self._on_run = on_run
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        is_put = False
        while True:
            try:
                if not is_put:
                    await self.put()
                    is_put = True
                await self.tick()
            except ZibaldoneError as error:
                _log.warning("the schedules wait: %s [%s]", error.message, error.code)
            await asyncio.sleep(_LOOK_SECONDS)

    async def put(self) -> None:
        def put(upkeep: Upkeep) -> None:
            for schedule in self._schedules:
                upkeep.schedules.put(schedule)

        if self._schedules:
            await self._store.upkeep(put)

    async def tick(self) -> list[str]:
        """Add the runs that are due now."""
        now_us = self._clock()
        schedules = await self._store.upkeep(lambda upkeep: upkeep.schedules.all(), write=False)
        if not any(_is_due(schedule, now_us) for schedule in schedules):
            return []  # without the lock that writing needs
        names = await self._store.upkeep(lambda upkeep: run_due(upkeep, now_us))
        for name in names:
            _log.info("schedule %s: a run was queued", name)
        if names:
            self._on_run()
        return names


def _is_due(schedule: Schedule, now_us: int) -> bool:
    try:
        next_us = next_run_us(schedule.cron, now_us)
    except InvalidArgument as error:
        _log.warning("schedule %s does not run: %s", schedule.name, error.message)
        return False
    return not now_us < schedule.next_run_at_us <= next_us
