"""The OpenAPI document is valid, and says what the server does, no more and no less."""

from __future__ import annotations

import json
from typing import Any

import httpx2 as httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.drivers.catalogues import OFFERED
from tests.drivers.server import Server
from zibaldone.tools.schema import result_schema
from zibaldone.web.routes import ROUTES

DOCUMENT = "/documents/{path}"
REST_OPERATIONS = {
    ("post", "/documents"),
    ("get", "/documents"),
    ("get", "/documents/{path}"),
    ("put", "/documents/{path}"),
    ("patch", "/documents/{path}"),
    ("delete", "/documents/{path}"),
    ("post", "/documents/{path}/rename"),
    ("post", "/documents/{path}/move"),
    ("get", "/changes"),
    ("get", "/links"),
    ("get", "/documents/{path}/revisions"),
    ("get", "/documents/{path}/revisions/diff"),
    ("get", "/documents/{path}/revisions/{revision}"),
    ("post", "/documents/{path}/revisions/{revision}/restore"),
    ("post", "/batch-read"),
    ("get", "/search"),
    ("post", "/search"),
    ("post", "/ingest"),
    ("post", "/rag/search_fts"),
    ("post", "/rag/search_vector"),
    ("post", "/rag/search_hybrid"),
    ("post", "/rag/get_chunks"),
    ("post", "/rag/get_docs"),
    ("post", "/rag/fetch_from_source"),
    ("post", "/rag/admin/stats"),
    ("post", "/rag/admin/sync"),
    ("post", "/memory/add_memory"),
    ("post", "/memory/search_nodes"),
    ("post", "/memory/search_memory_facts"),
    ("post", "/memory/get_episodes"),
    ("post", "/memory/delete_episode"),
    ("post", "/memory/clear_graph"),
    ("post", "/memory/get_status"),
    ("post", "/memory/recall"),
    ("post", "/count_tokens"),
    ("post", "/kb/reindex-missing"),
    ("get", "/kb/audit-sync"),
    ("post", "/kb/audit-sync"),
    ("post", "/kb/cleanup-orphans"),
    ("get", "/jobs"),
    ("get", "/jobs/{job_id}"),
    ("post", "/jobs/{job_id}/cancel"),
    ("post", "/jobs/{job_id}/retry"),
    ("get", "/live"),
    ("get", "/health"),
    ("get", "/metrics"),
    ("get", "/openapi.json"),
}


@pytest.fixture(scope="module")
def document(shared_server: Server) -> dict[str, Any]:
    answer = shared_server.client.get("/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def operations(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(method, url) for url, item in document["paths"].items() for method in item}


def test_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    assert [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_documents_exactly_the_rest_operations(document: dict[str, Any]) -> None:
    assert operations(document) == REST_OPERATIONS


def test_the_table_of_routes_is_what_is_documented(document: dict[str, Any]) -> None:
    assert {(route.method.lower(), route.path) for route in ROUTES} == operations(document)
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        if route.tool is not None:
            assert operation["operationId"].removesuffix(".post") == route.tool
            (answer,) = {
                json.dumps(operation["responses"][str(status)]["content"]["application/json"])
                for status in {200, route.status}
            }
            assert json.loads(answer)["schema"] == result_schema(OFFERED[route.tool])


def test_every_served_operation_is_documented(
    document: dict[str, Any], shared_server: Server
) -> None:
    """Of every path of the table, exactly the methods in the table are served."""
    shared_server.create("served", "text")
    for path in {route.path for route in ROUTES}:
        written = path.replace("{path}", "served").replace("{revision}", "1")
        documented = {method for method, url in operations(document) if url == path}
        if path.endswith(("/move", "/rename")):  # otherwise the path of a document
            documented |= {method for method, url in operations(document) if url == DOCUMENT}
        for method in ("get", "post", "put", "patch", "delete"):
            answer = shared_server.client.request(method, written, content=b"[]")
            assert (answer.status_code == 405) is (method not in documented), (method, path)


def test_every_documented_operation_is_served(
    document: dict[str, Any], shared_server: Server
) -> None:
    for number, (method, url) in enumerate(sorted(operations(document))):
        document_id = f"documented-{number}"
        shared_server.create(document_id, "text")
        written = url.replace("{path}", document_id).replace("{revision}", "1")
        answer = shared_server.client.request(method, written)
        assert answer.status_code not in (404, 405), (method, url)


def arguments(operation: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """By name: those in the query string, those in the body."""
    query = {one["name"]: one for one in operation.get("parameters", ()) if one["in"] == "query"}
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    return query, schema.get("properties", {})


def value_for(schema: dict[str, Any]) -> Any:
    """Some value of the documented type."""
    for fixed in ("const", "default"):
        if fixed in schema:
            return schema[fixed]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "integer":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "array":
            return [value_for(schema["items"])]
        case "object":
            return {name: value_for(part) for name, part in schema.get("properties", {}).items()}
    return "a/b"


def test_every_documented_argument_is_known_to_the_server(
    document: dict[str, Any], shared_server: Server
) -> None:
    """An argument may be refused for its value, never as one that does not exist."""
    for method, url in sorted(operations(document)):
        query, body = arguments(document["paths"][url][method])
        for name, schema in [(name, one["schema"]) for name, one in query.items()] + [
            *body.items()
        ]:
            value = value_for(schema)
            given: dict[str, Any] = (
                {"params": {name: value}} if name in query else {"json": {name: value}}
            )
            written = url.replace("{path}", "none").replace("{revision}", "1")
            answer = shared_server.client.request(method, written, **given)
            problems = {}
            if answer.status_code >= 400:
                found = answer.json()["details"].get("problems", ())
                problems = {one["field"]: one["why"] for one in found}
            assert name not in problems, (method, url, problems)


def test_required_arguments_are_required(document: dict[str, Any], client: httpx.Client) -> None:
    for method, url in sorted(operations(document)):
        operation = document["paths"][url][method]
        query, _ = arguments(operation)
        required = {name for name, one in query.items() if one["required"]}
        content = operation.get("requestBody", {}).get("content", {})
        required |= {*content.get("application/json", {}).get("schema", {}).get("required", ())}
        if required:
            written = url.replace("{path}", "none").replace("{revision}", "1")
            answer = client.request(method, written, json={})
            fields = {one["field"] for one in answer.json()["details"]["problems"]}
            assert fields == required, (method, url)


def test_every_tool_has_its_operation(document: dict[str, Any]) -> None:
    """All but the two ways of reading, which share one URL."""
    ids = {
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
        if "operationId" in operation
    }
    assert OFFERED.keys() - ids <= {"get_document_for_rewrite"}


@pytest.fixture
def client(shared_server: Server) -> httpx.Client:
    return shared_server.client
