"""Argument values made from a JSON Schema: right ones, nearly right ones and hostile ones.

A value stays in a compact form until it is sent, so that a case of megabytes is one short line:

    {"$repeat": "ab", "times": 9}        the text "ab" nine times, after "before"
    {"$list": 1, "times": 9}             an array of nine ones
    {"$nest": "[", "depth": 9}           nine arrays (or, with "{", objects) inside one another
    {"$token": "NaN"}                    exactly these characters, as JSON or not
    {"$with": {...}, "names": 9}         an object with nine more members, of unknown names
    {"$twice": {...}}                    an object with every member written twice
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

IDS = (
    "notes/deploy.md",
    "notes/friday",
    "notes/tiếng-việt",
    "notes/lines",
    "notes/long",
    "a",
    "a/b/c/d/e",
    "notes/deleted",
)
"""Documents that are there when the first case is sent, so that many calls get far."""

_OTHER_IDS = (
    "none",
    "../up",
    "",
    "a//b",
    "/a",
    "a/",
    ".",
    "\u2028",
    "x" * 1_025,
    "Notes/Deploy.md",
)
_WORDS = (
    "deploy",
    "friday",
    "text",
    "tiếng",
    "Việt",
    "line",
    "x*",
    '"on friday"',
    "-text",
    "title:a",
)
_TOKENS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-0",
    "1E400",
    "0." + "1" * 400,
    "9" * 400,
    "18446744073709551616",
    "01",
    "+1",
    "0x10",
    "'a'",
    "undefined",
    '"\\ud800"',
    '"\\u0000"',
    '"\\x"',
    "1e-400",
)
_NUMBERS = (
    -1, 0, 1, 2, 50, 51, 100, 101, 255, 2**31 - 1, 2**31, 2**32, 2**53 - 1, 2**53, 2**63 - 1, 2**63,
    2**64, -(2**31), -(2**63), -(2**63) - 1, 10**30, 0.5, -0.5, 1e-320, 1.7e308, 1.0, -0.0,
)  # fmt: skip
_TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\udfff\ud800",
    "\ufeff",
    "\ufffe",
    "\u202e",
    "\U0010ffff",
    "\r\n",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "NaN",
    "2026-02-30T99:99:99Z",
    "9999-12-31T23:59:59+23:59",
    "0000-00-00",
    "%00",
    "%",
    "*",
    '"',
    '"a',
    "^a",
    "NEAR(a b)",
    "a AND OR NOT b",
    "(",
    "-",
    "+",
    "title:",
    "title:*",
    "'; DROP TABLE documents; --",
    "${x}",
    "{{7*7}}",
    "../../etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1:1/",
    "a#0",
    "notes/long#0",
    "notes/long#99999999999999999999",
    "AAAAAA==",
    "\ufdfa",
    "ﬃ",
    "İ",
    "ß",
)
_REPEATED = (
    "a",
    "\u0301\u0323",
    "\u0323\u0301\u0327",
    "\ufdfa",
    "👩\u200d",
    "\n",
    "\r",
    "a ",
    '"a" ',
    "-a ",
    "a* ",
    "title:a ",
    "(",
    "\\",
    "%",
    "a/",
    "../",
    "\ud800",
    "<!--",
    "<b>",
    "# a\n",
    "```\n",
    "- ",
    "> ",
    "|a",
    "[",
    "\x00",
    "é",
    "ế",
    "한",
    "字",
)


_OPEN = '{"a":'
_SOME = {
    "prefix": ("", "notes/", "notes", "a/"),
    "parent_id": ("", "notes/", "notes", "a/"),
    "old_str": ("Friday", "line 1\n", "text", "deploy", "a"),
    "source": ("/etc/passwd", "http://127.0.0.1:1/", "none.html"),
    "created_after": ("2026-01-01", "2026-01-01T00:00:00Z", "2020-02-29 10:00:00"),
    "created_before": ("2026-01-01", "2026-01-01T00:00:00Z", "2020-02-29 10:00:00"),
    "values_b64": ("AACAPw==", "AACAPwAAAAA=", "AA"),
    "tags": ("ops", "Ops", "tiếng việt", "a"),
    "tags_any": ("ops", "Ops", "tiếng việt", "a"),
    "tags_all": ("ops", "Ops", "a"),
    "cursor": ("", "a", "bm90ZXMv", "notes/friday"),
}
"""Texts that mean something where they are given."""


class Values:
    def __init__(self, chance: random.Random, scale: float = 1.0) -> None:
        self.chance = chance
        self.scale = scale

    def likely(self, share: float) -> bool:
        return self.chance.random() < share

    def size(self) -> int:
        """How often something is repeated: mostly little, seldom as much as a request holds."""
        luck = self.chance.random()
        most = 300 if luck < 0.93 else 20_000 if luck < 0.99 else 1_000_000
        return max(1, int(most ** self.chance.random() * self.scale))

    # Right

    def right(self, schema: Schema, name: str = "") -> Any:
        """A value that the schema allows, and that often names something that is there."""
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.right(self.chance.choice(schema[key]), name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.chance.choice(schema["enum"])
        kind = schema.get("type", "string")
        return self._RIGHT[self.chance.choice(kind) if isinstance(kind, list) else kind](
            self, schema, name
        )

    def _object(self, schema: Schema, name: str) -> Any:
        properties = schema.get("properties")
        if properties is None:
            return self._metadata() if name != "filters" else {}
        required = schema.get("required", ())
        share = self.chance.choice((0.1, 0.4, 0.8))
        return {
            key: self.right(part, key)
            for key, part in properties.items()
            if key in required or self.likely(share)
        }

    def _array(self, schema: Schema, name: str) -> Any:
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", 5), self.chance.choice((1, 3, 20, 200)))
        items = schema.get("items", {})
        return [
            self.right(items, name) for _ in range(self.chance.randint(least, max(least, most)))
        ]

    def _integer(self, schema: Schema, name: str) -> Any:
        least, most = schema.get("minimum", -5), schema.get("maximum", 1_000)
        if name in ("revision", "older", "newer", "last_known_revision", "before"):
            return self.chance.randint(0, 6)
        if self.likely(0.2):
            return self.chance.choice((least, most))
        return self.chance.randint(least, min(most, least + 60))

    def _number(self, schema: Schema, name: str) -> Any:
        del name
        least, most = schema.get("minimum", -10), schema.get("maximum", 10)
        return self.chance.choice((least, most, self.chance.uniform(least, most)))

    def _boolean(self, schema: Schema, name: str) -> Any:
        del schema, name
        return self.likely(0.5)

    def _null(self, schema: Schema, name: str) -> Any:
        del schema, name

    def _string(self, schema: Schema, name: str) -> Any:
        if "pattern" in schema and "/" in schema["pattern"]:
            return "text/markdown"
        text = self._text_for(name)
        return text[: schema["maxLength"]] if "maxLength" in schema else text

    def _text_for(self, name: str) -> str:
        chance = self.chance
        if name in ("path", "paths", "doc_ids", "document_id"):
            return self.id()
        if name == "chunk_ids":
            return f"{self.id()}#{chance.randrange(4)}"
        if name in ("content", "text", "new_str"):
            return self._prose()
        if name in _SOME:
            return chance.choice(_SOME[name])
        return " ".join(chance.choices(_WORDS, k=chance.randint(0, 6)))

    def id(self) -> str:
        luck = self.chance.random()
        if luck < 0.7:
            return self.chance.choice(IDS)
        if luck < 0.9:
            return f"made/{self.chance.randrange(40)}"
        return self.chance.choice(_OTHER_IDS)

    def _prose(self) -> str:
        lines = (
            f"{'# ' if self.likely(0.2) else ''}{' '.join(self.chance.choices(_WORDS, k=6))}"
            for _ in range(self.chance.choice((0, 1, 3, 30)))
        )
        return "\n\n".join(lines)

    def _metadata(self) -> Any:
        keys = self.chance.choices(("Tags", "Score", "PostTypeId", "CreationDate", "é", ""), k=2)
        return {key: self.scalar() for key in keys}

    _RIGHT: dict[str, Callable[[Values, Schema, str], Any]] = {
        "object": _object,
        "array": _array,
        "integer": _integer,
        "number": _number,
        "boolean": _boolean,
        "string": _string,
        "null": _null,
    }

    # Nearly right

    def nearly(self, schema: Schema) -> Any:
        """Right arguments with one thing wrong, or two."""
        value = self.right(schema)
        for _ in range(self.chance.choice((1, 1, 2))):
            value = self._spoil(value, schema)
        return value

    def _spoil(self, value: Any, schema: Schema) -> Any:
        properties: dict[str, Schema] = schema.get("properties", {})
        if not isinstance(value, dict) or any(key.startswith("$") for key in value):
            return value
        value = dict(value)
        name = self.chance.choice([*properties, "unknown"])
        part = properties.get(name, {})
        match self.chance.randrange(7):
            case 0:
                value.pop(name, None)
            case 1:
                value[name] = self._past_a_bound(part)
            case 2:
                value[name] = self.scalar()
            case 3:
                value[name] = None
            case 4:
                value[name] = [value.get(name)] if self.likely(0.5) else {"a": value.get(name)}
            case 5:
                value[self.chance.choice((name.upper(), name + " ", "", "unknown", "path"))] = 1
            case _ if part.get("type") == "object":
                value[name] = self._spoil(self.right(part, name), part)
            case _:
                value[name] = self.hostile()
        return value

    def _past_a_bound(self, schema: Schema) -> Any:
        options: list[Any] = [self.scalar()]
        if "minimum" in schema:
            options.append(schema["minimum"] - 1)
        if "maximum" in schema:
            options.append(schema["maximum"] + 1)
        if "maxLength" in schema:
            options.append({"$repeat": "x", "times": schema["maxLength"] + 1})
        if "maxItems" in schema:
            item = self.right(schema.get("items", {}))
            options.append({"$list": item, "times": schema["maxItems"] + 1})
        if schema.get("minItems"):
            options.append([])
        return self.chance.choice(options)

    # Hostile

    def arguments(self, schema: Schema) -> Any:
        luck = self.chance.random()
        if luck < 0.35:
            return self.right(schema)
        if luck < 0.7:
            return self.nearly(schema)
        value = self.right(schema)
        if luck < 0.95 and isinstance(value, dict):
            for name in self.chance.choices([*schema.get("properties", ()), "unknown"], k=2):
                value[name] = self.hostile()
            return value
        return self.chance.choice(
            (
                {"$with": value, "names": self.size()},
                {"$twice": value},
                self.hostile(),
                {"$nest": self.chance.choice("[{"), "depth": self.size()},
            )
        )

    def hostile(self) -> Any:
        match self.chance.randrange(8):
            case 0:
                return {"$token": self.chance.choice(_TOKENS)}
            case 1:
                return {"$nest": self.chance.choice("[{"), "depth": self.size()}
            case 2:
                return {"$list": self.scalar(), "times": self.size()}
            case 3:
                return {"$with": {}, "names": self.size()}
            case 4 | 5:
                return self.long_text()
            case _:
                return self.scalar()

    def long_text(self) -> Any:
        """A repeated text; sometimes one letter first, for the marks to belong to."""
        text = self.chance.choice(_REPEATED)
        before = "a" if self.likely(0.3) else ""
        return {"$repeat": text, "times": self.size(), "before": before}

    def scalar(self) -> Any:
        return self.chance.choice(
            (
                self.chance.choice(_NUMBERS),
                self.chance.choice(_TEXTS),
                self.chance.choice(_TEXTS),
                None,
                True,
                [],
                {},
                self.id(),
                "".join(chr(self.chance.randrange(0x3000)) for _ in range(6)),
            )
        )


def encoded(value: Any, *, is_ascii: bool = True) -> bytes:
    """A compact value as the bytes that are sent: JSON, unless a token in it is not."""
    return _written(value, is_ascii).encode("utf-8", "surrogatepass")


def _written(value: Any, is_ascii: bool) -> str:
    if isinstance(value, list):
        return f"[{','.join(_written(part, is_ascii) for part in value)}]"
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=is_ascii)
    match value:
        case {"$repeat": text, "times": times}:
            whole: str = value.get("before", "") + text * times
            return json.dumps(whole, ensure_ascii=is_ascii)
        case {"$list": item, "times": times}:
            return f"[{','.join([_written(item, is_ascii)] * times)}]"
        case {"$nest": "[", "depth": depth}:
            return f"{'[' * depth}{']' * depth}"
        case {"$nest": _, "depth": depth}:
            return f"{_OPEN * depth}1{'}' * depth}"
        case {"$token": text}:
            return str(text)
        case {"$with": known, "names": names}:
            more = [f'"n{number}":{number}' for number in range(names)]
            return f"{{{','.join([*_members(known, is_ascii), *more])}}}"
        case {"$twice": known}:
            return f"{{{','.join(_members(known, is_ascii) * 2)}}}"
    return f"{{{','.join(_members(value, is_ascii))}}}"


def _members(value: Any, is_ascii: bool) -> list[str]:
    if not isinstance(value, dict):
        return []
    return [
        f"{json.dumps(str(name), ensure_ascii=is_ascii)}:{_written(part, is_ascii)}"
        for name, part in value.items()
    ]
