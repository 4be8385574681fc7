"""The thread that folds is there for the next write, whatever happened at the last one."""

from __future__ import annotations

import threading
from typing import Any, cast

from zibaldone.store.postgres.fold import Folding, RunWrite


def test_an_unexpected_error_does_not_end_it() -> None:
    failed, again = threading.Event(), threading.Event()

    def write(_: Any) -> Any:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("no error of ours")
        again.set()
        return False

    folding = Folding(cast("RunWrite", write))
    try:
        folding.note_write()
        assert failed.wait(30)
        folding.note_write()
        assert again.wait(30)
    finally:
        folding.close()
