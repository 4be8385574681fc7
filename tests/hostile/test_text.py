"""Short texts that cost much to read: the title of a document is made of its first lines."""

from __future__ import annotations

import psutil
import pytest

from tests.drivers.mcp import BOTH, JSON, SSE, Mcp
from tests.drivers.server import Server
from tests.hostile.peers import Bystander

# Eight kilobytes each; they took the old code nearly a second, in which no thread had its turn.
_BODIES = ("*" * 8_000, "a" + "_" * 8_000 + "b", "*" * 4_000 + "_" * 4_000 + "b")
_CPU_SECONDS_MAX = 4.0


@pytest.mark.parametrize("accept", ["REST", JSON, SSE, BOTH])
def test_texts_without_a_title_stop_nobody(shared_server: Server, accept: str) -> None:
    tools = Mcp(shared_server.client, headers={} if accept == "REST" else {"accept": accept})
    process = psutil.Process(shared_server.process.pid)
    with Bystander(shared_server) as bystander:
        before_s = process.cpu_times().user
        for number, body in enumerate(_BODIES * 4):
            path = f"titles/{accept}/{number}"
            if accept == "REST":
                given = {"path": path, "content": body}
                assert shared_server.client.post("/documents", json=given).status_code == 201
            else:
                assert tools.call("upload_document", path=path, content=body)["revision"] == 1
        taken_s = process.cpu_times().user - before_s
        bystander.wait_for_a_round()
    assert taken_s < _CPU_SECONDS_MAX
