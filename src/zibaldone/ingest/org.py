"""Org to Markdown, line by line: headings, blocks, links, emphasis. Title, tags and date of the
file become front matter."""

from __future__ import annotations

import re

import yaml

from zibaldone.ingest.rst import fenced
from zibaldone.limits import TAGS_MAX

_HEADING = re.compile(r"(\*+)[ \t]+(.*)")
_HEADING_TAGS = re.compile(r"(?<![ \t])[ \t]++:[\w@#%:]+:[ \t]*+$")
_PRIORITY = re.compile(r"\[#\w\][ \t]*")
_KEYWORD = re.compile(r"#\+(\w+):[ \t]*(.*)", re.IGNORECASE)
_BEGIN = re.compile(r"[ \t]*#\+begin_(\w+)(?:[ \t]+(\S+))?.*", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:([A-Z_-]+):[ \t]*", re.IGNORECASE)
_RULE = re.compile(r"([ \t]*)\|[-+|]+")
_LINK = re.compile(r"\[\[([^\[\]]{1,2000})\]\[([^\[\]]{1,500})\]\]|\[\[([^\[\]]{1,2000})\]\]")
_EMPHASIS = re.compile(r"(?<![\w*/=~+`])([*/=~+])(?=\S)([^\n`]{0,300}?\S)\1(?![\w*/=~+`])")
_MARKS = {"*": "**", "/": "*", "=": "`", "~": "`", "+": "~~"}
_LITERAL_BLOCKS = frozenset({"src", "example", "export", "verse"})
_LEVEL_MAX = 6


def org_to_markdown(text: str) -> str:
    front: dict[str, object] = {}
    out: list[str] = []
    lines = text.split("\n")
    at = 0
    quoted = ""
    while at < len(lines):
        line = lines[at]
        at += 1
        if begin := _BEGIN.fullmatch(line):
            kind = begin[1].lower()
            if kind in _LITERAL_BLOCKS:
                end = _end(lines, at, f"#+end_{kind}")
                out += ["", *fenced(_dedented(lines[at:end]), begin[2] or ""), ""]
                at = end + 1
            elif kind == "comment":
                at = _end(lines, at, "#+end_comment") + 1
            else:
                quoted = "> " if kind == "quote" else ""
            continue
        stripped = line.strip()
        if stripped.lower().startswith("#+end_"):
            quoted = ""
        elif keyword := _KEYWORD.fullmatch(stripped):
            _note(front, keyword[1].lower(), keyword[2].strip())
        elif stripped == "#" or stripped.startswith("# "):
            pass  # a comment
        elif (drawer := _DRAWER.fullmatch(line)) and drawer[1].upper() != "END":
            at = _end(lines, at, ":end:") + 1
        else:
            out.append(quoted + _line(line, is_below_title="title" in front))
    return _with_front(front, "\n".join(out))


def _with_front(front: dict[str, object], body: str) -> str:
    body = body.strip("\n") + "\n"
    title = front.get("title")
    if title:
        body = f"# {title}\n\n{body}"
    if front:
        block = yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=1_000)
        body = f"---\n{block}---\n\n{body}"
    return body


def _note(front: dict[str, object], key: str, value: str) -> None:
    if not value:
        return
    if key in ("title", "date", "author"):
        front.setdefault(key, value.strip("<>[]") if key == "date" else value)
    elif key in ("filetags", "keywords"):
        tags = [tag for tag in re.split(r"[:,\s]+", value) if tag]
        if tags:
            front.setdefault("tags", tags[:TAGS_MAX])


def _line(line: str, *, is_below_title: bool) -> str:
    if heading := _HEADING.fullmatch(line):
        level = min(len(heading[1]) + is_below_title, _LEVEL_MAX)
        title = _PRIORITY.sub("", _HEADING_TAGS.sub("", heading[2]), count=1)
        return f"{'#' * level} {_inline(title)}"
    if rule := _RULE.fullmatch(line):
        return rule[1] + line.strip().replace("+", "|")
    return _inline(line)


def _inline(text: str) -> str:
    text = _LINK.sub(_link, text)
    return _EMPHASIS.sub(lambda match: _MARKS[match[1]] + match[2] + _MARKS[match[1]], text)


def _link(match: re.Match[str]) -> str:
    target = (match[1] or match[3]).removeprefix("file:")
    if target.startswith(("*", "#")):  # a heading of the same file
        return match[2] or target.lstrip("*#")
    words = match[2] or target
    return f"[{words}](<{target}>)" if " " in target else f"[{words}]({target})"


def _end(lines: list[str], at: int, mark: str) -> int:
    """The line that closes a block; one that is not closed ends with the text."""
    while at < len(lines) and lines[at].strip().lower() != mark:
        at += 1
    return at


def _dedented(lines: list[str]) -> list[str]:
    margins = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    margin = min(margins, default=0)
    return [line[margin:] for line in lines]
