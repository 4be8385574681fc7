"""wordllama's table, with its real weights: near in words of a kind, and its package stays shut."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.drivers.server import clean_environment
from tests.embed.built_in import needs
from zibaldone.embed.fast import Fast

NEAR = (
    ("How do I reset my password?", "Steps to recover a forgotten login"),
    ("cats and dogs at the vet", "our kitten and the puppy are ill"),
    ("giraffes eat leaves of acacia trees", "what do tall African animals feed on"),
)
FAR = ("Quarterly revenue grew by eight percent", "A recipe for sourdough bread with rye flour")

_USED = """
import logging, sys
from zibaldone.embed.fast import Fast
Fast().embed(["some text"])
print([name for name in sys.modules if name.split(".")[0] in ("wordllama", "requests", "toml")])
print(logging.getLogger().handlers)
"""


@needs("fast")
def test_what_is_meant_alike_is_near() -> None:
    model = Fast()
    for one, other in NEAR:
        vectors = model.embed([one, other, *FAR])
        cosines = vectors[1:] @ vectors[0]
        assert cosines[0] > model.similarity_min
        assert cosines[0] > max(cosines[1:])


@needs("fast")
def test_the_order_of_words_does_not_matter_but_nothing_to_read_is_far_from_everything() -> None:
    one, other, empty = Fast().embed([" lion zebra", " zebra lion", ""])
    assert one @ other == pytest.approx(1.0, abs=1e-5)
    assert abs(one @ empty) < 0.25


@needs("fast")
def test_its_package_is_read_and_never_imported() -> None:
    """Importing it sets up logging for the whole process."""
    result = subprocess.run(
        [sys.executable, "-c", _USED],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n")[:2] == ["[]", "[]"]


def test_it_trusts_itself_less_than_a_model_that_reads_sentences() -> None:
    model = Fast()
    assert model.language_trust("plain English words") == 0.8
    assert model.language_trust("Öffnungszeiten für Bürger über Ämter") == 0.4
    assert model.language_trust("知识库搜索") == 0.0
