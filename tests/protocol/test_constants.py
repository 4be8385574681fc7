"""Our constants and the table of versions are those of the protocol's own package."""

from __future__ import annotations

import mcp_types
import mcp_types.version as registry

from zibaldone.protocol import constants, versions


def test_the_constants_are_those_of_the_registry() -> None:
    ours = {name: value for name, value in vars(constants).items() if name.isupper()}
    assert len(ours) == 11
    assert ours == {name: getattr(mcp_types, name) for name in ours}


def test_the_versions_are_those_of_the_registry() -> None:
    by_era = {
        era: tuple(version.name for version in versions.VERSIONS.values() if version.era == era)
        for era in ("legacy", "modern")
    }
    assert by_era == {
        "legacy": registry.HANDSHAKE_PROTOCOL_VERSIONS,
        "modern": registry.MODERN_PROTOCOL_VERSIONS,
    }
    assert versions.NEWEST_LEGACY.name == registry.LATEST_HANDSHAKE_VERSION
    assert versions.NEWEST_MODERN.name == registry.LATEST_MODERN_VERSION
