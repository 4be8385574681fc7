"""recall: what an agent should know, in one call."""

from __future__ import annotations

from typing import NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.find.missing import Missing, notes_of, parts_of
from zibaldone.find.recall import Line, Recalled, recall
from zibaldone.limits import RECALL_TOKENS_DEFAULT, RECALL_TOKENS_MAX, RECALL_TOKENS_MIN
from zibaldone.model.instant import to_iso
from zibaldone.store.port import Reader
from zibaldone.tools.fields import LeftOut
from zibaldone.tools.memory.fields import AsOf, GroupIds, groups_of
from zibaldone.tools.memory.search import question_of
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class Recall(Arguments):
    query: str = Field(description="What the task is about, or a question")
    group: GroupIds = None
    as_of: AsOf = None
    budget_tokens: int = Field(RECALL_TOKENS_DEFAULT, ge=RECALL_TOKENS_MIN, le=RECALL_TOKENS_MAX)


class LineAnswer(TypedDict):
    text: str
    at: str
    """The episode's time."""
    uuid: str
    group_id: str
    document_id: str
    name: str
    until: NotRequired[str]
    """It no longer holds; since then."""
    replaced_by: NotRequired[str]


class Lines(TypedDict):
    lines: list[LineAnswer]
    tokens: int
    """About how many the lines take."""
    truncated: bool
    """There is more than the budget has room for."""
    left_out: NotRequired[LeftOut]
    note: NotRequired[str]


async def handle(call: Call, given: Recall) -> Lines:
    asked, missing = await question_of(call, given.query, groups_of(given.group), given.as_of)

    def search(reader: Reader) -> Recalled:
        return recall(reader, asked, budget_tokens=given.budget_tokens)

    found = await call.runtime.store.read(call.principal.tenant, search)
    answer: Lines = {
        "lines": [_answer(line) for line in found.lines],
        "tokens": sum(line.tokens for line in found.lines),
        "truncated": found.left > 0,
    }
    absent: tuple[Missing, ...] = (*missing, *found.missing)
    if absent:
        answer["left_out"] = parts_of(absent)
        answer["note"] = "; ".join(notes_of(absent))
    return answer


def _answer(line: Line) -> LineAnswer:
    answer: LineAnswer = {
        "text": line.text,
        "at": to_iso(line.episode.valid_at_us),
        "uuid": line.episode.episode_id,
        "group_id": line.episode.group_id,
        "document_id": line.episode.document_id,
        "name": line.title,
    }
    if line.until_us is not None:
        answer["until"] = to_iso(line.until_us)
        answer["replaced_by"] = line.replaced_by or ""
    return answer


TOOL = ToolSpec(
    name="recall",
    title="Recall what matters",
    description=(
        "One call at the start of a task: the lines of memory that matter for it, each once, with "
        "their source, within a budget of tokens. What no longer holds comes last and says so."
    ),
    arguments=Recall,
    result=Lines,
    effect="read",
    handler=handle,
)
