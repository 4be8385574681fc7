"""Open the model that the setting `embedder` names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zibaldone.embed.fast import Fast
from zibaldone.embed.hashed import Hashed
from zibaldone.embed.installed import use_installed
from zibaldone.embed.minilm import MiniLm
from zibaldone.embed.multilingual import Multilingual
from zibaldone.embed.package import install_command
from zibaldone.embed.port import Embedder
from zibaldone.embed.remote import Remote
from zibaldone.errors import ConfigurationError
from zibaldone.extras import missing

BUILT_IN: dict[str, type[MiniLm | Fast | Multilingual]] = {
    "minilm": MiniLm,
    "fast": Fast,
    "multilingual": Multilingual,
}
AUTO = ("minilm", "multilingual", "fast")
"""What `auto` takes: the first that is there. The order is that of their quality in English."""
EMBEDDERS = ("auto", *BUILT_IN, "remote", "hashed", "none")


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    kind: str = "auto"
    url: str = ""
    model: str = ""
    dimensions: int = 0
    api_key: str = ""
    models: Path | None = None
    """Folder of the models that `zibaldone model install` has installed."""


def open_embedder(settings: EmbedderSettings) -> Embedder | None:
    """The model, not loaded or connected yet; None for keyword search only."""
    match settings.kind:
        case "auto":
            return _best(settings.models)
        case kind if kind in BUILT_IN:
            return _built_in(kind, settings.models)
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


def _best(models: Path | None) -> Embedder | None:
    for kind in AUTO:
        if not _missing(kind, models):
            return BUILT_IN[kind]()
    return None


def _built_in(kind: str, models: Path | None) -> Embedder:
    if absent := _missing(kind, models):
        raise ConfigurationError(
            f"embedder is {kind}, but {', '.join(absent)} is not installed. Set embedder to auto "
            f"or none, or install it: {install_command(kind)}"
        )
    return BUILT_IN[kind]()


def _missing(kind: str, models: Path | None) -> list[str]:
    """What a model lacks in this environment and among the installed models."""
    packages = BUILT_IN[kind].packages
    absent = missing(packages)
    if absent and models is not None and use_installed(kind, models):
        return missing(packages)
    return absent
