"""In a small store every word is rare: one stray word of a question must not decide."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.drivers.runtimes import Caller, opened
from zibaldone.tools.spec import Runtime

NOTES = {
    "sick": "If you fall ill, phone your team lead before nine. From the third day on a doctor's"
    " certificate is required.",
    "review": "Two colleagues must approve a change before it is merged. Small fixes of typos need"
    " only one.",
    "monitor": "An alarm is raised when more than 1 % of the answers are errors for five minutes.",
    "cat": "Minka gets half a tin in the morning and dry food at night. Her vaccination is due in"
    " March.",
    "bees": "The colony by the shed swarmed in June. We caught it in a box and it now lives under"
    " the cherry tree.",
    "deploy": "Releases go out on Tuesdays and Thursdays. Merge to main before noon, then the"
    " pipeline ships it by itself.",
    "password": "Credentials expire after 180 days. If you are locked out, the help desk resets"
    " them after checking your face on video.",
    "invoice": "Bills from suppliers are scanned, named by date and supplier, and put in the"
    " folder Accounts Payable.",
    "vpn": "To reach the office network from home, start the tunnel client and log in with your"
    " badge number.",
}
PARAPHRASED = {  # each shares a word with a note that does not answer it
    "do I need a note from a physician": "sick",
    "when do we get an alert": "monitor",
    "when does the cat need her shot": "cat",
    "where did the insects go": "bees",
    "my account is locked": "password",
}
KEYWORDS = {
    "badge": "vpn",
    "colleagues": "review",
    "cherry tree": "bees",
    "tunnel client": "vpn",
    "suppliers bills": "invoice",
}


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with opened(tmp_path_factory.mktemp("notes") / "data", embedder="minilm") as runtime:
        caller = Caller(runtime)
        for path, content in NOTES.items():
            caller("upload_document", path=path, content=content)
        asyncio.run(embed_all(runtime))
        yield caller


async def embed_all(runtime: Runtime) -> None:
    assert runtime.index is not None
    while (await runtime.index.drain_once()).documents:
        pass


@pytest.mark.parametrize(("question", "path"), PARAPHRASED.items())
def test_a_paraphrase_comes_before_a_stray_word(ask: Caller, question: str, path: str) -> None:
    first, *others = ask("search_knowledge", query=question)["results"]
    assert first["document_id"] == path
    assert any(hit["relevance"] < first["relevance"] for hit in others), "none has a stray word"


@pytest.mark.parametrize(("query", "path"), KEYWORDS.items())
def test_a_word_that_is_all_of_the_query_decides(ask: Caller, query: str, path: str) -> None:
    assert ask("search_knowledge", query=query)["results"][0]["document_id"] == path


@pytest.mark.parametrize(("question", "path"), PARAPHRASED.items())
def test_the_mode_convex_ranks_alike(ask: Caller, question: str, path: str) -> None:
    found = ask("rag.search_hybrid", query=question, mode="convex")["results"]
    assert found[0]["doc_id"] == path


def test_a_weight_that_the_caller_chose_is_kept(ask: Caller) -> None:
    question = "my account is locked"
    words = ask("rag.search_fts", query=question)["results"]
    mixed = ask("rag.search_hybrid", query=question, mode="convex", convex={"w_vec": 0.0})
    assert mixed["results"][0]["doc_id"] == words[0]["doc_id"]
