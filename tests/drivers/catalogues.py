"""The catalogue of a default installation, and catalogues with tools of a test's own."""

from __future__ import annotations

from typing import Any

from zibaldone import settings
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.spec import AnyTool
from zibaldone.wiring.catalogue import build_catalogue


def catalogue(*tools: AnyTool, **flags: Any) -> Catalogue:
    """With these tools beside the built-in ones; `flags` are settings, such as `profiles`."""
    return build_catalogue(settings.load(flags, environment={}), tools)


CATALOGUE = catalogue()
BY_NAME = CATALOGUE.by_name
OFFERED = {tool.name: tool for tool in CATALOGUE.offered}
MAIN = CATALOGUE.profile("mcp")
