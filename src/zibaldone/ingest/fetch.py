"""Read a file or a web page to ingest, only from where the operator allows it.

The caller is an agent that may have been talked into anything. A source is refused unless it is on
a list, and the check is made on what is really read, after symbolic links and redirects.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from zibaldone import __version__, extras
from zibaldone.errors import (
    ConfigurationError,
    DeadlineExceeded,
    Forbidden,
    InvalidArgument,
    NotFound,
    PayloadTooLarge,
)
from zibaldone.limits import ECHO_CHARS_MAX, FETCH_REDIRECTS_MAX, MIB, SOURCE_CHARS_MAX

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE)  # two letters: C:\ is a drive
_ALLOWED_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.IGNORECASE)
_STANDARD_PORTS = {"http": 80, "https": 443}

# Absent on Windows, which has neither FIFOs in folders nor links that plain users may make.
_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True)
class Fetched:
    data: bytes
    name: str
    """The file's name, or the last part of the URL's path."""

    mime: str | None
    """A server's Content-Type, parameters included; None for a file."""

    origin: str
    """The URL the bytes came from: after links and redirects."""


@dataclass(frozen=True, slots=True)
class Fetcher:
    roots: tuple[Path, ...]
    """Folders files may be read from; none: no files."""

    hosts: tuple[str, ...]
    """`host` (on any port) or `host:port`, from which URLs may be read; none: no URLs."""

    bytes_max: int
    seconds_max: float

    def __post_init__(self) -> None:
        for root in self.roots:
            if not root.is_absolute():
                raise ConfigurationError(f"ingest_roots: {root} is not an absolute path.")
        for host in self.hosts:
            if not _ALLOWED_HOST.fullmatch(host):
                raise ConfigurationError(
                    f"ingest_hosts: {host!r} is not a host or host:port (no scheme, no pattern)."
                )

    async def fetch(self, source: str) -> Fetched:
        """A path, a file: URL or an http(s) URL, read whole."""
        if len(source) > SOURCE_CHARS_MAX:
            raise InvalidArgument(
                f"The source has more than {SOURCE_CHARS_MAX} characters.", field="source"
            )
        if any(char < " " or "\ud800" <= char <= "\udfff" for char in source):
            raise InvalidArgument("The source has control characters.", field="source")
        match = _SCHEME.match(source)
        scheme = match[1].lower() if match else ""
        try:
            async with asyncio.timeout(self.seconds_max):
                if scheme in _STANDARD_PORTS:
                    return await self._fetch_url(source)
                if scheme in ("", "file"):
                    path = _path_of_file_url(source) if scheme else Path(source)
                    return await asyncio.to_thread(self._read_file, path)
        except TimeoutError:
            raise DeadlineExceeded(
                f"The source was not read within {self.seconds_max:g} seconds.",
                seconds_max=self.seconds_max,
            ) from None
        raise InvalidArgument(
            f"Sources of the scheme {scheme!r} are not read: give a path, file: or http(s): URL.",
            field="source",
        )

    def _read_file(self, path: Path) -> Fetched:
        if not self.roots:
            raise Forbidden(
                "Reading files is off: the operator allows folders with the setting ingest_roots.",
                setting="ingest_roots",
            )
        if not path.is_absolute():
            raise InvalidArgument("Give the file's absolute path.", field="source")
        real = PurePath(os.path.realpath(path))
        for root in self.roots:
            real_root = Path(os.path.realpath(root))
            if ".." not in path.parts and real.is_relative_to(real_root):
                with _file_errors(path.name):
                    data = self._read_below(real_root, real.relative_to(real_root).parts)
                return Fetched(data, name=real.name, mime=None, origin=Path(real).as_uri())
        # Nothing about the file, not even whether it is there.
        raise Forbidden(
            "The file is outside the folders that the setting ingest_roots allows.",
            setting="ingest_roots",
        )

    def _read_below(self, root: Path, parts: tuple[str, ...]) -> bytes:
        descriptor = _open_below(root, parts)
        try:
            status = os.fstat(descriptor)
            _refuse_irregular(status)
            self._refuse_larger(status.st_size)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(self.bytes_max + 1)  # it may be growing
            self._refuse_larger(len(data))
            return data
        finally:
            os.close(descriptor)

    async def _fetch_url(self, source: str) -> Fetched:
        if not self.hosts:
            raise Forbidden(
                "Reading URLs is off: the operator allows hosts with the setting ingest_hosts.",
                setting="ingest_hosts",
            )
        httpx = extras.require("ingest", "httpx2")
        headers = {"User-Agent": f"zibaldone/{__version__}", "Accept-Encoding": "gzip"}
        try:
            url = httpx.URL(source)
            self._refuse_url(url)
            async with httpx.AsyncClient(
                timeout=self.seconds_max, headers=headers, verify=await _certificates()
            ) as client:
                for _ in range(FETCH_REDIRECTS_MAX + 1):
                    self._refuse_url(url)
                    async with client.stream("GET", url, follow_redirects=False) as response:
                        if not response.has_redirect_location:
                            return await self._read_response(response)
                        url = url.join(response.headers["Location"])
        except httpx.TimeoutException:
            raise TimeoutError from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise InvalidArgument(
                f"The URL cannot be read ({type(error).__name__}): {error}", field="source"
            ) from error
        raise InvalidArgument(
            f"The URL redirects more than {FETCH_REDIRECTS_MAX} times.", field="source"
        )

    def _refuse_url(self, url: Any) -> None:
        """Asked of the URL as the client parsed it, so that no two parsers can disagree."""
        if url.scheme not in _STANDARD_PORTS:
            raise InvalidArgument(
                f"The URL redirects to the scheme {url.scheme!r}; only http and https are read.",
                field="source",
            )
        if url.userinfo:
            raise InvalidArgument("A URL with a user name or password is not read.", field="source")
        host = url.raw_host.decode("ascii").lower().rstrip(".")
        host = f"[{host}]" if ":" in host else host
        port = url.port or _STANDARD_PORTS[url.scheme]
        if not {host, f"{host}:{port}"} & {allowed.lower() for allowed in self.hosts}:
            raise Forbidden(
                f"The host {host}:{port} is not among those that the setting ingest_hosts allows.",
                setting="ingest_hosts",
                host=host,
                port=port,
            )

    async def _read_response(self, response: Any) -> Fetched:
        if not response.is_success:
            raise InvalidArgument(
                f"The server answered {response.status_code}.",
                field="source",
                status=response.status_code,
            )
        with suppress(KeyError, ValueError):
            self._refuse_larger(int(response.headers["Content-Length"]))
        packing = _packing(response.headers.get("Content-Encoding", ""))
        received = bytearray()
        async for piece in response.aiter_raw():
            self._refuse_larger(len(received) + len(piece))
            received += piece
        data = bytes(received)
        if packing is not None:
            data = await asyncio.to_thread(_unpacked, data, packing, self.bytes_max + 1)
            self._refuse_larger(len(data))
        url = response.url
        return Fetched(
            data=data,
            name=url.path.rpartition("/")[2] or url.host,
            mime=response.headers.get("Content-Type"),
            origin=str(url.copy_with(fragment=None)),
        )

    def _refuse_larger(self, size_bytes: int) -> None:
        if size_bytes > self.bytes_max:
            raise PayloadTooLarge(
                f"The source has more than {self.bytes_max / MIB:g} MiB.", bytes_max=self.bytes_max
            )


async def _certificates() -> Any:
    """Those of the system, read once and in a thread: it takes tens of milliseconds."""
    return await asyncio.to_thread(_read_certificates)


@cache
def _read_certificates() -> Any:
    return extras.require("ingest", "httpx2").create_ssl_context()


def _packing(encoding: str) -> int | None:
    """How an answer is packed, as zlib says it; None: not at all.

    The client's own unpacking would run on the event loop, takes layer upon layer, and keeps
    whatever follows the end of one: half a megabyte can take a minute.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip"):
        return zlib.MAX_WBITS | 16
    raise InvalidArgument(
        f"The answer is packed as {encoding[:ECHO_CHARS_MAX]!r}; only gzip is read.", field="source"
    )


def _unpacked(data: bytes, packing: int, bytes_max: int) -> bytes:
    unpacking = zlib.decompressobj(packing)
    try:
        unpacked = unpacking.decompress(data, bytes_max)
    except zlib.error as error:
        raise _damaged(str(error)) from None
    if not unpacking.eof and len(unpacked) < bytes_max:
        raise _damaged("it is cut short")
    return unpacked


def _damaged(why: str) -> InvalidArgument:
    return InvalidArgument(
        f"The URL cannot be read: its answer is damaged ({why}).", field="source"
    )


def _path_of_file_url(source: str) -> Path:
    url = urlsplit(source)
    if url.netloc not in ("", "localhost") or url.query or url.fragment:
        raise InvalidArgument(
            "A file: URL names a file of this machine, as file:///folder/name"
            " (with ? and # as %3F and %23).",
            field="source",
        )
    path = url2pathname(url.path)
    if "\0" in path:
        raise InvalidArgument("The source has control characters.", field="source")
    return Path(path)


def _open_below(root: Path, parts: tuple[str, ...]) -> int:
    """Open a file step by step from the root, so that a link put there meanwhile is not followed.

    `parts` is a resolved path: any link on the way was made after it was resolved.
    """
    if os.open not in os.supports_dir_fd or not parts:
        return os.open(root.joinpath(*parts), _OPEN_FLAGS)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _OPEN_FLAGS | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Looked at before it is opened, as opening a device can already act on it.
        _refuse_irregular(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False))
        return os.open(parts[-1], _OPEN_FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _refuse_irregular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InvalidArgument("The source is not a regular file.", field="source")


@contextmanager
def _file_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is no file {name!r} there.", field="source") from None
    except PermissionError:
        raise Forbidden(f"The server is not permitted to read {name!r}.") from None
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link where there was none when the path was resolved
            raise Forbidden(f"{name!r} was replaced while it was opened.") from None
        reason = errno.errorcode.get(error.errno or 0, "")
        raise InvalidArgument(
            f"{name!r} cannot be read ({reason}).", field="source", reason=reason
        ) from error
