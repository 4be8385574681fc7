"""Vectors of chunks that were embedded for an earlier call.

An index of files lives for one call; without this cache every call on the same files would embed
them again. A vector is found by its owner (the key of the caller), the identity of the model and
the hash of the text. So nobody can learn from an answer or its speed what files others have, and
what one owner stores never takes room from another's: each has its own bound, and when the sum
reaches the bound of all, the owner that has used the cache least recently loses everything.

Nothing of this is stored: the cache ends with the process, and holds no text.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from zibaldone.limits import VECTOR_CACHE_BYTES_MAX, VECTOR_CACHE_OWNER_BYTES_MAX
from zibaldone.model.vector import Vectors, np

_KEY_BYTES = 16
_ENTRY_BYTES = 260
"""What an entry takes beside its vector: two objects and a place in an ordered table."""

_SCALE = 127.0


def vector_keys(identity: str, texts: Iterable[str]) -> list[bytes]:
    """What the vectors of texts are stored under: a hash of the model's identity and the text."""
    begun = hashlib.blake2b(identity.encode(), digest_size=_KEY_BYTES)
    begun.update(b"\0")
    keys = []
    for text in texts:
        hashed = begun.copy()
        hashed.update(text.encode(errors="surrogatepass"))
        keys.append(hashed.digest())
    return keys


def packed(vectors: Vectors) -> list[bytes]:
    """Unit vectors as int8, which ranks the same (docs/explain/finding.md) in a quarter of it."""
    rows = np.rint(np.clip(vectors, -1.0, 1.0) * _SCALE).astype(np.int8)
    return [row.tobytes() for row in rows]


class VectorCache:
    """Safe for threads."""

    def __init__(
        self,
        bytes_max: int = VECTOR_CACHE_BYTES_MAX,
        owner_bytes_max: int = VECTOR_CACHE_OWNER_BYTES_MAX,
    ) -> None:
        self._bytes_max = bytes_max
        self._owner_bytes_max = owner_bytes_max
        self._lock = threading.Lock()
        self._owners: OrderedDict[str, _Owned] = OrderedDict()
        self._bytes = 0

    def get(self, owner: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The vector of each text, as int8; None for those that are not there."""
        with self._lock:
            owned = self._owners.get(owner)
            if owned is None:
                return [None] * len(keys)
            self._owners.move_to_end(owner)
            return [owned.get(key) for key in keys]

    def put(self, owner: str, keys: Sequence[bytes], vectors: Sequence[bytes]) -> None:
        with self._lock:
            owned = self._owners.setdefault(owner, _Owned())
            self._owners.move_to_end(owner)
            before = owned.bytes
            for key, vector in zip(keys, vectors, strict=True):
                owned.put(key, vector)
            owned.shrink(min(self._owner_bytes_max, self._bytes_max))
            self._bytes += owned.bytes - before
            while self._bytes > self._bytes_max:
                self._bytes -= self._owners.popitem(last=False)[1].bytes

    def forget(self, owner: str) -> None:
        with self._lock:
            if owned := self._owners.pop(owner, None):
                self._bytes -= owned.bytes

    @property
    def bytes(self) -> int:
        return self._bytes


class _Owned:
    """The vectors of one owner, the least recently used first."""

    def __init__(self) -> None:
        self._vectors: OrderedDict[bytes, bytes] = OrderedDict()
        self.bytes = 0

    def get(self, key: bytes) -> bytes | None:
        vector = self._vectors.get(key)
        if vector is not None:
            self._vectors.move_to_end(key)
        return vector

    def put(self, key: bytes, vector: bytes) -> None:
        if (before := self._vectors.pop(key, None)) is not None:
            self.bytes -= len(before) + _ENTRY_BYTES
        self._vectors[key] = vector
        self.bytes += len(vector) + _ENTRY_BYTES

    def shrink(self, bytes_max: int) -> None:
        while self.bytes > bytes_max:
            self.bytes -= len(self._vectors.popitem(last=False)[1]) + _ENTRY_BYTES
