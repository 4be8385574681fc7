"""What front matter says about a document: its title, its tags, and everything else as metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from zibaldone.limits import METADATA_DEPTH_MAX, TAG_CHARS_MAX, TAGS_MAX, TITLE_CHARS_MAX
from zibaldone.text.frontmatter import as_line, read_front_matter, tags_of
from zibaldone.text.json_values import is_nested_deeper

MARKDOWN = "text/markdown"

_TITLE_KEYS = frozenset({"title"})
_TAG_KEYS = frozenset({"tags", "tag"})


@dataclass(frozen=True, slots=True)
class Labels:
    title: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def update_tags(self, stored: Sequence[str], known: Labels) -> tuple[str, ...]:
        """The tags of a document that had `stored`, some of them from its `known` front matter."""
        others = [tag for tag in stored if tag not in known.tags]
        return tuple(dict.fromkeys((*self.tags, *others)))

    def update_metadata(self, stored: Mapping[str, Any], known: Labels) -> dict[str, Any]:
        """The same for metadata; a value that was changed since stays."""
        others = {
            key: value
            for key, value in stored.items()
            if key not in known.metadata or known.metadata[key] != value
        }
        return {**self.metadata, **others}


def labels_of(body: str, mime: str, metadata_bytes_max: int) -> Labels:
    """The labels of a Markdown text; of others, and of front matter that cannot be read, none."""
    if mime.partition(";")[0] != MARKDOWN:
        return Labels()
    values = read_front_matter(body).values
    if not values:
        return Labels()
    tags = [tag for tag in tags_of(values) if len(tag) <= TAG_CHARS_MAX and "\0" not in tag]
    return Labels(
        title=as_line(values.get("title"))[:TITLE_CHARS_MAX],
        tags=tuple(dict.fromkeys(tags))[:TAGS_MAX],
        metadata=_metadata(values, metadata_bytes_max // 2),
    )


def _metadata(values: Mapping[str, Any], bytes_max: int) -> dict[str, Any]:
    """What fits and can be stored; the rest is in the text anyway."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        if key in _TITLE_KEYS or key in _TAG_KEYS or value is None:
            continue
        try:
            encoded = orjson.dumps({key: value})
        except TypeError:  # a number that is too long
            continue
        is_storable = b"\\u0000" not in encoded and not is_nested_deeper(
            value, METADATA_DEPTH_MAX - 1
        )
        if is_storable and len(encoded) <= bytes_max:
            kept[key] = value
            bytes_max -= len(encoded)
    return kept
