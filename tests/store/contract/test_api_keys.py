"""API keys: kept as they were made, ended once, the operator's whatever the tenant."""

from __future__ import annotations

from dataclasses import replace

from tests.store.kept import Kept
from zibaldone.access.key import ApiKey
from zibaldone.access.principal import Tenant

FIRST = ApiKey(
    key_id="k1",
    secret_hash=b"\x00hash of a secret",
    label="Lab ü 1",
    namespace="home",
    path_prefix="team/",
    effects=("read", "write"),
    profiles=("mcp",),
    created_at_us=1,
    expires_at_us=99,
)
SECOND = replace(
    FIRST, key_id="k0", secret_hash=b"other", profiles=None, created_at_us=2, expires_at_us=None
)


def all_keys(kept: Kept) -> list[ApiKey]:
    return kept.read(lambda reader: reader.api_keys.all(), Tenant(namespace="elsewhere"))


def test_keys_come_back_as_they_were_added(kept: Kept) -> None:
    kept.write(lambda writer: writer.api_keys.add(SECOND))
    kept.write(lambda writer: writer.api_keys.add(FIRST), Tenant(namespace="home"))
    assert all_keys(kept) == [FIRST, SECOND]


def test_a_key_ends_once(kept: Kept) -> None:
    kept.write(lambda writer: writer.api_keys.add(FIRST))
    assert kept.write(lambda writer: writer.api_keys.revoke("k1", 50))
    assert not kept.write(lambda writer: writer.api_keys.revoke("k1", 60))
    assert not kept.write(lambda writer: writer.api_keys.revoke("unknown", 60))
    assert all_keys(kept) == [replace(FIRST, revoked_at_us=50)]


def test_a_deleted_key_is_gone(kept: Kept) -> None:
    kept.write(lambda writer: writer.api_keys.add(FIRST))
    kept.write(lambda writer: writer.api_keys.add(SECOND))
    assert kept.write(lambda writer: writer.api_keys.revoke("k1", 50))
    assert kept.write(lambda writer: writer.api_keys.delete("k1")), "also one that has ended"
    assert not kept.write(lambda writer: writer.api_keys.delete("k1"))
    assert all_keys(kept) == [SECOND]
    assert kept.write(lambda writer: writer.api_keys.delete("k0"))
    assert all_keys(kept) == []
