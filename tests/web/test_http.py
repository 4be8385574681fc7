"""What holds for every request: ids in URLs, request ids, methods, the form of errors."""

from __future__ import annotations

import re
import unicodedata

import httpx2 as httpx
import pytest

from tests.drivers.server import Server
from tests.drivers.urls import at, refusal


@pytest.fixture
def client(shared_server: Server) -> httpx.Client:
    return shared_server.client


class TestDocumentUrls:
    def test_slashes_plain_or_encoded_are_the_same(self, shared_server: Server) -> None:
        client = shared_server.client
        shared_server.create("url/a/b", "text")
        for url in ("/documents/url/a/b", "/documents/url%2Fa%2Fb", "/documents/url%2fa/b"):
            assert client.get(url).json()["document_id"] == "url/a/b"
        client.put("/documents/url/a/b", json={"content": "2"}).raise_for_status()
        client.patch("/documents/url/a%2Fb", json={"old_str": "2", "new_str": "3"})
        assert client.get("/documents/url/a/b").json()["content"] == "3"
        assert client.get("/documents/url/a/b/revisions").json()["document_id"] == "url/a/b"
        assert client.get("/documents/url%2Fa%2Fb/revisions/1").json()["content"] == "text"
        client.delete("/documents/url/a%2fb").raise_for_status()
        refusal(client.get("/documents/url/a/b"), 404, "NOT_FOUND")

    @pytest.mark.parametrize(
        "document_id",
        [
            "odd/revisions",
            "odd/revisions/1",
            "odd/revisions/diff",
            "odd/revisions/1/restore",
            "odd/move",
            "revisions",
            "move",
        ],
    )
    def test_encoded_an_id_may_end_like_an_operation(
        self, shared_server: Server, document_id: str
    ) -> None:
        client = shared_server.client
        shared_server.create(document_id, f"the text of {document_id}")
        assert client.get(at(document_id)).json()["content"] == f"the text of {document_id}"
        history = client.get(at(document_id, "/revisions")).json()
        assert history["document_id"] == document_id
        client.put(at(document_id), json={"content": "new"}).raise_for_status()
        client.delete(at(document_id)).raise_for_status()

    @pytest.mark.parametrize(
        "document_id", ["plain/revisions/1/notes", "plain/revisions/new", "plain/revisions/diff/x"]
    )
    def test_what_only_resembles_an_operation_is_an_id(
        self, shared_server: Server, document_id: str
    ) -> None:
        shared_server.create(document_id, "text")
        answer = shared_server.client.get(f"/documents/{document_id}")
        assert answer.json()["document_id"] == document_id

    @pytest.mark.parametrize(
        "document_id",
        [
            "sign/100%",
            "sign/100%25",
            "sign/a b",
            "sign/a+b",
            "sign/a?b=c",
            "sign/a#b",
            "sign/a&b;c",
            "sign/a\\b",
            "sign/ünï/日本語/😀",
            "sign/\"quotes\" and 'more'",
            "sign/<a>{b}[c]|d^e`f",
            "sign/.hidden",
            "sign/a..b",
            "sign/...",
            "sign/\u00a0nbsp",
            "sign/\u202eright to left",
            "sign/\U0010ffff",
            "sign/" + "x" * 1019,
        ],
    )
    def test_any_sign_survives_the_round_trip(
        self, shared_server: Server, document_id: str
    ) -> None:
        client = shared_server.client
        assert shared_server.create(document_id, "text")["id"] == document_id
        assert client.get(at(document_id)).json()["document_id"] == document_id
        listed = client.get("/documents", params={"prefix": document_id}).json()["items"]
        assert document_id in [item["document_id"] for item in listed]

    @pytest.mark.parametrize(
        ("written", "canonical"),
        [
            ("/lead/a", "lead/a"),
            ("lead/b/", "lead/b"),
            ("  lead/c ", "lead/c"),
            ("lead//d///e", "lead/d/e"),
            ("./lead/./f/.", "lead/f"),
            ("/ ./lead/g", "lead/g"),
            ("lead/ /h", "lead/h"),
            ("/\u00a0lead/i", "\u00a0lead/i"),
        ],
    )
    def test_spellings_of_a_path_are_one_document(
        self, shared_server: Server, written: str, canonical: str
    ) -> None:
        client = shared_server.client
        assert shared_server.create(written)["id"] == canonical
        for spelling in (written, canonical):
            assert client.get(at(spelling)).json()["document_id"] == canonical
            answer = client.post("/documents", json={"path": spelling, "content": "x"})
            refusal(answer, 409, "CONFLICT")

    def test_composed_and_decomposed_letters_are_one_document(self, shared_server: Server) -> None:
        client = shared_server.client
        decomposed = unicodedata.normalize("NFD", "nfc/Ünïcödé/한국어")
        composed = unicodedata.normalize("NFC", decomposed)
        assert decomposed != composed
        assert shared_server.create(decomposed, "text")["id"] == composed
        for spelling in (decomposed, composed):
            assert client.get(at(spelling)).json()["document_id"] == composed
            listed = client.get("/documents", params={"prefix": spelling}).json()["items"]
            assert [item["document_id"] for item in listed] == [composed]
            answer = client.post("/documents", json={"path": spelling, "content": "x"})
            refusal(answer, 409, "CONFLICT")

    @pytest.mark.parametrize("url", ["/%64ocuments/s/victim", "/documents%2Fs/victim"])
    def test_an_encoded_route_never_reaches_another_document(
        self, shared_server: Server, url: str
    ) -> None:
        """The id is cut out of the raw URL: a route of another length must not shift the cut."""
        client = shared_server.client
        for document_id in ("s/s/victim", "s/victim", "2Fs/victim", "victim", "Fs/victim"):
            client.post("/documents", json={"path": document_id, "content": "x"})
        refusal(client.delete(url), 404, "NOT_FOUND")
        refusal(client.get(url), 404, "NOT_FOUND")

    def test_the_path_is_not_said_twice(self, shared_server: Server) -> None:
        client = shared_server.client
        shared_server.create("twice/a", "a")
        shared_server.create("twice/b", "b")
        for answer in (
            client.put(at("twice/a"), json={"path": "twice/b", "content": "x"}),
            client.put(at("twice/a"), json={"document_id": "twice/b", "content": "x"}),
            client.put(at("twice/a"), json={"path": "twice/a", "content": "x"}),
            client.delete(at("twice/a"), params={"path": "twice/b"}),
            client.get(at("twice/a"), params={"document_id": "twice/b"}),
        ):
            assert refusal(answer, 400, "BAD_REQUEST")["field"] == "path"
        answer = client.post(at("twice/a", "/revisions/1/restore"), json={"revision": 2})
        refusal(answer, 400, "BAD_REQUEST")

    def test_document_id_is_another_name_of_path(self, client: httpx.Client) -> None:
        answer = client.post("/documents", json={"document_id": "alias/a", "content": "x"})
        assert answer.json()["id"] == "alias/a"


class TestMove:
    @pytest.mark.requirement("V5")
    @pytest.mark.parametrize("url", ["/documents/x/move", "/documents/a/b%2Fc/move"])
    def test_is_not_implemented_and_says_so(self, client: httpx.Client, url: str) -> None:
        for answer in (client.post(url), client.post(url, json={"to": "y"})):
            assert refusal(answer, 501, "NOT_IMPLEMENTED") == {}

    @pytest.mark.requirement("V5")
    def test_changes_nothing(self, shared_server: Server) -> None:
        shared_server.create("moved/a", "text")
        refusal(
            shared_server.client.post("/documents/moved/a/move", json={"to": "moved/b"}),
            501,
            "NOT_IMPLEMENTED",
        )
        listed = shared_server.client.get("/documents", params={"prefix": "moved/"}).json()["items"]
        assert [(item["document_id"], item["revision"]) for item in listed] == [("moved/a", 1)]


class TestRequestId:
    @pytest.mark.parametrize(
        "given", ["a", "0af7651916cd43dd8448eb211c80319c", "req.1:2/3+4=5@6-7_8", "x" * 128]
    )
    def test_the_callers_is_taken(self, client: httpx.Client, given: str) -> None:
        headers = {"X-Request-ID": given}
        assert client.get("/health", headers=headers).headers["X-Request-ID"] == given
        missing = client.get(at("no-such-document"), headers=headers)
        assert missing.json()["request_id"] == missing.headers["X-Request-ID"] == given

    @pytest.mark.parametrize(
        "given", ["", "a b", "x" * 129, 'quote"', "a\tb", "ä", "<script>", "a,b"]
    )
    def test_an_odd_one_is_replaced(self, client: httpx.Client, given: str) -> None:
        headers = {b"X-Request-ID": given.encode("latin-1")}
        answer = client.get(at("no-such-document"), headers=headers)
        assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["X-Request-ID"])
        assert answer.json()["request_id"] == answer.headers["X-Request-ID"]

    def test_made_ones_differ(self, client: httpx.Client) -> None:
        made = {client.get("/health").headers["X-Request-ID"] for _ in range(20)}
        assert len(made) == 20

    def test_it_is_in_the_audit_trail(self, shared_server: Server) -> None:
        given = {"path": "audited/a", "content": "never in a log: heliotrope"}
        headers = {"X-Request-ID": "find-me-in-the-log"}
        shared_server.client.post("/documents", json=given, headers=headers).raise_for_status()
        lines = [line for line in shared_server.log().splitlines() if "find-me-in-the-log" in line]
        assert len(lines) == 1
        assert "audited/a" in lines[0]
        assert "upload_document" in lines[0]
        assert "heliotrope" not in shared_server.log()


class TestMethods:
    READ_URLS = ("/documents", "/documents/head/a", "/documents/head/a/revisions")

    @pytest.mark.parametrize("url", [*READ_URLS, "/health", "/openapi.json", "/search?query=x"])
    def test_head_is_get_without_a_body(self, shared_server: Server, url: str) -> None:
        client = shared_server.client
        client.post("/documents", json={"path": "head/a", "content": "text"})
        head, get = client.head(url), client.get(url)
        assert head.status_code == get.status_code == 200
        assert head.content == b""
        assert head.headers["Content-Type"] == get.headers["Content-Type"]
        if url != "/health":  # says how long it took
            assert head.headers["Content-Length"] == str(len(get.content))

    def test_head_of_nothing_is_an_error_without_a_body(self, client: httpx.Client) -> None:
        answer = client.head(at("head/none"))
        assert (answer.status_code, answer.content) == (404, b"")

    @pytest.mark.parametrize(
        ("url", "allowed"),
        [
            ("/documents", "GET, POST"),
            ("/documents/x", "GET, PUT, PATCH, DELETE"),
            ("/documents/x/revisions", "GET"),
            ("/documents/x/revisions/1", "GET"),
            ("/documents/x/revisions/diff", "GET"),
            ("/documents/x/revisions/1/restore", "POST"),
            ("/batch-read", "POST"),
            ("/search", "GET, POST"),
            ("/ingest", "POST"),
            ("/health", "GET"),
            ("/metrics", "GET"),
            ("/openapi.json", "GET"),
        ],
    )
    def test_other_methods_are_refused_with_those_allowed(
        self, client: httpx.Client, url: str, allowed: str
    ) -> None:
        methods = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"}
        for method in sorted(methods - {*allowed.split(", ")}):
            answer = client.request(method, url)
            details = refusal(answer, 405, "METHOD_NOT_ALLOWED")
            assert answer.headers["Allow"] == allowed
            assert details == {"allowed": allowed.split(", ")}
        for method in allowed.split(", "):
            assert client.request(method, url).status_code != 405

    @pytest.mark.parametrize(
        "url",
        ["/", "/document", "/documentsx", "/health/", "/documents/../health/x", "/.env", "//"],
    )
    def test_an_unknown_route_is_not_found(self, client: httpx.Client, url: str) -> None:
        for method in ("GET", "POST", "DELETE"):
            refusal(client.request(method, url), 404, "NOT_FOUND")


class TestWhoMayCall:
    """A page of another site must not reach a server on this machine through the browser."""

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "evil.example:8321",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example:127.0.0.1",
            "127.0.0.1@evil.example",
            "[::2]",
            "0.0.0.0",
        ],
    )
    def test_another_host_name_is_misdirected(self, client: httpx.Client, host: str) -> None:
        answer = client.get("/documents", headers={"Host": host})
        refusal(answer, 421, "MISDIRECTED_REQUEST")

    @pytest.mark.parametrize(
        "host", ["localhost", "localhost:1", "LOCALHOST", "127.0.0.1", "127.0.0.1:80", "[::1]:8321"]
    )
    def test_loopback_names_are_ours(self, client: httpx.Client, host: str) -> None:
        assert client.get("/health", headers={"Host": host}).status_code == 200

    @pytest.mark.parametrize(
        "origin",
        [
            "http://evil.example",
            "https://localhost.evil.example",
            "http://127.0.0.1.evil.example:80",
            "null",
            "file://",
            "http://evil.example#http://localhost",
            "http://localhost@evil.example",
            "chrome-extension://abc",
            "",
        ],
    )
    def test_another_origin_may_not_call(self, client: httpx.Client, origin: str) -> None:
        given = {"path": "csrf/a", "content": "x"}
        answer = client.post("/documents", json=given, headers={"Origin": origin})
        refusal(answer, 403, "FORBIDDEN")
        refusal(client.get(at("csrf/a")), 404, "NOT_FOUND")

    @pytest.mark.parametrize(
        "origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]"]
    )
    def test_pages_of_this_machine_may(self, client: httpx.Client, origin: str) -> None:
        assert client.get("/health", headers={"Origin": origin}).status_code == 200

    def test_further_names_are_a_setting(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        environment = {
            "ZIBALDONE_ALLOWED_HOSTS": "notes.example, other.example:8443",
            "ZIBALDONE_ALLOWED_ORIGINS": "https://app.example",
        }
        data = tmp_path_factory.mktemp("named") / "data"
        with Server(data, environment=environment) as server:
            for host, status in (
                ("notes.example", 200),
                ("Notes.Example:80", 200),
                ("other.example:8443", 200),
                ("other.example:8444", 421),
                ("evil.example", 421),
            ):
                answer = server.client.get("/health", headers={"Host": host})
                assert answer.status_code == status, host
            for origin, status in (
                ("https://app.example", 200),
                ("http://app.example", 403),
                ("https://app.example:8443", 403),
            ):
                answer = server.client.get("/health", headers={"Origin": origin})
                assert answer.status_code == status, origin
