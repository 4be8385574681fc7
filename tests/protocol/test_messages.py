"""Messages over HTTP in both eras: notifications, sessions, ids, batches, refusals."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.mcp import (
    BOTH,
    JSON,
    JSON_TYPE,
    LEGACY,
    MODERN,
    PATHS,
    SSE,
    SSE_TYPE,
    Mcp,
    envelope_of,
    frame_of,
    modern_headers,
    modern_meta,
    text_of,
)
from tests.drivers.server import Server
from zibaldone.protocol.versions import VERSIONS

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOTIFICATIONS = (
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/of/the/future",
    "something-else",
)


@pytest.fixture(scope="module")
def mcp(shared_server: Server) -> Mcp:
    return Mcp(shared_server.client)


@pytest.fixture(scope="module")
def modern(shared_server: Server) -> Mcp:
    return Mcp(shared_server.client, version=MODERN)


class TestNotifications:
    @pytest.mark.requirement("000/GN.04", "000/GN.05", "000/GN.06", "000/FR.10", "X-01")
    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.parametrize("method", NOTIFICATIONS)
    def test_without_a_version_they_are_204(self, mcp: Mcp, path: str, method: str) -> None:
        answer = Mcp(mcp.client, path).note(method)
        assert (answer.status_code, answer.content) == (204, b"")
        assert "content-type" not in answer.headers

    @pytest.mark.requirement("X-01")
    @pytest.mark.parametrize("version", [*LEGACY, MODERN])
    @pytest.mark.parametrize("accept", [JSON, SSE, BOTH])
    def test_with_a_version_they_are_202(self, mcp: Mcp, version: str, accept: str) -> None:
        headers = {"mcp_protocol_version": version, "accept": accept}
        answer = mcp.note("notifications/initialized", **headers)
        assert (answer.status_code, answer.content) == (202, b"")

    def test_a_modern_one_needs_no_headers_beyond_the_version(self, mcp: Mcp) -> None:
        note = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1, "_meta": modern_meta()},
        }
        assert mcp.post(note, mcp_protocol_version=MODERN).status_code == 202

    @pytest.mark.parametrize("answered", [{"result": {}}, {"error": {"code": -1, "message": ""}}])
    def test_answers_to_nothing_are_taken_silently(
        self, mcp: Mcp, answered: dict[str, Any]
    ) -> None:
        answer = mcp.post({"jsonrpc": "2.0", "id": 9, **answered})
        assert (answer.status_code, answer.content) == (204, b"")

    def test_a_notification_with_an_id_is_a_request(self, mcp: Mcp) -> None:
        assert mcp.error("notifications/initialized")["code"] == -32601

    @pytest.mark.requirement("X-01")
    @pytest.mark.parametrize("forced", [202, 204])
    def test_a_setting_forces_one_status(self, data: Path, forced: int) -> None:
        environment = {"ZIBALDONE_NOTIFICATION_STATUS": str(forced)}
        with Server(data, environment=environment) as server:
            mcp = Mcp(server.client)
            plain = mcp.note("notifications/initialized")
            stated = mcp.note("notifications/initialized", mcp_protocol_version="2025-11-25")
        assert [plain.status_code, stated.status_code] == [forced, forced]
        assert plain.content == stated.content == b""


class TestSessions:
    @pytest.mark.requirement("X-03")
    def test_initialize_gives_a_fresh_opaque_id(self, mcp: Mcp) -> None:
        ids = {mcp.rpc("initialize").headers["mcp-session-id"] for _ in range(20)}
        assert len(ids) == 20
        assert all(found.isascii() and found.isprintable() for found in ids)

    @pytest.mark.requirement("X-03")
    def test_over_a_stream_too(self, mcp: Mcp) -> None:
        answer = mcp.rpc("initialize", accept=SSE)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == SSE_TYPE
        assert "serverInfo" in envelope_of(answer)["result"]
        assert answer.headers["mcp-session-id"]

    @pytest.mark.requirement("X-03", "001/S.03")
    @pytest.mark.parametrize("given", ["", "no-such-session", "x" * 4000])
    def test_no_id_and_any_id_are_served(self, mcp: Mcp, given: str) -> None:
        headers = {"mcp_session_id": given, "last_event_id": "17"}
        answer = mcp.rpc("tools/list", None, **headers)
        assert answer.status_code == 200
        assert "mcp-session-id" not in answer.headers
        assert answer.content == mcp.rpc("tools/list").content

    def test_an_id_outlives_the_server(self, server: Server) -> None:
        mcp = Mcp(server.client)
        given = mcp.rpc("initialize").headers["mcp-session-id"]
        server.kill()
        server.start()
        assert mcp.rpc("tools/list", mcp_session_id=given).status_code == 200

    def test_delete_ends_what_was_never_kept(self, mcp: Mcp) -> None:
        given = mcp.rpc("initialize").headers["mcp-session-id"]
        for headers in ({}, {"mcp-session-id": given}, {"mcp-session-id": "unknown"}):
            answer = mcp.client.delete("/mcp", headers=headers)
            assert (answer.status_code, answer.content) == (204, b"")

    def test_the_modern_era_has_none(self, modern: Mcp) -> None:
        assert "mcp-session-id" not in modern.rpc("server/discover").headers


class TestIds:
    @pytest.mark.parametrize("request_id", ["text", "", 0, -7, 2**53 - 1])
    def test_come_back_as_they_were(self, mcp: Mcp, request_id: str | int) -> None:
        envelope = envelope_of(mcp.post({**PING, "id": request_id}))
        assert envelope["id"] == request_id
        assert type(envelope["id"]) is type(request_id)

    @pytest.mark.parametrize("request_id", [None, 1.5, True, [1], {"a": 1}])
    def test_others_are_invalid_requests(self, mcp: Mcp, request_id: object) -> None:
        answer = mcp.post({**PING, "id": request_id})
        assert answer.status_code == 200
        envelope = envelope_of(answer)
        assert envelope["id"] is None
        assert envelope["error"]["code"] == -32600


class TestBatches:
    BATCH: tuple[dict[str, Any], ...] = (
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "nope"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
    )

    @pytest.mark.parametrize("accept", [JSON, SSE])
    @pytest.mark.parametrize("stated", [{}, {"mcp_protocol_version": "2025-03-26"}])
    def test_in_the_revision_that_has_them(
        self, mcp: Mcp, accept: str, stated: dict[str, str]
    ) -> None:
        answer = mcp.post(list(self.BATCH), accept=accept, **stated)
        assert answer.status_code == 200
        envelopes = frame_of(answer.content) if accept == SSE else answer.json()
        assert [envelope["id"] for envelope in envelopes] == [1, "b", None]
        assert envelopes[0]["result"] == {}
        assert [envelope["error"]["code"] for envelope in envelopes[1:]] == [-32601, -32600]

    @pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
    def test_in_no_other_legacy_revision(self, mcp: Mcp, version: str) -> None:
        answer = mcp.post(list(self.BATCH), mcp_protocol_version=version)
        assert answer.status_code == 200
        assert envelope_of(answer)["error"]["code"] == -32600

    def test_nor_in_the_modern_era_nor_in_one_we_do_not_speak(self, mcp: Mcp) -> None:
        for version in (MODERN, "1999-01-01"):
            answer = mcp.post(list(self.BATCH), mcp_protocol_version=version)
            assert answer.status_code == 400
            assert envelope_of(answer)["error"]["code"] == -32600

    def test_only_notifications_are_answered_with_nothing(self, mcp: Mcp) -> None:
        answer = mcp.post([{"jsonrpc": "2.0", "method": "notifications/initialized"}] * 3)
        assert (answer.status_code, answer.content) == (204, b"")

    @pytest.mark.parametrize("size", [0, 51])
    def test_their_size_is_bounded(self, mcp: Mcp, size: int) -> None:
        answer = mcp.post([PING] * size)
        assert answer.status_code == 200
        assert envelope_of(answer)["error"]["code"] == -32600


class TestLegacyErrors:
    """A status other than 200 breaks clients of this era, so errors come with 200."""

    def test_an_unknown_method(self, mcp: Mcp) -> None:
        for method in ("nope", "server/discover", "x" * 10_000):
            answer = mcp.rpc(method)
            assert answer.status_code == 200
            error = envelope_of(answer)["error"]
            assert error["code"] == -32601
            assert len(error["message"]) < 200

    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("tools/call", {}),
            ("tools/call", {"name": 5}),
            ("tools/call", {"name": "get_document", "arguments": []}),
            ("tools/list", {"cursor": "abc"}),
            ("tools/list", {"cursor": 5}),
            ("resources/list", {"cursor": "%%%"}),
            ("resources/read", {}),
            ("prompts/get", {"name": "nope"}),
            ("prompts/get", {"name": "keep_note", "arguments": {"topic": 5}}),
            ("completion/complete", {}),
            ("completion/complete", {"ref": {"type": "ref/other"}, "argument": {}}),
            ("logging/setLevel", {"level": "loud"}),
        ],
    )
    def test_parameters_that_are_wrong(self, mcp: Mcp, method: str, params: dict[str, Any]) -> None:
        answer = mcp.rpc(method, params)
        assert answer.status_code == 200
        assert envelope_of(answer)["error"]["code"] == -32602

    @pytest.mark.parametrize("accept", [JSON, SSE])
    def test_a_version_we_do_not_speak_is_400(self, mcp: Mcp, accept: str) -> None:
        answer = mcp.rpc("tools/list", accept=accept, mcp_protocol_version="1999-01-01")
        assert answer.status_code == 400
        assert answer.headers["content-type"] == JSON_TYPE
        error = envelope_of(answer)["error"]
        assert error["data"] == {"supported": list(VERSIONS), "requested": "1999-01-01"}

    @pytest.mark.parametrize("level", ["debug", "warning", "emergency"])
    def test_log_levels_are_accepted(self, mcp: Mcp, level: str) -> None:
        assert mcp.result("logging/setLevel", {"level": level}) == {}

    def test_ping(self, mcp: Mcp) -> None:
        assert mcp.result("ping") == {}


class TestModernErrors:
    def refused(self, mcp: Mcp, message: dict[str, Any], **headers: str) -> tuple[int, int]:
        answer = mcp.post({"jsonrpc": "2.0", "id": 7, **message}, **headers)
        envelope = envelope_of(answer)
        assert envelope["id"] == 7
        return answer.status_code, envelope["error"]["code"]

    @pytest.mark.parametrize("left_out", ["mcp-protocol-version", "mcp-method", "mcp-name"])
    def test_a_missing_header(self, mcp: Mcp, left_out: str) -> None:
        params = {"name": "list_documents", "arguments": {}, "_meta": modern_meta()}
        headers = modern_headers("tools/call", params)
        del headers[left_out]
        message = {"method": "tools/call", "params": params}
        assert self.refused(mcp, message, **headers) == (400, -32020)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"mcp-protocol-version": "2025-11-25"},
            {"mcp-method": "tools/list"},
            {"mcp-method": "TOOLS/CALL"},
            {"mcp-name": "get_document"},
            {"mcp-name": "=?base64?!?="},
        ],
    )
    def test_a_header_that_differs(self, mcp: Mcp, wrong: dict[str, str]) -> None:
        params = {"name": "list_documents", "arguments": {}, "_meta": modern_meta()}
        headers = {**modern_headers("tools/call", params), **wrong}
        message = {"method": "tools/call", "params": params}
        assert self.refused(mcp, message, **headers) == (400, -32020)

    def test_a_name_in_base64(self, mcp: Mcp) -> None:
        params = {"name": "list_documents", "arguments": {}, "_meta": modern_meta()}
        headers = modern_headers("tools/call", params)
        headers["mcp-name"] = f"=?base64?{base64.b64encode(b'list_documents').decode()}?="
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = mcp.post(message, **headers)
        assert answer.status_code == 200
        assert "items" in text_of(envelope_of(answer)["result"])

    def test_a_version_we_do_not_speak(self, mcp: Mcp) -> None:
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "server/discover",
            "params": {"_meta": modern_meta("2030-01-01")},
        }
        headers = {"mcp-protocol-version": "2030-01-01", "mcp-method": "server/discover"}
        answer = mcp.post(message, **headers)
        assert answer.status_code == 400
        error = envelope_of(answer)["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": list(VERSIONS), "requested": "2030-01-01"}

    def test_metadata_that_is_missing_in_part_or_whole(self, mcp: Mcp) -> None:
        headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}
        part = {key: value for key, value in modern_meta().items() if "ersion" in key}
        incomplete: tuple[dict[str, Any], ...] = ({}, {"_meta": {}}, {"_meta": part})
        for params in incomplete:
            message = {"method": "tools/list", "params": params}
            assert self.refused(mcp, message, **headers) == (400, -32602)

    @pytest.mark.parametrize(
        "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "nope"]
    )
    def test_a_method_that_is_unknown_or_removed_is_404(self, modern: Mcp, method: str) -> None:
        answer = modern.rpc(method)
        assert answer.status_code == 404
        assert envelope_of(answer)["error"]["code"] == -32601

    def test_an_unknown_tool_is_invalid_parameters(self, modern: Mcp) -> None:
        answer = modern.rpc("tools/call", {"name": "move_document", "arguments": {}})
        assert answer.status_code == 400
        error = envelope_of(answer)["error"]
        assert error["code"] == -32602
        assert "Unknown tool: move_document" in error["message"]

    def test_a_resource_that_is_not_there_is_invalid_parameters(
        self, mcp: Mcp, modern: Mcp
    ) -> None:
        for uri in ("zibaldone:///no/such", "file:///etc/passwd", "zibaldone:///%ff"):
            answer = modern.rpc("resources/read", {"uri": uri})
            assert answer.status_code == 400
            assert envelope_of(answer)["error"]["code"] == -32602
            assert mcp.error("resources/read", {"uri": uri})["code"] == -32002

    def test_a_body_that_is_no_json(self, mcp: Mcp) -> None:
        for stated in ({"mcp_protocol_version": MODERN}, {"mcp_method": "tools/list"}):
            answer = mcp.post(b"{", **stated)
            assert answer.status_code == 400
            assert envelope_of(answer)["error"]["code"] == -32700

    def test_errors_are_json_also_for_those_who_prefer_a_stream(self, modern: Mcp) -> None:
        answer = modern.rpc("nope", accept=SSE)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == JSON_TYPE
        assert envelope_of(answer)["error"]["code"] == -32601


class TestModernResults:
    @pytest.mark.parametrize(
        ("method", "params", "is_cacheable"),
        [
            ("server/discover", {}, True),
            ("tools/list", {}, True),
            ("resources/list", {}, True),
            ("resources/templates/list", {}, True),
            ("resources/read", {"uri": "zibaldone:///modern/a"}, True),
            ("prompts/list", {}, True),
            ("prompts/get", {"name": "keep_note", "arguments": {"topic": "x"}}, False),
            ("tools/call", {"name": "list_documents", "arguments": {}}, False),
        ],
    )
    def test_say_that_they_are_complete_who_answered_and_how_long_they_hold(
        self, modern: Mcp, mcp: Mcp, method: str, params: dict[str, Any], is_cacheable: bool
    ) -> None:
        mcp.outcome("upload_document", {"path": "modern/a", "content": "text"})
        result = modern.result(method, params)
        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "zibaldone"
        assert ("ttlMs" in result) is is_cacheable
        assert (result.get("cacheScope") == "private") is is_cacheable
        if method != "server/discover":
            assert not {"resultType", "ttlMs", "cacheScope"} & mcp.result(method, params).keys()

    def test_discover_names_the_modern_versions_and_capabilities(self, modern: Mcp) -> None:
        result = modern.result("server/discover")
        assert MODERN in result["supportedVersions"]
        assert {"tools", "resources", "prompts", "completions"} <= result["capabilities"].keys()
        assert result["instructions"]

    def test_a_result_over_a_stream_is_the_same(self, modern: Mcp) -> None:
        answers = [modern.rpc("tools/list", accept=kind) for kind in (JSON, SSE)]
        assert envelope_of(answers[0]) == envelope_of(answers[1])

    @pytest.mark.requirement("X-36")
    @pytest.mark.parametrize("version", LEGACY)
    def test_initialize_echoes_a_version_we_speak(self, mcp: Mcp, version: str) -> None:
        result = mcp.result("initialize", {"protocolVersion": version})
        assert result["protocolVersion"] == version

    @pytest.mark.requirement("X-36")
    @pytest.mark.parametrize("wanted", ["1999-01-01", MODERN, "", None, 5])
    def test_initialize_offers_the_newest_otherwise(self, mcp: Mcp, wanted: object) -> None:
        result = mcp.result("initialize", {"protocolVersion": wanted})
        assert result["protocolVersion"] == "2025-11-25"
        assert json.dumps(result["serverInfo"]).startswith('{"name": "zibaldone"')
