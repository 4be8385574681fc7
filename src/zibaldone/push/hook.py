"""The entry of a push in the settings of Claude Code. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from zibaldone.errors import InvalidArgument

EVENTS = ("SessionStart", "SessionEnd")


def with_hook(settings: Mapping[str, Any], command: str, *, seconds: int) -> dict[str, Any]:
    """The settings with the command run at the start and the end of a session.

    An entry of the same command is replaced; nothing else is touched.
    """
    changed = copy.deepcopy(dict(settings))
    hooks = changed.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise InvalidArgument("`hooks` in the settings is not an object.", field="hooks")
    entry = {"type": "command", "command": command, "timeout": seconds}
    for event in EVENTS:
        groups = hooks.setdefault(event, [])
        if not isinstance(groups, list):
            raise InvalidArgument(f"`hooks.{event}` in the settings is not a list.", field=event)
        groups[:] = [group for group in groups if not _is_only(group, command)]
        groups.append({"hooks": [dict(entry)]})
    return changed


def _is_only(group: object, command: str) -> bool:
    """Whether a group of hooks has this command and no other."""
    if not isinstance(group, dict) or "matcher" in group:
        return False
    match group.get("hooks"):
        case [{"command": known}]:
            return bool(known == command)
    return False
