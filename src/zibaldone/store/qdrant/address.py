"""Where Qdrant is: `qdrant://host:port/collection`, or one inside this process, for trying out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from zibaldone.errors import ConfigurationError

PORT = 6333
COLLECTION = "zibaldone"

_NAME = re.compile(r"[\w.-]{1,100}")


@dataclass(frozen=True, slots=True)
class Address:
    url: str = ""
    """Of a server; empty: it is inside this process."""
    folder: str = ""
    """Of one inside this process; empty: in memory."""
    collection: str = COLLECTION
    api_key: str = ""
    process: str = ""
    """Tells apart what processes have in memory."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """ConfigurationError where the URL is malformed; no message repeats any of it."""
        scheme, colon, rest = url.partition(":")
        if not colon or scheme not in ("qdrant", "qdrants") or not rest:
            raise _malformed()
        if rest == "//:memory:":
            return cls(process=uuid4().hex[:12])
        if not rest.startswith("//"):
            return cls(folder=str(Path(rest).expanduser()))
        return _of_server(url, "https" if scheme == "qdrants" else "http")

    @property
    def is_local(self) -> bool:
        return not self.url

    @property
    def is_in_memory(self) -> bool:
        return self.is_local and not self.folder

    @property
    def name(self) -> str:
        """The same for all processes that use it."""
        return self.url or self.folder or f"memory {self.process}"

    @property
    def description(self) -> str:
        if self.url:
            return f"Qdrant at {self.url}"
        return f"the local Qdrant in {self.folder or 'memory'}"


def _of_server(url: str, protocol: str) -> Address:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        raise _malformed() from None
    collection = parts.path.strip("/") or COLLECTION
    if not host or not _NAME.fullmatch(collection) or parts.query or parts.fragment:
        raise _malformed()
    shown = f"[{host}]" if ":" in host else host
    return Address(
        url=f"{protocol}://{shown}:{port}",
        collection=collection,
        api_key=unquote(parts.password or ""),
    )


def _malformed() -> ConfigurationError:
    return ConfigurationError(
        "vectors: the URL is not well formed: qdrant://host:port/collection, with an API key "
        "qdrant://:key@host, over TLS qdrants://…; to try it out without a server: "
        "qdrant:FOLDER or qdrant://:memory:"
    )
