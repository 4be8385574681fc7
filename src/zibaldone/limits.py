"""Every limit of the product, unit last, with the reason for its value.

`Limits` holds what an operator can change (through settings). The constants below it are part of
the contract with clients and the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that an operator can raise or lower."""

    request_body_bytes_max: int = 32 * MIB
    """An HTTP body. JSON escaping can triple the size of the largest document."""

    document_body_bytes_max: int = 10 * MIB
    """The text of one document. Split larger texts, so that indexing stays interactive."""

    metadata_bytes_max: int = 64 * KIB
    """Metadata is read with every hit, so it must stay small compared with a chunk."""

    list_response_bytes_max: int = 1 * MIB
    """A page of a list. 100 items take about 40 KB; this limit is for very long titles and tags."""

    batch_response_bytes_max: int = 16 * MIB
    """An answer of batch_read or to a JSON-RPC batch. What is beyond it is replaced by an error."""

    tool_seconds_max: float = 30.0
    """A call that takes longer is answered with DEADLINE_EXCEEDED."""

    query_seconds_max: float = 10.0
    """A read from the store; it is interrupted when the time is over."""

    write_wait_seconds_max: float = 20.0
    """How long a write waits for another process that holds the write lock."""

    requests_max: int = 256
    """Concurrent requests. Beyond it, a key that has its even part of them is answered 429
    immediately instead of slowing down all; one that has less is let in."""

    requests_per_key_max: int = 64
    """Concurrent requests of one key, so that one agent cannot shut out the others."""

    connections_max: int = 1_024
    """Open connections. At the bound the one that has been idle longest makes room."""

    connections_per_address_max: int = 512
    """Connections from one address, so that one machine cannot take them all; a proxy is one."""

    head_seconds_max: float = 10.0
    """From the first byte of a request to the end of its headers; clients send them at once."""

    body_seconds_max: float = 30.0
    """Reading a request body; each 64 KiB that arrive add a second."""

    write_seconds_max: float = 30.0
    """How long an answer waits for a client to read it; each 64 KiB read add a second."""

    idle_seconds_max: float = 75.0
    """How long a connection stays open between two requests; proxies reuse theirs for 60 s."""

    bytes_in_flight_max: int = 256 * MIB
    """Long request bodies and unread answers in memory. Bodies wait; answers are dropped."""

    bytes_in_flight_per_key_max: int = 96 * MIB
    """The same for one key: three request bodies of the largest size."""

    shutdown_seconds_max: float = 9.0
    """From SIGTERM to the end of the process. Containers are killed after 10 s by default."""

    requests_per_minute_max: int | None = None
    """Requests of one key in a minute, in each server process; each message of a batch counts. Off
    by default: it is for keys that are given to strangers."""

    namespace_documents_max: int | None = None
    """Live documents of a namespace. Off by default, like the next two."""

    namespace_revisions_max: int | None = None
    """Revisions that are kept in a namespace, the current ones and those of deleted documents
    included. Each write adds one."""

    namespace_bytes_max: int | None = None
    """Bytes of all these revisions as they are stored. Indexes take about three times as much."""

    consult_tokens_per_day: int | None = None
    """Tokens that one key may spend on assistants on a day of UTC, cached ones included; no bound
    by default. A call that would pass it is refused before it is sent."""

    consult_cost_per_day: float | None = None
    """The same in money, by the prices of the assistants."""

    keyword_exact_chunks_max: int = 50_000
    """Up to this many chunks a keyword search ranks every chunk that contains any of the words."""

    keyword_ranked_chunks_max: int = 20_000
    """Beyond that, chunks ranked by the rarer words of a query (docs/explain/finding.md)."""

    rerank_seconds_max: float = 1.5
    """How long a search waits for the reranker; then it keeps its own order."""

    rerank_candidates_max: int = 30
    """Documents whose order the reranker decides, the best of a search. Text Embeddings Inference
    takes 32 texts in one request unless it is told otherwise."""

    keyword_entries_max: int = 2_000_000
    """Entries of the keyword index on PostgreSQL that a search reads, 14 MB. If its words have
    more, the rarer ones are searched first (docs/explain/postgresql.md)."""

    ingest_bytes_max: int = 64 * MIB
    """A file or URL to ingest, before its text is extracted (PDFs contain images)."""

    ingest_seconds_max: float = 60.0
    """Fetching and converting one file, in ingest_document: time beside tool_seconds_max, in which
    the document is then stored. A file whose conversion takes three fifths of it in CPU time is
    refused."""

    issuer_answer_seconds_max: float = 5.0
    """Fetching the keys of a token issuer. A caller whose token needs a new key waits for it."""

    issuer_retry_seconds_min: float = 5.0
    """Time between two such fetches, so that tokens with unknown keys cannot cause many."""

    issuer_keys_fresh_seconds: float = 600.0
    """How long an issuer's keys are used before they are fetched again in the background."""

    issuer_keys_stale_seconds_max: float = 3_600.0
    """How long they are used while the issuer cannot be reached; after that they are refused."""


JSON_VALUES_MAX = 250_000
"""Strings, commas and opening brackets in the JSON of a request. Metadata cannot have more than
65 000 of them; a parser takes a tenth of a second for so many."""

TOOL_REQUEST_BYTES_MAX = 6 * MIB
"""A request to a tool that takes no document's text. The longest sensible one has two hundred of
the longest ids, each character written as an escape."""

MESSAGE_BYTES_MAX = 256 * KIB
"""A message of MCP that calls no tool: a name, a cursor, or a few arguments of a prompt."""

MESSAGE_ID_CHARS_MAX = 1024
"""The id of a message or a progress token; answers repeat it."""

LONG_ANSWER_BYTES = 1 * MIB
"""A longer answer is made piece by piece, and others are served between the pieces: escaping takes
up to ten milliseconds for a mebibyte."""

LONG_ANSWERS = 4
"""Answers with whole documents that are made at once, two of each key and one while others are
about: a document takes up to thirty times its size in memory until its answer is sent."""

LONG_ANSWERS_PER_KEY = 2
"""The same for one key; its others wait before they read anything."""

LONG_ANSWERS_EXTRA = 4
"""Further ones, for keys of which none is made."""

ANSWER_BYTES_MAX = 64 * MIB
"""An answer with a whole document. The longest document takes 60 MiB over MCP if each of its
characters is a quote; only one of control characters takes more."""

BATCH_SMALL_ANSWER_BYTES = 8 * KIB
"""An answer up to here is sent even if a JSON-RPC batch has no room left: a write has happened, and
its caller must learn it."""

BATCHES = 16
"""JSON-RPC batches that are answered at once: each holds its answer until it is whole."""

BATCHES_PER_KEY = 2
"""The same for one key, and one while others are about; its others wait, within their time."""

BATCHES_EXTRA = 16
"""Further ones, for keys of which none is answered."""

DOCUMENT_ID_BYTES_MAX = 1024
"""An id must fit an index key, a URL and a file path."""

COMBINING_MARKS_MAX = 30
"""Combining marks on one character, as in the Stream-Safe Text Format (UAX #15): no language needs
more, and putting them in order takes the square of their number."""

FOLDED_GROWTH_MAX = 2
"""How many times longer a text may become when its compatibility characters are spelled out (one
of them stands for 18 letters); what is beyond that is not indexed."""

METADATA_DEPTH_MAX = 64
"""Nesting of metadata. JSON writers stop at 254 levels, and an answer adds some of its own."""

TITLE_CHARS_MAX = 1000
"""A title is one line; real ones are far shorter."""

TAGS_MAX = 64
"""Tags of one document."""

TAG_CHARS_MAX = 200
"""A tag is a short word or phrase."""

THREADS = 48
"""Threads for work that the event loop hands over. All who may hold one for long (`PACKS`,
`REFETCHES`, `SOURCES`, with their extra ones) leave twenty for what is short."""

LIST_LIMIT_DEFAULT = 50
"""Documents on a page of a list, unless the caller says how many."""

LIST_LIMIT_MAX = 100
"""Documents on a page of a list, at most."""

LIST_OFFSET_MAX = 10_000
"""Skipping costs time for each row. Beyond this, use a cursor or a longer prefix."""

CURSOR_CHARS_MAX = 8 * KIB
"""A cursor holds a prefix and an id in base64; it is decoded on the event loop."""

PREPARE_INLINE_CHARS_MAX = 64 * KIB
"""A longer body is cut, hashed and turned into terms before its transaction: these take up to a
microsecond for each character, in which no other write could run."""

PREPARE_THREADS = 2
"""Long bodies that are prepared at once, one of each key."""

PREPARE_THREADS_EXTRA = 1
"""One more, for a key of which none is prepared."""

LONG_CHANGES = 4
"""Changes of long documents that are in memory at once, each with both bodies, chunks and terms: up
to twenty times the size of the document. A request of fifty bytes can ask for one."""

LONG_CHANGES_PER_KEY = 2
"""The same for one key, and one while others are about: one is prepared while one is stored."""

LONG_CHANGES_EXTRA = 4
"""Further ones, for keys that have none."""

PREPARE_TRIES_MAX = 3
"""How often a long body is prepared anew because others changed the document meanwhile."""

READ_INLINE_CHARS_MAX = 16_384
"""Bodies up to this length are read on the event loop, in some fifty microseconds; longer ones in a
thread."""

READ_CUT_CHARS = 500
"""What get_document returns unless asked for more: enough to decide, cheap in tokens."""

RELATED_MAX = 3
"""Related documents returned with a document."""

RELATED_SNIPPET_CHARS_MAX = 200
"""Text returned of each related document."""

READ_LINES_MAX = 2_000
"""Lines in one ranged read."""

READ_CHARS_MAX = 200_000
"""Characters in one ranged read."""

BATCH_PATHS_MAX = 20
"""Documents in one batch_read."""

PATCH_REPLACEMENTS_MAX = 100
"""Replacements in one atomic patch."""

REVISION_MAX = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""

HISTORY_LIMIT_DEFAULT = 20
"""Revisions on one page of a history."""

HISTORY_LIMIT_MAX = 100
"""Revisions on one page of a history, at most."""

DIFF_LINES_MAX = 20_000
"""Lines on either side of a diff; comparing takes the square of their number, in all some tenths
of a second."""

DIFF_CHARS_MAX = 1_000_000
"""Characters of a diff. Whoever needs more reads both revisions."""

QUERY_BYTES_MAX = 8_192
"""A search query, in UTF-8 bytes."""

QUERY_TERMS_MAX = 64
"""Distinct terms of a query that are searched for. If more are given, the rarest ones are, and a
note in the answer says so."""

QUERY_TERMS_COUNTED_MAX = 256
"""Terms of a long query among which the rarest are looked for: the first ones."""

QUERY_TERM_CHUNKS_COUNTED_MAX = 1_000
"""Chunks up to which it is counted how rare a term is."""

QUERY_WISH_WORDS_MAX = 32
"""Words of the quotations in a query that are looked for side by side; of a longer quotation, the
first ones."""

SEARCH_LIMIT_DEFAULT = 10
"""Hits of one search."""

SEARCH_LIMIT_MAX = 50
"""Hits of one search, at most."""

SNIPPET_CHARS_MAX = 300
"""The part of a chunk that is returned with a hit."""

HIT_LABEL_CHARS_MAX = 200
"""Length to which search_knowledge cuts titles and heading trails; its answers are small."""

RERANK_TEXT_CHARS_MAX = 2_000
"""Characters of a chunk, with its title and heading, and of a question, that a reranker is sent."""

QDRANT_ANSWER_BYTES_MAX = 16 * MIB
"""An answer of Qdrant: at most some ten thousand keys of chunks with their scores."""

RERANK_ANSWER_BYTES_MAX = 1 * MIB
"""An answer of a reranker."""

RERANK_REQUESTS_MAX = 8
"""Requests to the reranker at the same time; further searches wait within their time for it."""

RERANK_REQUESTS_BESIDE_OTHERS = 2
"""The same of one key while others search."""

RERANK_REQUESTS_EXTRA = 4
"""Further ones, for keys of which none runs."""

RERANK_FAILURES_MAX = 3
"""After so many failures in a row the searches of a key leave the reranker alone for a while. What
one key asks may be what it fails at."""

RERANK_PAUSE_SECONDS = 15.0
"""That while."""

CANDIDATES_MAX = 500
"""Chunks that keyword or vector search may each contribute to a hybrid search."""

LEXICAL_ENOUGH = 100
"""If the rarer words of a keyword search find this many chunks, the more common ones are not
needed (keyword_ranked_chunks_max)."""

TERM_CHUNKS_COUNTED_MAX = 500
"""Chunks with a word of a query that are counted to tell how relevant a hit is. Of a more common
word, the number is estimated."""

LEXICAL_REFINED_MAX = 1_000
"""Chunks, the best ones, in which the more common words and phrases are then counted one by one."""

LEXICAL_LOOKED_AT_MAX = 20_000
"""Chunks that are looked at for a phrase at first; and for a filter, before all that pass it are
listed instead."""

LEXICAL_WISHED_MAX = 5_000
"""The same for a quotation that is only wished for."""

RAG_RESPONSE_BYTES_MAX = 5_000_000
"""One answer of a rag tool, as JSON. Over MCP that JSON is sent as text, which escapes its quotes,
and to newer clients a second time as structured content."""

CHUNK_RESPONSE_BYTES_MAX = 2_000_000
"""Text of the chunks in one answer of rag.get_chunks."""

RAG_IDS_MAX = 200
"""Ids in one call of rag.get_chunks or rag.get_docs."""

FILTER_VALUES_MAX = 200
"""Values in one list of a filter."""

ID_CHARS_MAX = 2 * DOCUMENT_ID_BYTES_MAX
"""An id or a name as given to a rag tool. In decomposed Unicode it has more characters than the id
that is stored."""

CHUNK_ID_CHARS_MAX = ID_CHARS_MAX + 10
"""The same with `#` and the number of the chunk."""

ECHO_CHARS_MAX = 200
"""Length to which an error message cuts a name it repeats."""

RAG_SECONDS_MAX = 2.0
"""One call of a rag tool."""

QUERY_EMBED_SECONDS_MAX = 1.0
"""How long a search waits for the vector of its query before it uses keywords only."""

QUERY_EMBEDS_MAX = 8
"""Queries embedded at once."""

QUERY_EMBEDS_PER_KEY_MAX = 6
"""The same of one key, so that a model that hangs for one does not for all."""

QUERY_EMBEDS_BESIDE_OTHERS = 2
"""The same while others ask: they share the CPU with what runs."""

QUERY_EMBEDS_EXTRA = 4
"""Further ones, for keys of which none is embedded."""

QUERY_EMBEDS_WAITING_MAX = 256
"""Queries that wait for that. When a model hangs, no more are kept than there can be requests; any
further one is answered by keywords only."""

KNOWLEDGE_RESPONSE_BYTES = 6_000
"""An answer of search_knowledge: short enough to leave an agent's context mostly free."""

EMBED_CHARS_MAX = 8_000
"""What a model without a limit of its own reads of a text; chunks are shorter."""

EMBED_BATCH_MAX = 32
"""Texts in one request to an embedding server; some refuse more."""

EMBED_RESPONSE_BYTES_MAX = 16 * MIB
"""An answer of an embedding server."""

EMBED_TRIES_MAX = 3
"""Requests for one batch before it counts as failed."""

EMBED_RETRY_AFTER_SECONDS_MAX = 10.0
"""A longer Retry-After of an embedding server is not waited for; the batch is tried later."""

INDEX_BATCH_DOCUMENTS = 16
"""Documents that a worker leases at once: enough to share a commit, few enough to stay current."""

INDEX_BATCH_CHUNKS = 128
"""Chunks embedded before the vectors are stored: seconds with a slow model, so that a long document
does not delay the others and is not started over after a crash."""

INDEX_LEASE_SECONDS = 20.0
"""When a worker dies, another takes over its documents after this time; less than the lag alert."""

INDEX_RENEW_SECONDS = 5.0
"""How often a busy worker renews its leases."""

INDEX_TRIES_MAX = 5
"""Attempts at a document before its job is parked with the error."""

INDEX_UNAVAILABLE_SECONDS_MAX = 15.0
"""The longest pause between attempts while the model is unavailable, unless it asks for a longer
one. Once it is back, waiting documents are indexed after this time at most."""

INDEX_LAG_ALERT_SECONDS = 30.0
"""The lag alert is on when a document has been pending for longer than this."""

INDEX_WORKER_ALIVE_SECONDS = 60.0
"""After a process has died, one with another model may take over the index after this time."""

INDEX_WORKER_RENEW_SECONDS = 15.0
"""How often an idle worker reports that it is alive."""

COMMAND_VECTORS_SECONDS_MAX = 10.0
"""How long a command that wrote one document makes vectors, where no server runs. It is enough for
its own; what others left in the queue may take longer."""

REINDEX_KEPT_SECONDS = 86_400.0
"""How long a scheduled look for missing vectors is kept: there are many, and few find any."""

INDEX_ERROR_CHARS_MAX = 500
"""Length to which the reason is cut why a document could not be embedded."""

INDEX_LOG_SECONDS = 10.0
"""How often, at most, the log sums up what was indexed. At the level debug it has each document."""

INDEX_SWEEP_DOCUMENTS = 2_000
"""Documents in one step of a sweep, so that no step holds a snapshot or much memory for long."""

VECTOR_LOAD_SECONDS_MAX = 0.5
"""How long one search reads vectors into memory before it continues without them. A server reads
them at its start."""

VECTOR_CHANGES_KEPT = 200_000
"""Changes kept for other processes. One that is further behind reads all vectors again."""

JOB_LIST_LIMIT_DEFAULT = 50
"""Jobs on one page of a list."""

JOB_LIST_LIMIT_MAX = 200
"""Jobs on one page of a list, at most."""

JOB_ID_CHARS_MAX = 64
"""The id of a job, as a tool takes it."""

JOB_KIND_CHARS_MAX = 64
"""The kind of a job, as a tool takes it."""

JOB_BACKOFF_SECONDS_MAX = 3_600.0
"""The longest pause between two attempts at a job. A longer one is from a clock that was ahead."""

JOB_CRASHES_MAX = 20
"""Workers that may end while they hold a job before it is parked. More than the attempts that may
fail: a worker is mostly killed for reasons that have nothing to do with its job."""

WRITE_OUTCOME_SECONDS_MAX = 10.0
"""How long the outcome of a write that has begun is awaited after its caller's deadline, so that
the answer can tell whether it was stored."""

JOB_LEASE_SECONDS = 30.0
"""A job whose process died is taken up by another after this, unless its kind says otherwise."""

JOB_TRIES_MAX = 5
"""Attempts at a job that may fail before it is parked, unless its kind says otherwise."""

JOB_DONE_KEPT_SECONDS = 7 * 86_400.0
"""How long a job that is done or cancelled can be looked at, unless its kind says otherwise."""

JOB_PARKED_KEPT_SECONDS = 30 * 86_400.0
"""How long a job that failed for good waits for somebody to retry it."""

JOB_PURGE_EVERY_SECONDS = 600.0
"""How often jobs that ended long ago are removed."""

JOB_PURGE_BATCH = 1_000
"""Jobs removed in one transaction."""

JOB_PROGRESS_SECONDS = 1.0
"""Between two writes of a job's progress; what is said more often is not written."""

JOB_CANCEL_GRACE_SECONDS = 10.0
"""How long a handler may take to stop by itself once its job is to be cancelled."""

JOB_RESULT_BYTES_MAX = 256 * KIB
"""A job's result, as JSON. What is larger is a document."""

JOB_ERROR_CHARS_MAX = 500
"""What is kept of the reason why a job failed."""

LINKS_MAX = 500
"""Links that are kept of one document, and that are shown of it."""

LINKS_LOOKED_AT_CHARS = 200_000
"""Links are looked for in so much of a document."""

RECENT_LOOKED_AT = 1_000
"""Of the last changes in a namespace, those that are looked at for a list of what changed."""

RECENT_LIMIT_DEFAULT = 20
"""Documents in a list of what changed."""

RECENT_LIMIT_MAX = 100
"""Documents in a list of what changed, at most."""

LIST_FOLDERS_MAX = 1_000
"""Folders in one answer of a list."""

NEAR_PATHS_MAX = 3
"""Paths that an error about a missing document names."""

NEAR_PATHS_LOOKED_AT = 50
"""Documents that are compared with a missing path, for each of a few ways to find them."""

NEAR_PATHS_SECONDS_MAX = 1.0
"""How long paths near a missing one are looked for."""

JOBS_OPEN_PER_KEY_MAX = 100
"""Jobs of one caller, MCP tasks among them, that are queued or running; more are refused."""

TASK_POLL_MS = 1_000
"""How often a client is asked to look after its MCP task."""

TASK_PAUSE_SECONDS_MIN = 1.0
"""Before a background task that died is started again; doubled each time it dies again soon."""

TASK_PAUSE_SECONDS_MAX = 60.0
"""The longest such pause: what was in its way may be gone."""

TASK_STABLE_SECONDS = 120.0
"""A task that has run so long since its last start is well again."""

TASK_STOP_SECONDS_MAX = 10.0
"""How long a server that stops waits for its background tasks."""

TRANSFER_ROWS = 2_000
"""Rows that a migration to another store moves in one transaction."""

TRANSFER_BYTES = 8 * MIB
"""The same in bytes, unless one row is larger."""

BACKUP_SECONDS_MAX = 6 * 3_600.0
"""How long a backup of a PostgreSQL database may read on its snapshot."""

CANARY_CONSUMED_SECONDS_MAX = 2.0
"""Canary, C3: until a write is taken up."""

CANARY_RECONNECT_SECONDS_MAX = 5.0
"""Canary, C5: from the end of a gap until what was written in it is indexed."""

CANARY_WRITES_PER_SECOND = 10
"""Canary, C6."""

CANARY_WRITE_SECONDS_DEFAULT = 10
"""Canary, C6: how long it writes."""

CANARY_LAG_P95_SECONDS_MAX = 5.0
"""Canary, C6: from a write to its vector, in 95 of 100 cases."""

CANARY_LAG_P99_SECONDS_MAX = 15.0
"""Canary, C6: the same in 99 of 100 cases."""

CANARY_UPLOADS = 10
"""Canary, C4: documents that are watched; K1 writes twice as many."""

CANARY_DELETES = 100
"""Canary, K4: documents that are deleted as soon as they are written."""

CANARY_WAIT_SECONDS_MAX = 60.0
"""Canary: how long it waits for a vector where no check sets a time."""

CANARY_SAMPLE_SECONDS = 0.05
"""Canary, C4: between two looks at a status."""

CANARY_POLL_SECONDS = 0.1
"""Canary: between two looks where only the end counts."""

CANARY_QUIET_SECONDS = 0.75
"""Canary: a counter that stands still for so long is not moved by others. A worker that was not
woken looks more often than that."""

CANARY_COUNT_TRIES = 5
"""Canary: attempts to count something while others may be writing."""

CANARY_CLEAR_SECONDS_MAX = 30.0
"""Canary: how long it waits, at its end, until its deletions are dealt with."""

CANARY_ANSWER_BYTES_MAX = 16 * MIB
"""Canary: an answer of the server that is checked. A server's own lists are shorter."""

CANARY_ANSWER_SECONDS_MAX = 30.0
"""Canary: from a request to the end of its answer, also where that comes byte by byte."""

CANARY_STALE_SECONDS = 3_600.0
"""Canary: documents of a run that began longer ago than this are left over."""

CRON_CHARS_MAX = 200
"""A cron expression."""

COMPLETIONS_MAX = 100
"""Values in one answer of completion/complete (a limit of the protocol)."""

BATCH_MESSAGES_MAX = 50
"""Messages in one JSON-RPC batch, in the protocol revision that has batches. Together they have the
time of one call."""

HEAD_BYTES_MAX = 64 * KIB
"""Request line and headers, or the trailers of a body: a token of 16 KiB and much beside it."""

HEADERS_MAX = 100
"""Header fields of a request; browsers and proxies send about thirty."""

URL_BYTES_MAX = 32 * KIB
"""A URL with its query string: the longest search query, percent-encoded, and some filters."""

PIPELINED_MAX = 8
"""Requests that a client may send ahead on one connection before the first is answered. Hardly any
client does, and all of them are read before the next connection is."""

TRANSFER_BYTES_PER_SECOND_MIN = 64 * KIB
"""A peer slower than this uses up its time limit: 32 MiB take nine minutes at most."""

UNCOUNTED_BYTES_MAX = 64 * KIB
"""A body or unread answer up to here is not counted as in flight: connections_max bounds it."""

SEND_BUFFER_BYTES = 256 * KIB
"""What the system takes of an answer ahead of its reader; Linux doubles it. By itself it would take
megabytes: of answers that nobody reads, on every connection, and with one long copy while nobody
else is served."""

BODY_EXTRA_BYTES_MAX = 4 * MIB
"""A body up to here is taken though `bytes_in_flight_max` is reached, if its key holds no other: a
few keys that send slowly must not keep all others from writing."""

BODY_WAIT_SECONDS_MAX = 10.0
"""How long a large request body waits until others of its key have left memory."""

STALLED_SECONDS = 5.0
"""An unread answer this old is the first to be dropped when unread answers take too much."""

LINGER_SECONDS_MAX = 5.0
"""After a refusal, how long the rest of a request is discarded so that the client can read why."""

ACCEPT_CHARS_CACHED_MAX = 256
"""Accept headers up to here are remembered once parsed; those of real clients are shorter."""

HEALTH_SECONDS_MAX = 0.7
"""How long /health waits for the parts it asks; it promises to answer within a second."""

PROBE_SECONDS_MAX = 0.7
"""How long /health waits for the store, which it reads on a connection of its own."""

STUCK_SECONDS = 15.0
"""A read or write of no work that waits this long means stuck threads: deadlines are shorter."""

LOG_LINE_CHARS_MAX = 16 * KIB
"""One log message; a longer one is cut, so that no request can fill a disk with its log line."""

REQUEST_ID_CHARS_MAX = 128
"""A caller's X-Request-ID. A longer or invalid one is replaced."""

NAMESPACE_CHARS_MAX = 64
"""The name of a namespace."""

TOKEN_CHARS_MAX = 16 * KIB
"""An access token. Those that list every group of a large directory reach 8 KB."""

TOKENS_KNOWN_MAX = 1_024
"""Verified tokens that are cached: verifying takes longer than the rest of a request."""

TOKEN_LEEWAY_SECONDS = 30
"""Allowed difference between our clock and the issuer's."""

SUBJECT_CHARS_MAX = 128
"""A token's subject in the audit log; a longer one is logged as its hash."""

ISSUER_ANSWER_BYTES_MAX = 256 * KIB
"""Metadata or key set of an issuer; real ones have a few kilobytes."""

ISSUER_KEYS_MAX = 100
"""Keys of one issuer that are read; real ones publish two or three."""

EXTRACT_UNPACKED_BYTES_MAX = 256 * MIB
"""Unpacked size that an archive may declare, and size of the text of a PDF."""

ARCHIVE_ENTRIES_MAX = 10_000
"""Entries of a zip file. Each costs memory before any is read; a large Word file has hundreds."""

DOCX_XML_BYTES_MAX = 16 * MIB
"""XML of a Word file. The parser takes 25 times its size in memory and over a second per MiB."""

HTML_BYTES_MAX = 16 * MIB
"""Markup of a page. Converting takes one to two seconds per MiB."""

HTML_DEPTH_MAX = 100
"""Nesting of elements. Deeper ones become siblings, as in browsers: the converter recurses."""

HTML_LIST_NUMBERED_MAX = 2_000
"""Nodes in a numbered list. Numbering is quadratic, so a longer list gets bullets."""

HTML_BLANK_RUN_CHARS_MAX = 256
"""A longer run of blanks becomes one blank: the converter's patterns are quadratic in it."""

PDF_PAGES_MAX = 10_000
"""Pages of a PDF. Each takes some milliseconds even when it is empty."""

CONVERT_INLINE_BYTES_MAX = 64 * KIB
"""Text and Markdown up to here are read in the server itself: some milliseconds in a thread."""

CONVERT_AT_ONCE_BYTES_MAX = 8 * KIB
"""Text and Markdown up to here need no thread: a tenth of a millisecond, and 10 ms at worst."""

CONVERT_MEMORY_BYTES_MAX = 1024 * MIB
"""Address space of a converter process: the largest Word file takes 400 MiB."""

CONVERT_FILES_MAX = 64
"""Open files of a converter process, which opens nothing but its own modules."""

CONVERT_PROCESSES_MAX = 2
"""Converter processes: more would take the CPU from searches, and conversions are rare."""

CONVERT_PROCESSES_EXTRA = 2
"""Converter processes beyond these, for callers that have none running."""

CONVERT_USES_MAX = 50
"""Files that one converter process converts: the start, 0.1 to 0.3 s, is shared among them."""

CONVERT_IDLE_SECONDS_MAX = 60.0
"""After this an unused converter process ends and gives back its memory."""

SOURCES = 8
"""Files and pages that are in memory at once, to be converted and stored: `ingest_bytes_max` each.
A request of fifty bytes can ask for one."""

SOURCES_PER_KEY = 4
"""The same for one key, and one while others are about; its others wait before they are read."""

SOURCES_EXTRA = 4
"""Further ones, for keys that have none."""

SOURCE_CHARS_MAX = 8 * KIB
"""The path or URL of a file to ingest; systems and servers take about half of it."""

FETCH_REDIRECTS_MAX = 3
"""Redirects followed from a URL to ingest. Each target must be on the allow-list."""

TERM_CHARS_MAX = 64
"""A term of the keyword index: long enough for a SHA-256 in hex, and cuts base64 lines."""

INDEX_TERMS_MAX = 20_000
"""Terms indexed for one text. The densest text has five terms for four characters, so even the
largest chunk is indexed completely."""

LANGUAGE_WORDS_MAX = 100
"""Words of a text that are looked at to tell its language."""

CHUNK_CHARS_TARGET = 900
"""Size to aim for: about 200 tokens of English, what the built-in model reads at once."""

CHUNK_CHARS_MAX = 1_400
"""Size of a chunk that has no better place to be cut."""

CHUNK_CHARS_MIN = 200
"""A shorter last chunk is joined to the one before."""

CHUNK_SIZE_CHARS_DEFAULT = 4_000
"""Size of the chunks of a source that is cut by size, unless its definition has one."""

CHUNK_OVERLAP_CHARS_DEFAULT = 400
"""Overlap with the chunk before; with another size, a tenth of that."""

CHUNK_MINIMUM_CHARS_DEFAULT = 800
"""A shorter last chunk is joined to the one before; with another size, a fifth of that."""

CHUNK_SIZE_CHARS_MIN = 100
"""The smallest size that can be chosen: keeps the largest document at some 100 000 chunks."""

CHUNK_SIZE_CHARS_MAX = 8_000
"""The largest size that can be chosen. Most models read less, and see only the start of a chunk."""

HEADINGS_MAX = 100_000
"""Headings and code fences recognised in one document, so that 10 MB of them stay quick."""

HEADING_CHARS_MAX = 120
"""Length to which each heading in the trail of a chunk is cut."""

IMPORT_BATCH_DOCUMENTS_MAX = 200
"""Documents in one transaction of an import: enough to share the cost of a commit."""

IMPORT_BATCH_BYTES_MAX = 512 * KIB
"""Text in one transaction of an import or a sync, unless it is one document: for each byte, nobody
else can write for about half a microsecond."""

IMPORT_HOLD_SECONDS_MAX = 2.0
"""How long an import writes before it pauses to let other processes write."""

IMPORT_PAUSE_SECONDS = 0.12
"""Length of that pause: longer than any engine waits between two tries for a lock."""

IMPORT_SECONDS_MAX = 300.0
"""One batch of an import, with the wait for a server that writes and for a slow disk."""

IMPORT_PROBLEMS_MAX = 1_000
"""Failed files or rows that an import lists with the reason; further ones are only counted."""

IMPORT_EXAMPLES_MAX = 10
"""Examples of each finding in a preflight report."""

EXPORT_NAME_BYTES_MAX = 200
"""One segment of an exported file's path. File systems allow 255, some encrypted ones less."""

EXPORT_PATH_BYTES_MAX = 900
"""The whole path inside the export folder. macOS allows 1 024 including the folder's own path."""

RECUT_BATCH_DOCUMENTS = 100
"""Documents chunked again in one transaction."""

RECUT_BATCH_CHARS = 128 * KIB
"""Text in such a transaction: it blocks other writers for a tenth of a second."""

RENEWAL_CHUNKS = 256
"""Chunks in one step when terms are made anew; a step takes some 50 ms."""

RENEWAL_PAUSE_SECONDS = 0.005
"""Between two of these steps, for whoever else has to write."""

TERM_STEP_CHARS = 32 * KIB
"""Terms that one transaction adds to the keyword index of the embedded store after a long change:
3 ms of English, 12 ms of Chinese, in which no other write can run."""

TERM_STEP_CHUNKS = 50
"""Chunks whose terms one such transaction removes."""

TERMS_LEFT_SECONDS = 60.0
"""How often is looked for terms that a process which ended has left unstored."""

RECUT_PAUSE_SECONDS = 0.005
"""Pause between two of them. Waiting writers retry every 2 ms, so they get their turn."""

DISK_FREE_BYTES_LOW = 1024 * MIB
"""With less free space `doctor` warns: the write-ahead log and imports need room."""

SOURCE_NAME_CHARS_MAX = 64
"""The name of a source."""

SOURCE_KEY_COLUMNS_MAX = 16
"""Columns in the key of a source; databases allow about as many in an index."""

SOURCE_COLUMNS_MAX = 1_000
"""Columns in one list of a source's definition; tables have fewer."""

SOURCE_DEFINITION_CHARS_MAX = 64 * KIB
"""One text in a source's definition: a long SELECT has a few kilobytes."""

SOURCE_DELETE_SHARE_DEFAULT = 0.3
"""A sync that would delete more than this share of a source stops and asks: an empty answer is more
often a fault than the truth."""

SOURCE_DELETES_UNASKED_MAX = 20
"""So many documents are deleted without asking, whatever share they are: small tables change."""

SOURCE_STATEMENT_SECONDS_DEFAULT = 300.0
"""How long a source may take for one statement, or until its next rows come."""

SOURCE_STATEMENT_SECONDS_MAX = 86_400.0
"""The longest such time that can be chosen."""

SOURCE_POLL_SECONDS_DEFAULT = 10.0
"""Between two looks at a source that is followed and cannot notify."""

SOURCE_POLL_SECONDS_MIN = 0.5
"""The shortest such time: each look reads the key and watermark of all rows."""

SOURCE_POLL_SECONDS_MAX = 86_400.0
"""The longest such time."""

SOURCE_CONNECT_SECONDS_MAX = 10.0
"""How long connecting to a source may take."""

SYNC_BLOCK_ROWS = 1_000
"""Rows whose state is compared as a whole: a hash of so many is stored. A change costs reading the
state of one block."""

SYNC_BLOCK_BYTES = 8 * MIB
"""The same in bytes of their texts, unless one row is larger: what a sync holds in memory."""

SYNC_SETTLE_SECONDS = 60.0
"""A row whose watermark is younger than this, by the clock of its source, is read again next time:
a second edit within the same tick of that clock would leave the watermark as it is."""

SYNC_PROBLEMS_MAX = 50
"""Rows that a sync lists with the reason why they failed; further ones are only counted."""

SYNC_STEP_SECONDS = 0.25
"""How long a sync compares blocks before it looks whether it is to stop."""

SYNC_FETCH_ROWS = 200
"""Rows that are read at a time where they are read whole; fewer while they are large."""

SYNC_DELETE_BATCH = 200
"""Documents that are deleted in one transaction."""

SYNC_CONCURRENCY = 2
"""Syncs that run at the same time, in all processes: each is one thread and one snapshot."""

SYNC_KEPT_SECONDS = 86_400.0
"""How long a sync that is done can be looked at: a source that is polled makes many."""

SYNC_LEASE_SECONDS = 60.0
"""A sync whose process died is taken up by another after this time."""

REFETCH_ROWS_MAX = 100
"""Rows that one call may read again from a source."""

REFETCHES = 4
"""Calls that read rows again at once, two of each key and one while others are about: each holds a
thread and a connection for as long as the source takes."""

REFETCHES_PER_KEY = 2
"""The same for one key; its others wait, within their time."""

REFETCHES_EXTRA = 4
"""Further ones, for keys of which none does."""

REFETCH_PLAN_SECONDS_MAX = 60.0
"""How long it is remembered what columns a table has; one that is gone is noticed at once."""

REFETCH_IDLE_SECONDS_MAX = 30.0
"""How long a connection to a source is kept for the next row that is read again."""

REFETCH_BYTES_MAX = 1 * MIB
"""The same in bytes of JSON."""

REFETCH_SECONDS_MAX = 5.0
"""How long reading rows again may take; a call that an agent waits for."""

SOURCE_SAMPLE_ROWS = 20
"""Rows that are read to see what the columns of a table hold."""

SOURCE_PREVIEW_ROWS_DEFAULT = 3
"""Rows that are shown as documents before a source is saved."""

SOURCE_PREVIEW_ROWS_MAX = 100
"""Rows of a preview, at most."""

SOURCE_PREVIEW_CHARS_MAX = 2_000
"""Of each body in a preview."""

LIVE_LOOK_SECONDS = 2.0
"""How soon a live source that was added or changed by another process is followed, and how exactly
the time between two looks at a source is kept."""

LIVE_QUIET_SECONDS = 0.3
"""After a change of a live source: changes seldom come alone, and one sync is enough for all."""

LIVE_RETRY_SECONDS_MIN = 1.0
"""Before a lost connection to a live source is made again; it doubles each time."""

LIVE_RETRY_SECONDS_MAX = 60.0
"""The longest such pause, and the longest between syncs of a live source that fail."""

LIVE_LATE_SECONDS = 60.0
"""A live source that is further behind is late: `/health` is degraded."""

FRONT_MATTER_BLOCK_CHARS_MAX = 64 * KIB
"""The YAML block at the beginning of a Markdown text; real ones have a few hundred characters."""

FRONT_MATTER_DEPTH_MAX = 16
"""Nesting of that block. Checked before anything is built of it."""

FRONT_MATTER_ALIASES_MAX = 16
"""Aliases in that block: each may repeat all that came before."""

FRONT_MATTER_VALUES_MAX = 10_000
"""Values of that block with its aliases spelled out."""

PUSH_TRIES = 4
"""Attempts at one request of a push, with 0.5, 1 and 2 seconds between them."""

PUSH_FIRST_WAIT_SECONDS = 0.5
"""The first of these waits; each is twice the one before."""

PUSH_RETRY_AFTER_SECONDS_MAX = 300.0
"""A longer Retry-After of a memory server is cut to this."""

PUSH_REQUEST_SECONDS_MAX = 30.0
"""One request of a push, to the end of its answer."""

PUSH_HOOK_SECONDS_MAX = 20.0
"""A whole push that an editor's hook waits for; hooks are stopped after 60 s by default."""

PUSH_ANSWER_BYTES_MAX = 256 * MIB
"""An answer of a memory server. Graphiti lists episodes with their whole text."""

PUSH_NOTE_BYTES_MAX = 16 * MIB
"""A note; a longer file is no note, and is skipped."""

PUSH_PART_CHARS_ZIBALDONE = 1_000_000
"""Longer notes are sent in parts. Four bytes for each character are below the largest document."""

PUSH_PART_CHARS_GRAPHITI = 20_000
"""The same for Graphiti, which gives each episode to a language model: about 5 000 tokens."""

PUSH_LIST_EPISODES_MIN = 1_000
"""Episodes that are asked for to see what Graphiti holds; four times as many until all came."""

PUSH_LIST_EPISODES_MAX = 1_024_000
"""The most that are asked for."""

PUSH_SETTLE_SECONDS = 3_600.0
"""What Graphiti acknowledged and does not show after this time is taken for lost."""

PUSH_CONFIRM_SECONDS_MAX = 5.0
"""How long a push waits until Graphiti shows what it acknowledged; later pushes look again."""

PUSH_RACY_NS = 2_000_000_000
"""A file changed so short before it was read is read again: another change may have left its size
and time as they were. Some file systems count in steps of two seconds."""

PUSH_FAILURES_MAX = 5
"""Notes in a row that may fail before a push ends."""

PUSH_WATCH_SECONDS = 2.0
"""How often push --watch looks at the folder."""
MEMORY_READ_CHARS_MAX = 32 * KIB
"""Of an episode, from which entities and facts are taken; the rest is found by search."""

ENTITIES_MAX = 200
"""Entities of an episode."""

ENTITY_CHARS_MAX = 80
"""Of the name of an entity; what is longer is a sentence."""

FACTS_MAX = 200
"""Facts of an episode."""

FACT_CHARS_MAX = 500
"""Of a sentence that is kept as a fact."""

RELATION_CHARS_MAX = 80
"""Of what stands between the two entities of a fact."""

ENTITY_KIND_CHARS_MAX = 40
"""Of the kind that a model says an entity is of."""

MEMORY_EXTRACT_ANSWER_CHARS_MAX = 256 * KIB
"""Of a model's list of entities and facts; a longer one is not read."""

MEMORY_EXTRACT_CONCURRENCY = 4
"""Episodes that models read at the same time, in all processes."""

MEMORY_EXTRACT_LEASE_SECONDS = 20.0
"""An episode whose reader's process died is read by another after this time."""

MEMORY_EXTRACT_TRIES_MAX = 12
"""Attempts to have an episode read while the provider is away: for about an hour."""

MEMORY_EXTRACT_KEPT_SECONDS = 86_400.0
"""How long the outcome of reading an episode is kept: there is one for each write."""

FRONT_MATTER_CHARS_MAX = 4_096
"""Of the front matter of an episode; what is longer is text."""

DATES_CHARS_MAX = 20_000
"""Of a text in which dates are looked for."""

DATES_MAX = 20
"""Dates that are taken from a text."""

MEMORY_GROUPS_MAX = 20
"""Groups that one call asks for."""

MEMORY_GROUPS_SHOWN_MAX = 1_000
"""Groups that get_status lists; the largest, if there are more."""

MEMORY_HASH_INLINE_CHARS_MAX = 256 * KIB
"""The id of a longer episode is made in a thread: others are served meanwhile."""

MEMORY_ITEMS_MAX = 100
"""Episodes, nodes or facts in one answer."""

MEMORY_ITEMS_DEFAULT = 10
"""The same where a call does not say."""

MEMORY_RESPONSE_CHARS_MAX = 4 * MIB
"""Of all texts in one answer of get_episodes."""

MEMORY_CLEAR_BATCH = 100
"""Episodes that clear_graph deletes in one transaction."""

MEMORY_CLEAR_CHARS = 256 * KIB
"""A transaction of clear_graph ends after so much text: deleting it takes some tenths of a second,
in which nobody else writes."""

MEMORY_CLEAR_SECONDS_MAX = 300.0
"""How long clear_graph may take. What it has deleted by then stays deleted; call it again."""

MEMORY_LABELS_MAX = 20
"""Labels that entities are restricted to, and those of one entity in an answer."""

MEMORY_SUMMARY_FACTS = 5
"""Facts that make the summary of an entity."""

MEMORY_AUDIT_EPISODES_MAX = 20_000
"""Episodes that an audit of the memory looks at, the latest of each group first."""

MEMORY_AUDIT_BATCH = 100
"""Of these at a time."""

MEMORY_AUDIT_SAMPLE_MAX = 500
"""Of these, so many are searched for by their own words."""

MEMORY_AUDIT_SHOWN_MAX = 50
"""Of each kind of finding, so many are listed; the rest are counted."""

MEMORY_AUDIT_SECONDS_MAX = 600.0
"""How long an audit of the memory may take."""

AUDIT_TERMS_MAX = 500
"""Terms of an episode by which near-duplicates are told."""

MEMORY_LINES_MAX = 100
"""Episodes that recall chooses from."""

MEMORY_LINE_CHARS_MAX = 800
"""Of one line of recall; a longer text is cut around what was asked for."""

RECALL_TOKENS_DEFAULT = 1_500
"""What recall answers where a call does not say."""

RECALL_TOKENS_MIN = 50
"""The least that recall can be asked for: one short line."""

RECALL_TOKENS_MAX = 20_000
"""The most that recall can be asked for."""

MEMORY_SESSION_GAP_SECONDS = 3_600
"""A longer pause between two messages ends a session."""

QUESTION_CHARS_MAX = 2_000
"""Of a question to the memory in which words such as "before the move" are looked for."""

MEMORY_NAME_WORDS_MAX = 64
"""Words of a question among which names of entities are looked for."""
ASSISTANTS_MAX = 32
"""Assistants in the settings: each is a tool that every client's model reads."""

ASSISTANT_NAME_CHARS_MAX = 40
"""The name of an assistant: hosts allow 64 characters for chat_with_<name>, with a prefix."""

ASSISTANT_TEXT_CHARS_MAX = 2_000
"""One text in the definition of an assistant, such as its URL or a folder."""

ASSISTANT_ROOTS_MAX = 100
"""Folders that one assistant may read."""

ASSISTANT_CONTEXT_TOKENS_MAX = 100_000_000
"""The largest context window that can be configured."""

ASSISTANT_PRICE_MAX = 1e9
"""The highest price per million tokens that can be configured: some currencies are small."""

ASSISTANT_CACHE_SECONDS_MAX = 30 * 86_400
"""The longest life of a provider's prompt cache that can be configured."""

ASSISTANT_SECONDS_MAX = 86_400
"""The longest time for one turn that can be configured."""

PACK_PATHS_MAX = 1_000
"""Paths that one call names, folders and files."""

PACK_PATH_CHARS_MAX = 4_096
"""One such path; file systems allow no longer one."""

PACK_PATHS_CHARS_MAX = 256 * KIB
"""All of them together: a turn waits in the queue with them, where others look."""

PACK_ENTRIES_MAX = 100_000
"""Files and folders that one call looks at, about a second. Ignored folders are not looked into."""

PACK_FILES_MAX = 20_000
"""Files of one call. A store takes 10 000, and no window holds another 10 000."""

PACK_STORE_FILES_MAX = 10_000
"""Files of one call that do not fit into the prompt, attachments included; a hosted vector store
has the same limit."""

PACK_FILE_BYTES_MAX = 2 * MIB
"""A larger file is left out: half a million tokens, and nobody writes such a source by hand."""

PACK_BYTES_MAX = 256 * MIB
"""Text of one call. Counting takes about ten seconds for so much, the first time."""

PACK_SETTLE_SECONDS = 2.0
"""A file whose mtime is younger is compared by its content next time: another edit within the same
tick of the file system's clock leaves size and mtime as they are. FAT has ticks of two seconds."""

PACK_READ_TRIES_MAX = 3
"""How often a file is read again because it changed meanwhile."""

PACK_UNDECODABLE_SHARE_MAX = 0.1
"""A text with a larger share of bytes that are not UTF-8 counts as binary."""

PACK_CACHE_FILES_MAX = 50_000
"""Files whose tokens are remembered, about 300 bytes each."""

PACK_COUNT_SLICE_CHARS = 32_768
"""Characters whose tokens are counted at once, two milliseconds in which no other thread runs."""

IGNORE_BYTES_MAX = 256 * KIB
"""Of one .gitignore or .zibaldoneignore."""

IGNORE_LINES_MAX = 5_000
"""Of one .gitignore or .zibaldoneignore."""

IGNORE_LINE_CHARS_MAX = 1_024
"""Of one pattern; making an expression of it takes some milliseconds."""

PACK_INLINE_SHARE = 0.75
"""Room for files in the prompt: this share of what the answer leaves of the window."""

PACK_TREE_SHARE = 0.1
"""The tree of all files may take this share; beyond it, folders are shown by their counts."""

PACK_NAMES_MAX = 200
"""Files listed by name in one line of a prompt; further ones are counted."""

PACK_STALE_SHARE_MAX = 0.5
"""When this share of the files' text in a conversation is out of date, it is written anew."""

PACK_STALE_IDLE_SHARE_MAX = 0.05
"""The same once the provider's cache has expired: then it costs nothing."""

PACK_STALE_TOKENS_MIN = 1_024
"""Less than this is not worth it: providers cache no shorter prompt."""

PACK_REPORT_FILES_MAX = 20
"""Files that count_tokens lists: the largest ones, and those that are left out."""

PACKS = 4
"""Calls that read and count files at once, one of each key. Each takes a core while it counts."""

PACKS_EXTRA = 2
"""Further ones, for keys that have none."""

PACK_INSTRUCTIONS_CHARS_MAX = 400_000
"""Instructions of one turn."""

PROVIDER_TRIES_MAX = 4
"""Requests to a provider for one answer, if it is busy, fails or cannot be reached. None is sent
again after the first byte of an answer: it may have been paid for."""

PROVIDER_PAUSE_SECONDS = 0.5
"""Before the second of them; it doubles each time, unless the provider names another."""

PROVIDER_RETRY_AFTER_SECONDS_MAX = 30.0
"""The longest pause that a call waits for a provider. With a longer one it ends: PROVIDER_BUSY."""

PROVIDER_CONNECT_SECONDS_MAX = 10.0
"""Opening a connection to a provider."""

PROVIDER_IDLE_SECONDS_MAX = 300.0
"""Between two pieces of an answer, and before the first: models that reason are silent for
minutes."""

PROVIDER_EVENT_BYTES_MAX = 4 * MIB
"""One event of a provider's stream. The last of an answer repeats all of it."""

PROVIDER_ANSWER_BYTES_PER_TOKEN = 1 * KIB
"""Bytes of a stream for each token that was asked for: an event of one token takes up to 400."""

PROVIDER_ANSWER_BYTES_MIN = 1 * MIB
"""What a stream may have beside that."""

PROVIDER_ANSWER_BYTES_MAX = 64 * MIB
"""The longest stream of a provider, whatever was asked for."""

PROVIDER_ERROR_BYTES_MAX = 256 * KIB
"""The body of a provider's answer that is no stream: an error, or the answer to the question which
APIs it has."""

PROVIDER_CALLS_MAX = 64
"""Tool calls in one answer of a model; the rest is dropped."""

PROVIDER_NAME_CHARS_MAX = 64
"""A tool's name, or the id of a call, as providers accept them back."""

PROVIDER_REASON_CHARS_MAX = 300
"""What is repeated of a provider's own error message."""

PROVIDER_CONNECTIONS_MAX = 16
"""Connections to one provider at once."""

PROVIDER_INLINE_BYTES = 128 * KIB
"""A longer request is written to JSON in a thread."""

CONSULT_WAIT_SECONDS = 50.0
"""How long a call of an assistant waits for its answer; many clients give up after a minute. Then
it answers with the id of the job, which goes on."""

CONSULT_POLL_SECONDS_MAX = 50.0
"""The longest that poll_job waits."""

CONSULT_STEPS_MAX = 24
"""Requests to a model in one turn: each may call tools. A weak model calls them for ever."""

CONSULT_CALLS_MAX = 16
"""Tool calls of one reply that are carried out; the model is told about the others."""

CONSULT_TOOL_BYTES_MAX = 48 * KIB
"""What one tool call gives to the model: some 12 000 tokens, which stay in the conversation."""

CONSULT_SEARCH_HITS_DEFAULT = 8
"""Chunks of files that a search gives to the model, unless it says how many."""

CONSULT_SEARCH_HITS_MAX = 30
"""Chunks of files that a search gives to the model at most."""

CONSULT_LEASE_SECONDS = 20.0
"""A turn whose process died is taken up by another after this time."""

CONSULT_TURN_WAIT_SECONDS = 2.0
"""How long a turn waits for another of its session before it goes back to the queue."""

CONSULT_CONCURRENCY = 16
"""Turns that run at the same time, in all processes: they wait for providers most of the time."""

CONSULT_PER_KEY = 4
"""The same for one key; its others wait in the queue."""

CONSULT_KEPT_SECONDS = 7 * 86_400.0
"""How long the answer of a turn can be asked for by the id of its job."""

CONSULT_ANSWER_BYTES_MAX = 160 * KIB
"""The text of an answer; a longer one is cut in the result, not in the session."""

CONSULT_PATHS_SHOWN_MAX = 50
"""Files that an answer names of each kind; further ones are only counted."""

CONSULT_SESSION_ID_CHARS_MAX = 200
"""The name of a session."""

CONSULT_SCHEMA_BYTES_MAX = 64 * KIB
"""The JSON Schema of a structured answer."""

CONSULT_SESSIONS_LIMIT_DEFAULT = 20
"""Sessions in one page of a list."""

CONSULT_SESSIONS_LIMIT_MAX = 100
"""The largest such page."""

CONSULT_MANY_MAX = 8
"""Assistants that one question goes to."""

CONSULT_DIFFERENCES_MAX = 20
"""Sentences that are named as those of one assistant only."""

CONSULT_COMPARED_CHARS_MAX = 20_000
"""Of each answer, what is compared with the others."""

CONSULT_COMPARED_SENTENCES_MAX = 100
"""The same in sentences: the time is quadratic in them, about 0.3 s for eight answers."""

CONSULT_SCHEMA_CHECKS_MAX = 100_000
"""Values of a structured answer, and of the enums they are compared with, that are looked at."""

CONSULT_PATH_SHOWN_CHARS_MAX = 300
"""Of a path in an answer: with so many paths, the result of a job stays within its bound."""

assert LIST_LIMIT_DEFAULT <= LIST_LIMIT_MAX <= LIST_OFFSET_MAX  # noqa: S101
assert PACKS + PACKS_EXTRA + REFETCHES + REFETCHES_EXTRA + SOURCES + SOURCES_EXTRA <= THREADS - 20  # noqa: S101
OVERFLOW_TEXT_CHARS_MAX = 256 * MIB
"""Characters of all these files together. The index takes about as much memory as the text; it is
built at some megabytes a second."""

OVERFLOW_BUILDS = 2
"""Stores that are built or filled with vectors at once, one of each key: the work needs a core."""

OVERFLOW_BUILDS_EXTRA = 2
"""Further ones, for keys of which none is."""

OVERFLOW_CANDIDATES = 100
"""Files that keywords and vectors each contribute to a search in such a store."""

OVERFLOW_HITS_MAX = 50
"""Hits of one search in such a store."""

OVERFLOW_EMBED_BATCH = 16
"""Texts embedded between two looks at whether the call still runs: a second on a busy machine."""

OVERFLOW_SEARCH_EMBEDS_MAX = 96
"""Texts that one search has embedded, the likeliest ones; the rest follows while the assistant
thinks."""

OVERFLOW_SEARCH_SECONDS_MAX = 8.0
"""How long a search waits for them; an assistant takes as long to write its next step."""

OVERFLOW_QUERY_SECONDS_MAX = 10.0
"""How long it waits for the vector of the query; the first one also loads the model."""

OVERFLOW_CLOSE_SECONDS_MAX = 5.0
"""How long the end of a call waits for its threads. One inside a model that hangs is left behind;
it holds nothing of the index."""

HOSTED_REQUESTS = 8
"""Requests at once to a hosted vector store, for uploads and deletions."""

HOSTED_REQUEST_SECONDS_MAX = 60.0
"""One such request."""

HOSTED_TRIES_MAX = 4
"""Attempts at one, with growing pauses."""

HOSTED_PAUSE_SECONDS = 0.5
"""The first pause, and the time between two looks at whether files are indexed."""

HOSTED_READY_SECONDS_MAX = 180.0
"""How long a call waits until its files can be searched there."""

HOSTED_CLOSE_SECONDS_MAX = 120.0
"""How long the end of a call takes at most to delete everything: 10 000 files take a minute."""

HOSTED_LEFTOVER_SECONDS = 900
"""How long after the longest turn a hosted store is taken for a leftover and deleted."""

HOSTED_BATCH_FILES = 500
"""Files added to a hosted store by one request."""

HOSTED_SWEEP_PAGES_MAX = 200
"""Pages of 100 stores or files that are looked through for leftovers."""

HOSTED_ANSWER_BYTES_MAX = 4 * MIB
"""An answer of a hosted store."""

VECTOR_CACHE_BYTES_MAX = 256 * MIB
"""Vectors of such stores that are kept in memory for the next call, of all keys."""

VECTOR_CACHE_OWNER_BYTES_MAX = 128 * MIB
"""The same of one key: some 200 000 chunks of 384 dimensions, twenty of each of 10 000 files."""

assert CHUNK_CHARS_MIN < CHUNK_CHARS_TARGET <= CHUNK_CHARS_MAX  # noqa: S101
assert CHUNK_SIZE_CHARS_MIN <= CHUNK_SIZE_CHARS_DEFAULT <= CHUNK_SIZE_CHARS_MAX  # noqa: S101
assert 2 * CHUNK_SIZE_CHARS_MAX * 5 // 4 <= INDEX_TERMS_MAX  # noqa: S101
assert Limits().bytes_in_flight_per_key_max > ANSWER_BYTES_MAX  # noqa: S101
assert 6 * DOCUMENT_ID_BYTES_MAX < CURSOR_CHARS_MAX  # noqa: S101
assert READ_CUT_CHARS < READ_CHARS_MAX  # noqa: S101
assert 12 * RAG_IDS_MAX * CHUNK_ID_CHARS_MAX < TOOL_REQUEST_BYTES_MAX  # noqa: S101
assert CHUNK_RESPONSE_BYTES_MAX + 6 * RAG_IDS_MAX * CHUNK_ID_CHARS_MAX < RAG_RESPONSE_BYTES_MAX  # noqa: S101
assert SEARCH_LIMIT_DEFAULT <= SEARCH_LIMIT_MAX  # noqa: S101
assert INDEX_BATCH_DOCUMENTS <= INDEX_BATCH_CHUNKS  # noqa: S101
assert 2 * INDEX_RENEW_SECONDS < INDEX_LEASE_SECONDS < INDEX_LAG_ALERT_SECONDS  # noqa: S101
assert TASK_PAUSE_SECONDS_MAX < TASK_STABLE_SECONDS  # noqa: S101
assert 2 * INDEX_WORKER_RENEW_SECONDS < INDEX_WORKER_ALIVE_SECONDS  # noqa: S101
assert Limits().issuer_keys_fresh_seconds < Limits().issuer_keys_stale_seconds_max  # noqa: S101
assert Limits().connections_per_address_max <= Limits().connections_max  # noqa: S101
assert Limits().request_body_bytes_max <= Limits().bytes_in_flight_per_key_max  # noqa: S101
assert Limits().bytes_in_flight_per_key_max <= Limits().bytes_in_flight_max  # noqa: S101
assert 3 * QUERY_BYTES_MAX < URL_BYTES_MAX < HEAD_BYTES_MAX  # noqa: S101
assert TOKEN_CHARS_MAX < HEAD_BYTES_MAX  # noqa: S101
assert PROBE_SECONDS_MAX <= HEALTH_SECONDS_MAX < 1  # noqa: S101
assert Limits().query_seconds_max < STUCK_SECONDS  # noqa: S101
assert Limits().document_body_bytes_max < Limits().request_body_bytes_max  # noqa: S101
assert Limits().document_body_bytes_max > 4 * PUSH_PART_CHARS_ZIBALDONE  # noqa: S101
assert PROVIDER_ANSWER_BYTES_MIN + PROVIDER_EVENT_BYTES_MAX < PROVIDER_ANSWER_BYTES_MAX  # noqa: S101
assert CONSULT_ANSWER_BYTES_MAX < JOB_RESULT_BYTES_MAX  # noqa: S101
