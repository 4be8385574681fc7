"""The newest lines of the audit trail, however much others write."""

from __future__ import annotations

import pytest

from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.store.port import AuditEntry, Writer
from zibaldone.store.sqlite import journal

HOME, AWAY = Tenant("home"), Tenant("away")


def line(number: int, folder: str = "a") -> AuditEntry:
    return AuditEntry(number, "key", "create", f"{folder}/{number}", "ok", 1, "request")


def add(kept: Kept, tenant: Tenant, *lines: AuditEntry) -> None:
    def work(writer: Writer) -> None:
        for each in lines:
            writer.audit.add(each)

    kept.write(work, tenant)


@pytest.mark.parametrize("looked_at", [2, 10_000])
def test_lines_are_found_behind_those_of_others(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    monkeypatch.setattr(journal, "_LOOKED_AT", looked_at)
    own = [line(number, "ab"[number % 2]) for number in range(6)]
    add(kept, HOME, *own)
    add(kept, AWAY, *(line(number) for number in range(9)))

    def newest(tenant: Tenant, limit: int) -> list[int]:
        entries = kept.read(lambda reader: reader.audit.page(None, limit=limit), tenant)
        return [entry.at_us for entry in entries]

    assert newest(HOME, 3) == [5, 4, 3]
    assert newest(HOME, 9) == [5, 4, 3, 2, 1, 0]
    assert newest(Tenant("home", "b/"), 2) == [5, 3]
    assert newest(AWAY, 2) == [8, 7]
    assert newest(Tenant("nobody"), 2) == []
