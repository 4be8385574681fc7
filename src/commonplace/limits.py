"""Every bound of the product, unit last, with the reason for its value.

`Limits` holds what an operator may change (through settings); the constants below it are part
of the contract with clients and are the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """What an operator may raise or lower."""

    request_body_bytes_max: int = 32 * MIB
    """An HTTP body: a document of `document_body_bytes_max` grows up to threefold by JSON escaping."""

    document_body_bytes_max: int = 10 * MIB
    """One document's text. Larger texts are several documents; indexing stays interactive."""

    metadata_bytes_max: int = 64 * KIB
    """Metadata is read with every hit, so it must stay small beside the passage it describes."""

    list_response_bytes_max: int = 1 * MIB
    """A list page. 100 lean items are about 40 KB; the guard is for pathological titles and tags."""

    batch_response_bytes_max: int = 16 * MIB
    """A batch_read answer; past it the remaining items say so instead of being sent."""

    tool_seconds_max: float = 30.0
    """A call that takes longer is answered with DEADLINE_EXCEEDED rather than left hanging."""

    query_seconds_max: float = 10.0
    """A read statement; SQLite is interrupted when it is over."""

    write_wait_seconds_max: float = 20.0
    """How long a write waits for another process that holds the file's write lock."""

    ingest_bytes_max: int = 64 * MIB
    """A file or URL to ingest, before its text is extracted (PDFs carry images)."""

    ingest_seconds_max: float = 60.0
    """Fetching and extracting one file."""


DOCUMENT_ID_BYTES_MAX = 1024
"""An id fits an index key, a URL and a file path."""

TITLE_CHARS_MAX = 1000
"""A title is one line; 1 000 characters hold any real one."""

TAGS_MAX = 64
"""More tags than that is a text, not a classification."""

TAG_CHARS_MAX = 200
"""A tag is a short word or phrase."""

LIST_LIMIT_DEFAULT = 50
"""The seed's page size."""

LIST_LIMIT_MAX = 100
"""The seed's largest page."""

LIST_OFFSET_MAX = 10_000
"""Skipping rows costs time for each; beyond this a cursor or a narrower prefix is the way."""

READ_CUT_CHARS = 500
"""get_document shows this much unless asked for more: enough to decide, cheap in tokens."""

RELATED_MAX = 3
"""Related documents beside a read."""

RELATED_SNIPPET_CHARS_MAX = 200
"""What is shown of each related document."""

READ_LINES_MAX = 2_000
"""Lines in one ranged read."""

READ_CHARS_MAX = 200_000
"""Characters in one ranged read."""

BATCH_PATHS_MAX = 20
"""Documents in one batch_read."""

PATCH_REPLACEMENTS_MAX = 100
"""Replacements in one atomic patch."""

REVISION_MAX = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact."""

HISTORY_LIMIT_DEFAULT = 20
"""Revisions in one history page."""

HISTORY_LIMIT_MAX = 100
"""Revisions in one history page, at most."""

DIFF_LINES_MAX = 20_000
"""Lines on either side of a diff; difflib is quadratic in the worst case."""

QUERY_BYTES_MAX = 8_192
"""A search query, counted in UTF-8 bytes."""

QUERY_TERMS_MAX = 64
"""Distinct terms of a query that are looked up; the rest are ignored and said to be."""

SEARCH_LIMIT_DEFAULT = 10
"""Hits of a search."""

SEARCH_LIMIT_MAX = 50
"""Hits of a search, at most (the seed's k_max)."""

SNIPPET_CHARS_MAX = 300
"""A passage shown with a hit."""

COMPLETIONS_MAX = 100
"""Values in one answer of completion/complete (the protocol's own bound)."""

BATCH_MESSAGES_MAX = 50
"""Messages in one JSON-RPC batch of the revision that has them."""

REQUEST_ID_CHARS_MAX = 128
"""A caller's X-Request-ID; a longer or odd one is replaced by ours."""

NAMESPACE_CHARS_MAX = 64
"""A tenant's name."""

EXTRACT_UNPACKED_BYTES_MAX = 256 * MIB
"""What an archive may declare to unpack to, and what the text of a PDF may come to."""

ARCHIVE_ENTRIES_MAX = 10_000
"""Entries of a zip; each costs memory before any is read. A large Word file has some hundreds."""

DOCX_XML_BYTES_MAX = 16 * MIB
"""XML of a Word file: the parser takes 25 times its size in memory and over a second per MiB."""

HTML_BYTES_MAX = 16 * MIB
"""A page's markup: converting takes one to two seconds per MiB."""

HTML_DEPTH_MAX = 100
"""Open elements in a page; deeper ones become siblings, as in browsers. The converter recurses."""

HTML_LIST_NUMBERED_MAX = 2_000
"""Nodes in a numbered list; a longer one is shown with bullets, as numbering is quadratic."""

HTML_BLANK_RUN_CHARS_MAX = 256
"""A longer run of blanks becomes one: the converter's patterns are quadratic in it."""

PDF_PAGES_MAX = 10_000
"""Pages of a PDF; each takes some milliseconds even when it holds nothing."""

FETCH_REDIRECTS_MAX = 3
"""Redirects followed from a URL to ingest; every one is checked against the allow-list."""

TERM_CHARS_MAX = 64
"""A term of the keyword index; holds a SHA-256 in hex, and cuts base64 lines short."""

INDEX_TERMS_MAX = 10_000
"""Terms indexed for one text; the densest passage (CJK, 4 000 characters) has half of that."""

CHUNK_CHARS_TARGET = 900
"""A passage: about 200 tokens of English, what the built-in embedding model reads at once."""

CHUNK_CHARS_MAX = 1_400
"""A passage that has no better place to be cut."""

CHUNK_CHARS_MIN = 200
"""A shorter tail joins the passage before it."""

assert LIST_LIMIT_DEFAULT <= LIST_LIMIT_MAX <= LIST_OFFSET_MAX  # noqa: S101
assert CHUNK_CHARS_MIN < CHUNK_CHARS_TARGET <= CHUNK_CHARS_MAX  # noqa: S101
assert READ_CUT_CHARS < READ_CHARS_MAX  # noqa: S101
assert SEARCH_LIMIT_DEFAULT <= SEARCH_LIMIT_MAX  # noqa: S101
assert Limits().document_body_bytes_max < Limits().request_body_bytes_max  # noqa: S101
