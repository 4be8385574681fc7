"""How many tokens a text has for a model.

Counts of OpenAI's encodings are exact; their tables come inside a package. The encodings of other
families are not published as tables, so there a count is an estimate: that of o200k and three
tenths more.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

from zibaldone import extras
from zibaldone.limits import PACK_COUNT_SLICE_CHARS
from zibaldone.model.assistant import Assistant

Encoding = Literal["o200k", "cl100k", "estimate"]

MESSAGE_TOKENS = 8
"""What a message costs beside its text: role and separators. Providers need 3 to 7."""

_ESTIMATE = 13, 10
_O200K = re.compile(r"(chatgpt-)?(gpt-(4o|4\.\d|[5-9]|oss)|o\d|codex)")
_CL100K = re.compile(r"gpt-(4|3\.5)|text-embedding-")


def encoding_of(assistant: Assistant) -> Encoding:
    """The encoding of its model; `estimate` for families that are not known."""
    if assistant.encoding != "auto":
        return assistant.encoding
    name = assistant.model.lower().rpartition("/")[2]
    if _O200K.match(name):
        return "o200k"
    return "cl100k" if _CL100K.match(name) else "estimate"


class TokenCounter:
    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.is_estimate = encoding == "estimate"
        self._tokenizer = _tokenizer("cl100k" if encoding == "cl100k" else "o200k")

    def count(self, text: str) -> int:
        """Tokens of the text. The library holds the interpreter's lock, so it gets a little of a
        long text at a time."""
        if len(text) <= PACK_COUNT_SLICE_CHARS:
            total = int(self._tokenizer.count(text))
        else:
            total = 0
            start = 0
            while start < len(text):
                end = _cut(text, start)
                total += int(self._tokenizer.count(text[start:end]))
                start = end
        if not self.is_estimate:
            return total
        times, by = _ESTIMATE
        return -(-total * times // by)


def token_counter(assistant: Assistant) -> TokenCounter:
    return TokenCounter(encoding_of(assistant))


@lru_cache(maxsize=2)
def _tokenizer(encoding: str) -> Any:
    library = extras.require("consult", "rs_bpe.bpe")
    return library.openai.cl100k_base() if encoding == "cl100k" else library.openai.o200k_base()


def _cut(text: str, start: int) -> int:
    """Where the slice that begins at `start` ends.

    Both encodings divide a text into words before they look for tokens, and a word never goes
    across a line break that is followed by a visible character (but for `/`), nor begins before
    the space in front of a letter. Where there is neither, the text is cut anywhere, which can
    cost a token.
    """
    end = start + PACK_COUNT_SLICE_CHARS
    if end >= len(text):
        return len(text)
    position = end
    while (position := text.rfind("\n", start + 1, position)) > 0:
        following = text[position + 1]
        if not following.isspace() and following != "/":
            return position + 1
    position = end
    while (position := text.rfind(" ", start + 1, position)) > 0:
        if text[position + 1].isalpha() and not text[position - 1].isspace():
            return position
    return end
