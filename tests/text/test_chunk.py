from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zibaldone.limits import CHUNK_CHARS_MAX, CHUNK_CHARS_MIN, CHUNK_CHARS_TARGET
from zibaldone.text import chunk
from zibaldone.text.chunk import Chunk, chunk_by_size, chunk_document

MIMES = ("text/markdown", "text/plain", "text/x-python", "application/json", "")

# Lines that mean something to one of the cutters, so that random bodies have structure.
LINES = st.sampled_from(
    [
        "",
        "   ",
        "# Install",
        "## Linux",
        "###### deep",
        "#",
        "Title",
        "=====",
        "---",
        "```",
        "```python",
        "````",
        "~~~",
        "    indented()",
        "- item one",
        "  - nested",
        "| a | b |",
        "|---|---|",
        "> quoted",
        "A sentence. Another one! A third?",
        "word " * 60,
        "x" * 700,
        "東京都庁舎は新宿区にあります。" * 30,
        "\u00a0",
        "e\u0301" * 400,
        "\r",
    ]
)
BODIES = st.one_of(
    st.text(),
    st.text(alphabet=st.characters(), min_size=500),
    st.lists(LINES, max_size=60).map("\n".join),
    st.lists(st.one_of(LINES, st.text(max_size=40)), max_size=60).map("\r\n".join),
    st.text(alphabet="#`~-=> \n\ta.|", max_size=4000),
)


REPEATED = (
    *("a", "\n", "#", "`", " ", "#\n", "# a\nb\n", "a\n\n", "a\n---\n\n", "a ", "a. ", "```\n"),
    *("> ", "- x\n  ", "東", "a\r\n\r\n", '!"', "e\u0301", "---\n", "\u00a0\n", "<div>"),
)


def paragraphs(seed: int, count: int, chars_min: int = 80, chars_max: int = 500) -> list[str]:
    chooser = random.Random(seed)
    words = ("the", "store", "keeps", "every", "revision", "of", "a", "document", "and", "new")
    return [
        " ".join(chooser.choices(words, k=chooser.randint(chars_min, chars_max) // 6)) + f" {nth}."
        for nth in range(count)
    ]


def bare(text: str) -> str:
    return "".join(text.split())


def texts(body: str, mime: str = "text/markdown") -> list[str]:
    return [chunk.text for chunk in chunk_document(body, mime)]


class TestEveryBody:
    @given(BODIES, st.sampled_from(MIMES))
    @example("# " + "x" * 5000, "text/markdown")
    @example("# " + "x" * 1300 + "\n\n" + "y" * 1300, "text/markdown")
    @example("```\n" + "z\n" * 3000, "text/markdown")
    @example("a" + " " * 5000 + "b", "text/plain")
    @example("\ud800\udc00" * 2000, "text/plain")
    @example("---\nkey: value\n---\ntext", "text/markdown")
    def test_is_held_by_its_passages_once_and_in_order(self, body: str, mime: str) -> None:
        chunks = chunk_document(body, mime)

        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert all(body[chunk.start : chunk.end] == chunk.text for chunk in chunks)
        assert all(before.end <= after.start for before, after in pairwise(chunks))
        assert bare("".join(chunk.text for chunk in chunks)) == bare(body)
        assert all(chunk.text.strip() for chunk in chunks)
        assert all(len(chunk.text) <= CHUNK_CHARS_MAX for chunk in chunks)

    @given(BODIES, st.sampled_from(MIMES))
    @settings(max_examples=30)
    def test_is_cut_the_same_each_time(self, body: str, mime: str) -> None:
        assert chunk_document(body, mime) == chunk_document(body, mime)

    @pytest.mark.parametrize("body", ["", " ", "\n\n\n", "\u00a0\n\u2003\t", "\r\n" * 50])
    def test_that_is_blank_has_none(self, body: str) -> None:
        assert [chunk_document(body, mime) for mime in MIMES] == [[]] * len(MIMES)

    @pytest.mark.parametrize("unit", REPEATED)
    @pytest.mark.parametrize("mime", ["text/markdown", "text/plain", "text/x-python"])
    def test_of_one_repeated_sign_is_cut_in_linear_time(self, unit: str, mime: str) -> None:
        # A quadratic cutter needs hours for this; the suite's timeout is the judge.
        body = unit * (300_000 // len(unit))
        chunks = chunk_document(body, mime)
        assert bare("".join(chunk.text for chunk in chunks)) == bare(body)
        assert all(len(chunk.text) <= CHUNK_CHARS_MAX for chunk in chunks)

    def test_sorted_against_the_choice_of_borders_is_cut_in_linear_time(self) -> None:
        # Weights that only rise leave no peak: the way for wide gaps has to carry it all.
        lines = sorted(
            (f"{nth:07d} lorem" for nth in range(60_000)), key=lambda s: crc32(s.encode())
        )
        for ordered in (lines, lines[::-1]):
            assert len(texts("\n\n".join(ordered))) > 500


class TestMarkdown:
    def test_the_trail_of_headings_stands_beside_the_text(self) -> None:
        filler = "\n\n".join(paragraphs(1, 4, 250, 400))
        assert len(filler) > CHUNK_CHARS_TARGET
        body = (
            f"# Guide\n\n{filler}\n\n## Install\n\n### Linux ###\n\n{filler}\n\n"
            f"### macOS\n\n{filler}\n\nUse\n===\n\n{filler}"
        )
        found = {chunk.text.splitlines()[0]: chunk.heading for chunk in chunk_document(body)}
        assert found["### macOS"] == "Guide > Install > macOS"
        assert found["## Install"] == "Guide > Install > Linux"
        assert found["# Guide"] == "Guide"
        assert found["Use"] == "Use"

    def test_text_before_the_first_heading_has_no_trail(self) -> None:
        body = f"{' '.join(paragraphs(2, 4))}\n\n# Later\n\n{' '.join(paragraphs(3, 4))}"
        assert chunk_document(body)[0].heading == ""

    def test_small_sections_share_passages(self) -> None:
        body = "\n\n".join(f"## Setting {nth}\n\nIt has the value {nth}." for nth in range(40))
        chunks = chunk_document(f"# Settings\n\n{body}")
        assert len(chunks) < 8
        assert all(len(chunk.text) <= CHUNK_CHARS_TARGET for chunk in chunks)
        assert {chunk.heading for chunk in chunks} == {"Settings"}

    def test_a_long_section_does_not_take_in_the_next(self) -> None:
        first, second = paragraphs(4, 12), paragraphs(5, 12)
        chunks = chunk_document(
            "# A\n\n" + "\n\n".join(first) + "\n\n# B\n\n" + "\n\n".join(second)
        )
        assert {chunk.heading for chunk in chunks} == {"A", "B"}
        assert sum("# B" in chunk.text for chunk in chunks) == 1
        assert next(chunk for chunk in chunks if "# B" in chunk.text).text.startswith("# B")

    def test_a_heading_is_never_the_end_of_a_passage(self) -> None:
        body = "\n\n".join(f"## Part {nth}\n\n{text}" for nth, text in enumerate(paragraphs(6, 60)))
        assert not any(text.splitlines()[-1].startswith("##") for text in texts(body))

    @pytest.mark.parametrize("fence", ["```", "~~~~", "   ```"])
    def test_a_fence_is_kept_whole_and_its_hashes_are_no_headings(self, fence: str) -> None:
        code = "\n\n".join(f"# step {nth}\nrun --number {nth}" for nth in range(40))
        block = f"{fence}sh\n{code}\n{fence}"
        assert 1000 < len(block) <= CHUNK_CHARS_MAX
        body = "\n\n".join([*paragraphs(7, 6), block, *paragraphs(8, 6)])
        chunks = chunk_document(body)
        assert sum(block.strip() in chunk.text for chunk in chunks) == 1
        assert {chunk.heading for chunk in chunks} == {""}

    def test_a_fence_longer_than_a_passage_is_cut_between_lines(self) -> None:
        lines = [f"    call_number_{nth}(argument)" for nth in range(200)]
        body = "```python\n" + "\n".join(lines) + "\n```"
        found = texts(body)
        assert len(found) > 3
        assert [line for text in found for line in text.splitlines()] == body.splitlines()

    def test_a_fence_closes_only_with_as_many_ticks(self) -> None:
        text = "\n\n".join(paragraphs(16, 6))
        body = f"````md\n```\n# inside\n```\n````\n\n# Outside\n\n{text}"
        assert [chunk.heading for chunk in chunk_document(body)][:2] == ["", "Outside"]

    def test_a_fence_that_is_never_closed_goes_on_to_the_end(self) -> None:
        assert {chunk.heading for chunk in chunk_document("```\n" + "# not a heading\n" * 200)} == {
            ""
        }

    def test_a_table_is_kept_whole_where_it_fits_and_cut_between_rows(self) -> None:
        rows = [f"| name {nth} | value {nth} |" for nth in range(40)]
        table = "| a | b |\n|---|---|\n" + "\n".join(rows)
        assert len(table) <= CHUNK_CHARS_MAX
        assert any(table in text for text in texts("\n\n".join([*paragraphs(9, 5), table])))
        long_table = table + "\n" + "\n".join(rows * 3)
        found = texts(long_table)
        assert len(found) > 2
        assert [row for text in found for row in text.splitlines()] == long_table.splitlines()

    def test_a_list_is_cut_between_items(self) -> None:
        items = [f"- {text}" for text in paragraphs(10, 30, 60, 200)]
        found = texts("\n".join(items))
        assert len(found) > 3
        assert all(text.startswith("- ") for text in found)

    def test_an_underline_makes_a_heading_of_a_single_line_only(self) -> None:
        filler = "\n\n".join(paragraphs(11, 4))
        chunks = chunk_document(
            f"Title\n-----\n\n{filler}\n\ntwo lines\nof text\n---\n\n- item\n---\n"
        )
        assert {chunk.heading for chunk in chunks} == {"Title"}

    def test_front_matter_is_no_heading(self) -> None:
        assert chunk_document("---\ntitle: x\n---\n\nText.")[0].heading == ""

    def test_indentation_of_the_first_line_is_kept(self) -> None:
        body = "\n\n".join(
            f"    indented_{nth}()\n    {text}" for nth, text in enumerate(paragraphs(12, 9))
        )
        assert all(text.startswith("    indented_") for text in texts(body))

    def test_a_short_tail_joins_its_section(self) -> None:
        for seed in range(20):
            body = "\n\n".join([*paragraphs(seed, 12), "The end."])
            assert all(len(text) >= CHUNK_CHARS_MIN for text in texts(body))


class TestProse:
    def test_a_long_paragraph_is_cut_between_sentences(self) -> None:
        sentences = paragraphs(13, 60, 40, 160)
        found = texts(" ".join(sentences), "text/plain")
        assert len(found) > 3
        assert all(text.endswith(".") for text in found)

    def test_hashes_are_plain_text(self) -> None:
        assert {chunk.heading for chunk in chunk_document("# A\n\ntext", "text/plain")} == {""}

    def test_a_long_sentence_is_cut_between_words(self) -> None:
        words = [f"word{nth}" for nth in range(900)]
        found = texts(" ".join(words), "text/plain")
        assert len(found) > 3
        assert [word for text in found for word in text.split()] == words

    def test_text_without_spaces_is_cut_between_sentences(self) -> None:
        found = texts("東京都庁舎は新宿区にあります。" * 300, "text/plain")
        assert len(found) > 3
        assert all(text.endswith("。") for text in found)

    def test_a_character_keeps_its_marks(self) -> None:
        found = texts("e\u0301" * 3000, "text/plain")
        assert len(found) > 3
        assert not any(text.startswith("\u0301") for text in found)

    def test_an_emoji_sequence_stays_whole(self) -> None:
        family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
        assert all(len(text) % len(family) == 0 for text in texts(family * 1000, "text/plain"))


class TestCode:
    def test_functions_begin_passages(self) -> None:
        chooser = random.Random(14)
        functions = [
            f"def function_{nth}(value):\n"
            + "".join(f"    step_{line}(value)\n" for line in range(chooser.randint(6, 20)))
            + "\n    return value"
            for nth in range(60)
        ]
        found = texts("\n\n\n".join(functions), "text/x-python")
        assert len(found) > 10
        assert sum(text.startswith("def ") for text in found) / len(found) > 0.9

    def test_a_closing_bracket_stays_with_what_it_closes(self) -> None:
        body = "\n".join(
            f'{{\n  "key": {nth},\n  "text": "some words here"\n}}' for nth in range(200)
        )
        assert not any(text.startswith("}") for text in texts(body, "application/json"))


def new_texts(known: set[str], body: str, mime: str = "text/markdown") -> int:
    return sum(text not in known for text in texts(body, mime))


class TestAnEdit:
    """What a patch costs: only passages with a new text are embedded again."""

    @pytest.mark.parametrize("headings_every", [1000, 8])
    @pytest.mark.parametrize(
        "edit",
        [
            lambda text: text[: len(text) // 2] + " amended " + text[len(text) // 2 + 9 :],
            lambda text: "Amended: " + text,
            lambda text: text + " grown" * 50,
            lambda text: text + "\n\n" + "inserted " * 20,
            lambda text: "",
        ],
        ids=["amend", "first words", "grow by 300", "insert", "delete"],
    )
    def test_changes_three_passages_at_most_wherever_it_is(
        self, edit: Callable[[str], str], headings_every: int
    ) -> None:
        parts = paragraphs(15, 250)
        heads = [
            f"## Part {nth}\n\n" if nth % headings_every == 0 else "" for nth in range(len(parts))
        ]
        body = "\n\n".join(map("".join, zip(heads, parts, strict=True)))
        known = set(texts(body))
        assert len(known) >= 100
        changed = []
        for nth in range(len(parts)):
            edited = [*parts[:nth], edit(parts[nth]), *parts[nth + 1 :]]
            after = "\n\n".join(map("".join, zip(heads, edited, strict=True)))
            changed.append(new_texts(known, after))
        assert max(changed) <= 3
        assert sum(changed) / len(changed) < 2

    @pytest.mark.parametrize(
        ("mime", "lines"),
        [
            ("text/plain", [f"row {nth * 7919 % 1_000_003:06d}" for nth in range(7000)]),
            ("text/plain", [f"{nth * 7919 % 100_003:05d}" for nth in range(12_000)]),
            ("text/x-python", [f"    call_{nth * 7919 % 9973}(value)" for nth in range(3000)]),
        ],
        ids=["rows", "numbers", "code"],
    )
    def test_of_a_line_in_the_middle_leaves_the_rest(self, mime: str, lines: list[str]) -> None:
        body = "\n".join(lines)
        known = set(texts(body, mime))
        assert len(known) > 90
        for nth in range(0, len(lines), len(lines) // 20):
            longer = "\n".join([*lines[:nth], lines[nth] + "0", *lines[nth + 1 :]])
            without = "\n".join([*lines[:nth], *lines[nth + 1 :]])
            assert new_texts(known, longer, mime) <= 4
            assert new_texts(known, without, mime) <= 4


class TestBySize:
    def test_windows_overlap(self) -> None:
        body = "".join(chr(0x4E00 + nth) for nth in range(9000))
        chunks = chunk_by_size(body, size=4000, overlap=400, minimum=800)
        assert [(chunk.start, chunk.end) for chunk in chunks] == [
            (0, 4000),
            (3600, 7600),
            (7200, 9000),
        ]

    def test_a_short_tail_goes_to_its_predecessor(self) -> None:
        chunks = chunk_by_size("x" * 7900, size=4000, overlap=400, minimum=800)
        assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, 4000), (3600, 7900)]

    def test_a_short_body_is_one(self) -> None:
        assert chunk_by_size("short", size=4000, overlap=400, minimum=800) == [
            Chunk(0, 0, 5, "", "short")
        ]

    def test_a_blank_body_has_none(self) -> None:
        assert chunk_by_size(" \n", size=4000, overlap=400, minimum=800) == []
        assert chunk_by_size("", size=4000, overlap=400, minimum=800) == []

    def test_a_blank_window_is_none(self) -> None:
        body = "a" + " " * 1000 + "b"
        assert chunk_by_size(body, size=100, overlap=0, minimum=0) == [
            Chunk(0, 0, 100, "", body[:100]),
            Chunk(1, 1000, 1002, "", " b"),
        ]

    @given(st.text(alphabet=" \n\u3000ab", min_size=1), st.integers(1, 9), st.data())
    def test_windows_are_left_out_only_where_nothing_is_to_be_seen(
        self, body: str, size: int, data: st.DataObject
    ) -> None:
        overlap = data.draw(st.integers(0, size - 1))
        chunks = chunk_by_size(body, size, overlap, data.draw(st.integers(0, size)))
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert all(body[chunk.start : chunk.end] == chunk.text for chunk in chunks)
        assert all(chunk.text.strip() for chunk in chunks)
        held = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
        assert held >= {place for place, char in enumerate(body) if not char.isspace()}

    @given(st.text(min_size=1), st.integers(1, 40), st.data())
    def test_every_character_is_held(self, text: str, size: int, data: st.DataObject) -> None:
        body = "".join("x" if char.isspace() else char for char in text)
        overlap = data.draw(st.integers(0, size - 1))
        minimum = data.draw(st.integers(0, size))
        chunks = chunk_by_size(body, size, overlap, minimum)
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert all(body[chunk.start : chunk.end] == chunk.text for chunk in chunks)
        assert (chunks[0].start, chunks[-1].end) == (0, len(body))
        assert all(after.start == before.end - overlap for before, after in pairwise(chunks[:-1]))
        assert all(len(chunk.text) == size for chunk in chunks[:-1])
        assert len(chunks) == 1 or len(chunks[-1].text) >= minimum
        assert len(chunks[-1].text) <= size + max(0, minimum - 1)

    @pytest.mark.parametrize(
        ("size", "overlap", "minimum"),
        [(0, 0, 0), (-1, 0, 0), (10, 10, 0), (10, -1, 0), (10, 2, -1), (10, 2, 11)],
    )
    def test_senseless_sizes_are_refused(self, size: int, overlap: int, minimum: int) -> None:
        with pytest.raises(ValueError, match="must be"):
            chunk_by_size("text", size, overlap, minimum)


def test_long_texts_are_searched_in_pieces_and_cut_as_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = "One sentence. And another!\n\n- an item, and more\n" * 200 + "x" * 30_000
    text = f"{words}\n\n```\n{words}\n```\n{words}"
    mimes = ("text/markdown", "text/x-python", "text/plain")
    whole = [chunk_document(text, mime) for mime in mimes]
    monkeypatch.setattr(chunk, "_PIECE_CHARS", 2_000)
    monkeypatch.setattr(chunk, "_STEP_CHARS", 1_000)
    assert [chunk_document(text, mime) for mime in mimes] == whole


def test_other_threads_run_while_a_text_without_any_break_is_cut() -> None:
    longest_s, is_done = 0.0, threading.Event()

    def look() -> None:
        nonlocal longest_s
        while not is_done.is_set():
            started_s = time.process_time()  # of the process: others may use the machine, too
            time.sleep(0.001)
            longest_s = max(longest_s, time.process_time() - started_s)

    looking = threading.Thread(target=look)
    gc.disable()  # what other tests left behind takes longer to look through than the text to cut
    try:
        looking.start()
        chunk_document("." * 10_000_000)
    finally:
        gc.enable()
        is_done.set()
        looking.join()
    assert longest_s < 0.2  # all at once it takes 0.35
