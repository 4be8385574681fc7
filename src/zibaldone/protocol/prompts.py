"""Prompts that help an agent use the knowledge base well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zibaldone.protocol.jsonrpc import INVALID_PARAMS, ProtocolError


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]
    """Name, meaning, required."""
    text: str


PROMPTS = (
    Prompt(
        "answer_from_knowledge",
        "Answer from the knowledge base",
        "Answer a question from documents, naming each one used.",
        (("question", "What to find out", True),),
        "Answer this question from the knowledge base: {question}\n\n"
        "Search with search_knowledge (try other words if the first find little), read what looks "
        "right with get_document, and name the path of every document you rely on. If the "
        "documents do not say it, say so.",
    ),
    Prompt(
        "keep_note",
        "Keep a note",
        "Write down what was learned where others will find it.",
        (("topic", "What the note is about", True), ("path", "Where to keep it", False)),
        "Keep what we learned about {topic} in the knowledge base. First search_knowledge for a "
        "document that has it already: patch that one if there is. Otherwise upload_document "
        "{path}with a clear title, two to five tags, the conclusion first, then the reasons.",
    ),
    Prompt(
        "tidy_folder",
        "Tidy a folder",
        "Find documents that repeat or contradict each other.",
        (("prefix", "The folder, e.g. notes/", True),),
        "Go through the documents under {prefix} (list_documents, then batch_read). Report those "
        "that repeat, contradict or have outlived each other, with their paths, and propose for "
        "each what to merge, correct or delete. Change nothing before that is agreed.",
    ),
)

LISTED: list[dict[str, Any]] = [
    {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": [
            {"name": name, "description": meaning, "required": required}
            for name, meaning, required in prompt.arguments
        ],
    }
    for prompt in PROMPTS
]
_BY_NAME = {prompt.name: prompt for prompt in PROMPTS}


def get(name: str, arguments: dict[str, str]) -> dict[str, Any]:
    prompt = _BY_NAME.get(name)
    if prompt is None:
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {name[:128]}")
    values = {}
    for argument, _, required in prompt.arguments:
        value = arguments.get(argument, "")
        if required and not value:
            raise ProtocolError(INVALID_PARAMS, f"The argument {argument} is missing.")
        values[argument] = value
    if "path" in values:
        values["path"] = f"at {values['path']} " if values["path"] else ""
    text = prompt.text.format(**values)
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }
