"""The text of a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extracted:
    text: str
    title: str
    mime: str
    """Of the text, not of the file: HTML and DOCX become Markdown."""
