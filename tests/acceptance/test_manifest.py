from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.acceptance import manifest
from tests.acceptance.manifest import (
    AREAS,
    DELIVERED_AREAS,
    REQUIREMENTS_FILE,
    ROOT,
    ManifestError,
    Markers,
    Requirement,
    faults_of_delivery,
    faults_of_form,
    faults_of_marking,
    faults_of_sums,
    load,
    main,
    report,
    scan,
    with_tests,
)

# Ids are never removed: one that turns out moot gets a reason. A new number here is a decision.
REQUIREMENTS_EXPECTED = 477


@pytest.fixture(scope="module")
def requirements() -> tuple[Requirement, ...]:
    return load(REQUIREMENTS_FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def markers() -> Markers:
    return scan(ROOT / "tests", ROOT)


class TestThisRepository:
    def test_no_id_was_dropped(self, requirements: tuple[Requirement, ...]) -> None:
        assert len(requirements) == REQUIREMENTS_EXPECTED

    def test_each_id_is_answered_in_one_way(self, requirements: tuple[Requirement, ...]) -> None:
        assert faults_of_form(requirements) == []

    def test_file_and_markers_agree(
        self, requirements: tuple[Requirement, ...], markers: Markers
    ) -> None:
        assert faults_of_marking(requirements, markers) == [], (
            "run `python -m tests.acceptance.manifest --write`"
        )

    def test_delivered_areas_have_nothing_planned(
        self, requirements: tuple[Requirement, ...]
    ) -> None:
        assert {*DELIVERED_AREAS} <= {*AREAS}
        assert faults_of_delivery(requirements, DELIVERED_AREAS) == []

    def test_sums_are_of_rows(self, requirements: tuple[Requirement, ...]) -> None:
        assert faults_of_sums(requirements) == []

    @pytest.mark.requirement("X-02")
    def test_both_u_tables_are_kept_under_their_own_prefix(
        self, requirements: tuple[Requirement, ...]
    ) -> None:
        ids = {row.id for row in requirements}
        of_001 = {f"001/U{n}" for n in range(1, 22) if n != 10} | {f"001/U10{c}" for c in "abcd"}
        assert {f"000/U{n}" for n in range(1, 16)} | of_001 <= ids
        assert not [id_ for id_ in ids if id_.startswith("U")]


class TestForm:
    def test_an_id_twice_is_refused(self) -> None:
        row = '["T1"]\narea = "keep"\nkind = "G"\nplanned = true\n'
        with pytest.raises(ManifestError, match="T1"):
            load(row + row)

    @pytest.mark.parametrize("line", ["planned = false", 'resaon = "moot"'])
    def test_a_key_that_means_nothing_is_refused(self, line: str) -> None:
        with pytest.raises(ManifestError, match="T1"):
            load(f'["T1"]\narea = "keep"\nkind = "G"\n{line}\n')

    @pytest.mark.parametrize(
        "row",
        [
            Requirement("T1", "keep", "G", tests=("a::test_b",)),
            Requirement("T1", "keep", "G", tests=("a::test_b",), note="Speed: see benchmarks."),
            Requirement("T1", "keep", "G", planned=True),
            Requirement("T1", "process", "B", reason="Moot."),
            Requirement("T1", "keep", "G", sum=("T2", "T3")),
            Requirement("T1", "keep", "G", tests=("a::test_b",), benchmark="make bench"),
            Requirement("T1", "keep", "G", tests=("a::test_b",), nightly="make soak"),
            Requirement("T1", "push", "G", tests=("a::test_b",), open="The other half."),
        ],
    )
    def test_one_answer_is_right(self, row: Requirement) -> None:
        assert faults_of_form([row]) == []

    @pytest.mark.parametrize(
        "row",
        [
            Requirement("T1", "keep", "G"),
            Requirement("T1", "keep", "G", tests=("a::test_b",), planned=True),
            Requirement("T1", "keep", "G", tests=("a::test_b",), reason="Moot."),
            Requirement("T1", "keep", "G", planned=True, reason="Moot."),
            Requirement("T1", "keep", "G", reason=" "),
            Requirement("T1", "keep", "G", reason="Moot.", note="Or not."),
            Requirement("T1", "cellar", "G", planned=True),
            Requirement("T1", "keep", "Z", planned=True),
            Requirement("T1", "keep", "G", tests=("a::test_b",), sum=("T2",)),
            Requirement("T1", "keep", "G", planned=True, benchmark="make bench"),
            Requirement("T1", "keep", "G", reason="Moot.", nightly="make soak"),
            Requirement("T1", "keep", "G", sum=("T2",), open="Half."),
        ],
    )
    def test_none_two_or_nonsense_is_a_fault(self, row: Requirement) -> None:
        assert len(faults_of_form([row])) == 1

    def test_planned_ends_with_delivery(self) -> None:
        rows = [
            Requirement("T1", "keep", "G", planned=True),
            Requirement("T2", "find", "G", planned=True),
        ]
        assert faults_of_delivery(rows, ("keep",)) == ["T1: still planned, but keep is delivered"]

    def test_an_open_part_ends_with_delivery(self) -> None:
        row = Requirement("T1", "keep", "G", tests=("a::test_b",), open="The other half.")
        assert faults_of_delivery([row], ("keep",)) == ["T1: still open, but keep is delivered"]

    def test_a_sum_of_nothing_and_of_a_sum_is_a_fault(self) -> None:
        rows = [
            Requirement("T1", "keep", "G", sum=("T2", "T9")),
            Requirement("T2", "keep", "G", sum=("T1",)),
        ]
        assert len(faults_of_sums(rows)) == 3


class TestReport:
    def test_rows_are_counted_by_what_answers_them(self) -> None:
        tests = ("a::test_b",)
        rows = [
            Requirement("T1", "keep", "G", tests=tests),
            Requirement("T2", "keep", "G", tests=tests, benchmark="make bench"),
            Requirement("T3", "keep", "G", tests=tests, nightly="make soak"),
            Requirement("T4", "push", "G", tests=tests, open="The other half."),
            Requirement("T5", "push", "G", planned=True),
            Requirement("T6", "keep", "G", reason="Moot."),
            Requirement("T7", "keep", "G", sum=("T1", "T2")),
            Requirement("T8", "keep", "G", sum=("T1", "T5", "T6")),
        ]
        counts = [line.split(":") for line in report(rows).splitlines()]
        assert [(line[0].split()[0], *line[1:]) for line in counts] == [
            ("8",), ("1",), ("2", " T2 T7"), ("1", " T3"), ("1", " T4"), ("2", " T5 T8"),
            ("1", " T6"),
        ]  # fmt: skip

    def test_a_sum_of_what_is_not_there_yet_is_not_proven(
        self, requirements: tuple[Requirement, ...]
    ) -> None:
        rows = {row.id: row for row in requirements}
        if rows["T10"].planned:
            assert manifest.standing(rows["000/P1.01"], rows) == "planned"


def scan_source(tests_dir: Path, source: str, name: str = "test_a.py") -> Markers:
    folder = tests_dir / "tests"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(dedent(source), encoding="utf-8")
    return scan(folder, tests_dir)


class TestScan:
    def test_functions_methods_classes_and_parameters(self, tmp_path: Path) -> None:
        found = scan_source(
            tmp_path,
            """
            import pytest

            @pytest.mark.requirement("T1", "T2")
            async def test_one(): ...

            @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("T3"))])
            def test_two(x): ...

            def test_unmarked(): ...

            @pytest.mark.requirement("T1")
            class TestMany:
                pytestmark = [pytest.mark.slow, pytest.mark.requirement("T4")]

                @pytest.mark.requirement("T5")
                def test_three(self): ...

                class TestInner:
                    def test_four(self): ...
            """,
        )
        many = "tests/test_a.py::TestMany"
        inherited = (f"{many}::TestInner::test_four", f"{many}::test_three")
        assert found.tests_by_id == {
            "T1": (*inherited, "tests/test_a.py::test_one"),
            "T2": ("tests/test_a.py::test_one",),
            "T3": ("tests/test_a.py::test_two",),
            "T4": inherited,
            "T5": (f"{many}::test_three",),
        }
        assert "tests/test_a.py::test_unmarked" in found.all_tests
        assert found.faults == ()

    @pytest.mark.parametrize(
        "value", ['pytest.mark.requirement("T1")', '[pytest.mark.requirement("T1")]']
    )
    def test_a_mark_on_the_module_counts_for_each_test(self, tmp_path: Path, value: str) -> None:
        found = scan_source(
            tmp_path,
            f"""
            import pytest
            pytestmark = {value}
            def test_one(): ...
            class TestMany:
                def test_two(self): ...
            """,
        )
        assert found.tests_by_id == {
            "T1": ("tests/test_a.py::TestMany::test_two", "tests/test_a.py::test_one")
        }

    @pytest.mark.parametrize(
        "source",
        [
            'CASES = [pytest.param(1, marks=pytest.mark.requirement("T1"))]\ndef test_a(): ...',
            "proves = pytest.mark.requirement\n@proves('T1')\ndef test_a(): ...",
            '@pytest.mark.requirement("T1")\ndef helper(): ...',
            '@pytest.mark.requirement("T1")\nclass TestEmpty: ...',
            'pytestmark = pytest.mark.requirement("T1")',
            'ID = "T1"\n@pytest.mark.requirement(ID)\ndef test_a(): ...',
            "@pytest.mark.requirement()\ndef test_a(): ...",
        ],
        ids=["table", "alias", "helper", "empty class", "empty module", "variable", "no id"],
    )
    def test_a_marker_that_would_be_lost_is_a_fault(self, tmp_path: Path, source: str) -> None:
        found = scan_source(tmp_path, source)
        assert len(found.faults) == 1
        assert found.faults[0].startswith("tests/test_a.py:")

    def test_a_file_pytest_does_not_collect_proves_nothing(self, tmp_path: Path) -> None:
        found = scan_source(
            tmp_path,
            '@pytest.mark.requirement("T1")\ndef test_a(): ...',
            name="conftest.py",
        )
        assert found.tests_by_id == {}
        assert len(found.faults) == 1


class TestMarking:
    found = Markers(
        tests_by_id={"T1": ("a::test_one",)},
        all_tests=frozenset({"a::test_one", "a::test_two"}),
    )

    def test_agreement(self) -> None:
        rows = [Requirement("T1", "keep", "G", tests=("a::test_one",))]
        assert faults_of_marking(rows, self.found) == []

    def test_an_unknown_id(self) -> None:
        assert faults_of_marking([], self.found) == ["T1: unknown id, marked on a::test_one"]

    def test_a_marked_test_that_is_not_listed(self) -> None:
        rows = [Requirement("T1", "keep", "G", planned=True)]
        assert faults_of_marking(rows, self.found) == [
            "T1: a::test_one carries the marker but is not listed"
        ]

    def test_a_listed_test_without_marker_or_existence(self) -> None:
        listed = ("a::test_one", "a::test_two", "a::test_gone")
        rows = [Requirement("T1", "keep", "G", tests=listed)]
        assert faults_of_marking(rows, self.found) == [
            "T1: a::test_gone is listed but does not exist",
            "T1: a::test_two is listed but lacks the marker",
        ]

    def test_a_marker_fault_is_passed_on(self) -> None:
        lost = Markers(tests_by_id={}, all_tests=frozenset(), faults=("a:1: lost",))
        assert faults_of_marking([], lost) == ["a:1: lost"]


BEFORE = """\
# A comment about tests = [] stays.

["T1"]
area = "keep"   # as does this one
kind = "G"
tests = []
planned = true

# ---- heading ----

["T2"]
area = "keep"
kind = "G"
tests = [
    "tests/old.py::test_gone",
]

["T3"]
area = "process"
kind = "B"
reason = "Moot."
"""


class TestRewrite:
    def test_lists_change_and_the_rest_stays(self) -> None:
        long = tuple(f"tests/keep/test_list.py::test_number_{n}" for n in range(3))
        assert with_tests(BEFORE, {"T1": long, "T2": ("tests/new.py::test_a",)}) == (
            BEFORE.replace(
                "tests = []\nplanned = true\n",
                "tests = [\n" + "".join(f'    "{test}",\n' for test in long) + "]\n",
            ).replace(
                'tests = [\n    "tests/old.py::test_gone",\n]', 'tests = ["tests/new.py::test_a"]'
            )
        )

    def test_lost_proof_does_not_turn_into_a_plan(self) -> None:
        rows = load(with_tests(BEFORE, {}))
        assert rows[1] == Requirement("T2", "keep", "G")
        assert [fault for fault in faults_of_form(rows) if fault.startswith("T2")]

    def test_a_test_for_a_reasoned_id_is_shown_beside_the_reason(self) -> None:
        row = load(with_tests(BEFORE, {"T3": ("a::test_one",)}))[2]
        assert (row.tests, row.reason) == (("a::test_one",), "Moot.")

    def test_writing_twice_changes_nothing_more(self) -> None:
        tests = {"T1": ("a::test_one",), "T3": ("a::test_two",)}
        once = with_tests(BEFORE, tests)
        assert with_tests(once, tests) == once


class TestCommand:
    @pytest.fixture
    def tree(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        scan_source(tmp_path, '@pytest.mark.requirement("T1")\ndef test_a(): ...')
        file = tmp_path / "requirements.toml"
        file.write_text(BEFORE, encoding="utf-8")
        monkeypatch.setattr(manifest, "ROOT", tmp_path)
        monkeypatch.setattr(manifest, "REQUIREMENTS_FILE", file)
        return tmp_path

    def test_shows_the_difference_then_writes_it(
        self, tree: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([]) == 1
        assert '+tests = ["tests/test_a.py::test_a"]' in capsys.readouterr().out
        assert (tree / "requirements.toml").read_text(encoding="utf-8") == BEFORE
        assert main(["--write"]) == 0
        assert main([]) == 0
        assert capsys.readouterr().out == ""

    def test_writing_does_not_hide_an_unknown_id(
        self, tree: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        scan_source(tree, '@pytest.mark.requirement("T99")\ndef test_b(): ...', name="test_b.py")
        assert main(["--write"]) == 1
        assert "T99: unknown id" in capsys.readouterr().out
