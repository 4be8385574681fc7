"""The URL of a PostgreSQL database."""

from __future__ import annotations

import asyncio

import pytest

from tests.drivers.postgres import PASSWORD
from tests.store.backends import Postgres
from zibaldone import extras
from zibaldone.errors import ConfigurationError, NotConfigured
from zibaldone.limits import Limits
from zibaldone.store.open import inspect_store, open_store
from zibaldone.store.postgres.store import PostgresStore


def test_it_opens_the_store_and_describes_it_without_the_password(tables: Postgres) -> None:
    for url in (tables.url, tables.url.replace("postgresql:", "postgres:")):
        store = open_store(url, Limits())
        try:
            assert isinstance(store, PostgresStore)
            assert store.description.startswith("the PostgreSQL database zibaldone_")
            assert f"={PASSWORD}" not in store.description
            check = asyncio.run(store.check(thorough=True))
            assert (check.ok, check.problems) == (True, ())
            assert check.engine.startswith("postgresql 1")
            assert {"database", "bytes", "schema"} <= check.facts.keys()
        finally:
            store.close()
    assert inspect_store(tables.url).is_made


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(extra: str, module: str) -> None:
        raise NotConfigured(f"The library {module} is not installed. To install it: pip …")

    monkeypatch.setattr(extras, "require", missing)
    for ask in (inspect_store, lambda url: open_store(url, Limits())):
        with pytest.raises(ConfigurationError, match="psycopg is not installed") as refusal:
            ask("postgresql://me:secret@host/kb")
        assert "secret" not in str(refusal.value)


def test_several_hosts_mean_the_one_that_takes_writes() -> None:
    from zibaldone.store.postgres.address import Address

    two = Address.parse("postgresql://me@a:1,b:2/kb?connections_max=32")
    assert two.parameters["target_session_attrs"] == "read-write"
    assert (two.connections_max, two.description) == (32, "the PostgreSQL database kb on a,b")
    other = Address.parse("postgresql://a,b/kb?target_session_attrs=any")
    assert other.parameters["target_session_attrs"] == "any"
    assert "target_session_attrs" not in Address.parse("postgresql://a/kb").parameters
