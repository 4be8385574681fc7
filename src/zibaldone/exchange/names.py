"""Names of exported files: the document's id where every file system accepts it.

Other characters are written `%XX`. A name that would clash (a file with a folder, `Readme` with
`readme`) or be too long gets `~` and a short hash. `%` and `~` themselves are always written `%XX`,
so no two ids get the same name.
"""

from __future__ import annotations

import hashlib

from zibaldone.limits import EXPORT_NAME_BYTES_MAX, EXPORT_PATH_BYTES_MAX

_ESCAPED = frozenset('<>:"\\|?*%~')
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul"]
    + [f"{name}{number}" for name in ("com", "lpt") for number in range(1, 10)]
)
_LONG_FOLDER = "long~"


class FileNames:
    """Gives each id a name that no other has, not even where case does not count."""

    def __init__(self, *taken: str) -> None:
        # Hashes are enough: two that agree by chance cost a longer name, nothing else.
        self._files = {_hash(name) for name in taken}
        self._folders: set[int] = set()

    def name_for(self, document_id: str) -> str:
        *folders, last = (_segment(part) for part in document_id.split("/"))
        path = ""
        for folder in folders:
            path += folder
            if _hash(path) in self._files:
                path += "~"
            path += "/"
        name = path + last
        if _hash(name) in self._files or _hash(name) in self._folders:
            name = path + _distinct(last, document_id)
        if len(name.encode()) > EXPORT_PATH_BYTES_MAX:
            name = f"{_LONG_FOLDER}/{_digest(document_id, 16)}"
        self._files.add(_hash(name))
        position = name.find("/")
        while position >= 0:
            self._folders.add(_hash(name[:position]))
            position = name.find("/", position + 1)
        return name


def _segment(text: str) -> str:
    name = "".join(_escaped(char) if char in _ESCAPED else char for char in text)
    if text.startswith("."):
        name = _escaped(".") + name[1:]
    if name.endswith((".", " ")):
        name = name[:-1] + _escaped(name[-1])
    if name.partition(".")[0].lower() in _DEVICES:
        name = _escaped(name[0]) + name[1:]
    return name if len(name.encode()) <= EXPORT_NAME_BYTES_MAX else _distinct(name, text)


def _escaped(char: str) -> str:
    return f"%{ord(char):02X}"


def _distinct(name: str, identity: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > 10:
        stem, dot, suffix = name, "", ""
    kept = stem.encode()[: EXPORT_NAME_BYTES_MAX - 60].decode(errors="ignore")
    return f"{kept}~{_digest(identity, 4)}{dot}{suffix}"


def _digest(text: str, size_bytes: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size_bytes).hexdigest()


def _hash(name: str) -> int:
    return hash(name.casefold())
