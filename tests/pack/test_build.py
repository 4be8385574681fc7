"""The stable-inline list, turn by turn: what is sent, what is skipped, what is searched."""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.pack.project import LONG_AGO_S, Project, Session, at, files_in, new_text, places
from zibaldone.errors import Forbidden, InvalidArgument, LimitExceeded, NotFound
from zibaldone.limits import PACK_PATHS_MAX
from zibaldone.model.consult import SentFile
from zibaldone.pack.build import Ask, Packed, build
from zibaldone.pack.stable import SessionState, split


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def session(project: Project, **options: Any) -> Session:
    return Session(project.assistant(**options))


def room_for(project: Project, *names: str) -> int:
    """Room that exactly these files take."""
    return sum(project.tokens(name) for name in names)


class TestFirstTurn:
    @pytest.mark.requirement("SI-01")
    def test_a_folder_stands_for_all_its_files(self, project: Project) -> None:
        for name in ("a.py", "src/b.py", "src/deep/er/c.py"):
            project.write(name, f"# {name}\n")
        packed = session(project).turn(str(project.root))
        assert at(packed, "inline") == {"a.py", "src/b.py", "src/deep/er/c.py"}
        assert files_in(packed.messages[0].text)["src/b.py"] == "# src/b.py\n"

    @pytest.mark.requirement("SI-02", "SI-30", "X-27")
    def test_what_fits_is_all_inline_without_a_store_or_a_list(self, project: Project) -> None:
        project.write("a.py", "a = 1\n")
        packed = session(project).turn("a.py")
        assert packed.overflow == ()
        assert packed.attachments == ()
        assert packed.state.stable is None

    @pytest.mark.requirement("SI-03", "SI-13", "SI-14", "SI-15", "X-28")
    def test_what_does_not_fit_goes_to_the_store_and_the_split_is_kept(
        self, project: Project
    ) -> None:
        project.words("small.txt", 10)
        project.words("large.txt", 500)
        packed = session(project, inline_tokens=200).turn(".")
        assert at(packed, "inline") == {"small.txt"}
        assert [file.path for file in packed.overflow] == ["project/large.txt"]
        assert packed.overflow[0].load() == (project.root / "large.txt").read_text()
        assert packed.state.stable == ("project/small.txt",)
        assert files_in(packed.messages[0].text).keys() == {"small.txt"}
        found = (project.root / "small.txt").stat()
        assert packed.state.sent == {
            "project/small.txt": SentFile(found.st_size, found.st_mtime_ns)
        }

    @pytest.mark.requirement("SI-04")
    def test_attachments_go_to_the_store_in_every_call(self, project: Project) -> None:
        project.write("a.py", "a = 1\n")
        project.write("notes.md", "Read me.\n")
        chat = session(project)
        for _ in range(2):
            packed = chat.turn("a.py", attachments=("notes.md",))
            assert [file.path for file in packed.attachments] == ["project/notes.md"]
            assert places(packed)["notes.md"] == "attachment"
            assert "notes.md" in packed.messages[-1].text
        assert chat.turn("a.py").attachments == ()

    @pytest.mark.requirement("SI-10", "X-26")
    def test_the_order_is_tokens_then_path(self, project: Project) -> None:
        names = ["b.txt", "a.txt", "z/one.txt", "y.txt"]
        for name, number in zip(names, (50, 50, 20, 80), strict=True):
            project.words(name, number)
        room = room_for(project, "z/one.txt", "a.txt")
        outcomes = set()
        for seed in range(20):
            shuffled = random.Random(seed).sample(names, len(names))
            packed = session(project, inline_tokens=room).turn(*shuffled)
            outcomes.add((packed.state.stable, packed.messages[0].text))
        assert [stable for stable, _ in outcomes] == [("project/a.txt", "project/z/one.txt")]

    @pytest.mark.requirement("SI-11", "SI-12")
    def test_the_fill_is_greedy_and_goes_on_after_a_file_that_does_not_fit(self) -> None:
        names = {f"f{number}": number for number in range(1, 40)}
        generator = random.Random(3)
        for _ in range(200):
            tokens = {name: generator.randrange(1, 60) for name in names}
            room = generator.randrange(0, 400)
            left = room
            inline = set()
            for name in sorted(tokens, key=lambda name: (tokens[name], name)):
                if tokens[name] <= left:
                    left -= tokens[name]
                    inline.add(name)
            outcome = split(tokens, stable=None, kept={}, room=room)
            assert outcome.inline == inline
            assert set(outcome.store) == tokens.keys() - inline
        first = split(
            {"big": 90, "small": 20}, stable=None, kept={}, room=50, priority=frozenset({"big"})
        )
        assert first.inline == {"small"}

    def test_priority_context_is_taken_first(self, project: Project) -> None:
        project.words("a.txt", 20)
        project.words("wanted.txt", 60)
        room = room_for(project, "wanted.txt")
        packed = session(project, inline_tokens=room).turn(".", priority_context=("wanted.txt",))
        assert at(packed, "inline") == {"wanted.txt"}
        assert at(packed, "store") == {"a.txt"}

    @pytest.mark.requirement("X-33")
    def test_an_empty_list_is_a_list(self, project: Project) -> None:
        project.words("large.txt", 500)
        chat = session(project, inline_tokens=20)
        assert chat.turn(".").state.stable == ()
        project.words("tiny.txt", 1)
        packed = chat.turn(".")
        assert packed.state.stable == ()
        assert at(packed, "store") == {"large.txt", "tiny.txt"}


class TestLaterTurns:
    @pytest.mark.requirement("SI-16", "SI-17", "SI-18")
    def test_only_what_changed_is_sent_again(self, project: Project) -> None:
        for name in ("a.py", "b.py", "c.py"):
            project.write(name, f"# {name}\n")
        chat = session(project)
        first = chat.turn(".")
        second = chat.turn(".")
        assert at(second, "unchanged") == {"a.py", "b.py", "c.py"}
        assert files_in(new_text(second, first)) == {}
        project.write("b.py", "# b, longer\n")
        project.set_time("c.py", LONG_AGO_S + 1_000)
        third = chat.turn(".")
        assert files_in(new_text(third, second)) == {"b.py": "# b, longer\n", "c.py": "# c.py\n"}
        fourth = chat.turn(".")
        assert at(fourth, "unchanged") == {"a.py", "b.py", "c.py"}
        assert files_in(new_text(fourth, third)) == {}

    @pytest.mark.requirement("SI-19", "SI-20", "X-29")
    def test_what_is_not_in_the_list_goes_to_the_store_every_time(self, project: Project) -> None:
        project.words("small.txt", 10)
        project.words("large.txt", 500)
        chat = session(project, inline_tokens=200)
        chat.turn(".")
        project.words("tiny.txt", 1)
        for _ in range(3):
            packed = chat.turn(".")
            assert {file.path for file in packed.overflow} == {
                "project/large.txt",
                "project/tiny.txt",
            }
        told = [message.text for message in chat.packed[1].messages if message.is_base]
        assert "New [store]: project/tiny.txt" in told[-1]
        assert not [m for m in chat.packed[3].messages if "tiny" in m.text][1:]

    def test_before_anything_overflows_new_files_are_sent(self, project: Project) -> None:
        project.words("a.txt", 10)
        chat = session(project)
        first = chat.turn("a.txt")
        project.words("b.txt", 10)
        second = chat.turn(".")
        assert files_in(new_text(second, first)).keys() == {"b.txt"}
        assert second.state.stable is None

    def test_files_that_were_sent_stay_when_the_list_is_made(self, project: Project) -> None:
        project.words("first.txt", 60)
        room = room_for(project, "first.txt") + 30
        chat = session(project, inline_tokens=room)
        chat.turn("first.txt")
        project.words("tiny.txt", 5)
        project.words("small.txt", 40)
        packed = chat.turn(".")
        assert packed.state.stable == ("project/first.txt", "project/tiny.txt")
        assert at(packed, "unchanged") == {"first.txt"}
        assert at(packed, "store") == {"small.txt"}

    @pytest.mark.requirement("SI-21")
    def test_a_listed_file_that_a_call_does_not_name_is_not_sent_and_not_lost(
        self, project: Project
    ) -> None:
        project.words("a.txt", 10)
        project.words("b.txt", 10)
        project.words("large.txt", 500)
        chat = session(project, inline_tokens=200)
        first = chat.turn(".")
        project.words("b.txt", 11)
        second = chat.turn("a.txt")
        assert "b.txt" not in new_text(second, first)
        assert second.state.stable == first.state.stable
        third = chat.turn(".")
        assert at(third, "inline") == {"b.txt"}

    @pytest.mark.requirement("SI-22")
    def test_a_deleted_file_is_reported_and_sent_when_it_comes_back(self, project: Project) -> None:
        project.words("a.txt", 10)
        project.words("b.txt", 10)
        project.words("large.txt", 500)
        chat = session(project, inline_tokens=200)
        first = chat.turn("a.txt", "b.txt", "large.txt")
        stat = (project.root / "b.txt").stat()
        project.delete("b.txt")
        second = chat.turn("a.txt", "b.txt", "large.txt")
        assert second.deleted == ("project/b.txt",)
        assert "Deleted" in new_text(second, first)
        assert chat.turn(".").deleted == ()
        project.words("b.txt", 10)
        project.set_time("b.txt", stat.st_mtime_ns / 1e9)
        assert at(chat.turn("."), "inline") == {"b.txt"}

    def test_a_file_that_was_inline_before_the_list_stays_so_after_it_was_deleted(
        self, project: Project
    ) -> None:
        project.words("a.txt", 40)
        chat = session(project, inline_tokens=room_for(project, "a.txt") + 40)
        chat.turn(".")
        project.delete("a.txt")
        project.words("b.txt", 500)
        assert chat.turn(".").state.stable == ("project/a.txt",)
        project.words("a.txt", 40)
        assert at(chat.turn("."), "inline") == {"a.txt"}

    @pytest.mark.requirement("SI-25")
    def test_unchanged_files_are_not_opened(self, project: Project) -> None:
        for number in range(10):
            project.words(f"{number}.txt", 5)
        chat = session(project)
        chat.turn(".")
        opened = record_opens(project.root, lambda: chat.turn("."))
        assert opened == [str(project.root)]
        project.words("3.txt", 6)
        opened = record_opens(project.root, lambda: chat.turn("."))
        assert {Path(path).name for path in opened} == {"project", "3.txt"}

    @pytest.mark.requirement("SI-28")
    def test_a_file_that_was_never_sent_counts_as_changed(self, project: Project) -> None:
        project.words("a.txt", 5)
        state = SessionState(stable=("project/a.txt",))
        packed = build(project.assistant(), state, Ask(context=("a.txt",)))
        assert at(packed, "inline") == {"a.txt"}

    @pytest.mark.requirement("SI-32")
    def test_a_listed_file_that_grew_past_the_room_is_still_inline(self, project: Project) -> None:
        project.words("a.txt", 10)
        project.words("large.txt", 500)
        chat = session(project, inline_tokens=200)
        chat.turn(".")
        project.words("a.txt", 900)
        packed = chat.turn(".")
        assert at(packed, "inline") == {"a.txt"}
        assert at(packed, "store") == {"large.txt"}

    def test_one_that_grew_past_the_window_is_reported_and_not_moved(
        self, project: Project
    ) -> None:
        project.words("a.txt", 10)
        project.words("large.txt", 3_000)
        options = {"context_tokens": 3_000, "output_tokens": 500, "inline_tokens": 500}
        chat = session(project, **options)
        chat.turn(".")
        project.words("a.txt", 4_000)
        packed = chat.turn(".")
        grown = next(file for file in packed.placed if file.path == "project/a.txt")
        assert grown.place == "left_out"
        assert "does not fit into the window" in grown.why
        assert "out of date" in packed.messages[-2].text
        assert packed.tokens.total <= 2_500
        assert at(packed, "store") == {"large.txt"}
        project.words("a.txt", 12)
        assert at(chat.turn("."), "inline") == {"a.txt"}

    def test_what_the_assistant_never_had_is_no_news_when_it_is_left_out(
        self, project: Project
    ) -> None:
        project.words("a.txt", 10)
        project.write("logo.png", b"\x89PNG\0")
        chat = session(project)
        chat.turn(".")
        project.write("icon.png", b"\x89PNG\0")
        packed = chat.turn(".")
        assert at(packed, "left_out") == {"logo.png", "icon.png"}
        assert [message.text for message in packed.messages[2:]] == [
            "An answer.",
            "What is this?\n",
        ]

    @pytest.mark.requirement("SI-31")
    def test_without_its_state_a_session_begins_afresh(self, project: Project) -> None:
        project.words("a.txt", 10)
        project.words("large.txt", 500)
        chat = session(project, inline_tokens=200)
        first = chat.turn(".")
        project.words("large.txt", 12)
        assert at(chat.turn("."), "store") == {"large.txt"}
        chat.state = None
        again = chat.turn(".")
        assert at(again, "inline") == {"a.txt", "large.txt"}
        assert again.state.stable is None
        assert first.state.stable is not None

    @pytest.mark.requirement("SI-05", "SI-42")
    def test_another_session_has_a_list_of_its_own(self, project: Project) -> None:
        project.words("a.txt", 10)
        project.words("large.txt", 500)
        one, other = (session(project, inline_tokens=200) for _ in range(2))
        one.turn(".")
        project.words("b.txt", 10)
        assert at(one.turn("."), "store") == {"b.txt", "large.txt"}
        assert at(other.turn("."), "inline") == {"a.txt", "b.txt"}
        assert at(one.turn("."), "unchanged") == {"a.txt"}

    def test_a_call_that_failed_is_sent_again(self, project: Project) -> None:
        project.words("a.txt", 10)
        chat = session(project)
        first = chat.try_turn(".")
        assert chat.try_turn(".").messages == first.messages
        chat.turn(".")
        project.words("a.txt", 20)
        failed = chat.try_turn(".")
        assert at(failed, "inline") == {"a.txt"}
        assert chat.turn(".").messages == failed.messages

    @pytest.mark.requirement("SI-08", "X-34")
    def test_no_thread_is_left_behind(self, project: Project) -> None:
        project.words("a.txt", 10)
        before = threading.enumerate()
        session(project).turn(".")
        assert threading.enumerate() == before


class TestFlag:
    @pytest.mark.requirement("SI-33", "SI-34")
    def test_without_the_list_everything_is_sent_every_time(self, project: Project) -> None:
        project.words("a.txt", 10)
        project.words("large.txt", 500)
        room = {"inline_tokens": 200, "stable_inline": False}
        chat = session(project, **room)
        for _ in range(3):
            packed = chat.turn(".")
            assert at(packed, "inline") == {"a.txt"}
            assert packed.tokens.sent_new >= packed.tokens.full_resend
            assert packed.state.stable is None
            assert packed.state.sent == {}
        project.words("large.txt", 5)
        assert at(chat.turn("."), "inline") == {"a.txt", "large.txt"}


class TestSeed:
    """Scenarios and examples as the seed tells them."""

    @pytest.mark.requirement("SI-39", "SI-40", "SI-41")
    def test_scenario_1(self, project: Project) -> None:
        for number in range(40):
            project.words(f"src/small{number:02}.py", 50)
        for number in range(10):
            project.words(f"src/large{number}.py", 400)
        room = 40 * project.tokens("src/small00.py") + 100
        chat = session(project, inline_tokens=room)
        first = chat.turn("src")
        assert counted(first) == {"inline": 40, "store": 10}
        for number in (3, 17, 38):
            project.words(f"src/small{number:02}.py", 51)
        second = chat.turn("src")
        assert counted(second) == {"inline": 3, "unchanged": 37, "store": 10}
        for number in range(20):
            project.words(f"tests/new{number}.py", 5)
        third = chat.turn("src", "tests")
        assert counted(third) == {"unchanged": 40, "store": 30}
        assert third.tokens.sent_new < third.tokens.full_resend / 10

    @pytest.mark.requirement("SI-43")
    def test_problem_1_no_file_moves_when_the_context_grows(self, project: Project) -> None:
        for letter in "abcdefghijklmnopqrstuvwxyz":
            project.words(f"api/{letter}.py", 100)
        room = 13 * project.tokens("api/a.py") + 50
        chat = session(project, inline_tokens=room)
        first = chat.turn("api")
        assert at(first, "inline") == {f"api/{letter}.py" for letter in "abcdefghijklm"}
        for number in range(20):
            project.words(f"tests/t{number}.py", 20)
        second = chat.turn("api", "tests")
        assert at(second, "unchanged") == at(first, "inline")
        assert at(second, "store") >= at(first, "store")

    @pytest.mark.requirement("SI-44")
    def test_problem_2_an_unchanged_file_is_sent_once_in_ten_turns(self, project: Project) -> None:
        project.words("api/server.go", 1_000)
        chat = session(project)
        for _ in range(10):
            last = chat.turn("api/server.go")
        text = "".join(message.text for message in last.messages)
        assert text.count("<file project/api/server.go ") == 1
        assert last.tokens.total < 1_500

    @pytest.mark.requirement("SI-35")
    def test_ten_turns_take_far_fewer_tokens_than_sending_all(self, project: Project) -> None:
        generator = random.Random(5)
        for number in range(60):
            project.words(f"src/{number}.py", generator.randrange(20, 200))
        chat = session(project)
        for _ in range(10):
            packed = chat.turn("src")
            for number in generator.sample(range(60), 3):
                project.words(f"src/{number}.py", generator.randrange(20, 200))
        assert not packed.is_rewritten
        sent = sum(packed.tokens.sent_new for packed in chat.packed)
        full = sum(packed.tokens.full_resend for packed in chat.packed)
        assert 1 - sent / full > 0.8


class TestPeers:
    """Faults that were measured in other servers of this kind."""

    @pytest.mark.parametrize("limit", [40_000, 60_000, 90_000])
    def test_history_is_charged_once(self, project: Project, limit: int) -> None:
        """Elsewhere turn 2 fails at these limits with nothing changed."""
        for number in range(50):
            project.words(f"{number}.txt", limit * 64 // 100 // 50)
        chat = session(project, context_tokens=limit, output_tokens=limit // 10)
        first = chat.turn(".")
        assert first.tokens.full_resend > limit * 0.63
        for _ in range(5):
            packed = chat.turn(".")
            assert counted(packed) == {"unchanged": 50}
            assert packed.tokens.total < first.tokens.total + 500

    def test_the_list_is_not_rewritten_by_later_calls(self, project: Project) -> None:
        project.words("a.txt", 10)
        project.words("large.txt", 500)
        chat = session(project, inline_tokens=200)
        listed = chat.turn(".").state.stable
        project.words("a.txt", 100)
        project.words("large.txt", 2)
        project.words("new.txt", 2)
        assert {chat.turn(*context).state.stable for context in ((".",), ("new.txt",), ())} == {
            listed
        }

    def test_a_second_assistant_of_the_same_session_gets_the_files(self, project: Project) -> None:
        """Elsewhere it is sent none: what was sent is not kept by assistant."""
        project.words("a.txt", 10)
        session(project).turn(".")
        other = Session(project.assistant(model="claude-x"))
        assert at(other.turn("."), "inline") == {"a.txt"}

    def test_ignored_files_are_not_sent_because_they_are_context(self, project: Project) -> None:
        project.write(".zibaldoneignore", "secrets/\n")
        project.write("secrets/a.txt", "a\n")
        for field in ("context", "attachments", "priority_context"):
            given: dict[str, Any] = {field: ("secrets",)}
            packed = build(project.assistant(), None, Ask(**given))
            assert counted(packed) == {"left_out": 1}


@pytest.mark.requirement("SI-38")
def test_a_turn_is_not_slower_to_build_than_sending_everything(project: Project) -> None:
    for number in range(150):
        project.words(f"{number}.txt", 300)
    chat = session(project)
    chat.turn(".")
    full = project.assistant(stable_inline=False)

    def seconds(work: Any) -> float:
        started = time.thread_time()
        work()
        return time.thread_time() - started

    ask = Ask(context=(".",))
    ours = min(seconds(lambda: chat.try_turn(".")) for _ in range(5))
    others = min(seconds(lambda: build(full, None, ask, counts=chat.counts)) for _ in range(5))
    assert ours < others


class TestRequests:
    def test_a_path_outside_of_the_roots_is_forbidden_before_anything_is_read(
        self, project: Project, tmp_path: Path
    ) -> None:
        project.words("a.txt", 10)
        outside = tmp_path / "secret.txt"
        outside.write_text("secret")
        (project.root / "link.txt").symlink_to(outside)
        chat = session(project)
        for path in (str(outside), "../secret.txt", "link.txt", "/nowhere/at/all", "~/x/../../.."):
            if path.startswith("~"):
                continue
            for field in ("attachments", "priority_context"):
                with pytest.raises(Forbidden):
                    chat.turn("a.txt", **{field: (path,)})

            def ask(path: str = path) -> None:
                with pytest.raises(Forbidden, match="outside"):
                    chat.turn("a.txt", path)

            assert record_opens(project.root, ask) == []
        with pytest.raises(Forbidden, match="none"):
            build(project.assistant(roots=()), None, Ask(context=("a.txt",)))

    def test_a_path_that_never_was_is_not_found(self, project: Project) -> None:
        project.words("a.txt", 10)
        with pytest.raises(NotFound, match=r"b\.txt"):
            session(project).turn("a.txt", "b.txt")
        with pytest.raises(NotFound, match=r"b\.txt"):
            session(project).turn("a.txt", attachments=("b.txt",))

    def test_paths_can_be_given_as_they_are_shown(self, project: Project) -> None:
        project.words("src/a.txt", 10)
        packed = session(project).turn("project/src/a.txt")
        assert at(packed, "inline") == {"src/a.txt"}

    @pytest.mark.parametrize("path", ["", "a\0b", "x" * 5_000])
    def test_a_path_that_cannot_be_one_is_refused(self, project: Project, path: str) -> None:
        with pytest.raises(InvalidArgument):
            session(project).turn(path)

    def test_too_many_paths_and_too_long_instructions(self, project: Project) -> None:
        project.words("a.txt", 10)
        with pytest.raises(LimitExceeded):
            session(project).turn(*["a.txt"] * (PACK_PATHS_MAX + 1))
        with pytest.raises(InvalidArgument):
            session(project).turn("a.txt", instructions="x" * 500_000)

    @pytest.mark.requirement("SI-09")
    def test_more_files_than_a_store_takes_are_refused(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("zibaldone.pack.build.PACK_STORE_FILES_MAX", 10)
        for number in range(11):
            project.words(f"{number}.txt", 100)
        with pytest.raises(LimitExceeded, match="11 files"):
            session(project, inline_tokens=20).turn(".")
        packed = session(project, inline_tokens=200).turn(".")
        assert len(packed.overflow) == 10

    def test_a_build_can_be_stopped(self, project: Project) -> None:
        project.words("a.txt", 10)

        class Stop(Exception):
            pass

        def stop() -> None:
            raise Stop

        with pytest.raises(Stop):
            build(project.assistant(), None, Ask(context=(".",)), check=stop)

    def test_a_turn_without_files(self, project: Project) -> None:
        packed = session(project).turn(instructions="Hello.", output_format="One word.")
        assert packed.messages[-1].text == "Hello.\n\nFormat of the answer: One word.\n"
        assert packed.placed == ()


def counted(packed: Packed) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for file in packed.placed:
        numbers[file.place] = numbers.get(file.place, 0) + 1
    return numbers


_opened: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None:
        _opened.append(str(arguments[0]))


sys.addaudithook(_note)


def record_opens(folder: Path, work: Any) -> list[str]:
    """Files of the folder that are opened meanwhile."""
    global _opened  # noqa: PLW0603 - an audit hook stays for good
    _opened = []
    try:
        work()
        return [path for path in _opened if path.startswith(str(folder))]
    finally:
        _opened = None
