"""The difference between two bodies, as a unified diff."""

from __future__ import annotations

import difflib

from zibaldone.errors import LimitExceeded
from zibaldone.limits import DIFF_LINES_MAX


def unified_diff(before: str, after: str, before_name: str, after_name: str) -> str:
    before_lines, after_lines = before.splitlines(), after.splitlines()
    longest = max(len(before_lines), len(after_lines))
    if longest > DIFF_LINES_MAX:
        raise LimitExceeded(
            f"A side has {longest} lines; differences are shown up to {DIFF_LINES_MAX}. "
            "Read both revisions instead.",
            lines_max=DIFF_LINES_MAX,
        )
    return "\n".join(
        difflib.unified_diff(before_lines, after_lines, before_name, after_name, lineterm="")
    )
