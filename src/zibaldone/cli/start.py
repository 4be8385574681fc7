"""What a person sees when the server has started: where it is, what it has, how to connect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

import zibaldone
from zibaldone.access.key import ApiKey
from zibaldone.access.loopback import is_loopback
from zibaldone.access.principal import Tenant
from zibaldone.model.instant import now_us
from zibaldone.model.usage import NamespaceUsage
from zibaldone.settings import Settings
from zibaldone.tools.spec import Runtime


@dataclass(frozen=True, slots=True)
class Start:
    settings: Settings
    store: str
    """Its description."""
    model: str | None
    usage: Sequence[NamespaceUsage]
    keys: Sequence[ApiKey]

    def lines(self, port: int) -> Iterator[tuple[str, str]]:
        """Labels and what they are of; `port` is the one that was given, if it was 0."""
        settings = self.settings
        url = settings.public_url.rstrip("/") or f"http://{_host(settings.host)}:{port}"
        yield "Address", f"{url}/mcp"
        yield ("Store", self.store) if settings.store else ("Data", str(settings.data))
        yield "Documents", _documents(self.usage)
        yield "Model", self.model or _no_model(settings)
        yield "Keys", _keys(settings, [key for key in self.keys if key.is_valid(now_us())])
        yield "Connect", f"claude mcp add --transport http zibaldone {url}/mcp"


async def look(settings: Settings, runtime: Runtime) -> Start:
    store = runtime.store
    return Start(
        settings=settings,
        store=store.description,
        model=None if runtime.embedder is None else runtime.embedder.name,
        usage=await store.upkeep(lambda work: work.usage.all(), write=False),
        keys=await store.read(Tenant(), lambda reader: reader.api_keys.all()),
    )


def echo_start(start: Start, port: int, *, has_color: bool) -> None:
    """On stderr, like the log."""

    def bold(text: str) -> str:
        return click.style(text, bold=True) if has_color else text

    # The log's handler knows whether there is colour; click would decide by itself.
    rows = [f"  {bold(f'{label:<9}')}  {text}" for label, text in start.lines(port)]
    shown = (bold(f"Zibaldone {zibaldone.__version__}"), "", *rows, "", "Press Ctrl-C to stop.", "")
    click.echo("\n".join(shown), err=True, color=has_color)


def _host(host: str) -> str:
    """As in a URL. A server on all addresses is shown by one that works on this machine."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - compared, not served on
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _no_model(settings: Settings) -> str:
    text = "none: found by keyword only, not by meaning"
    is_wanted = settings.embedder == "auto"
    return f"{text}; to install one: zibaldone model install" if is_wanted else text


def _documents(usage: Sequence[NamespaceUsage]) -> str:
    held = [each for each in usage if each.documents]
    if not held:
        return "none yet; to import a folder: zibaldone import DIR"
    count = f"{sum(each.documents for each in held):,}"
    return count if len(held) == 1 else f"{count} in {len(held)} namespaces"


def _keys(settings: Settings, valid: Sequence[ApiKey]) -> str:
    tokens = f"tokens of {settings.oauth_issuer}" if settings.oauth_issuer else ""
    if valid:
        keys = "1 key" if len(valid) == 1 else f"{len(valid):,} keys"
        return f"{keys}{f' and {tokens}' if tokens else ''}; every call needs one"
    if tokens:
        return f"{tokens}; every call needs one"
    if is_loopback(settings.host):
        return "none: whoever can reach this address from this machine may read and write"
    return "none"
