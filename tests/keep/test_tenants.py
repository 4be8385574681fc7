"""Tenants: what lies outside a caller's namespace and prefix does not exist for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.runtimes import Caller, opened
from zibaldone.access.principal import Tenant
from zibaldone.tools.spec import Runtime


@pytest.fixture
def runtime(data: Path) -> Iterator[Runtime]:
    with opened(data) as runtime:
        yield runtime


class TestNamespaces:
    @pytest.fixture
    def ours(self, runtime: Runtime) -> Caller:
        return Caller(runtime, Tenant(namespace="ours"))

    @pytest.fixture
    def theirs(self, runtime: Runtime) -> Caller:
        caller = Caller(runtime, Tenant(namespace="theirs"))
        caller("upload_document", path="plan", content="their secret walrus", title="Walrus plan")
        caller("update_document", path="plan", content="their newer secret walrus")
        caller("upload_document", path="gone", content="their deleted walrus")
        caller("delete_document", path="gone")
        return caller

    def test_reads_see_nothing_of_another(self, ours: Caller, theirs: Caller) -> None:
        assert ours.ids() == []
        assert ours.ids(prefix="plan") == []
        assert ours.found("walrus") == []
        for document_id in ("plan", "gone"):
            assert ours.refused("get_document", path=document_id) == "NOT_FOUND"
            assert ours.refused("get_document_for_rewrite", path=document_id) == "NOT_FOUND"
            assert ours.refused("document_history", path=document_id) == "NOT_FOUND"
            assert ours.refused("document_revision", path=document_id, revision=1) == "NOT_FOUND"
            diff = {"path": document_id, "older": 1, "newer": 2}
            assert ours.refused("document_diff", **diff) == "NOT_FOUND"
        items = ours("batch_read", paths=["plan", "gone"])["items"]
        assert [item["error"]["code"] for item in items] == ["NOT_FOUND", "NOT_FOUND"]
        assert theirs.ids() == ["plan"]
        assert theirs.found("walrus") == ["plan"]

    def test_writes_change_nothing_of_another(self, ours: Caller, theirs: Caller) -> None:
        before = theirs("get_document_for_rewrite", path="plan")
        assert ours.refused("update_document", path="plan", content="x") == "NOT_FOUND"
        patch = {"path": "plan", "old_str": "newer", "new_str": "x"}
        assert ours.refused("patch_document", **patch) == "NOT_FOUND"
        assert ours.refused("delete_document", path="plan") == "NOT_FOUND"
        for document_id in ("plan", "gone"):
            assert ours.refused("restore_document", path=document_id, revision=1) == "NOT_FOUND"
        assert theirs("get_document_for_rewrite", path="plan") == before

    def test_the_same_id_is_another_document_in_each(self, ours: Caller, theirs: Caller) -> None:
        made = ours("upload_document", path="plan", content="our own narwhal", title="Walrus plan")
        assert made["revision"] == 1, "not the next revision of theirs"
        assert ours("upload_document", path="gone", content="ours")["revision"] == 1
        assert ours("get_document", path="plan")["content"] == "our own narwhal"
        assert ours.refused("document_revision", path="plan", revision=2) == "NOT_FOUND"
        assert ours.found("narwhal walrus") == ["plan"]
        ours("delete_document", path="plan")
        assert theirs("get_document", path="plan")["content"] == "their newer secret walrus"

    def test_related_documents_are_of_the_same_namespace(
        self, ours: Caller, theirs: Caller
    ) -> None:
        ours("upload_document", path="mine", content="nothing", title="Walrus plan")
        ours("upload_document", path="other", content="a walrus plan of our own")
        related = ours("get_document", path="mine")["related"]
        assert [one["document_id"] for one in related] == ["other"]


class TestPrefixes:
    """A caller bound to a folder, in the same namespace as one who is not."""

    @pytest.fixture
    def everyone(self, runtime: Runtime) -> Caller:
        caller = Caller(runtime)
        for document_id in (
            "team",
            "team-b/note",
            "team/a",
            "team/b/c",
            "team0",
            "tea/x",
            "zoo",
            "Team/a",
        ):
            caller("upload_document", path=document_id, content=f"gazelle {document_id}")
        caller("update_document", path="zoo", content="gazelle zoo again")
        return caller

    @pytest.fixture
    def team(self, runtime: Runtime, everyone: Caller) -> Caller:
        assert len(everyone.ids()) == 8
        return Caller(runtime, Tenant(prefix="team/"))

    @pytest.mark.parametrize(
        ("prefix", "visible"),
        [
            ("", ["team/a", "team/b/c"]),
            ("t", ["team/a", "team/b/c"]),
            ("team", ["team/a", "team/b/c"]),
            ("team/", ["team/a", "team/b/c"]),
            ("team/b", ["team/b/c"]),
            ("team-b/", []),
            ("team0", []),
            ("zoo", []),
            ("Team/", []),
        ],
    )
    def test_lists_and_searches(self, team: Caller, prefix: str, visible: list[str]) -> None:
        assert team.ids(prefix=prefix) == visible
        assert team.ids(prefix=prefix, offset=1) == visible[1:]
        assert team.found("gazelle", prefix=prefix) == visible

    def test_reads_outside_find_nothing(self, team: Caller) -> None:
        for document_id in ("team", "team-b/note", "team0", "tea/x", "zoo", "Team/a"):
            assert team.refused("get_document", path=document_id) == "NOT_FOUND"
            assert team.refused("get_document_for_rewrite", path=document_id) == "NOT_FOUND"
            assert team.refused("document_history", path=document_id) == "NOT_FOUND"
            assert team.refused("document_revision", path=document_id, revision=1) == "NOT_FOUND"
        diff = {"path": "zoo", "older": 1, "newer": 2}
        assert team.refused("document_diff", **diff) == "NOT_FOUND"
        outcomes = [item["status"] for item in team("batch_read", paths=["zoo", "team/a"])["items"]]
        assert outcomes == ["error", "ok"]

    @pytest.mark.parametrize(
        "document_id",
        ["new", "team", "team0", "team-b/note", "zoo", "/ team/../zoo", "team/../zoo"],
    )
    def test_writes_outside_are_refused(
        self, team: Caller, everyone: Caller, document_id: str
    ) -> None:
        before = revisions(everyone)
        for tool, more in (
            ("upload_document", {"content": "x", "upsert": True}),
            ("update_document", {"content": "x"}),
            ("patch_document", {"old_str": "gazelle", "new_str": "x"}),
            ("delete_document", {}),
            ("restore_document", {"revision": 1}),
            ("ingest_document", {"text": "x"}),
        ):
            code = team.refused(tool, path=document_id, **more)
            assert code == ("INVALID_ARGUMENT" if ".." in document_id else "FORBIDDEN")
        assert revisions(everyone) == before

    def test_writes_inside_are_done(self, team: Caller, everyone: Caller) -> None:
        team("upload_document", path="team/new", content="impala")
        team("update_document", path="team/new", content="impala two")
        team("patch_document", path="team/new", old_str="two", new_str="three")
        assert everyone("get_document", path="team/new")["content"] == "impala three"
        team("delete_document", path="team/new")
        team("restore_document", path="team/new", revision=1)
        assert everyone("get_document", path="team/new")["content"] == "impala"

    def test_a_cursor_does_not_lead_outside(self, team: Caller, everyone: Caller) -> None:
        page = everyone("list_documents", limit=1)
        assert team.ids(cursor=page["next_cursor"]) == ["team/a", "team/b/c"]


def revisions(caller: Caller) -> dict[str, int]:
    items = caller("list_documents", limit=100)["items"]
    return {head["document_id"]: head["revision"] for head in items}
