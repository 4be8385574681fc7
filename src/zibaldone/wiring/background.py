"""Runtime → the work that runs beside requests, in a server and over stdio alike."""

from __future__ import annotations

from zibaldone.jobs.schedule import Scheduler
from zibaldone.jobs.supervisor import BackgroundTask, Supervisor
from zibaldone.tools.spec import Runtime


def build_supervisor(runtime: Runtime) -> Supervisor:
    tasks: list[BackgroundTask] = []
    if runtime.index is not None:
        tasks += [
            BackgroundTask("index", runtime.index.run),
            BackgroundTask("vectors", runtime.index.load_vectors, ends=True),
        ]
    if runtime.jobs is not None:
        scheduler = Scheduler(runtime.store, runtime.schedules, on_run=runtime.jobs.wake)
        tasks += [
            BackgroundTask("jobs", runtime.jobs.run),
            BackgroundTask("schedules", scheduler.run),
        ]
    return Supervisor(tasks)
