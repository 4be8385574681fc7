"""The transport from outside: which format is answered, what a frame is, what the headers say."""

from __future__ import annotations

import json
import os

import httpx2 as httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zibaldone
from tests.drivers.golden import GOLDEN
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
    raw_post,
    text_of,
)
from tests.drivers.server import Server

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
LIST_BYTES = json.dumps(LIST).encode()
VIETNAMESE = "Tài liệu tiếng Việt: được, những, thuỷ"


@pytest.fixture(
    scope="module", params=[path + slash for path in PATHS for slash in ("", "/")], ids=str
)
def mcp(shared_server: Server, request: pytest.FixtureRequest) -> Mcp:
    """Each of the four paths, with and without a slash at the end."""
    return Mcp(shared_server.client, request.param)


@pytest.fixture(scope="module")
def main(shared_server: Server) -> Mcp:
    return Mcp(shared_server.client)


def is_json(answer: httpx.Response) -> bool:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == JSON_TYPE
    assert answer.json()["id"] == 1
    return True


def is_sse(answer: httpx.Response) -> bool:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == SSE_TYPE
    assert frame_of(answer.content)["id"] == 1
    return True


@pytest.mark.requirement("000/P2.05", "X-37")
class TestEveryPathNegotiates:
    @pytest.mark.requirement("000/U1", "001/U1", "X-38", "000/AC.03", "7.3.a")
    def test_json(self, mcp: Mcp) -> None:
        answer = mcp.post(LIST, accept=JSON)
        assert is_json(answer)
        assert answer.json().keys() == {"jsonrpc", "id", "result"}

    @pytest.mark.requirement("000/U2", "001/U2", "7.3.b", "000/AC.12")
    def test_both_is_json(self, mcp: Mcp) -> None:
        assert is_json(mcp.post(LIST, accept=BOTH))
        assert is_json(mcp.post(LIST, accept=f"{SSE}, {JSON}"))

    @pytest.mark.requirement("000/U3", "001/U4", "7.3.c", "000/AC.08", "000/AC.13")
    @pytest.mark.parametrize(
        "accept",
        [f"{JSON};q=0.5, {SSE};q=1", f"{JSON};q=0.5, {SSE}", f"{SSE};q=1, {JSON};q=0.5"],
    )
    def test_a_preferred_stream(self, mcp: Mcp, accept: str) -> None:
        assert is_sse(mcp.post(LIST, accept=accept))

    @pytest.mark.requirement("001/U3", "001/U19", "001/U20", "000/AC.06", "7.3.d")
    def test_a_stream_only(self, mcp: Mcp) -> None:
        assert is_sse(mcp.post(LIST, accept=SSE))

    @pytest.mark.requirement("000/U4", "001/U15", "000/FR.02", "001/S.01")
    def test_a_call_over_a_stream_is_one_frame_and_then_the_end(self, mcp: Mcp) -> None:
        answer = mcp.rpc("tools/call", {"name": "list_documents", "arguments": {}}, accept=SSE)
        assert is_sse(answer)
        assert "items" in text_of(frame_of(answer.content)["result"])

    @pytest.mark.requirement("001/U5", "000/AC.07")
    def test_preferred_json(self, mcp: Mcp) -> None:
        assert is_json(mcp.post(LIST, accept=f"{JSON};q=1, {SSE};q=0.5"))
        assert is_json(mcp.post(LIST, accept=f"{SSE};q=0.5, {JSON};q=0.8"))

    @pytest.mark.requirement(
        "000/U5", "001/U9", "7.3.e", "000/AC.04", "000/AC.05", "001/E.04", "001/H.06", "X-19"
    )
    @pytest.mark.parametrize("accept", ["application/xml", "text/html, image/png", f"{JSON};q=0"])
    def test_neither_is_406_with_both_types_named(self, mcp: Mcp, accept: str) -> None:
        answer = mcp.post(LIST, accept=accept)
        assert answer.status_code == 406
        assert answer.headers["content-type"] == JSON_TYPE
        error = envelope_of(answer)["error"]
        assert error["code"] == -32700
        assert JSON in error["message"]
        assert SSE in error["message"]

    @pytest.mark.requirement("000/U6", "001/U8", "000/R6", "000/AC.01", "001/N.01")
    @pytest.mark.parametrize("accept", ["*", "*/*", "application/*"])
    def test_anything_is_json(self, mcp: Mcp, accept: str) -> None:
        assert is_json(mcp.post(LIST, accept=accept))

    @pytest.mark.requirement("001/N.02", "X-11")
    def test_any_text_is_a_stream(self, mcp: Mcp) -> None:
        assert is_sse(mcp.post(LIST, accept="text/*"))

    @pytest.mark.requirement("000/U7", "001/U6", "000/AC.01")
    def test_no_accept_header_is_json(self, mcp: Mcp, shared_server: Server) -> None:
        answer = raw_post(shared_server.port, mcp.path, LIST_BYTES, [])
        assert answer.status == 200
        assert answer.all("content-type") == [JSON_TYPE]
        assert json.loads(answer.body)["id"] == 1

    @pytest.mark.requirement("000/U8", "001/U7", "001/N.03", "000/AC.10")
    @pytest.mark.parametrize("accept", [";;;", ";;;malformed", ",", "json", "=/=q"])
    def test_a_malformed_accept_header_is_json(self, mcp: Mcp, accept: str) -> None:
        assert is_json(mcp.post(LIST, accept=accept))

    @pytest.mark.requirement("000/AC.02", "000/AC.09")
    def test_qualities(self, mcp: Mcp) -> None:
        assert is_sse(mcp.post(LIST, accept=f"{JSON};q=0, {SSE}"))
        assert is_sse(mcp.post(LIST, accept=f"{JSON};q=0.9, {SSE}"))

    @pytest.mark.requirement("000/U9", "001/U11", "001/U12", "001/E.02", "7.3.f", "000/FR.10")
    @pytest.mark.parametrize(
        "accept", [JSON, SSE, BOTH, "*/*", ";;;", f"{JSON};q=0.1, {SSE}", "application/xml"]
    )
    def test_notifications_are_204_whatever_is_accepted(self, mcp: Mcp, accept: str) -> None:
        answer = mcp.note("notifications/initialized", accept=accept)
        assert answer.status_code == 204
        assert answer.content == b""

    @pytest.mark.requirement("000/U10", "001/U13", "000/FR.14")
    def test_a_body_that_is_no_json(self, mcp: Mcp) -> None:
        answer = mcp.post(b"{", accept=JSON)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == JSON_TYPE
        envelope = envelope_of(answer)
        assert envelope["id"] is None
        assert envelope["error"]["code"] == -32700

    @pytest.mark.requirement("001/U14")
    def test_a_body_that_is_no_json_over_a_stream(self, mcp: Mcp) -> None:
        answer = mcp.post(b"{", accept=SSE)
        assert answer.status_code == 200
        assert frame_of(answer.content) == envelope_of(mcp.post(b"{", accept=JSON))

    @pytest.mark.requirement("000/U11", "001/U16", "7.3.g", "000/GN.02", "000/GN.03")
    def test_get_of_a_stream_is_405(self, mcp: Mcp) -> None:
        answer = mcp.client.get(mcp.path, headers={"accept": SSE})
        assert answer.status_code == 405
        assert answer.headers["allow"] == "POST"
        error = envelope_of(answer)["error"]
        assert "POST" in error["message"]

    @pytest.mark.requirement("000/U12", "001/U17", "001/E.03", "000/GN.01")
    @pytest.mark.parametrize(
        "accept", [JSON, BOTH, "*/*", "text/html, */*;q=0.8", f"{SSE}, {JSON}"]
    )
    def test_get_is_the_servers_description(self, mcp: Mcp, accept: str) -> None:
        answer = mcp.client.get(mcp.path, headers={"accept": accept})
        assert answer.status_code == 200
        assert answer.headers["content-type"] == JSON_TYPE
        info = answer.json()
        assert info["name"] == "zibaldone"
        assert info["version"] == zibaldone.__version__
        assert len(info["tools"]) == PATHS[mcp.path.rstrip("/")]

    @pytest.mark.requirement("001/U18")
    def test_get_without_accept_is_the_servers_description(
        self, mcp: Mcp, shared_server: Server
    ) -> None:
        with httpx.Client(base_url=shared_server.url, trust_env=False) as client:
            del client.headers["accept"]
            answer = client.get(mcp.path)
        assert answer.status_code == 200
        assert "tools" in answer.json()

    @pytest.mark.requirement("000/FR.03", "000/FR.04", "000/FR.05", "001/U21")
    def test_headers_of_a_stream(self, mcp: Mcp) -> None:
        answer = mcp.post(LIST, accept=SSE)
        assert is_sse(answer)
        headers = answer.headers
        assert headers["cache-control"] == "no-cache, no-transform"
        assert headers["x-accel-buffering"] == "no"

    @pytest.mark.requirement("001/U10a", "001/U10b", "001/U10c", "001/U10d", "X-08")
    def test_number_of_tools(self, mcp: Mcp) -> None:
        assert len(mcp.tools()) == PATHS[mcp.path.rstrip("/")]

    def test_no_redirect(self, mcp: Mcp) -> None:
        assert mcp.post(LIST).history == []
        assert mcp.client.delete(mcp.path).status_code == 204
        assert mcp.client.head(mcp.path).status_code == 200
        assert mcp.client.put(mcp.path).status_code == 405


class TestFrames:
    @pytest.mark.requirement("000/FR.01", "000/FR.02", "001/S.01", "001/S.02", "7.3.d")
    def test_exactly_one_event_of_two_lines(self, main: Mcp) -> None:
        body = main.post(LIST, accept=SSE).content
        first, second, *rest = body.split(b"\n")
        assert first == b"event: message"
        assert second.startswith(b"data: {")
        assert rest == [b"", b""]

    @pytest.mark.requirement("000/R7")
    def test_a_client_that_reads_only_data_lines_gets_the_same(self, main: Mcp) -> None:
        body = main.post(LIST, accept=SSE).text
        (data,) = [line[6:] for line in body.splitlines() if line.startswith("data: ")]
        assert json.loads(data) == main.post(LIST, accept=JSON).json()

    @pytest.mark.requirement("000/FR.07")
    @pytest.mark.parametrize("accept", [JSON, SSE])
    def test_non_ascii_is_sent_as_it_is(self, main: Mcp, accept: str) -> None:
        main.call("upload_document", path="frames/việt", content=VIETNAMESE, upsert=True)
        request = {"name": "get_document", "arguments": {"path": "frames/việt"}}
        answer = main.rpc("tools/call", request, accept=accept)
        assert VIETNAMESE.encode() in answer.content

    @pytest.mark.requirement("000/FR.09")
    @pytest.mark.parametrize("ending", ["\n", "\r\n", "\r", "\u2028", "\u2029", "\x85", "\x0c"])
    def test_line_ends_in_a_document_stay_on_one_data_line(self, main: Mcp, ending: str) -> None:
        content = f"first{ending}data: {{}}{ending}{ending}last\\{ending}"
        main.call("upload_document", path="frames/lines", content=content, upsert=True)
        request = {"name": "get_document_for_rewrite", "arguments": {"path": "frames/lines"}}
        answer = main.rpc("tools/call", request, accept=SSE)
        # `splitlines` is the most eager reader there is: it knows every one of these endings.
        assert len(answer.text.splitlines()) == 3
        assert text_of(frame_of(answer.content)["result"])["content"] == content

    @pytest.mark.requirement("000/FR.12")
    def test_a_failure_is_the_same_envelope_in_both_formats(self, main: Mcp) -> None:
        request = {"name": "delete_document", "arguments": {"path": "frames/missing"}}
        as_json, as_sse = (main.rpc("tools/call", request, accept=kind) for kind in (JSON, SSE))
        assert as_json.status_code == as_sse.status_code == 200
        assert envelope_of(as_json) == envelope_of(as_sse)
        assert envelope_of(as_json)["result"]["isError"] is True


class TestHeadersOnTheWire:
    @pytest.mark.requirement("000/FR.06", "000/R8")
    @pytest.mark.parametrize("accept", [JSON, SSE])
    def test_one_length_and_no_connection_header(self, shared_server: Server, accept: str) -> None:
        answer = raw_post(shared_server.port, "/mcp", LIST_BYTES, [("Accept", accept)])
        assert answer.status == 200
        assert answer.all("content-type") == [SSE_TYPE if accept == SSE else JSON_TYPE]
        assert answer.all("connection") == []
        assert answer.all("transfer-encoding") == []
        assert answer.all("content-length") == [str(len(answer.body))]

    def test_no_length_without_a_body(self, shared_server: Server) -> None:
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
        answer = raw_post(shared_server.port, "/mcp", note, [])
        assert answer.status == 204
        assert answer.all("content-length") == []
        assert answer.all("transfer-encoding") == []

    def test_white_space_around_values_is_stripped(self, shared_server: Server) -> None:
        headers = [("Accept", f"  {SSE} \t "), ("MCP-Protocol-Version", " 2025-06-18\t ")]
        answer = raw_post(shared_server.port, "/mcp", LIST_BYTES, headers)
        assert answer.status == 200
        assert answer.all("content-type") == [SSE_TYPE]
        assert "tools" in frame_of(answer.body)["result"]

    def test_accept_may_be_spread_over_several_lines(self, shared_server: Server) -> None:
        lines = [("Accept", "application/xml"), ("Accept", SSE), ("Accept", JSON)]
        answer = raw_post(shared_server.port, "/mcp", LIST_BYTES, lines)
        assert answer.status == 200  # a refusal is JSON too
        assert answer.all("content-type") == [JSON_TYPE]
        assert "tools" in json.loads(answer.body)["result"]

    def test_names_of_headers_are_read_in_any_case(self, shared_server: Server) -> None:
        answer = raw_post(shared_server.port, "/mcp", LIST_BYTES, [("aCCEPT", SSE)])
        assert answer.status == 200
        assert answer.all("content-type") == [SSE_TYPE]
        assert "tools" in frame_of(answer.body)["result"]
        stated = [("mcp-PROTOCOL-version", "1999-01-01")]
        assert raw_post(shared_server.port, "/mcp", LIST_BYTES, stated).status == 400

    @pytest.mark.requirement("000/AC.10")
    @settings(max_examples=500)
    @given(
        st.text(
            alphabet=st.characters(
                min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"
            ),
            max_size=40,
        ).map(str.strip)
    )
    def test_no_accept_header_breaks_the_server(self, main: Mcp, accept: str) -> None:
        answer = main.client.post(
            "/mcp", content=LIST_BYTES, headers=[(b"accept", accept.encode("latin-1"))]
        )
        assert answer.status_code in (200, 406)
        assert envelope_of(answer)


@pytest.mark.requirement("000/AC.11", "7.3.a", "000/P2.02")
class TestGoldenBytes:
    """What clients have seen does not change by accident; GOLDEN_WRITE=1 records it anew."""

    def check(self, answer: httpx.Response, name: str) -> None:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == JSON_TYPE
        version = json.dumps(zibaldone.__version__).encode()
        body = answer.content.replace(b'"version":' + version, b'"version":"<version>"')
        file = GOLDEN / f"{name}.json"
        if os.environ.get("GOLDEN_WRITE"):
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(body + b"\n")
        assert body + b"\n" == file.read_bytes()

    @pytest.mark.parametrize("version", [*LEGACY, MODERN])
    def test_initialize_or_discover(self, main: Mcp, version: str) -> None:
        mcp = Mcp(main.client, version=version)
        if version == MODERN:
            answer = mcp.rpc("server/discover", accept=JSON)
        else:
            params = {
                "protocolVersion": version,
                "capabilities": {},
                "clientInfo": {"name": "curl", "version": "8"},
            }
            answer = mcp.rpc("initialize", params, accept=JSON)
        self.check(answer, f"initialize-{version}")

    @pytest.mark.parametrize("version", [*LEGACY, MODERN])
    def test_tools_list(self, main: Mcp, version: str) -> None:
        mcp = Mcp(main.client, version=version)
        self.check(mcp.rpc("tools/list", accept=JSON), f"tools-list-{version}")

    @pytest.mark.parametrize("version", [*LEGACY, MODERN])
    def test_one_call(self, main: Mcp, version: str) -> None:
        mcp = Mcp(main.client, version=version)
        document = {"path": "golden/a.md", "title": "Tài liệu", "tags": ["one"]}
        main.outcome("upload_document", {**document, "content": "text"})
        request = {"name": "list_documents", "arguments": {"prefix": "golden/"}}
        self.check(mcp.rpc("tools/call", request, accept=JSON), f"call-{version}")
