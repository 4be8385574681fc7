"""The opened store for commands about sources: with those that the settings define."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zibaldone.cli import context

if TYPE_CHECKING:
    from zibaldone.cli.session import Session
    from zibaldone.settings import Settings


@contextmanager
def opened(
    options: context.Options, if_missing: context.IfMissing | None = None
) -> Iterator[Session]:
    """Bring the sources of the settings into the store first, as a server does when it starts.

    Without a store, those sources can still be looked at.
    """
    from zibaldone.cli.session import open_session
    from zibaldone.wiring.sources import reconcile_sources

    settings = options.settings()
    with open_session(settings, if_missing or _if_missing(settings)) as session:
        session.run(reconcile_sources(settings, session.runtime.store))
        yield session


def _if_missing(settings: Settings) -> context.IfMissing:
    return "empty" if settings.sources else "refuse"
