"""Runtime → the work that runs beside requests, in a server and over stdio alike."""

from __future__ import annotations

import logging
from functools import partial

from zibaldone.errors import ZibaldoneError
from zibaldone.index.renewal import renew_terms, settle_terms
from zibaldone.jobs.schedule import Scheduler
from zibaldone.jobs.supervisor import BackgroundTask, Supervisor
from zibaldone.tools.spec import Runtime
from zibaldone.wiring.consult import sweep_hosted

_log = logging.getLogger("zibaldone.background")


def build_supervisor(runtime: Runtime) -> Supervisor:
    tasks: list[BackgroundTask] = []
    if runtime.index is not None:
        tasks += [
            BackgroundTask("index", runtime.index.run),
            BackgroundTask("vectors", partial(_prepare_model, runtime), ends=True),
        ]
    if runtime.vector_feed is not None:
        tasks.append(BackgroundTask("qdrant", runtime.vector_feed.run))
    if runtime.jobs is not None:
        scheduler = Scheduler(runtime.store, runtime.schedules, on_run=runtime.jobs.wake)
        tasks += [
            BackgroundTask("terms", partial(renew_terms, runtime.store), ends=True),
            BackgroundTask("terms-left", partial(settle_terms, runtime.store)),
            BackgroundTask("jobs", runtime.jobs.run),
            BackgroundTask("schedules", scheduler.run),
        ]
    if runtime.live is not None:
        tasks.append(BackgroundTask("sources", runtime.live.run))
    if any(assistant.hosted_store for assistant in runtime.assistants.values()):
        sweep = partial(sweep_hosted, runtime.assistants)
        tasks.append(BackgroundTask("hosted-stores", sweep, ends=True))
    if tasks:
        tasks.append(
            BackgroundTask("wake-ups", partial(runtime.store.listen, runtime.wake), ends=True)
        )
    return Supervisor(tasks)


async def _prepare_model(runtime: Runtime) -> None:
    """Ahead of the first search, which would have to wait otherwise."""
    if runtime.embedder is None:
        return
    try:
        await runtime.store.prepare_model(runtime.embedder.identity)
    except ZibaldoneError as error:
        _log.warning("the vectors were not prepared: %s [%s]", error.message, error.code)
