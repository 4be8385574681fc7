"""Addresses of documents, and what a refusal looks like."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx2 as httpx


def at(document_id: str, tail: str = "") -> str:
    """The URL of a document whatever is in its id: one segment, everything encoded.

    The dots too: clients take a segment of dots away before they send the URL.
    """
    return f"/documents/{quote(document_id, safe='').replace('.', '%2E')}{tail}"


def refusal(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that the answer is an error of the agreed shape; its details."""
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    body = answer.json()
    assert set(body) == {"code", "message", "details", "request_id"}
    assert isinstance(body["message"], str)
    assert body["message"]
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    details: dict[str, Any] = body["details"]
    return details
