"""A StackExchange-like table of posts that changes over time, and what its documents should be.

The same seed gives the same rows, edits and deletions. The expected documents are made beside the
rows, not from them: each body is written twice, as HTML and as the Markdown that it should become.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

# fmt: off
COLUMNS = (
    "Id", "PostTypeId", "AcceptedAnswerId", "ParentId", "CreationDate", "DeletionDate", "Score",
    "ViewCount", "Body", "OwnerUserId", "OwnerDisplayName", "LastEditorUserId",
    "LastEditorDisplayName", "LastEditDate", "LastActivityDate", "Title", "Tags", "AnswerCount",
    "CommentCount", "FavoriteCount", "ClosedDate", "CommunityOwnedDate", "ContentLicense",
    "UpdatedAt",
)
_WORDS = (
    "anchor", "battery", "café", "drawer", "engine", "ferment", "garden", "hammer", "iron", "juice",
    "kettle", "lantern", "mortar", "naïve", "onion", "pepper", "quilt", "rope", "sail", "tiller",
    "umlaut", "valve", "water", "xylem", "yeast", "zinc", "déjà", "straße", "東京", "😀",
)
_TAGS = ("c++", "foo-bar", "sailing", "bread", "knots", "linux", "money", "naïveté", "z80", "a-b-c")
# fmt: on
DATES = ("CreationDate", "LastEditDate", "LastActivityDate", "UpdatedAt", "ClosedDate")
NUMBERS = (
    *("Id", "PostTypeId", "AcceptedAnswerId", "ParentId", "Score", "ViewCount", "OwnerUserId"),
    *("LastEditorUserId", "AnswerCount", "CommentCount", "FavoriteCount"),
)
_BEGIN = datetime(2015, 1, 1)  # noqa: DTZ001 - as databases have it


@dataclass
class Post:
    values: dict[str, Any]
    markdown: str
    tags: tuple[str, ...]


@dataclass
class Posts:
    """Rows by id. `add`, `edit` and `delete` change some and return what a database needs."""

    seed: int = 1
    rows: dict[int, Post] = field(default_factory=dict)
    _clock: int = 0
    _last_id: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def add(self, count: int, *, has_watermark: bool = True) -> list[Post]:
        added = []
        for _ in range(count):
            self._last_id += self._random.choice((1, 1, 1, 2, 5))
            post = self._post(self._last_id, has_watermark=has_watermark)
            self.rows[self._last_id] = post
            added.append(post)
        return added

    def insert_between(self, count: int) -> list[Post]:
        """Rows whose ids lie in gaps between others."""
        free = [n for n in range(1, self._last_id) if n not in self.rows]
        chosen = self._random.sample(free, min(count, len(free)))
        for number in chosen:
            self.rows[number] = self._post(number)
        return [self.rows[number] for number in chosen]

    def edit(self, count: int) -> list[Post]:
        chosen = self._random.sample(sorted(self.rows), min(count, len(self.rows)))
        for number in chosen:
            before = self.rows[number]
            after = self._post(number, has_watermark=before.values["UpdatedAt"] is not None)
            after.values["CreationDate"] = before.values["CreationDate"]
            self.rows[number] = after
        return [self.rows[number] for number in chosen]

    def delete(self, count: int) -> list[int]:
        chosen = self._random.sample(sorted(self.rows), min(count, len(self.rows)))
        for number in chosen:
            del self.rows[number]
        return chosen

    def _now(self) -> datetime:
        self._clock += self._random.choice((0, 0, 1, 60, 3_600))
        return _BEGIN + timedelta(seconds=self._clock)

    def _post(self, number: int, *, has_watermark: bool = True) -> Post:
        chance, now = self._random, self._now()
        is_question = chance.random() < 0.5
        tags = tuple(chance.sample(_TAGS, chance.randint(1, 4))) if is_question else ()
        html, markdown = self._body()
        values: dict[str, Any] = dict.fromkeys(COLUMNS)
        values.update(
            Id=number,
            PostTypeId=1 if is_question else 2,
            ParentId=None if is_question else max(1, number - 1),
            CreationDate=now,
            Score=chance.randint(-5, 200),
            ViewCount=chance.randint(0, 10_000) if is_question else None,
            Body=html,
            OwnerUserId=chance.randint(1, 500) if chance.random() < 0.9 else None,
            OwnerDisplayName="user 'quoted' \"and\" \\" if chance.random() < 0.1 else None,
            LastActivityDate=now,
            Title=self._line() if is_question else None,
            Tags=self._tag_text(tags, number) if tags else None,
            AnswerCount=chance.randint(0, 9) if is_question else None,
            CommentCount=chance.randint(0, 30),
            ContentLicense="CC BY-SA 4.0",
            UpdatedAt=now if has_watermark else None,
        )
        return Post(values, markdown, tags)

    def _tag_text(self, tags: tuple[str, ...], number: int) -> str:
        match number % 3:
            case 0:
                return "".join(f"<{tag}>" for tag in tags)
            case 1:
                return ",".join(tags)
        return "[" + ", ".join(f'"{tag}"' for tag in tags) + "]"

    def _line(self) -> str:
        words = self._random.choices(_WORDS, k=self._random.randint(3, 9))
        return " ".join(words).capitalize()

    def _body(self) -> tuple[str, str]:
        html, markdown = [], []
        for _ in range(self._random.randint(1, 6)):
            piece, text = self._piece()
            html.append(piece)
            markdown.append(text)
        return "\n\n".join(html), "\n\n".join(markdown)

    def _piece(self) -> tuple[str, str]:
        line = self._line()
        match self._random.randint(0, 6):
            case 0:
                code = f"if a < b & {line}:\n    go()"
                escaped = code.replace("&", "&amp;").replace("<", "&lt;")
                return f"<pre><code>{escaped}\n</code></pre>", f"```\n{code}\n```"
            case 1:
                other = self._line()
                return (
                    f"<ul>\n<li>{line}</li>\n<li>{other}</li>\n</ul>",
                    f"- {line}\n- {other}",
                )
            case 2:
                return f"<blockquote>\n  <p>{line}</p>\n</blockquote>", f"> {line}"
            case 3:
                link = "https://example.org/?a=1&amp;b=2"
                return (
                    f'<p>See <a href="{link}" rel="nofollow">{line}</a>.</p>',
                    f"See [{line}](https://example.org/?a=1&b=2).",
                )
            case 4:
                return f"<h2>{line}</h2>", f"## {line}"
        words = self._random.choices(_WORDS, k=self._random.randint(10, 60))
        first, rest = words[0], " ".join(words[1:])
        return f"<p><strong>{first}</strong> {rest}</p>", f"**{first}** {rest}"


def expected(posts: Posts, *, has_native_times: bool, name: str = "posts") -> dict[str, Any]:
    """Document id → what its document should be."""
    return {f"{name}:{number}": _document(post, has_native_times) for number, post in _all(posts)}


def _all(posts: Posts) -> Iterator[tuple[int, Post]]:
    yield from posts.rows.items()


def _document(post: Post, has_native_times: bool) -> dict[str, Any]:
    metadata = {}
    for column, value in post.values.items():
        if column in ("Title", "Body") or value is None:
            continue
        metadata[column] = value
        if isinstance(value, datetime):
            metadata[column] = value.isoformat() + "Z" if has_native_times else str(value)
    return {
        "title": post.values["Title"] or "",
        "body": post.markdown,
        "tags": post.tags,
        "metadata": metadata,
        "pk": {"Id": post.values["Id"]},
    }
