"""The cache of vectors: isolation, identity and bounds."""

from __future__ import annotations

from zibaldone.embed.hashed import Hashed
from zibaldone.pack.vector_cache import VectorCache, packed, vector_keys

KEYS = vector_keys("model", [f"text {number}" for number in range(100)])


def test_what_is_put_is_found() -> None:
    cache = VectorCache()
    cache.put("ada", KEYS[:2], [b"\x01", b"\x02"])
    assert cache.get("ada", [KEYS[1], KEYS[5], KEYS[0]]) == [b"\x02", None, b"\x01"]


def test_owners_see_nothing_of_each_other() -> None:
    cache = VectorCache()
    cache.put("ada", KEYS[:1], [b"\x01"])
    assert cache.get("bob", KEYS[:1]) == [None]


def test_keys_differ_by_model_and_by_text() -> None:
    assert len({*vector_keys("a", ["x", "y"]), *vector_keys("b", ["x", "y"])}) == 4
    assert vector_keys("a", ["x"]) == vector_keys("a", ["x"])


def test_an_owner_over_the_bound_loses_the_least_recently_used() -> None:
    cache = VectorCache(bytes_max=1 << 20, owner_bytes_max=10 * (1_000 + 300))
    for key in KEYS:
        cache.put("ada", [key], [bytes(1_000)])
        cache.get("ada", KEYS[:1])
    kept = [vector is not None for vector in cache.get("ada", KEYS)]
    assert kept[0]
    assert kept[-1]
    assert not any(kept[1:80])
    assert cache.bytes <= 10 * 1_300


def test_over_the_bound_of_all_the_owner_that_was_longest_away_is_forgotten() -> None:
    cache = VectorCache(bytes_max=25 * 1_300, owner_bytes_max=12 * 1_300)
    for owner in ("ada", "bob", "cyd"):
        cache.put(owner, KEYS[:10], [bytes(1_000)] * 10)
        cache.get("ada", KEYS[:1])
    assert cache.get("ada", KEYS[:1]) != [None]
    assert cache.get("bob", KEYS[:1]) == [None]
    assert cache.bytes <= 25 * 1_300


def test_forgetting_an_owner_gives_its_room_back() -> None:
    cache = VectorCache()
    cache.put("ada", KEYS[:10], [bytes(64)] * 10)
    cache.forget("ada")
    assert cache.bytes == 0
    assert cache.get("ada", KEYS[:1]) == [None]


def test_putting_again_takes_no_more_room() -> None:
    cache = VectorCache()
    cache.put("ada", KEYS[:5], [bytes(64)] * 5)
    before = cache.bytes
    cache.put("ada", KEYS[:5], [bytes(64)] * 5)
    assert cache.bytes == before


def test_packed_vectors_have_a_byte_for_each_dimension() -> None:
    assert [len(vector) for vector in packed(Hashed(32).embed(["a", "b"]))] == [32, 32]
