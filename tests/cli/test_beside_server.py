"""The command line and a server on the same data, both writing at the same time."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.drivers.server import COMMAND, Server, clean_environment, parsed, run_cli

FILES = 500
POSTS = 150
PATCHES = 8


def test_both_write_and_nothing_is_lost(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:03}.md").write_text(f"# File {number}\n\n" + "some words " * 100)
    server.create("shared", " ".join(f"[{number}]" for number in range(2 * PATCHES)))

    def post(number: int) -> int:
        answer = server.client.post(
            "/documents", json={"path": f"posted/{number}", "content": f"text {number}"}
        )
        return answer.status_code

    def patch_over_http(number: int) -> int:
        answer = server.client.patch(
            "/documents/shared", json={"old_str": f"[{number}]", "new_str": f"(http {number})"}
        )
        return answer.status_code

    def patch_by_command(number: int) -> int:
        arguments = ["--old", f"[{number}]", "--new", f"(cli {number})"]
        return run_cli("patch", "shared", *arguments, data=server.data).returncode

    importing = subprocess.Popen(
        [*COMMAND, "--data", str(server.data), "import", str(folder), "--prefix", "imported"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(data=server.data),
        text=True,
    )
    with ThreadPoolExecutor(6) as threads:
        posted = [threads.submit(post, number) for number in range(POSTS)]
        over_http = [threads.submit(patch_over_http, number) for number in range(PATCHES)]
        by_command = [
            threads.submit(patch_by_command, number) for number in range(PATCHES, 2 * PATCHES)
        ]
        assert {future.result() for future in posted} == {201}
        assert {future.result() for future in over_http} == {200}
        assert {future.result() for future in by_command} == {0}
    output, _ = importing.communicate(timeout=100)
    assert importing.returncode == 0, output
    assert "locked" not in output + server.log()

    listed = parsed(run_cli("ls", "--all", "--json", data=server.data))
    ids = {item["document_id"] for item in listed["items"]}
    assert ids == {
        "shared",
        *(f"posted/{number}" for number in range(POSTS)),
        *(f"imported/{number:03}.md" for number in range(FILES)),
    }
    shared = parsed(run_cli("get", "shared", "--json", data=server.data))
    assert shared["revision"] == 1 + 2 * PATCHES
    assert "[" not in shared["content"]
    checked = run_cli("doctor", "--thorough", data=server.data)
    assert checked.returncode == 0, checked.stdout


def test_the_server_sees_what_a_command_wrote(server: Server) -> None:
    assert run_cli("put", "from/cli", data=server.data, stdin="hello").returncode == 0
    assert server.client.get("/documents/from/cli").json()["content"] == "hello"
    server.create("from/server", "hello back")
    assert run_cli("get", "from/server", data=server.data).stdout == "hello back"
