"""One turn: from paths, instructions and what the session remembers to what is sent.

Nothing here is stored: `build` gives the state that is to be stored once the provider accepted the
request. A call that failed before that is built again from the old state and sends the same files.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from zibaldone.errors import InvalidArgument, LimitExceeded, NotFound
from zibaldone.limits import (
    ECHO_CHARS_MAX,
    PACK_BYTES_MAX,
    PACK_INSTRUCTIONS_CHARS_MAX,
    PACK_PATHS_CHARS_MAX,
    PACK_PATHS_MAX,
    PACK_STORE_FILES_MAX,
)
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message, PlacedFile
from zibaldone.pack import prompt
from zibaldone.pack.changes import GONE, sent_now, still_sent
from zibaldone.pack.compose import Composer, Rendered, Turn, Written
from zibaldone.pack.counts import Counts, counting_key
from zibaldone.pack.files import (
    Counted,
    FoundFile,
    LeftOut,
    PackedFile,
    load_text,
    read_text,
)
from zibaldone.pack.prompt import LEFT_OUT, Mark
from zibaldone.pack.rewrite import Reason
from zibaldone.pack.stable import SessionState, inline_room, split, unpack_marks
from zibaldone.pack.tokens import MESSAGE_TOKENS, token_counter
from zibaldone.pack.walk import SETTLE_NS, Place, Problem, Scan, Walker
from zibaldone.text.secrets import redact

_CACHE_KEY_CHARS = 8_192


@dataclass(frozen=True, slots=True)
class Ask:
    instructions: str = ""
    output_format: str = ""
    context: tuple[str, ...] = ()
    """Files and folders that are there for the whole session."""
    attachments: tuple[str, ...] = ()
    """Files and folders to search in this turn."""
    priority_context: tuple[str, ...] = ()
    """Context that is taken first when not everything fits."""


@dataclass(frozen=True, slots=True)
class PackTokens:
    total: int
    """Of the whole request: system, history and this turn."""
    sent_new: int
    """Of the files, tree and changes that this turn adds."""
    full_resend: int
    """What the same would take if every turn sent all files of its context."""


@dataclass(frozen=True, slots=True)
class Packed:
    messages: tuple[Message, ...]
    is_rewritten: bool
    rewrite_reason: Reason
    system: str
    placed: tuple[PlacedFile, ...]
    overflow: tuple[PackedFile, ...]
    attachments: tuple[PackedFile, ...]
    deleted: tuple[str, ...]
    problems: tuple[Problem, ...]
    state: SessionState
    tokens: PackTokens
    breakpoints: tuple[int, ...]
    """Messages after which a prompt cache is cut: the base, the last turn, this turn."""
    cache_key: str
    redacted: int
    """Secrets taken out of what this turn adds."""


def require_bounds(ask: Ask) -> None:
    """Raise unless a call may ask for so much."""
    paths = (*ask.context, *ask.attachments, *ask.priority_context)
    if len(paths) > PACK_PATHS_MAX:
        raise LimitExceeded(
            f"A call takes {PACK_PATHS_MAX} paths, not {len(paths)}; name folders instead of "
            "files.",
            limit=PACK_PATHS_MAX,
        )
    chars = sum(map(len, paths))
    if chars > PACK_PATHS_CHARS_MAX:
        raise LimitExceeded(
            f"The paths of a call take {PACK_PATHS_CHARS_MAX} characters, not {chars}; name "
            "folders instead of files.",
            limit=PACK_PATHS_CHARS_MAX,
        )
    if len(ask.instructions) + len(ask.output_format) > PACK_INSTRUCTIONS_CHARS_MAX:
        raise InvalidArgument(
            f"Instructions take {PACK_INSTRUCTIONS_CHARS_MAX} characters; attach a file for "
            "longer texts.",
            field="instructions",
        )


def build(
    assistant: Assistant,
    state: SessionState | None,
    ask: Ask,
    *,
    counts: Counts | None = None,
    now_ns: Callable[[], int] = time.time_ns,
    check: Callable[[], None] = lambda: None,
) -> Packed:
    """Pack one turn. It reads files and counts, so it runs in a thread.

    `check` is called often and raises to stop. Forbidden for a path outside of the roots, before
    anything is read; NotFound for a path that never was there; LimitExceeded.
    """
    return _Build(assistant, state or SessionState(), counts or Counts(), now_ns, check).run(ask)


class _Build:
    def __init__(
        self,
        assistant: Assistant,
        state: SessionState,
        counts: Counts,
        now_ns: Callable[[], int],
        check: Callable[[], None],
    ) -> None:
        self._assistant = assistant
        self._state = state
        self._counts = counts
        self._now_ns = now_ns
        self._check = check
        self._counter = token_counter(assistant)
        self._walker = Walker(assistant.roots, counts.folders, now_ns=now_ns, check=check)
        self._counted: dict[str, Counted] = {}
        self._redacted = 0

    def run(self, ask: Ask) -> Packed:
        places, priority, attached = self._locate(ask)
        scan = self._walker.scan([*priority, *places])
        first = frozenset(self._walker.scan(priority).files) if priority else frozenset[str]()
        attachments = self._walker.scan(attached) if attached else Scan()
        told = unpack_marks(self._state.tree)
        self._refuse_missing(scan, attachments, told)
        self._count([*scan.files.values(), *attachments.files.values()])
        turn = self._place(scan, first)
        self._find_deleted(turn, scan, [*priority, *places], told)
        attached_files, refused = self._attached(attachments)
        if len(turn.store) + len(attached_files) > PACK_STORE_FILES_MAX:
            raise LimitExceeded(
                f"{len(turn.store) + len(attached_files)} files do not fit into the prompt; the "
                f"index of a call takes {PACK_STORE_FILES_MAX}. Name fewer folders, or leave files "
                "out with .zibaldoneignore.",
                limit=PACK_STORE_FILES_MAX,
            )
        system = prompt.system_text(has_knowledge=self._assistant.knowledge)
        system_tokens = self._counter.count(system) + MESSAGE_TOKENS
        said = self._turn_message(ask, attached_files)
        written = Composer(
            self._assistant, self._state, turn, told, self._counter, self._counted, self
        ).compose(said, self._split, self._now_ns(), system_tokens)
        problems = (*scan.problems, *attachments.problems)
        placed = self._placed(turn, written, attached_files, refused, problems)
        total = written.state.tokens + system_tokens
        return Packed(
            messages=written.state.messages,
            is_rewritten=bool(written.reason),
            rewrite_reason=written.reason,
            system=system,
            placed=placed,
            overflow=self._packed_files(turn.store),
            attachments=self._packed_files(attached_files),
            deleted=(*turn.deleted,),
            problems=problems,
            state=written.state,
            tokens=PackTokens(total, written.sent_new, written.full_resend),
            breakpoints=written.breakpoints,
            cache_key=self._cache_key(written.state.messages[0]),
            redacted=self._redacted + written.redacted,
        )

    # ---- what is asked for ----

    def _locate(self, ask: Ask) -> tuple[list[Place], list[Place], list[Place]]:
        require_bounds(ask)
        lists = (ask.context, ask.priority_context, ask.attachments)
        places, priority, attached = ([*map(self._walker.locate, paths)] for paths in lists)
        return places, priority, attached

    def _refuse_missing(self, scan: Scan, attachments: Scan, told: Mapping[str, Mark]) -> None:
        """A path that is gone is part of a session's life; one that never was is a mistake."""
        missing = [place.shown for place in attachments.missing]
        for place in scan.missing:
            folder = f"{place.shown}/"
            if place.shown not in told and not any(name.startswith(folder) for name in told):
                missing.append(place.shown)
        if missing:
            raise NotFound(
                f"There is no file or folder {missing[0][:ECHO_CHARS_MAX]!r}.",
                paths=[name[:ECHO_CHARS_MAX] for name in missing[:10]],
            )

    def _count(self, files: Iterable[FoundFile]) -> None:
        of = self._counts.of
        is_redacted = self._assistant.redact
        key = counting_key(self._counter, is_redacted=is_redacted)
        counted = self._counted
        bytes_left = PACK_BYTES_MAX
        for number, file in enumerate(files):
            if file.reason:
                continue
            bytes_left -= file.size
            known = file.counted.get(key)
            if known is not None and bytes_left >= 0:
                counted[file.shown] = known
                continue
            if bytes_left < 0:
                raise LimitExceeded(
                    f"The files have more than {PACK_BYTES_MAX} bytes. Name smaller folders, or "
                    "leave files out with .zibaldoneignore.",
                    limit=PACK_BYTES_MAX,
                )
            if not number & 15:
                self._check()
            counted[file.shown] = of(file, self._counter, is_redacted=is_redacted)

    def _reason(self, file: FoundFile) -> str:
        return file.reason or self._counted[file.shown].reason

    # ---- where each file goes ----

    def _place(self, scan: Scan, priority: frozenset[str]) -> Turn:
        is_stable = self._assistant.stable_inline
        turn = Turn(sent=dict(self._state.sent) if is_stable else {})
        counted = self._counted
        tokens: dict[str, int] = {}
        for name, file in scan.files.items():
            found = counted.get(name)
            if found is None or found.reason:
                turn.left_out[name] = self._reason(file)
            else:
                tokens[name] = found.tokens
        stable = self._state.stable if is_stable else None
        kept = self._kept(turn, tokens) if stable is None else {}
        self._split = split(
            tokens, stable=stable, kept=kept, room=inline_room(self._assistant), priority=priority
        )
        turn.store = [scan.files[name] for name in self._split.store]
        turn.inline = [scan.files[name] for name in self._split.inline]
        self._find_changed(turn)
        return turn

    def _find_changed(self, turn: Turn) -> None:
        sent = turn.sent
        for file in turn.inline:
            record = sent.get(file.shown)
            if (
                record is not None
                and record.mtime_ns == file.mtime_ns
                and record.size == file.size
                and record.digest is None
            ):
                continue
            still = still_sent(file, record)
            if still is None:
                turn.to_send.append(file)
            else:
                sent[file.shown] = still

    def _kept(self, turn: Turn, tokens: Mapping[str, int]) -> dict[str, int]:
        """The files that were sent before, each at its present size; those that are gone need no
        room."""
        kept = {}
        for name in turn.sent:
            known = tokens.get(name)
            kept[name] = self._tokens_beside(name) if known is None else known
        return kept

    def _tokens_beside(self, name: str) -> int:
        """Tokens of a file that was sent and that this call does not name."""
        file = self.beside(name)
        return 0 if file is None else self._counted[file.shown].tokens

    def beside(self, name: str) -> FoundFile | None:
        """A file that was sent and that this call does not name, if it can still be read."""
        file = self._walker.look(name)
        if file is None:
            return None
        self._check()
        if not file.reason:
            self._count([file])
        return None if self._reason(file) else file

    def _find_deleted(
        self, turn: Turn, scan: Scan, places: Sequence[Place], told: Mapping[str, Mark]
    ) -> None:
        """Files that the assistant knows and that are not there any more."""
        scopes = {place.shown for place in places}
        roots = {root.name: root.path for root in self._walker.roots}
        for name in told.keys() - scan.files.keys():
            if not _is_below(name, scopes):
                continue
            root, _, relative = name.partition("/")
            if root in roots and os.path.lexists(os.path.join(roots[root], relative)):
                if told[name] != LEFT_OUT:
                    turn.left_out[name] = "ignored now"
                continue
            turn.deleted.append(name)
            if name in turn.sent:
                turn.sent[name] = GONE
        turn.deleted.sort()

    def _attached(self, scan: Scan) -> tuple[list[FoundFile], list[FoundFile]]:
        files = [scan.files[name] for name in sorted(scan.files)]
        usable = [file for file in files if not self._reason(file)]
        return usable, [file for file in files if self._reason(file)]

    # ---- what is said ----

    def _turn_message(self, ask: Ask, attached: Sequence[FoundFile]) -> Message:
        text = prompt.turn_text(
            ask.instructions, ask.output_format, [file.shown for file in attached]
        )
        if self._assistant.redact:
            shown = redact(text)
            self._redacted += shown.count
            text = shown.text
        return Message("user", text)

    def render(self, files: Iterable[FoundFile], turn: Turn) -> list[Rendered]:
        """The files as they stand in the prompt, those that changed longest ago first. One that
        cannot be read any more is left out."""
        rendered = []
        for file in sorted(files, key=lambda file: (file.mtime_ns // 10**9, file.shown)):
            self._check()
            at_ns = self._now_ns()
            try:
                read = read_text(file.path)
            except LeftOut as why:
                turn.left_out[file.shown] = str(why)
                continue
            except OSError as problem:
                turn.left_out[file.shown] = f"cannot be read: {problem.strerror}"
                continue
            shown = redact(read.text) if self._assistant.redact else None
            text = prompt.file_text(file.shown, read.text if shown is None else shown.text)
            is_same = (read.size, read.mtime_ns) == (file.size, file.mtime_ns) and file.is_settled
            tokens = self._counted[file.shown].tokens if is_same else self._counter.count(text)
            sent = sent_now(read, is_settled=read.mtime_ns < at_ns - SETTLE_NS)
            removed = 0 if shown is None else shown.count
            rendered.append(Rendered(file, text, tokens, sent, removed))
        return rendered

    # ---- what is reported ----

    def _placed(
        self,
        turn: Turn,
        written: Written,
        attached: Sequence[FoundFile],
        refused: Sequence[FoundFile],
        problems: Iterable[Problem],
    ) -> tuple[PlacedFile, ...]:
        counted = self._counted
        placed: list[PlacedFile] = []
        for file in turn.inline:
            name = file.shown
            if name in turn.left_out:
                continue
            found = counted[name]
            known = file.unchanged
            if name in written.sent_names:
                placed.append(PlacedFile(name, "inline", found.tokens, found.note, found.redacted))
                continue
            if known is None or known[0] is not found:
                placing = PlacedFile(name, "unchanged", found.tokens, found.note, found.redacted)
                known = file.unchanged = (found, placing)
            placed.append(known[1])
        for file in turn.store:
            found = counted[file.shown]
            placed.append(PlacedFile(file.shown, "store", found.tokens, found.note, found.redacted))
        for name, why in turn.left_out.items():
            tokens = counted[name].tokens if name in counted else 0
            placed.append(PlacedFile(name, "left_out", tokens, why))
        for file in attached:
            found = counted[file.shown]
            placed.append(
                PlacedFile(file.shown, "attachment", found.tokens, found.note, found.redacted)
            )
        placed += [
            PlacedFile(file.shown, "left_out", 0, self._reason(file))
            for file in refused
            if file.shown not in turn.left_out
        ]
        placed += [PlacedFile(path, "left_out", 0, reason) for path, reason in problems]
        placed.sort(key=attrgetter("path"))
        return (*placed,)

    def _packed_files(self, files: Iterable[FoundFile]) -> tuple[PackedFile, ...]:
        load = partial(partial, load_text, is_redacted=self._assistant.redact)
        return (*(PackedFile(f.shown, f.size, f.mtime_ns, load(f.path)) for f in files),)

    def _cache_key(self, first: Message) -> str:
        """The same for all requests with the same beginning, also of another session."""
        start = first.text[:_CACHE_KEY_CHARS].encode("utf-8", "replace")
        digest = hashlib.blake2b(start, digest_size=12).hexdigest()
        return f"{self._assistant.name}-{digest}"


def _is_below(name: str, scopes: set[str]) -> bool:
    """Whether a name is one of the scopes or in a folder of theirs."""
    while name not in scopes:
        name, slash, _ = name.rpartition("/")
        if not slash:
            return name in scopes
    return True
