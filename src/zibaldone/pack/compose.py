"""The messages of one turn: appended to what was sent, or with the files written anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from zibaldone.limits import PACK_TREE_SHARE
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message, SentFile
from zibaldone.pack import prompt
from zibaldone.pack.changes import GONE, is_gone
from zibaldone.pack.files import Counted, FoundFile
from zibaldone.pack.prompt import INLINE, LEFT_OUT, STORE, Mark
from zibaldone.pack.rewrite import Reason, rewrite_reason
from zibaldone.pack.stable import SessionState, Split, message_tokens, pack_marks
from zibaldone.pack.tokens import MESSAGE_TOKENS, TokenCounter


@dataclass(slots=True)
class Turn:
    """What one turn finds out about its files."""

    inline: list[FoundFile] = field(default_factory=list)
    """In the prompt, by this turn or an earlier one."""
    to_send: list[FoundFile] = field(default_factory=list)
    """Of these, what the assistant does not have as it is."""
    store: list[FoundFile] = field(default_factory=list)
    sent: dict[str, SentFile] = field(default_factory=dict)
    """What the assistant has before this turn; GONE for what was deleted."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Name to reason."""
    deleted: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rendered:
    file: FoundFile
    text: str
    tokens: int
    sent: SentFile
    redacted: int


@dataclass(frozen=True, slots=True)
class Written:
    state: SessionState
    reason: Reason
    sent_names: frozenset[str]
    """Files whose text this turn sends."""
    sent_new: int
    full_resend: int
    redacted: int
    breakpoints: tuple[int, ...]


class Files(Protocol):
    """What a composer asks of the file system."""

    def render(self, files: Iterable[FoundFile], turn: Turn) -> list[Rendered]: ...

    def beside(self, name: str) -> FoundFile | None: ...


@dataclass(frozen=True, slots=True)
class _Draft:
    """The messages about files, as they would be."""

    kept: tuple[Message, ...]
    """Earlier messages that stay."""
    before: tuple[Message, ...]
    """A new message in front of them: all files."""
    after: tuple[Message, ...]
    """A new message behind them: what changed."""
    added_tokens: int
    base_tokens: int
    superseded_tokens: int
    sent: Mapping[str, SentFile]
    rendered: Sequence[Rendered]
    reason: Reason = ""


class Composer:
    def __init__(
        self,
        assistant: Assistant,
        state: SessionState,
        turn: Turn,
        told: Mapping[str, Mark],
        counter: TokenCounter,
        counted: Mapping[str, Counted],
        files: Files,
    ) -> None:
        self._assistant = assistant
        self._state = state
        self._turn = turn
        self._told = told
        self._counter = counter
        self._counted = counted
        self._files = files
        self._tree: tuple[str, int] | None = None

    def compose(self, said: Message, split: Split, now_ns: int, system_tokens: int) -> Written:
        """The turn, appended if that is possible and pays."""
        turn, state = self._turn, self._state
        rendered = self._files.render(turn.to_send, turn)
        said_tokens = message_tokens(said, self._counter)
        window = self._assistant.context_tokens - self._assistant.output_tokens
        room = window - system_tokens - said_tokens
        draft = self._draft(rendered, room, now_ns)
        while self._exceeds(draft, room) and draft.rendered and state.messages:
            # The largest goes first; the assistant keeps the copy that it has, and is told so.
            largest = max(draft.rendered, key=lambda item: (item.tokens, item.file.shown))
            turn.left_out[largest.file.shown] = (
                f"grew to {largest.tokens} tokens and does not fit into the window; "
                "a new session takes it"
            )
            rendered = [item for item in rendered if item is not largest]
            self._tree = None
            draft = self._draft(rendered, room, now_ns)
        return self._written(draft, said, said_tokens, split, now_ns)

    def _draft(self, rendered: Sequence[Rendered], room: int, now_ns: int) -> _Draft:
        state = self._state
        if not state.messages:
            return self._anew(rendered, "")
        if not self._assistant.stable_inline:
            return self._anew(rendered, "not_stable")
        draft = self._append(rendered)
        last = state.last_sent_at_us
        reason = rewrite_reason(
            base_tokens=draft.base_tokens,
            superseded_tokens=draft.superseded_tokens,
            idle_seconds=None if last is None else now_ns / 1e9 - last / 1e6,
            cache_seconds=self._assistant.cache_seconds,
            is_window_exceeded=self._exceeds(draft, room),
        )
        return self._anew(rendered, reason) if reason else draft

    def _exceeds(self, draft: _Draft, room: int) -> bool:
        return self._history_tokens(draft) > room

    def _history_tokens(self, draft: _Draft) -> int:
        """Of all messages but the one that is said in this turn."""
        state = self._state
        if draft.before:
            return state.tokens - state.base_tokens + draft.added_tokens
        return state.tokens + draft.added_tokens

    # ---- appending ----

    def _append(self, rendered: Sequence[Rendered]) -> _Draft:
        """What changed, in a message behind the others; nothing if nothing did."""
        turn, state = self._turn, self._state
        sent = {**turn.sent, **{item.file.shown: item.sent for item in rendered}}
        head = self._changes(rendered)
        if not head:
            return _Draft(
                kept=state.messages,
                before=(),
                after=(),
                added_tokens=0,
                base_tokens=state.base_tokens,
                superseded_tokens=state.superseded_tokens,
                sent=sent,
                rendered=(),
            )
        tokens = self._counter.count(head) + sum(item.tokens for item in rendered) + MESSAGE_TOKENS
        base_tokens = state.base_tokens + tokens
        valid = self._tree_text()[1] + MESSAGE_TOKENS + self._valid_tokens(sent)
        return _Draft(
            kept=state.messages,
            before=(),
            after=(Message("user", head + _joined(rendered), is_base=True),),
            added_tokens=tokens,
            base_tokens=base_tokens,
            superseded_tokens=max(0, base_tokens - valid),
            sent=sent,
            rendered=rendered,
        )

    def _changes(self, rendered: Sequence[Rendered], *, is_rewritten: bool = False) -> str:
        """What changed since the last turn; empty if nothing did."""
        turn, told = self._turn, self._told
        names = [item.file.shown for item in rendered]
        in_store = [file.shown for file in turn.store if told.get(file.shown) != STORE]
        left_out = [
            (name, why)
            for name, why in sorted(turn.left_out.items())
            if told.get(name) in (INLINE, STORE)
        ]
        if not (names or in_store or left_out or turn.deleted):
            return ""
        return prompt.changes_text(
            changed=[name for name in names if not is_gone(turn.sent.get(name, GONE))],
            added=[name for name in names if is_gone(turn.sent.get(name, GONE))],
            in_store=in_store,
            deleted=turn.deleted,
            left_out=left_out,
            is_rewritten=is_rewritten,
        )

    def _valid_tokens(self, sent: Mapping[str, SentFile]) -> int:
        """Of the files that the assistant has, if each was there once."""
        total = 0
        for name, record in sent.items():
            if is_gone(record) or name in self._turn.left_out:
                continue
            if name not in self._counted and self._files.beside(name) is None:
                continue
            total += self._counted[name].tokens
        return total

    # ---- writing anew ----

    def _anew(self, rendered: Sequence[Rendered], reason: Reason) -> _Draft:
        """One message with the tree and every file that the assistant has or gets."""
        turn, state = self._turn, self._state
        known = {item.file.shown: item for item in rendered}
        others = [
            file
            for file in (*turn.inline, *self._inline_beside())
            if file.shown not in known and file.shown not in turn.left_out
        ]
        known.update((item.file.shown, item) for item in self._files.render(others, turn))
        ordered = sorted(
            known.values(), key=lambda item: (item.sent.mtime_ns // 10**9, item.file.shown)
        )
        tree, tree_tokens = self._tree_text()
        tokens = tree_tokens + sum(item.tokens for item in ordered) + MESSAGE_TOKENS
        has_history = bool(state.messages) and self._assistant.stable_inline
        news = self._changes(rendered, is_rewritten=True) if has_history else ""
        after = (Message("user", news, is_base=True),) if news else ()
        tokens += self._counter.count(news) + MESSAGE_TOKENS if news else 0
        sent = dict.fromkeys(turn.sent, GONE)
        sent.update((item.file.shown, item.sent) for item in ordered)
        return _Draft(
            kept=tuple(message for message in state.messages if not message.is_base),
            before=(Message("user", tree + _joined(ordered), is_base=True),),
            after=after,
            added_tokens=tokens,
            base_tokens=tokens,
            superseded_tokens=0,
            sent=sent,
            rendered=ordered,
            reason=reason,
        )

    def _inline_beside(self) -> list[FoundFile]:
        """Files that the assistant has and that this call does not name."""
        named = {file.shown for file in self._turn.inline}
        found = [
            self._files.beside(name)
            for name, record in self._turn.sent.items()
            if not is_gone(record) and name not in named and name not in self._turn.left_out
        ]
        return [file for file in found if file is not None]

    # ---- the tree ----

    def _marks(self) -> dict[str, Mark]:
        turn = self._turn
        marks = dict(self._told)
        for name in turn.deleted:
            marks.pop(name, None)
        marks.update((file.shown, INLINE) for file in turn.inline)
        marks.update((file.shown, STORE) for file in turn.store)
        marks.update(dict.fromkeys(turn.left_out, LEFT_OUT))
        return marks

    def _tree_text(self) -> tuple[str, int]:
        """The tree and its tokens, with fewer details if it would take too much room."""
        if self._tree is None:
            marks = self._marks()
            window = self._assistant.context_tokens - self._assistant.output_tokens
            tokens_max = int(window * PACK_TREE_SHARE)
            depth = max((name.count("/") for name in marks), default=0)
            text = prompt.tree_text(marks)
            tokens = self._counter.count(text)
            while tokens > tokens_max and depth > 1:
                depth -= 1
                text = prompt.tree_text(marks, depth_max=depth)
                tokens = self._counter.count(text)
            self._tree = text, tokens
        return self._tree

    # ---- the outcome ----

    def _written(
        self, draft: _Draft, said: Message, said_tokens: int, split: Split, now_ns: int
    ) -> Written:
        state = self._state
        messages = (*draft.before, *draft.kept, *draft.after, said)
        turns_before = len(draft.before) + len(draft.kept) - 1
        is_stable = self._assistant.stable_inline
        is_same_tree = not (draft.before or draft.after)
        tree = state.tree if is_same_tree else pack_marks(self._marks())
        tree_tokens = state.tree_tokens if is_same_tree else self._tree_text()[1]
        left_out, counted = self._turn.left_out, self._counted
        inline = [file.shown for file in self._turn.inline if file.shown not in left_out]
        listed = None if split.stable is None else frozenset(split.stable)
        after = SessionState(
            stable=split.stable if is_stable else state.stable,
            sent=_without_needless(draft.sent, listed) if is_stable else state.sent,
            messages=messages,
            tokens=self._history_tokens(draft) + said_tokens,
            base_tokens=draft.base_tokens,
            superseded_tokens=draft.superseded_tokens,
            last_sent_at_us=now_ns // 1000,
            tree=tree,
            tree_tokens=tree_tokens,
        )
        last = len(messages) - 1
        return Written(
            state=after,
            reason=draft.reason,
            sent_names=frozenset(item.file.shown for item in draft.rendered),
            sent_new=draft.added_tokens,
            full_resend=tree_tokens + sum([counted[name].tokens for name in inline]),
            redacted=sum(item.redacted for item in draft.rendered),
            breakpoints=tuple(sorted({0, max(turns_before, 0), last})),
        )


def _joined(rendered: Iterable[Rendered]) -> str:
    return "".join([item.text for item in rendered])


def _without_needless(
    sent: Mapping[str, SentFile], listed: frozenset[str] | None
) -> Mapping[str, SentFile]:
    """With a list, files that are gone need no record: the list knows where they belong."""
    if listed is None:
        return sent
    gone = [name for name, record in sent.items() if record.size < 0]
    return {name: sent[name] for name in sent.keys() - gone} if gone else sent
