"""Prompts that help an agent use the knowledge base well."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from zibaldone.protocol.jsonrpc import INVALID_PARAMS, ProtocolError
from zibaldone.tools.catalogue import underscored


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]
    """Name, meaning, required."""
    tools: tuple[str, ...]
    """Those that its text names; it is offered where all of them are."""
    text: str


PROMPTS = (
    Prompt(
        "answer_from_knowledge",
        "Answer from the knowledge base",
        "Answer a question from documents, naming each one used.",
        (("question", "What to find out", True),),
        ("search_knowledge", "get_document"),
        "Answer this question from the knowledge base: {question}\n\n"
        "Search with search_knowledge (try other words if the first find little), read what looks "
        "right with get_document, and name the path of every document you rely on. If the "
        "documents do not say it, say so.",
    ),
    Prompt(
        "answer_from_knowledge",
        "Answer from the knowledge base",
        "Answer a question from documents, naming each one used.",
        (("question", "What to find out", True),),
        ("rag.search_hybrid", "rag.get_chunks"),
        "Answer this question from the knowledge base: {question}\n\n"
        "Search with rag.search_hybrid (try other words if the first find little), read on around "
        "what looks right with rag.get_chunks, and name every document you rely on. If the "
        "documents do not say it, say so.",
    ),
    Prompt(
        "keep_note",
        "Keep a note",
        "Write down what was learned where others will find it.",
        (("topic", "What the note is about", True), ("path", "Where to keep it", False)),
        ("search_knowledge", "patch_document", "upload_document"),
        "Keep what we learned about {topic} in the knowledge base. First search_knowledge for a "
        "document that has it already: patch that one if there is. Otherwise upload_document "
        "{path}with a clear title, two to five tags, the conclusion first, then the reasons.",
    ),
    Prompt(
        "tidy_folder",
        "Tidy a folder",
        "Find documents that repeat or contradict each other.",
        (("prefix", "The folder, e.g. notes/", True),),
        ("list_documents", "batch_read"),
        "Go through the documents under {prefix} (list_documents, then batch_read). Report those "
        "that repeat, contradict or have outlived each other, with their paths, and propose for "
        "each what to merge, correct or delete. Change nothing before that is agreed.",
    ),
)


def offered(tools: Set[str], *, with_underscores: bool) -> dict[str, Prompt]:
    """The prompts for these tools by name, with the tools spelled as the profile lists them."""
    known: dict[str, Prompt] = {}
    for prompt in PROMPTS:
        if set(prompt.tools) <= tools:
            known.setdefault(prompt.name, _spelled(prompt) if with_underscores else prompt)
    return known


def _spelled(prompt: Prompt) -> Prompt:
    text = prompt.text
    for tool in prompt.tools:
        text = text.replace(tool, underscored(tool))
    return replace(prompt, text=text)


def listed(known: Mapping[str, Prompt]) -> list[dict[str, Any]]:
    return [
        {
            "name": prompt.name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": [
                {"name": name, "description": meaning, "required": required}
                for name, meaning, required in prompt.arguments
            ],
        }
        for prompt in known.values()
    ]


def get(known: Mapping[str, Prompt], name: str, arguments: dict[str, str]) -> dict[str, Any]:
    prompt = known.get(name)
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
