"""zibaldone jobs: work in the background."""

from __future__ import annotations

from typing import Any

import click

from zibaldone.cli import context
from zibaldone.limits import JOB_LIST_LIMIT_DEFAULT, JOB_LIST_LIMIT_MAX
from zibaldone.model.job import STATES

_COLUMNS = ("id", "kind", "state", "created", "subject", "")
_LINES = ("job_id", "kind", "state", "subject", "created_at", "not_before", "started_at")
_LINES_AFTER = ("finished_at", "attempts", "crashes", "error")


@click.group(invoke_without_command=True)
@click.option("--kind", help="Only jobs of this kind.")
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state.")
@click.option(
    "--limit",
    type=click.IntRange(1, JOB_LIST_LIMIT_MAX),
    default=JOB_LIST_LIMIT_DEFAULT,
    show_default=True,
    help="How many jobs to show.",
)
@click.option("--after", help="Go on after the job with this id.")
@context.json_option
@click.pass_context
def jobs(ctx: click.Context, /, as_json: bool, **arguments: Any) -> None:
    """List background jobs, or show, cancel and retry one.

    The newest comes first.
    """
    if ctx.invoked_subcommand is not None:
        return
    answer = context.run_tool(ctx.obj, "list_jobs", arguments)
    if as_json:
        context.echo_json(answer)
        return
    if answer["jobs"]:
        context.echo_table([_COLUMNS, *(_row(job) for job in answer["jobs"])])
    if answer["next_after"] is not None:
        click.echo(f"There are more jobs; use --after {answer['next_after']}", err=True)


@jobs.command()
@click.argument("job_id", metavar="ID")
@context.json_option
@click.pass_obj
def show(options: context.Options, /, job_id: str, as_json: bool) -> None:
    """Show the job ID with its payload and result."""
    job = context.run_tool(options, "get_job", {"job_id": job_id})
    if as_json:
        context.echo_json(job)
        return
    rows = [(name, job[name]) for name in (*_LINES, *_LINES_AFTER)]
    rows.append(("progress", _progress(job)))
    rows += [(name, context.as_json_line(job[name])) for name in ("payload", "result") if job[name]]
    context.echo_table(
        [(name, context.printable(str(value))) for name, value in rows if value not in (None, "")]
    )


@jobs.command()
@click.argument("job_id", metavar="ID")
@context.json_option
@click.pass_obj
def cancel(options: context.Options, /, job_id: str, as_json: bool) -> None:
    """Cancel the job ID; a running job is asked to stop."""
    job = context.run_tool(options, "cancel_job", {"job_id": job_id})
    if as_json:
        context.echo_json(job)
    elif job["state"] == "running":
        click.echo(f"asked {job_id} to stop")
    else:
        click.echo(f"cancelled {job_id}")


@jobs.command()
@click.argument("job_id", metavar="ID")
@context.json_option
@click.pass_obj
def retry(options: context.Options, /, job_id: str, as_json: bool) -> None:
    """Queue the job ID again after it failed or was cancelled."""
    job = context.run_tool(options, "retry_job", {"job_id": job_id})
    if as_json:
        context.echo_json(job)
    else:
        click.echo(f"queued {job_id}; it runs when a server does")


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    return (
        job["job_id"],
        job["kind"],
        job["state"],
        job["created_at"][:19] + "Z",
        context.printable(job["subject"] or "-"),
        context.printable(job["error"] or _progress(job)),
    )


def _progress(job: dict[str, Any]) -> str:
    progress = job["progress"]
    if progress is None:
        return ""
    total = "" if progress["total"] is None else f"/{progress['total']:g}"
    return f"{progress['done']:g}{total} {progress['message']}".rstrip()
