"""Settings → the catalogue of tools and profiles."""

from __future__ import annotations

from collections.abc import Iterable

from zibaldone.settings import Settings
from zibaldone.tools import built_in, profiles
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.spec import AnyTool


def build_catalogue(settings: Settings, more_tools: Iterable[AnyTool] = ()) -> Catalogue:
    """The built-in tools and `more_tools`, with the built-in and the configured profiles."""
    tools = (*built_in.TOOLS, *more_tools)
    known = profiles.built_in(tools)
    return Catalogue(tools, (*known, *profiles.configured(settings.profiles, known)))
