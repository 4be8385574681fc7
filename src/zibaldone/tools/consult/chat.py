"""chat_with_<assistant>, start_job, poll_job: one turn of a conversation with another model."""

from __future__ import annotations

from pydantic import Field

from zibaldone.limits import (
    CONSULT_POLL_SECONDS_MAX,
    CONSULT_WAIT_SECONDS,
)
from zibaldone.model.assistant import Assistant
from zibaldone.tools.consult.fields import (
    AssistantName,
    Chat,
    ChatResult,
    JobId,
    assistant_named,
)
from zibaldone.tools.consult.waiting import add, chat_job, chat_result, own_job, wait
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_GRACE_SECONDS = 9.0
"""For storing the job and reading its answer."""


class StartJob(Chat):
    assistant: AssistantName


class PollJob(Arguments):
    job_id: JobId
    wait_seconds: float = Field(0.0, ge=0, le=CONSULT_POLL_SECONDS_MAX)


def chat_tool(assistant: Assistant) -> ToolSpec[Chat, ChatResult]:
    name = assistant.name

    async def handle(call: Call, given: Chat) -> ChatResult:
        job = await add(call, chat_job(call, name, given))
        return chat_result(await wait(call, job, CONSULT_WAIT_SECONDS))

    return ToolSpec(
        name=f"chat_with_{name}",
        title=f"Ask {name}",
        description=(
            f"Ask {assistant.model} about files and folders, turn after turn: files that did not "
            "change are not sent again, and what does not fit into the prompt is searchable for "
            "the assistant. A long answer comes by poll_job."
        ),
        arguments=Chat,
        result=ChatResult,
        effect="write",
        handler=handle,
        document=lambda given: given.store_answer,
        seconds_max=CONSULT_WAIT_SECONDS + _GRACE_SECONDS,
        reports_progress=True,
        job=lambda call, given: chat_job(call, name, given),
    )


async def handle_start(call: Call, given: StartJob) -> ChatResult:
    assistant_named(call, given.assistant)
    return chat_result(await add(call, chat_job(call, given.assistant, given)))


async def handle_poll(call: Call, given: PollJob) -> ChatResult:
    job = await own_job(call, given.job_id)
    return chat_result(await wait(call, job, given.wait_seconds))


START = ToolSpec(
    name="start_job",
    title="Ask an assistant, answer later",
    description="Like chat_with_<assistant>, without waiting: returns a job_id for poll_job.",
    arguments=StartJob,
    result=ChatResult,
    effect="write",
    handler=handle_start,
    document=lambda given: given.store_answer,
)
POLL = ToolSpec(
    name="poll_job",
    title="Answer of a job",
    description="The answer of a turn that was started, or that it is still running.",
    arguments=PollJob,
    result=ChatResult,
    effect="read",
    handler=handle_poll,
    seconds_max=CONSULT_POLL_SECONDS_MAX + _GRACE_SECONDS,
    reports_progress=True,
)
