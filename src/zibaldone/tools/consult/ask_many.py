"""ask_many: one question to several assistants, side by side."""

from __future__ import annotations

import asyncio
from typing import Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.consult.many import Comparison, compare
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import CONSULT_MANY_MAX, CONSULT_WAIT_SECONDS
from zibaldone.tools.consult.fields import AssistantName, Chat, ChatResult, assistant_named
from zibaldone.tools.consult.waiting import add, chat_job, chat_result, wait
from zibaldone.tools.spec import Call, ToolSpec

_GRACE_SECONDS = 9.0


class AskMany(Chat):
    assistants: list[AssistantName] = Field(
        [], max_length=CONSULT_MANY_MAX, description="Default: all of them"
    )


class Failure(TypedDict):
    assistant: str
    code: str
    message: str


class ManyAnswers(TypedDict):
    status: Literal["done", "running"]
    session_id: str
    answers: list[ChatResult]
    """In the order of the assistants; those that still run have a job_id for poll_job."""
    failed: list[Failure]
    comparison: NotRequired[Comparison]
    """Of the answers that are there, if they are more than one."""


async def handle(call: Call, given: AskMany) -> ManyAnswers:
    known = call.runtime.assistants
    names = list(dict.fromkeys(given.assistants)) or list(known)[:CONSULT_MANY_MAX]
    for name in names:
        assistant_named(call, name)
    # A document holds one answer: with several assistants each has its own.
    asked = [
        given.model_copy(update={"store_answer": f"{given.store_answer}-{name}"})
        if given.store_answer is not None
        else given
        for name in names
    ]
    jobs = [
        await add(call, chat_job(call, name, one)) for name, one in zip(names, asked, strict=True)
    ]
    ended = await asyncio.gather(*(wait(call, job, CONSULT_WAIT_SECONDS) for job in jobs))
    answers: list[ChatResult] = []
    failed: list[Failure] = []
    for name, job in zip(names, ended, strict=True):
        try:
            answers.append(chat_result(job))
        except ZibaldoneError as error:
            failed.append({"assistant": name, "code": error.code, "message": error.message})
    is_running = any(answer["status"] == "running" for answer in answers)
    result: ManyAnswers = {
        "status": "running" if is_running else "done",
        "session_id": given.session_id,
        "answers": answers,
        "failed": failed,
    }
    texts = {answer["assistant"]: answer["answer"] for answer in answers if "answer" in answer}
    if len(texts) > 1:
        result["comparison"] = await asyncio.to_thread(compare, texts)
    return result


TOOL = ToolSpec(
    name="ask_many",
    title="Ask several assistants",
    description=(
        "Ask several assistants the same, side by side, each in its own session of that name. "
        "Returns their answers, what they agree on and what only some of them say."
    ),
    arguments=AskMany,
    result=ManyAnswers,
    effect="write",
    handler=handle,
    document=lambda given: given.store_answer,
    seconds_max=CONSULT_WAIT_SECONDS + _GRACE_SECONDS,
    reports_progress=True,
)
