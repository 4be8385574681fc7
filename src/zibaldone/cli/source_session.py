"""The opened store for commands about sources: with those that the settings define."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zibaldone.cli import context

if TYPE_CHECKING:
    from zibaldone.cli.session import Session


@contextmanager
def opened(options: context.Options) -> Iterator[Session]:
    """Bring the sources of the settings into the store first, as a server does when it starts."""
    from zibaldone.cli.session import open_session
    from zibaldone.wiring.sources import reconcile_sources

    settings = options.settings()
    with open_session(settings) as session:
        session.run(reconcile_sources(settings, session.runtime.store))
        yield session
