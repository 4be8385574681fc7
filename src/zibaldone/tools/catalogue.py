"""The tools and profiles of one installation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from zibaldone.errors import ConfigurationError
from zibaldone.tools.profiles import Profile
from zibaldone.tools.spec import AnyTool


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Built by `wiring` from the configuration; every surface reads from it what it offers."""

    tools: tuple[AnyTool, ...]
    profiles: tuple[Profile, ...] = ()
    by_name: Mapping[str, AnyTool] = field(init=False)

    def __post_init__(self) -> None:
        spellings: set[str] = set()
        for tool in self.tools:
            if underscored(tool.name) in spellings:
                raise ConfigurationError(f"Two tools are named {tool.name!r}.")
            spellings.add(underscored(tool.name))
        object.__setattr__(self, "by_name", {tool.name: tool for tool in self.tools})
        for profile in self.profiles:
            for name in profile.tools:
                self._require_offered(profile.name, name)

    @property
    def offered(self) -> tuple[AnyTool, ...]:
        """All tools but those for the operator's own process."""
        return tuple(tool for tool in self.tools if not tool.is_local)

    def of_profile(self, profile: Profile) -> tuple[AnyTool, ...]:
        return tuple(self.by_name[name] for name in profile.tools)

    def tools_of(self, profiles: Iterable[str]) -> frozenset[str]:
        """Names of the tools in any of these profiles; one that is not there has none."""
        wanted = set(profiles)
        return frozenset(
            name for profile in self.profiles if profile.name in wanted for name in profile.tools
        )

    def find(self, name: str) -> AnyTool | None:
        """A tool by its name, also written with underscores as /mcp-all lists it."""
        known = self.by_name.get(name)
        if known is not None:
            return known
        return next((tool for tool in self.tools if underscored(tool.name) == name), None)

    def profile(self, name: str) -> Profile:
        for known in self.profiles:
            if known.name == name:
                return known
        names = ", ".join(known.name for known in self.profiles)
        raise ConfigurationError(f"There is no profile {name!r}; there are {names}.")

    def _require_offered(self, profile: str, name: str) -> None:
        offered = [tool.name for tool in self.offered]
        if name not in offered:
            raise ConfigurationError(
                f"profiles.{profile}: unknown tool {name!r}; there are {', '.join(offered)}."
            )


def underscored(name: str) -> str:
    """Every tool answers to both spellings: big hosts refuse a dot in a name."""
    return name.replace(".", "_")
