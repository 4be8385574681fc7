"""The URL of a database as people write it, and as it is kept."""

from __future__ import annotations

import re
from pathlib import Path

from zibaldone.errors import InvalidArgument

_BARE_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_SQLITE = "sqlite:///"


def database_url(given: str) -> str:
    """A path is one of an SQLite file and becomes absolute; $NAME is written ${NAME}."""
    url = _BARE_REFERENCE.sub(r"${\1}", given)
    if url.startswith(_SQLITE):
        path = url.removeprefix(_SQLITE)
        return url if path.startswith(("/", "$", "file:")) else _of_file(path)
    if "://" in url or url.startswith("${"):
        return url
    if ":" in url and not Path(url).exists():
        raise InvalidArgument(
            "Give a URL such as sqlite:///PATH, mysql://… or postgresql://…, or the path of an "
            "SQLite file.",
            field="url",
        )
    return _of_file(url)


def _of_file(path: str) -> str:
    return f"{_SQLITE}{Path(path).expanduser().absolute()}"
