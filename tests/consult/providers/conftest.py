from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.consult.providers.talking import APIS, Api
from tests.drivers.model_server import ModelServer


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    chosen: Api = request.param
    return chosen
