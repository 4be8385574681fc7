"""Sources of the settings and sources of the command line, in one store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.backends import BACKENDS
from zibaldone.errors import Ambiguous, ConfigurationError, NotFound
from zibaldone.limits import Limits
from zibaldone.model.instant import now_us
from zibaldone.pull import registry
from zibaldone.pull.registry import COMMAND, Reconciled, read_definitions
from zibaldone.store.port import Store
from zibaldone.store.upkeep import SourceRecord, Upkeep

POSTS: dict[str, Any] = {
    "url": "sqlite:////srv/posts.db",
    "table": "posts",
    "key": "id",
    "document": {"title": ["title"], "body": ["body"]},
}


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    backend = BACKENDS[request.param](tmp_path)
    opened = backend.open(Limits())
    yield opened
    opened.close()
    backend.close()


def reconcile(store: Store, **tables: Any) -> Reconciled:
    return asyncio.run(registry.reconcile(store, read_definitions(tables)))


def records(store: Store) -> dict[str, SourceRecord]:
    return {record.name: record for record in asyncio.run(registry.all_records(store))}


def schedules(store: Store) -> dict[str, str]:
    stored = asyncio.run(store.upkeep(lambda upkeep: upkeep.schedules.all(), write=False))
    return {schedule.name: schedule.cron for schedule in stored}


def test_the_settings_are_brought_into_the_store(store: Store) -> None:
    assert reconcile(store, posts=POSTS, notes=POSTS) == Reconciled(added=("posts", "notes"))
    first = records(store)
    assert {*first} == {"posts", "notes"}
    assert registry.definition_of(first["posts"]).key == ("id",)
    assert reconcile(store, posts=POSTS, notes=POSTS) == Reconciled()
    changed = {**POSTS, "where": "score > 0", "schedule": "*/5 * * * *"}
    assert reconcile(store, posts=changed, notes=POSTS) == Reconciled(redefined=("posts",))
    again = records(store)
    assert again["posts"].source_id == first["posts"].source_id
    assert registry.definition_of(again["posts"]).where == "score > 0"
    assert list(schedules(store).values()) == ["*/5 * * * *"]
    assert reconcile(store, notes=POSTS) == Reconciled(disabled=("posts",))
    assert records(store)["posts"].enabled is False
    assert schedules(store) == {}
    assert reconcile(store, notes=POSTS) == Reconciled()
    assert reconcile(store, posts=changed, notes=POSTS) == Reconciled(redefined=("posts",))
    assert records(store)["posts"].enabled is True
    assert len(schedules(store)) == 1


def test_a_source_of_another_namespace_is_another_source(store: Store) -> None:
    outcome = reconcile(store, posts={**POSTS, "namespace": "team"})
    assert outcome.added == ("posts (team)",)
    assert records(store)["posts"].namespace == "team"


def test_other_chunking_is_told(store: Store) -> None:
    reconcile(store, posts=POSTS)
    outcome = reconcile(store, posts={**POSTS, "chunking": {"by": "size", "size_chars": 500}})
    assert outcome == Reconciled(redefined=("posts",), to_cut=("posts",))


def test_a_name_of_both_origins_is_an_error_and_nothing_changes(store: Store) -> None:
    (definition,) = read_definitions({"posts": POSTS})

    def add(upkeep: Upkeep) -> int:
        return registry.add(upkeep, definition, COMMAND, now_us())

    asyncio.run(store.upkeep(add))
    with pytest.raises(ConfigurationError, match="zibaldone sources remove posts"):
        reconcile(store, other=POSTS, posts=POSTS)
    assert {*records(store)} == {"posts"}
    # What was added on the command line is none of the settings' business otherwise.
    assert reconcile(store, other=POSTS) == Reconciled(added=("other",))
    assert records(store)["posts"].enabled is True


def test_all_problems_of_all_sources_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_definitions(
            {
                "a": {**POSTS, "tabel": "x"},
                "b": {**POSTS, "url": "mysql://root:secret@host/db", "key": []},
                "c": {**POSTS, "schedule": "every day"},
                "kb": POSTS,
            }
        )
    told = caught.value.message
    for name in ("sources.a: ", "sources.b: ", "sources.c: ", "sources.kb: "):
        assert name in told
    assert "Did you mean 'table'?" in told
    assert "secret" not in told


def test_a_source_is_found_by_its_name(store: Store) -> None:
    reconcile(store, posts=POSTS, notes=POSTS)
    known = list(records(store).values())
    assert registry.find(known, "posts").name == "posts"
    with pytest.raises(NotFound, match="Did you mean 'posts'"):
        registry.find(known, "post")
    (elsewhere,) = read_definitions({"posts": {**POSTS, "namespace": "team"}})
    asyncio.run(store.upkeep(lambda upkeep: registry.add(upkeep, elsewhere, COMMAND, now_us())))
    both = asyncio.run(registry.all_records(store))
    with pytest.raises(Ambiguous, match="default, team"):
        registry.find(both, "posts")
    assert registry.find(both, "posts", "team").namespace == "team"
