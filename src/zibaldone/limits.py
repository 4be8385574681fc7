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
    """An HTTP body: JSON escaping can make a document of the largest size three times as long."""

    document_body_bytes_max: int = 10 * MIB
    """One document's text. Larger texts are several documents; indexing stays interactive."""

    metadata_bytes_max: int = 64 * KIB
    """Metadata is read with every hit, so it must stay small beside the passage it describes."""

    list_response_bytes_max: int = 1 * MIB
    """A list page. 100 lean items are about 40 KB; the guard is for odd titles and tags."""

    batch_response_bytes_max: int = 16 * MIB
    """A batch_read answer; past it the remaining items say so instead of being sent."""

    tool_seconds_max: float = 30.0
    """A call that takes longer is answered with DEADLINE_EXCEEDED rather than left hanging."""

    query_seconds_max: float = 10.0
    """A read statement; SQLite is interrupted when it is over."""

    write_wait_seconds_max: float = 20.0
    """How long a write waits for another process that holds the file's write lock."""

    requests_max: int = 256
    """Requests that run at once; one more is answered 429 at once instead of slowing all."""

    requests_per_key_max: int = 64
    """Requests of one key that run at once, so that one agent cannot shut the others out."""

    ingest_bytes_max: int = 64 * MIB
    """A file or URL to ingest, before its text is extracted (PDFs carry images)."""

    ingest_seconds_max: float = 60.0
    """Fetching and extracting one file."""

    issuer_answer_seconds_max: float = 5.0
    """Reading a token issuer's keys; a caller whose token needs a new one waits for it."""

    issuer_retry_seconds_min: float = 5.0
    """Between two such readings: tokens that name unknown keys cannot make them frequent."""

    issuer_keys_fresh_seconds: float = 600.0
    """How long an issuer's keys are used before they are read again in the background."""

    issuer_keys_stale_seconds_max: float = 3_600.0
    """How long they are used while the issuer cannot be reached; a withdrawn key ends with this."""


DOCUMENT_ID_BYTES_MAX = 1024
"""An id fits an index key, a URL and a file path."""

METADATA_DEPTH_MAX = 64
"""Nesting of metadata: JSON writers stop at 254 levels, and an answer adds some around it."""

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

HIT_LABEL_CHARS_MAX = 200
"""What search_knowledge shows of a title or a trail of headings: its answers are small."""

CANDIDATES_MAX = 500
"""Passages that one leg of a hybrid search may bring (the seed's candidates_max)."""

LEXICAL_EXACT_PASSAGES_MAX = 50_000
"""Up to here a keyword search ranks every passage that holds any of the words."""

LEXICAL_RANKED_MAX = 20_000
"""Beyond it, passages ranked for the rarer words of a query (docs/explain/finding.md)."""

LEXICAL_ENOUGH = 100
"""Passages found by the rarer words that make the commoner ones dispensable."""

RAG_RESPONSE_BYTES_MAX = 5_000_000
"""One answer of a rag tool: the JSON object it answers with, all of it. MCP carries that object as
a text, whose quotes are escaped once more, and to newer clients a second time as structure."""

CHUNK_RESPONSE_BYTES_MAX = 2_000_000
"""Bodies in one answer of rag.get_chunks."""

RAG_IDS_MAX = 200
"""Ids in one rag.get_chunks or rag.get_docs."""

FILTER_VALUES_MAX = 200
"""Values in one list of a filter."""

ID_CHARS_MAX = 2 * DOCUMENT_ID_BYTES_MAX
"""An id or a name as it is given to a rag tool: letters and accents written apart, as some systems
do, take more characters than the id that is stored."""

CHUNK_ID_CHARS_MAX = ID_CHARS_MAX + 10
"""The same with `#` and the passage's number."""

ECHO_CHARS_MAX = 200
"""What an error repeats of a name it was given."""

RAG_SECONDS_MAX = 2.0
"""A rag tool's whole budget (the seed: 250 to 2000 ms)."""

QUERY_EMBED_SECONDS_MAX = 1.0
"""How long a search waits for its query's vector before it goes on with keywords alone."""

KNOWLEDGE_RESPONSE_BYTES = 6_000
"""An answer of search_knowledge: what an agent can read without losing its thread."""

EMBED_CHARS_MAX = 8_000
"""What an embedding model without a bound of its own reads of a text; passages are shorter."""

EMBED_BATCH_MAX = 32
"""Texts in one request to an embedding server; some refuse more."""

EMBED_RESPONSE_BYTES_MAX = 16 * MIB
"""An embedding server's answer."""

EMBED_TRIES_MAX = 3
"""Requests for one batch before it has failed."""

EMBED_RETRY_AFTER_SECONDS_MAX = 10.0
"""The longest an embedding server's Retry-After is obeyed on the spot."""

INDEX_BATCH_DOCUMENTS = 16
"""Documents a worker leases at once: enough to share a commit, few enough to stay fresh."""

INDEX_BATCH_CHUNKS = 128
"""Chunks embedded before what is done is kept: seconds with a slow model, so that a long document
neither holds up the others nor is begun anew after a crash."""

INDEX_LEASE_SECONDS = 20.0
"""A worker that died loses its documents to another after this; less than the alert's bound."""

INDEX_RENEW_SECONDS = 5.0
"""How often a worker that is still busy says so."""

INDEX_TRIES_MAX = 5
"""Attempts at a document before it is parked with its error."""

INDEX_AWAY_SECONDS_MAX = 15.0
"""The longest pause while the embedding model cannot be had, unless it asks for a longer one: all
that waited is taken up this soon after it is back."""

INDEX_LAG_ALERT_SECONDS = 30.0
"""The oldest pending document is older than this: the alert is on."""

INDEX_WORKER_ALIVE_SECONDS = 60.0
"""A process that died keeps those with another embedding model from the index for so long."""

INDEX_WORKER_RENEW_SECONDS = 15.0
"""How often an idle worker says that it lives."""

REINDEX_EVERY_SECONDS = 900.0
"""How often a server looks for documents without vectors on its own."""

INDEX_ERROR_CHARS_MAX = 500
"""What is kept of the reason why a document could not be embedded."""

INDEX_SWEEP_DOCUMENTS = 2_000
"""Documents looked at in one step of a sweep: none holds a snapshot, or much memory, for long."""

VECTOR_LOAD_SECONDS_MAX = 0.5
"""How long one search reads vectors into memory before it goes on without; a server reads ahead."""

VECTOR_CHANGES_KEPT = 200_000
"""Changes a process may fall behind before it reads all vectors again."""

JOB_BACKOFF_SECONDS_MAX = 3_600.0
"""The longest pause between two attempts at a job. A longer one is from a clock that was ahead."""

JOB_CRASHES_MAX = 20
"""Workers that may end while they hold a job before it is parked. More than the attempts that may
fail: a worker is mostly killed for reasons that have nothing to do with its job."""

COMPLETIONS_MAX = 100
"""Values in one answer of completion/complete (the protocol's own bound)."""

BATCH_MESSAGES_MAX = 50
"""Messages in one JSON-RPC batch of the revision that has them."""

REQUEST_ID_CHARS_MAX = 128
"""A caller's X-Request-ID; a longer or odd one is replaced by ours."""

NAMESPACE_CHARS_MAX = 64
"""A tenant's name."""

TOKEN_CHARS_MAX = 16 * KIB
"""An access token; those of large directories, with every group in them, reach 8 KB."""

TOKENS_KNOWN_MAX = 1_024
"""Tokens whose check is remembered: it takes several times as long as the rest of a request."""

TOKEN_LEEWAY_SECONDS = 30
"""How far our clock and an issuer's may be apart."""

SUBJECT_CHARS_MAX = 128
"""A token's subject as shown in the audit trail; a longer one is shown as its hash."""

ISSUER_ANSWER_BYTES_MAX = 256 * KIB
"""An issuer's metadata or key set; real ones have a few kilobytes."""

ISSUER_KEYS_MAX = 100
"""Keys of one issuer that are looked at; real ones publish two or three."""

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

CONVERT_INLINE_BYTES_MAX = 256 * KIB
"""Text and Markdown up to here are read in the server itself: some milliseconds in a thread."""

CONVERT_MEMORY_BYTES_MAX = 1024 * MIB
"""Address space of a converter process: the largest Word file takes 400 MiB."""

CONVERT_FILES_MAX = 64
"""Open files of a converter process, which opens nothing but its own modules."""

CONVERT_PROCESSES_MAX = 2
"""Converter processes: more would take the CPU from searches, and conversions are rare."""

CONVERT_USES_MAX = 50
"""Files that one converter process converts: the start, 0.1 to 0.3 s, is shared among them."""

CONVERT_IDLE_SECONDS_MAX = 60.0
"""After this an unused converter process ends and gives back its memory."""

FETCH_REDIRECTS_MAX = 3
"""Redirects followed from a URL to ingest; every one is checked against the allow-list."""

TERM_CHARS_MAX = 64
"""A term of the keyword index; holds a SHA-256 in hex, and cuts base64 lines short."""

INDEX_TERMS_MAX = 20_000
"""Terms indexed for one text; the densest has five for four characters, so that no passage, cut by
size as long as may be, has a word that is not found."""

CHUNK_CHARS_TARGET = 900
"""A passage: about 200 tokens of English, what the built-in embedding model reads at once."""

CHUNK_CHARS_MAX = 1_400
"""A passage that has no better place to be cut."""

CHUNK_CHARS_MIN = 200
"""A shorter tail joins the passage before it."""

CHUNK_SIZE_CHARS_DEFAULT = 4_000
"""A window of a source that is cut by size (the seed's value, like the next two)."""

CHUNK_OVERLAP_CHARS_DEFAULT = 400
"""What a window repeats of the one before; a tenth of the size where another size is chosen."""

CHUNK_MINIMUM_CHARS_DEFAULT = 800
"""A shorter last window joins the one before; a fifth of the size where another is chosen."""

CHUNK_SIZE_CHARS_MIN = 100
"""The smallest window: the largest document still has some hundred thousand passages at most."""

CHUNK_SIZE_CHARS_MAX = 8_000
"""The largest: more than most embedding models read, so a passage is found by its beginning."""

HEADINGS_MAX = 100_000
"""Headings and code fences of one document that are seen as such: 10 MB of them stay quick."""

HEADING_CHARS_MAX = 120
"""What is kept of each heading in the trail above a passage."""

IMPORT_BATCH_DOCUMENTS_MAX = 200
"""Documents written in one transaction by an import: enough to share the cost of a commit."""

IMPORT_BATCH_BYTES_MAX = 4 * MIB
"""Text in such a transaction: bounds its memory, and how long it keeps a server from writing."""

IMPORT_HOLD_SECONDS_MAX = 2.0
"""How long an import writes without a pause in which other processes get at the file."""

IMPORT_PAUSE_SECONDS = 0.12
"""The pause. SQLite looks at a busy file every 0.1 s, so whoever waits gets a turn."""

IMPORT_PROBLEMS_MAX = 1_000
"""Files or rows of an import that are named with what was wrong; more are only counted."""

IMPORT_EXAMPLES_MAX = 10
"""Examples of each finding in a preflight report."""

EXPORT_NAME_BYTES_MAX = 200
"""One part of an exported file's path; file systems allow 255, some encrypted ones less."""

EXPORT_PATH_BYTES_MAX = 900
"""The whole path inside the export folder; macOS allows 1 024 with the folder's own."""

RECUT_BATCH_DOCUMENTS = 100
"""Documents cut anew in one transaction."""

RECUT_BATCH_CHARS = 128 * KIB
"""Text in such a transaction: a tenth of a second in which other processes cannot write."""

RECUT_PAUSE_SECONDS = 0.005
"""Between two of them: whoever waits for the file looks every 2 ms, so it gets its turn."""

DISK_FREE_BYTES_FEW = 1024 * MIB
"""Less free space than this is worth a warning: a write-ahead log and an import need room."""

assert LIST_LIMIT_DEFAULT <= LIST_LIMIT_MAX <= LIST_OFFSET_MAX  # noqa: S101
assert CHUNK_CHARS_MIN < CHUNK_CHARS_TARGET <= CHUNK_CHARS_MAX  # noqa: S101
assert CHUNK_SIZE_CHARS_MIN <= CHUNK_SIZE_CHARS_DEFAULT <= CHUNK_SIZE_CHARS_MAX  # noqa: S101
assert 2 * CHUNK_SIZE_CHARS_MAX * 5 // 4 <= INDEX_TERMS_MAX  # noqa: S101
assert READ_CUT_CHARS < READ_CHARS_MAX  # noqa: S101
assert CHUNK_RESPONSE_BYTES_MAX + 6 * RAG_IDS_MAX * CHUNK_ID_CHARS_MAX < RAG_RESPONSE_BYTES_MAX  # noqa: S101
assert SEARCH_LIMIT_DEFAULT <= SEARCH_LIMIT_MAX  # noqa: S101
assert INDEX_BATCH_DOCUMENTS <= INDEX_BATCH_CHUNKS  # noqa: S101
assert 2 * INDEX_RENEW_SECONDS < INDEX_LEASE_SECONDS < INDEX_LAG_ALERT_SECONDS  # noqa: S101
assert 2 * INDEX_WORKER_RENEW_SECONDS < INDEX_WORKER_ALIVE_SECONDS  # noqa: S101
assert Limits().issuer_keys_fresh_seconds < Limits().issuer_keys_stale_seconds_max  # noqa: S101
assert Limits().document_body_bytes_max < Limits().request_body_bytes_max  # noqa: S101
