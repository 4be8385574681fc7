"""Which files of a folder are left out: .gitignore, .zibaldoneignore and a few built-in patterns.

Both kinds of files may be in every folder, and the deepest one that says anything decides.
.zibaldoneignore wins over .gitignore. It holds for every file; .gitignore does not hold for a path
that the caller names. Reading these files is all that is done here with a file system.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from zibaldone.errors import InvalidArgument
from zibaldone.limits import (
    IGNORE_BYTES_MAX,
    IGNORE_LINE_CHARS_MAX,
    IGNORE_LINES_MAX,
)

GIT_FILE = ".gitignore"
OWN_FILE = ".zibaldoneignore"
FILES = frozenset({GIT_FILE, OWN_FILE})

NEVER = frozenset({".git", ".hg", ".svn", ".jj"})
"""Folders of version control: never read."""

READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
"""A link is not followed, a pipe not waited for."""

_STAR = "[^/]*"
_ANY_FOLDERS = re.compile(r"(\(\?:\.\+/\)\?|\(\?:/\.\+\)\?)")
"""How pathspec writes `*` and `**` as expressions."""
_CLASS = re.compile(r"\\.|\[\^/\]|(\[\^?\]?[^\]]*\])", re.DOTALL)
"""What it writes for `[a-z]` or `[!a]`, the group."""


class _Pattern(GitIgnoreSpecPattern):
    """A pattern whose expression goes back over a path once, not once for each of its wildcards.

    What stands between two wildcards is taken where it is found first: if the rest does not match
    behind that place, it does not match behind a later one.
    """

    __slots__ = ()

    @staticmethod
    def _translate_segment_glob(pattern: str, range_error: Literal["literal", "raise"]) -> str:
        plain = GitIgnoreSpecPattern._translate_segment_glob(pattern, range_error)  # noqa: SLF001
        # As for Git, no class has the slash.
        plain = _CLASS.sub(lambda one: f"(?!/){one[1]}" if one[1] else one[0], plain)
        first, *others = plain.split(_STAR)
        if not others:
            return first
        inner = "".join(f"(?>[^/]*?{part})" for part in others[:-1] if part)
        last = f"(?>[^/]*{others[-1]}(?![^/]))" if others[-1] else "[^/]*+"
        return first + inner + last

    @classmethod
    def pattern_to_regex(cls, pattern: Any) -> tuple[Any, bool | None]:
        regex, include = super().pattern_to_regex(pattern)
        if regex is None:
            return regex, include
        first, *others = _ANY_FOLDERS.split(regex)
        for place in range(0, len(others) - 2, 2):  # `**` and what follows, but for the last
            lazy = others[place].replace(".+", ".+?") + "?"
            others[place : place + 2] = "", f"(?>{lazy}{others[place + 1]}(?=/))"
        return "".join((first, *others)), include


_BUILT_IN = GitIgnoreSpec.from_lines(
    (
        *("__pycache__/", "*.pyc", "*.egg-info/", "node_modules/", ".venv/", ".tox/", ".DS_Store"),
        *(".mypy_cache/", ".pytest_cache/", ".ruff_cache/"),
    )
)
_REPOSITORY = ".git"


@dataclass(slots=True, eq=False)
class Rules:
    """What the ignore files of a folder and of those above it say."""

    folder: str
    """Absolute, with a slash at the end."""
    git: GitIgnoreSpec | None
    own: GitIgnoreSpec | None
    parent: Rules | None
    stamp: tuple[object, ...] = ()
    """Of the ignore files that were read."""
    problems: tuple[str, ...] = ()
    _named: Rules | None = field(default=None, repr=False)

    def reason(self, path: str, *, is_folder: bool) -> str:
        """The ignore file that leaves a path out, or nothing. Its folder must not be left out."""
        own = self.reason_of_own(path, is_folder=is_folder)
        if own is not None:
            return own
        rules: Rules | None = self
        while rules is not None:
            if rules.git is not None:
                decision = _check(rules.git, path[len(rules.folder) :], is_folder)
                if decision is not None:
                    return GIT_FILE if decision else ""
            rules = rules.parent
        return ""

    def reason_of_own(self, path: str, *, is_folder: bool) -> str | None:
        """The same by .zibaldoneignore alone; None if it says nothing."""
        rules: Rules | None = self
        while rules is not None:
            if rules.own is not None:
                decision = _check(rules.own, path[len(rules.folder) :], is_folder)
                if decision is not None:
                    return OWN_FILE if decision else ""
            rules = rules.parent
        return None

    def without_git(self) -> Rules:
        """The same without .gitignore, for what is below a folder that the caller named although
        .gitignore leaves it out."""
        if self._named is None:
            parent = None if self.parent is None else self.parent.without_git()
            self._named = Rules(self.folder, None, self.own, parent, self.stamp)
        return self._named


def root_rules(root: str) -> Rules:
    """The built-in patterns, which come before any file."""
    return Rules(root.rstrip("/") + "/", _BUILT_IN, None, None)


def named_rules(folder: str) -> Rules:
    """The rules for a folder that the caller names: those above it in its Git repository count too.

    If these would leave out the folder itself they do not count: the caller wants it.
    """
    above: list[str] = []
    place = folder
    while not os.path.lexists(os.path.join(place, _REPOSITORY)):
        parent = os.path.dirname(place)
        if parent == place:
            return root_rules(folder)
        above.append(place)
        place = parent
    rules = root_rules(place)
    for inner in reversed(above):
        rules = folder_rules(os.path.dirname(inner), rules)
        if rules.reason(inner, is_folder=True):
            return root_rules(folder)
    return rules


def patterns_of(given: Sequence[str], option: str) -> GitIgnoreSpec:
    """Patterns of a caller, written as in .gitignore."""
    problems: list[str] = []
    spec = _spec(list(given), problems)
    if problems:
        raise InvalidArgument(f"{option}: {problems[0]}", field=option)
    return spec or GitIgnoreSpec.from_lines(())


def folder_rules(folder: str, parent: Rules, stamp: tuple[object, ...] = ()) -> Rules:
    """The rules of a folder that has ignore files."""
    problems: list[str] = []
    git = _read(os.path.join(folder, GIT_FILE), problems)
    own = _read(os.path.join(folder, OWN_FILE), problems)
    return Rules(folder.rstrip("/") + "/", git, own, parent, stamp, tuple(problems))


def _check(spec: GitIgnoreSpec, relative: str, is_folder: bool) -> bool | None:
    return spec.check_file(relative + "/" if is_folder else relative).include


def _read(path: str, problems: list[str]) -> GitIgnoreSpec | None:
    try:
        descriptor = os.open(path, READ_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as problem:
        problems.append(f"cannot be read: {problem.strerror}")
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            data = file.read(IGNORE_BYTES_MAX + 1)
        except OSError as problem:
            problems.append(f"cannot be read: {problem.strerror}")
            return None
    lines = data[:IGNORE_BYTES_MAX].decode("utf-8", errors="replace").splitlines()
    if len(data) > IGNORE_BYTES_MAX or len(lines) > IGNORE_LINES_MAX:
        problems.append(f"only its first {IGNORE_LINES_MAX} lines are used")
    return _spec(lines[:IGNORE_LINES_MAX], problems)


def _spec(lines: list[str], problems: list[str]) -> GitIgnoreSpec | None:
    usable = []
    for line in lines:
        if len(line) > IGNORE_LINE_CHARS_MAX:
            problems.append(f"a line that is too long is not used: {line[:60]}")
            continue
        try:
            usable.append(_Pattern(line))
        except ValueError:
            problems.append(f"a line is no pattern: {line[:60]}")
    return GitIgnoreSpec(usable) if usable else None
