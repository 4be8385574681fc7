"""Which of the models that run on this machine can be tested here."""

from __future__ import annotations

import pytest

from zibaldone.embed.open import BUILT_IN
from zibaldone.extras import missing


def needs(kind: str) -> pytest.MarkDecorator:
    absent = missing(BUILT_IN[kind].packages)
    return pytest.mark.skipif(
        bool(absent), reason=f"{kind}: {', '.join(absent)} not installed: make setup"
    )
