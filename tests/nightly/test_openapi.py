"""Schemathesis: requests made from the OpenAPI document, and answers held against it.

FUZZ_OPENAPI_EXAMPLES says how many for each operation, right and wrong ones each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.drivers.in_process import application
from tests.nightly.verdict import ALLOWED

EXAMPLES = int(os.environ.get("FUZZ_OPENAPI_EXAMPLES", "4"))
MODES = {"right": GenerationMode.POSITIVE, "wrong": GenerationMode.NEGATIVE}
CHECKS = {
    "right": (status_code_conformance, content_type_conformance, response_schema_conformance),
    "wrong": (status_code_conformance, content_type_conformance, negative_data_rejection),
}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    data = tmp_path_factory.mktemp("openapi") / "data"
    with application(data, allowed_hosts=["testserver"]) as app:
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.timeout(3_600)
def test_every_operation_keeps_to_its_description(schema: Any, mode: str) -> None:
    """All operations in one test: they are known only when the application runs."""
    tried = 0
    for offered in schema.get_all_operations():
        operation = offered.ok()
        if mode == "wrong" and not _can_be_wrong(operation):
            continue

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=MODES[mode]))
        def test(case: Any) -> None:
            answer = case.call()
            if answer.status_code >= 500:
                assert answer.json()["code"] in ALLOWED.get(answer.status_code, ()), answer.text
            case.validate_response(answer, checks=CHECKS[mode])

        partial(test)()
        tried += 1
    assert tried > 15


def _can_be_wrong(operation: Any) -> bool:
    return bool(operation.body) or bool(operation.query)
