"""API keys."""

from __future__ import annotations

import apsw
import orjson

from zibaldone.access.key import ApiKey
from zibaldone.store import rows, statements

_SQL = statements.load("zibaldone.store.sqlite", "api_keys.sql")


class ApiKeys:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def add(self, key: ApiKey) -> None:
        self._raw.execute(
            _SQL["add"],
            {
                "key_id": key.key_id,
                "secret_hash": key.secret_hash,
                "label": key.label,
                "namespace": key.namespace,
                "path_prefix": key.path_prefix,
                "effects": rows.dumps(key.effects),
                "profiles": None if key.profiles is None else rows.dumps(key.profiles),
                "created_at_us": key.created_at_us,
                "expires_at_us": key.expires_at_us,
            },
        )

    def all(self) -> list[ApiKey]:
        return [
            ApiKey(
                key_id=row[0],
                secret_hash=row[1],
                label=row[2],
                namespace=row[3],
                path_prefix=row[4],
                effects=tuple(orjson.loads(row[5])),
                profiles=None if row[6] is None else tuple(orjson.loads(row[6])),
                created_at_us=row[7],
                expires_at_us=row[8],
                revoked_at_us=row[9],
            )
            for row in self._raw.execute(_SQL["all"])
        ]

    def revoke(self, key_id: str, at_us: int) -> bool:
        revoked = self._raw.execute(_SQL["revoke"], {"key_id": key_id, "revoked_at_us": at_us})
        return revoked.fetchone() is not None

    def delete(self, key_id: str) -> bool:
        return self._raw.execute(_SQL["delete"], {"key_id": key_id}).fetchone() is not None
