"""Settings → the catalogue of tools and profiles."""

from __future__ import annotations

from collections.abc import Iterable

from zibaldone.model.assistant import read_assistants
from zibaldone.settings import Settings
from zibaldone.tools import built_in, profiles
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.consult.catalogue import consult_tools
from zibaldone.tools.spec import AnyTool


def build_catalogue(settings: Settings, more_tools: Iterable[AnyTool] = ()) -> Catalogue:
    """The built-in tools, those of assistants and `more_tools`, with all profiles."""
    consult = consult_tools(read_assistants(settings.assistants))
    tools = (*built_in.TOOLS, *consult, *more_tools)
    known = profiles.built_in(tools, [tool.name for tool in consult])
    return Catalogue(tools, (*known, *profiles.configured(settings.profiles, known)))
