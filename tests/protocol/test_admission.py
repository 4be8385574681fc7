"""Which era a message is of, and what is refused before anything is done for it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from zibaldone.protocol.admission import UnsupportedLegacy, admit, admit_modern_body
from zibaldone.protocol.jsonrpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    Message,
    ProtocolError,
    id_of,
    parse_body,
    parse_message,
)
from zibaldone.protocol.versions import ASSUMED_LEGACY, NEWEST_LEGACY, VERSIONS, negotiated

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def modern(
    method: str = "tools/call", *, version: Any = MODERN, capabilities: Any = None, **params: Any
) -> Message:
    meta = {
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_CAPABILITIES_META_KEY: {} if capabilities is None else capabilities,
    }
    return Message(method, {**params, "_meta": meta}, 1, is_request=True)


def legacy(method: str = "tools/list") -> Message:
    return Message(method, {}, 1, is_request=True)


def headers(**values: str) -> Callable[[bytes], str | None]:
    """`headers(mcp_method="x")` reads as the header `mcp-method: x`."""
    known = {name.replace("_", "-").encode(): value for name, value in values.items()}
    return known.get


def refusal(message: Message, header: Callable[[bytes], str | None]) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        admit(message, header)
    return caught.value


def fitting(**more: str) -> Callable[[bytes], str | None]:
    return headers(
        mcp_protocol_version=MODERN,
        mcp_method=more.pop("method", "tools/call"),
        mcp_name=more.pop("name", "get_document"),
        **more,
    )


class TestLegacy:
    def test_a_message_without_any_version_speaks_2025_03_26(self) -> None:
        assert admit(legacy(), headers()) is ASSUMED_LEGACY
        assert ASSUMED_LEGACY.name == "2025-03-26"

    @pytest.mark.parametrize("name", LEGACY)
    def test_the_header_says_the_version(self, name: str) -> None:
        assert admit(legacy(), headers(mcp_protocol_version=name)).name == name

    @pytest.mark.parametrize("stated", ["1999-01-01", "", "2025-06", "latest", "x" * 1000])
    def test_a_version_we_do_not_speak_is_refused_with_those_we_do(self, stated: str) -> None:
        refused = refusal(legacy(), headers(mcp_protocol_version=stated))
        assert isinstance(refused, UnsupportedLegacy)
        assert refused.code == INVALID_REQUEST
        assert refused.data == {"supported": list(VERSIONS), "requested": stated[:64]}

    def test_a_modern_header_alone_does_not_make_a_message_modern(self) -> None:
        refused = refusal(legacy(), headers(mcp_protocol_version=MODERN))
        assert refused.code == INVALID_PARAMS
        assert PROTOCOL_VERSION_META_KEY in refused.message

    def test_metadata_without_a_version_is_legacy(self) -> None:
        message = Message("tools/list", {"_meta": {"progressToken": 1}}, 1, is_request=True)
        assert admit(message, headers()) is ASSUMED_LEGACY

    @pytest.mark.parametrize("meta", [None, 1, "text", [PROTOCOL_VERSION_META_KEY]])
    def test_metadata_that_is_no_object_is_no_metadata(self, meta: object) -> None:
        message = Message("tools/list", {"_meta": meta}, 1, is_request=True)
        assert admit(message, headers()) is ASSUMED_LEGACY


class TestModern:
    def test_headers_that_fit_are_admitted(self) -> None:
        assert admit(modern(name="get_document"), fitting()).name == MODERN

    @pytest.mark.parametrize(
        ("method", "params", "name"),
        [
            ("tools/call", {"name": "get_document"}, "get_document"),
            ("prompts/get", {"name": "keep_note"}, "keep_note"),
            ("resources/read", {"uri": "zibaldone:///a b"}, "zibaldone:///a b"),
        ],
    )
    def test_methods_that_name_something_name_it_in_a_header(
        self, method: str, params: dict[str, str], name: str
    ) -> None:
        message = modern(method, **params)
        assert admit(message, fitting(method=method, name=name)).name == MODERN
        assert refusal(message, fitting(method=method, name="other")).code == HEADER_MISMATCH
        without = headers(mcp_protocol_version=MODERN, mcp_method=method)
        assert refusal(message, without).code == HEADER_MISMATCH

    @pytest.mark.parametrize("method", ["tools/list", "server/discover", "completion/complete"])
    def test_other_methods_need_no_name(self, method: str) -> None:
        message = modern(method)
        assert (
            admit(message, headers(mcp_protocol_version=MODERN, mcp_method=method)).name == MODERN
        )

    @pytest.mark.parametrize("stated", [None, *LEGACY, "2026-07-29"])
    def test_the_version_header_must_be_there_and_equal(self, stated: str | None) -> None:
        given = {} if stated is None else {"mcp_protocol_version": stated}
        header = headers(mcp_method="tools/list", **given)
        assert refusal(modern("tools/list"), header).code == HEADER_MISMATCH

    @pytest.mark.parametrize("stated", [None, "tools/list", "TOOLS/CALL", ""])
    def test_the_method_header_must_be_there_and_equal(self, stated: str | None) -> None:
        given = {} if stated is None else {"mcp_method": stated}
        header = headers(mcp_protocol_version=MODERN, mcp_name="get_document", **given)
        assert refusal(modern(name="get_document"), header).code == HEADER_MISMATCH

    def test_values_that_fit_no_header_come_in_base64(self) -> None:
        name = "tài liệu/ü "
        encoded = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
        message = modern("prompts/get", name=name)
        assert admit(message, fitting(method="prompts/get", name=encoded)).name == MODERN

    @pytest.mark.parametrize(
        "encoded", ["=?base64?!!!?=", "=?base64?/w==?=", "=?base64?\u00e9?=", "=?base64?YQ?="]
    )
    def test_base64_that_cannot_be_read_is_a_mismatch(self, encoded: str) -> None:
        assert refusal(modern(name="a"), fitting(name=encoded)).code == HEADER_MISMATCH

    @pytest.mark.parametrize("version", ["2027-01-01", "", *LEGACY])
    def test_a_version_that_is_not_modern_is_refused_with_data(self, version: str) -> None:
        refused = refusal(
            modern("tools/list", version=version),
            headers(mcp_protocol_version=version, mcp_method="tools/list"),
        )
        assert refused.code == UNSUPPORTED_PROTOCOL_VERSION
        assert refused.data == {"supported": list(VERSIONS), "requested": version}

    @pytest.mark.parametrize("version", [1, None, ["2026-07-28"], {"deep": {}}])
    def test_a_version_that_is_no_text_is_refused_and_not_repeated(self, version: object) -> None:
        header = headers(mcp_protocol_version=MODERN, mcp_method="tools/list")
        assert refusal(modern("tools/list", version=version), header).code == INVALID_PARAMS
        with pytest.raises(ProtocolError) as caught:
            admit_modern_body(modern("tools/list", version=version))
        assert caught.value.code == UNSUPPORTED_PROTOCOL_VERSION
        assert caught.value.data["requested"] is None

    @pytest.mark.parametrize("capabilities", ["{}", 1, []])
    def test_the_client_must_say_its_capabilities(self, capabilities: object) -> None:
        header = headers(mcp_protocol_version=MODERN, mcp_method="tools/list")
        refused = refusal(modern("tools/list", capabilities=capabilities), header)
        assert refused.code == INVALID_PARAMS
        without = Message(
            "tools/list", {"_meta": {PROTOCOL_VERSION_META_KEY: MODERN}}, 1, is_request=True
        )
        assert refusal(without, header).code == INVALID_PARAMS

    @pytest.mark.parametrize("name", [None, 1, ["get_document"]])
    def test_a_name_that_is_no_text_is_invalid(self, name: object) -> None:
        assert refusal(modern(name=name), fitting()).code == INVALID_PARAMS

    @given(
        st.dictionaries(
            st.sampled_from([b"mcp-protocol-version", b"mcp-method", b"mcp-name"]),
            st.one_of(st.sampled_from([MODERN, "tools/call", "a", *LEGACY]), st.text(max_size=30)),
        ),
        st.one_of(st.just(MODERN), st.text(max_size=12), st.none(), st.integers()),
        st.one_of(st.just("a"), st.text(max_size=12), st.none()),
    )
    def test_a_message_is_admitted_or_refused_never_anything_else(
        self, given_headers: dict[bytes, str], version: object, name: object
    ) -> None:
        code = None
        try:
            admitted = admit(modern(version=version, name=name), given_headers.get)
        except ProtocolError as refused:
            code = refused.code
        if code is None:
            assert admitted.era == "modern"
            assert given_headers[b"mcp-protocol-version"] == version == MODERN
        else:
            assert code in (HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_PROTOCOL_VERSION)


class TestVersions:
    @pytest.mark.requirement("X-36")
    @pytest.mark.parametrize("name", LEGACY)
    def test_initialize_echoes_a_version_it_speaks(self, name: str) -> None:
        assert negotiated(name).name == name

    @pytest.mark.requirement("X-36")
    @pytest.mark.parametrize("wanted", ["1999-01-01", MODERN, None, 7, ["2025-06-18"], ""])
    def test_initialize_offers_the_newest_legacy_version_otherwise(self, wanted: object) -> None:
        assert negotiated(wanted) is NEWEST_LEGACY
        assert NEWEST_LEGACY.name == "2025-11-25"

    def test_batches_are_a_thing_of_one_revision(self) -> None:
        assert [name for name, version in VERSIONS.items() if version.batches] == ["2025-03-26"]


class TestMessages:
    @pytest.mark.parametrize("request_id", ["a", "", 0, -1, 2**53, "é"])
    def test_ids_are_texts_or_whole_numbers(self, request_id: str | int) -> None:
        message = parse_message({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
        assert message.is_request
        assert message.id == request_id

    @pytest.mark.parametrize("request_id", [None, 1.0, True, False, [], {}])
    def test_other_ids_are_invalid_and_no_notification(self, request_id: object) -> None:
        value = {"jsonrpc": "2.0", "id": request_id, "method": "ping"}
        with pytest.raises(ProtocolError) as caught:
            parse_message(value)
        assert caught.value.code == INVALID_REQUEST
        assert id_of(value) is None

    @pytest.mark.parametrize(
        "value",
        [
            None,
            1,
            "text",
            {},
            {"id": 1, "method": "ping"},
            {"jsonrpc": "1.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "id": 1},
            {"jsonrpc": "2.0", "id": 1, "method": 5},
        ],
    )
    def test_what_is_no_message_is_an_invalid_request(self, value: object) -> None:
        with pytest.raises(ProtocolError) as caught:
            parse_message(value)
        assert caught.value.code == INVALID_REQUEST

    @pytest.mark.parametrize("params", [[], [1], "text", 5])
    def test_params_are_an_object(self, params: object) -> None:
        with pytest.raises(ProtocolError) as caught:
            parse_message({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params})
        assert caught.value.code == INVALID_PARAMS

    def test_params_may_be_null_or_left_out(self) -> None:
        plain = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert parse_message(plain).params == {}
        assert parse_message({**plain, "params": None}).params == {}

    def test_a_message_without_an_id_is_a_notification(self) -> None:
        message = parse_message({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert not message.is_request
        assert not message.is_response

    @pytest.mark.parametrize("body", [{"result": {}}, {"error": {"code": 1, "message": "x"}}])
    def test_an_answer_is_recognised(self, body: dict[str, Any]) -> None:
        assert parse_message({"jsonrpc": "2.0", "id": 1, **body}).is_response

    @pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"nul", b"[" * 2000, b'{"a":NaN}'])
    def test_a_body_that_is_no_json_is_a_parse_error(self, body: bytes) -> None:
        with pytest.raises(ProtocolError) as caught:
            parse_body(body)
        assert caught.value.code == PARSE_ERROR
