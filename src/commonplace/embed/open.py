"""The setting `embedder` → the model that is used."""

from __future__ import annotations

from dataclasses import dataclass

from commonplace.embed import builtin
from commonplace.embed.hashed import Hashed
from commonplace.embed.port import Embedder
from commonplace.embed.remote import Remote
from commonplace.errors import ConfigurationError

EMBEDDERS = ("auto", "minilm", "remote", "hashed", "none")


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    kind: str = "auto"
    url: str = ""
    model: str = ""
    dimensions: int = 0
    api_key: str = ""


def open_embedder(settings: EmbedderSettings) -> Embedder | None:
    """None: keyword search only. Nothing is loaded or connected to yet."""
    match settings.kind:
        case "auto":
            return builtin.MiniLm() if builtin.is_available() else None
        case "minilm":
            if not builtin.is_available():
                raise ConfigurationError(
                    "embedder = minilm, but its packages are not installed. From a checkout run "
                    "'make setup'; or set embedder to auto, remote or none."
                )
            return builtin.MiniLm()
        case "remote":
            return Remote(
                settings.url,
                settings.model,
                dimensions=settings.dimensions,
                api_key=settings.api_key,
            )
        case "hashed":
            return Hashed()
        case _:
            return None
