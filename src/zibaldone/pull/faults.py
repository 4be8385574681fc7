"""What errors of a source's database mean to us. No message holds a password or a statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zibaldone import extras
from zibaldone.errors import InvalidArgument, SourceUnavailable, ZibaldoneError

_CHARS_MAX = 300

_REFUSED = {1044, 1045, 1130, 1142, 1143, 1227, 1370, 1698}
"""MySQL's and MariaDB's numbers for what a user may not do; so below."""
_MISSING = {1046, 1049, 1051, 1054, 1109, 1146}
_TIMED_OUT = {1969, 3024, 1317}


class Undecodable(Exception):
    """A text of an SQLite file that is no UTF-8."""


@contextmanager
def translated(name: str, secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """Errors of SQLAlchemy and of drivers become ours; `name` is the source's."""
    exc = extras.require("pull", "sqlalchemy.exc")
    try:
        yield
    except exc.DBAPIError as problem:
        raise of_driver(problem.orig or problem, name, secrets) from None
    except exc.NoSuchModuleError as problem:
        raise InvalidArgument(
            f"The source {name!r}: no driver is installed for this kind of database ({problem}).",
            field="url",
        ) from None
    except ModuleNotFoundError as problem:
        raise InvalidArgument(
            f"The source {name!r}: the driver {problem.name} of this kind of database is not "
            "installed.",
            field="url",
        ) from None
    except exc.ArgumentError:
        raise InvalidArgument(
            f"The source {name!r}: the URL cannot be read. It looks like "
            "postgresql://user:${PASSWORD}@host/database, mysql://… or sqlite:///folder/file.db.",
            field="url",
        ) from None
    except exc.SQLAlchemyError as problem:
        raise of_driver(problem, name, secrets) from None
    except (OSError, ValueError) as problem:
        raise of_driver(problem, name, secrets) from None
    except Exception as problem:  # raw cursors raise their driver's own classes
        if isinstance(problem, ZibaldoneError | Undecodable) or not _is_driver_error(problem):
            raise
        raise of_driver(problem, name, secrets) from None


_OF_FILES = {
    "unable to open database file": "there is no such file, or it cannot be read.",
    "file is not a database": "the file is not an SQLite database.",
}
"""What SQLite says, and what that means to somebody who mistyped a path."""


def _is_driver_error(problem: BaseException) -> bool:
    return any(kind.__name__ == "Error" for kind in type(problem).__mro__)


def of_driver(problem: BaseException, name: str, secrets: tuple[str, ...] = ()) -> ZibaldoneError:
    text = _text(problem, secrets)
    if "Could not decode to UTF-8" in text:
        raise Undecodable from None
    kind = _kind(problem, text)
    where = f"The source {name!r}"
    for said, meant in _OF_FILES.items():
        if said in text:
            return SourceUnavailable(f"{where}: {meant}", source=name, reason="file")
    if kind == "refused":
        return SourceUnavailable(
            f"{where}: the database refused the user or the password, or the user may not read "
            f"this: {text}",
            source=name,
            reason=kind,
        )
    if kind == "missing":
        return InvalidArgument(
            f"{where} does not fit its definition any more: {text}", source=name, reason=kind
        )
    if kind == "timeout":
        return SourceUnavailable(
            f"{where}: the database took too long and the statement was stopped. Raise "
            f"seconds_max, or give it an index. ({text})",
            source=name,
            reason=kind,
        )
    return SourceUnavailable(
        f"{where}: the database cannot be reached or ended the connection: {text}",
        source=name,
        reason=kind,
    )


def _kind(problem: BaseException, text: str) -> str:
    state = str(getattr(problem, "sqlstate", "") or "")
    number = problem.args[0] if problem.args and isinstance(problem.args[0], int) else 0
    lowered = text.lower()
    if state.startswith("28") or state == "42501" or number in _REFUSED:
        return "refused"
    if "password authentication failed" in lowered or "access denied" in lowered:
        return "refused"
    if state in ("57014", "55P03") or number in _TIMED_OUT or "interrupted" in lowered:
        return "timeout"
    if "timed out" in lowered or isinstance(problem, TimeoutError):
        return "timeout"
    if state.startswith(("42", "3D", "3F", "22", "0A")) or number in _MISSING:
        return "missing"
    if "no such table" in lowered or "no such column" in lowered or "syntax error" in lowered:
        return "missing"
    if number == 1064 or "unable to open database" in lowered or "not a database" in lowered:
        return "missing" if number == 1064 else "unavailable"
    return "unavailable"


def _text(problem: BaseException, secrets: tuple[str, ...]) -> str:
    """The first line of what the driver said."""
    args: tuple[Any, ...] = problem.args
    said = args[1] if len(args) > 1 and isinstance(args[0], int) else str(problem)
    line = " ".join(str(said).split("\n[SQL")[0].split())
    for secret in secrets:
        if secret:
            line = line.replace(secret, "***")
    return line[:_CHARS_MAX] or type(problem).__name__
