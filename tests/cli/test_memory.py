"""`zibaldone memory audit`, in a process of its own."""

from __future__ import annotations

from pathlib import Path

from tests.drivers.engines import backend_of
from tests.drivers.server import parsed, run_cli
from tests.store.kept import Kept
from zibaldone.limits import Limits

LONG = "The outbox is drained by one worker, which leases ten rows at a time and never blocks. "
SECRET = "ghp_" + "a1B2c3D4" * 5


def filled(data: Path) -> None:
    store = backend_of(data).open(Limits())
    try:
        kept = Kept(store, Limits())
        kept.create("memory/g/1", "Ada lives in Oslo.", metadata={"reference_time": "2020-01-01"})
        kept.create("memory/g/2", "Ada lives in Rome.", metadata={"reference_time": "2021-01-01"})
        kept.create("memory/g/3", "The very same text.")
        kept.create("memory/g/4", "The  very same\ntext.")
        kept.create("memory/other/4", "The very same text.")
        kept.create("memory/g/5", LONG * 3 + "The end of it all came soon.")
        kept.create("memory/g/6", LONG * 3 + "The end of it all came late.")
        kept.create("memory/g/7", f"Deploy with the token {SECRET} from home.")
        kept.create("memory/g/8", "")
    finally:
        store.close()


def test_the_report_has_numbers_and_names_what_it_found(data: Path) -> None:
    filled(data)
    answer = parsed(run_cli("memory", "audit", "--json", data=data))
    assert answer["counts"] == {
        "duplicates": 1,
        "near_duplicates": 1,
        "contradicted": 1,
        "stale": 1,
        "secrets": 1,
        "never_recalled": 1,
    }
    assert answer["groups"] == {"g": 8, "other": 1}
    assert [sorted(same) for same in answer["duplicates"]] == [["memory/g/3", "memory/g/4"]]
    (near,) = answer["near_duplicates"]
    assert {near["one"], near["two"]} == {"memory/g/5", "memory/g/6"}
    (ended,) = answer["contradicted"]
    assert (ended["document_id"], ended["replaced_in"]) == ("memory/g/1", "memory/g/2")
    assert [fact["document_id"] for fact in answer["stale"]] == ["memory/g/2"]
    assert answer["secrets"] == [{"document_id": "memory/g/7", "kinds": ["GitHub token"]}]
    assert answer["never_recalled"] == ["memory/g/8"]
    shown = run_cli("memory", "audit", "--group", "g", data=data)
    assert "8 episodes in 1 group\n" in shown.stdout
    assert SECRET not in shown.stdout
    assert "memory/g/1: Ada lives in Oslo. -> Ada lives in Rome." in shown.stdout
