"""Settings → the sources in the store."""

from __future__ import annotations

import logging

from zibaldone.pull.registry import Reconciled, read_definitions, reconcile
from zibaldone.settings import Settings
from zibaldone.store.port import Store

_log = logging.getLogger("zibaldone.sources")


async def reconcile_sources(settings: Settings, store: Store) -> Reconciled:
    """Bring the setting `sources` into the store, and say what changed.

    ConfigurationError names every problem of the setting; nothing has changed then.
    """
    outcome = await reconcile(store, read_definitions(settings.sources))
    for name in outcome.added:
        _log.info("source %s was added", name)
    for name in outcome.redefined:
        _log.info("source %s is defined anew", name)
    for name in outcome.to_cut:
        _log.warning(
            "source %s is to be chunked in another way; 'zibaldone sources chunking %s' with the "
            "same values chunks its documents again",
            name,
            name,
        )
    for name in outcome.disabled:
        _log.warning(
            "source %s is not in the settings any more: it is disabled, its documents are not "
            "found; 'zibaldone sources remove %s' deletes them",
            name,
            name,
        )
    return outcome
