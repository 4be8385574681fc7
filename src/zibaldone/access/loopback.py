"""Decides whether a host name or address means this machine."""

from __future__ import annotations

import functools
import ipaddress

_NAME_CHARS_MAX = 255
"""Of a host name or an address with a zone. What is longer is not remembered: it may be as long as
the headers of a request."""


def is_loopback(host: str) -> bool:
    """Whether a host name or an IP address, without a port, means this machine.

    `localhost`, 127.0.0.0/8 and ::1, also with brackets, a final dot or mapped to IPv6. A name that
    only resolves to such an address is not loopback: whoever owns the name can change that.
    """
    return len(host) <= _NAME_CHARS_MAX and _is_loopback(host)


@functools.lru_cache(maxsize=1_024)  # asked for every request, mostly about the same few names
def _is_loopback(host: str) -> bool:
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def without_port(authority: str) -> str:
    """The host of `host`, `host:port`, `[address]` or `[address]:port`; brackets stay."""
    host, colon, port = authority.rpartition(":")
    is_one_host = ":" not in host or host.endswith("]")
    return host if colon and is_one_host and port.isascii() and port.isdigit() else authority
