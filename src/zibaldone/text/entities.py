"""What a text names, found without a model.

| entity | where from | label |
|---|---|---|
| front matter | short values of `key: value`, lists too | the key |
| tags | the document's tags | Tag |
| wiki-links | `[[Name]]`, `[[Name|shown]]` | Page |
| Markdown links | the text of `[text](address)` | Link |
| code identifiers | `` `name` ``, snake_case, camelCase, dotted.names | Code |
| speakers | `Name: ` at the beginning of a line of a message | Person |
| capitalised names | runs of capitalised words | Name |

One capitalised word at the beginning of a sentence is a name only if something else says so: it
also stands inside of a sentence, has a possessive `'s`, or a verb in the third person follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from zibaldone.limits import (
    ENTITIES_MAX,
    ENTITY_CHARS_MAX,
)
from zibaldone.model.memory import Entity
from zibaldone.text.normalize import normal_form
from zibaldone.text.words import STOP_WORDS

SPEAKER = "Person"
"""The label of who speaks in a message."""

_WIKI_LINK = re.compile(
    r"\[\[([^\[\]|#\n]{1,120})(?:#[^\[\]|\n]{0,120})?(?:\|[^\[\]\n]{0,120})?\]\]"
)
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,120})\]\([^()\s]{1,500}\)")
_QUOTED_CODE = re.compile(r"`([^`\n]{2,80})`")
# Possessive: what follows a word that does not fit is not looked for inside of the word.
_IDENTIFIER = re.compile(
    r"(?<![\w./@-])"
    r"(?:(?=[A-Za-z]\w*_\w)\w++|[a-z][a-z0-9]*+[A-Z]\w*+|[A-Za-z_]\w*+(?:\.[A-Za-z_]\w++)+)"
    r"(?:\(\))?(?![\w/@-])"
)
_UPPER = r"[^\W\d_a-z]"
_NAME = re.compile(
    rf"(?<![\w'\u2019]){_UPPER}[\w-]*"
    rf"(?:(?:[ ](?:of|the|de|da|van|von|der|la|del)){{0,2}}[ ]{_UPPER}[\w-]*){{0,5}}"
)
_SPEAKER = re.compile(
    rf"^[ \t]*(?:\[[^\]\n]{{1,60}}\][ \t]*)?({_UPPER}[^\W_]*(?:[ .-][^\W_]+){{0,3}}):[ \t]",
    re.MULTILINE,
)
_THIRD_PERSON = re.compile(
    r"(?:['\u2019]s\b|[ ](?:is|was|has|had|will|would|can|could|no|now|also|never|always|said|went|"
    r"wrote|met|got|made|took|gave|came|saw|told|left|found|felt|kept|knew|built|ran|began|bought|"
    r"brought|chose|did|grew|held|led|lost|paid|sent|sold|spent|spoke|taught|thought|won|"
    r"[a-z]{2,}(?:s|ed))\b)"
)
_STARTS = re.compile(r"(?:^|[.!?:…\"“(]|\n)[\s\"“'*_#>(-]*$")

_NO_NAMES = STOP_WORDS | frozenset(
    """monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december
    today tomorrow yesterday hello hi hey thanks
    thank yes yeah yep nope okay ok oh wow well sure please also however maybe perhaps although
    let lets i'm i've i'd i'll it's that's don't can't won't what's there's here's you're we're
    congrats congratulations sorry absolutely definitely totally really never always sometimes
    every everyone everything someone something anyone anything nothing nobody
    """.split()  # noqa: SIM905
)
_NO_NAME = re.compile(
    r"|\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].{0,40})?|[\d.:,_+-]{1,40}|(?i:yes|no|on|off|true|false|null)"
)
"""Values of front matter that are a date, a number or a switch."""
_SKIPPED_KEYS = frozenset(
    """title name date time timestamp created updated modified reference_time id uuid session_id
    rating score description summary body content hash""".split()  # noqa: SIM905
)


def entity_key(name: str) -> str:
    return " ".join(normal_form("NFC", name).casefold().split())


def entities_in(
    text: str,
    *,
    tags: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    speakers: bool = False,
) -> list[Entity]:
    """Each once, in the order of the table above. `values`: of the front matter."""
    found: dict[str, Entity] = {}
    for written, label in _named(text, tags, values or {}, speakers):
        name = " ".join(written.split())
        if "\x00" in name:  # front matter can spell it, the store cannot hold it
            continue
        key = entity_key(name)
        if key and len(name) <= ENTITY_CHARS_MAX and key not in found:
            found[key] = Entity(key, name, label)
            if len(found) == ENTITIES_MAX:
                break
    return list(found.values())


def _named(
    text: str, tags: Iterable[str], values: Mapping[str, Any], speakers: bool
) -> Iterator[tuple[str, str]]:
    if speakers:
        yield from ((match[1], SPEAKER) for match in _SPEAKER.finditer(text))
    yield from _of_values(values)
    yield from ((tag, "Tag") for tag in tags)
    yield from ((match[1], "Page") for match in _WIKI_LINK.finditer(text))
    yield from ((match[1], "Link") for match in _LINK.finditer(text))
    yield from ((match[1], "Code") for match in _QUOTED_CODE.finditer(text))
    yield from ((match[0], "Code") for match in _IDENTIFIER.finditer(text))
    yield from ((name, "Name") for name in capitalised(text))


def _of_values(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in list(values.items())[:ENTITIES_MAX]:
        if key.casefold() in _SKIPPED_KEYS or len(key) > ENTITY_CHARS_MAX or "\x00" in key:
            continue
        label = (
            "Tag"
            if key.casefold() in ("tag", "tags")
            else key[:1].upper() + key[1:].replace("_", " ")
        )
        listed = value if isinstance(value, list) else [value]
        for one in listed[:ENTITIES_MAX]:
            if isinstance(one, str) and "\n" not in one and not _NO_NAME.fullmatch(one.strip()):
                yield one.strip(), label


def speakers_of(text: str) -> list[str]:
    """Who speaks in a message, in order, each once."""
    return list(dict.fromkeys(match[1] for match in _SPEAKER.finditer(text)))


def capitalised(text: str) -> list[str]:
    """Names that are written with capitals, each once."""
    sure: dict[str, None] = {}
    for match in _NAME.finditer(text):
        words = match[0].split(" ")
        while words and words[0].casefold() in _NO_NAMES:
            words.pop(0)
        while words and (words[-1].casefold() in _NO_NAMES or not words[-1][:1].isupper()):
            words.pop()
        if not words:
            continue
        name = " ".join(words)
        if len(name) < 2:
            continue
        is_first = (
            len(words) == 1
            and match[0] == name
            and _STARTS.search(text, max(0, match.start() - 8), match.start())
        )
        if not is_first or _THIRD_PERSON.match(text, match.end()):
            sure[name] = None
    return list(sure)
