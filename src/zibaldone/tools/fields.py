"""Members that answers of several tools have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from zibaldone.find.missing import Part

LeftOut = Annotated[
    list[Part],
    Field(description="Parts of the search that did not answer, or not in time; see note"),
]
