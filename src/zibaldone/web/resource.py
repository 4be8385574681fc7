"""What OAuth clients need to know about this server: metadata (RFC 9728) and challenges.

The server is one resource (`public_url`) and each profile another one below it, so that a client
can request a token for the whole server or for one profile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from zibaldone.access.decide import scope_of
from zibaldone.access.principal import EFFECTS
from zibaldone.errors import ConfigurationError
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.profiles import Profile
from zibaldone.web.http import Endpoint, HttpScope, Receive, Send, refuse_method, send_json

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    public_url: str
    issuer: str
    catalogue: Catalogue

    def __post_init__(self) -> None:
        url = urlsplit(self.public_url)
        is_valid = url.scheme in ("http", "https") and url.hostname and self.public_url.isascii()
        if not is_valid or url.query or url.fragment or "@" in url.netloc or '"' in url.path:
            raise ConfigurationError(
                f"public_url must be the URL clients use, such as https://kb.example.org, not "
                f"{self.public_url!r}; oauth_issuer requires it."
            )
        object.__setattr__(self, "public_url", self.public_url.rstrip("/"))

    def url(self, profile: Profile | None) -> str:
        return self.public_url + (profile.path if profile else "")

    def metadata_url(self, profile: Profile | None) -> str:
        """The well-known part is between host and path (RFC 9728, section 3.1)."""
        url = urlsplit(self.url(profile))
        return f"{url.scheme}://{url.netloc}{WELL_KNOWN}{url.path}"

    def audiences(self, profile: Profile | None) -> tuple[str, ...]:
        """Accepted audiences of a token for the profile, or for everything outside the profiles."""
        urls = {self.public_url, self.url(profile)}
        # Some clients add a slash to a URL without a path.
        return tuple(form for url in urls for form in (url, url + "/"))

    def scopes(self, profile: Profile | None) -> tuple[str, ...]:
        """The scopes that the profile's tools need, and reading, which its resources need."""
        catalogue = self.catalogue
        tools = catalogue.of_profile(profile) if profile else catalogue.offered
        # Clients do not request `admin` by themselves; an issuer can grant it.
        needed = {"read", *(tool.effect for tool in tools)} - {"admin"}
        return tuple(scope_of(effect) for effect in EFFECTS if effect in needed)

    def metadata(self, profile: Profile | None) -> dict[str, Any]:
        return {
            "resource": self.url(profile),
            "authorization_servers": [self.issuer],
            "scopes_supported": list(self.scopes(profile)),
            "bearer_methods_supported": ["header"],
            "resource_name": f"Zibaldone ({profile.name})" if profile else "Zibaldone",
        }

    def challenge(
        self,
        profile: Profile | None,
        *,
        error: str = "",
        description: str = "",
        scopes: tuple[str, ...] = (),
    ) -> str:
        """The value of WWW-Authenticate; without `error` for a caller that sent no token."""
        parameters = {
            "error": error,
            "error_description": description.replace('"', "'"),
            "scope": " ".join(scopes or self.scopes(profile)),
            "resource_metadata": self.metadata_url(profile),
        }
        return "Bearer " + ", ".join(
            f'{name}="{text}"' for name, text in parameters.items() if text
        )

    def routes(self) -> dict[str, Endpoint]:
        """Every path where a client may look for metadata; open to everyone."""
        return {
            path: _document(self.metadata(profile))
            for profile in (None, *self.catalogue.profiles)
            for path in self._paths(profile)
        }

    def _paths(self, profile: Profile | None) -> Iterator[str]:
        # If public_url has a path, a proxy may forward it or strip it.
        for start in {"", urlsplit(self.public_url).path}:
            path = WELL_KNOWN + start + (profile.path if profile else "")
            yield path
            yield path + "/"


def _document(metadata: dict[str, Any]) -> Endpoint:
    async def serve(scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        if scope["method"] in ("GET", "HEAD"):
            await send_json(scope, send, 200, metadata)
        else:
            await refuse_method(scope, send, "GET")

    return serve
