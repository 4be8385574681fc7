"""Open the model that the setting `embedder` names."""

from __future__ import annotations

from dataclasses import dataclass

from zibaldone.embed.fast import Fast
from zibaldone.embed.hashed import Hashed
from zibaldone.embed.minilm import MiniLm
from zibaldone.embed.multilingual import Multilingual
from zibaldone.embed.port import Embedder
from zibaldone.embed.remote import Remote
from zibaldone.errors import ConfigurationError
from zibaldone.extras import missing

BUILT_IN: dict[str, type[MiniLm | Fast | Multilingual]] = {
    "minilm": MiniLm,
    "fast": Fast,
    "multilingual": Multilingual,
}
EMBEDDERS = ("auto", *BUILT_IN, "remote", "hashed", "none")


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    kind: str = "auto"
    url: str = ""
    model: str = ""
    dimensions: int = 0
    api_key: str = ""


def open_embedder(settings: EmbedderSettings) -> Embedder | None:
    """The model, not loaded or connected yet; None for keyword search only."""
    match settings.kind:
        case "auto":
            return None if missing(MiniLm.packages) else MiniLm()
        case kind if kind in BUILT_IN:
            return _built_in(kind)
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


def _built_in(kind: str) -> Embedder:
    model = BUILT_IN[kind]
    if absent := missing(model.packages):
        raise ConfigurationError(
            f"embedder is {kind}, but {', '.join(absent)} is not installed. "
            f"Set embedder to auto or none, or install it. {model.how_to_get}"
        )
    return model()
