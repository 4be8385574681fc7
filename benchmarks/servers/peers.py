"""Other people's servers, each in an environment that is built when it is first needed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.servers.process import ServerProcess

_HERE = Path(__file__).resolve().parent
_ENVIRONMENTS = _HERE.parents[1] / ".cache" / "bench"

_SAME_AS_OURS = tuple(f"{name}=={version(name)}" for name in ("uvicorn", "uvloop", "httptools"))
"""The libraries are compared, not the HTTP server under them."""


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    package: str
    script: str
    options: tuple[str, ...] = ()

    def start(self) -> ServerProcess:
        return ServerProcess((_python(self.package), _HERE / self.script, *self.options))


MCP_LOWLEVEL = Peer("mcp 2.3.0 low-level", "mcp==2.3.0", "peer_mcp.py")
MCP_SESSION = Peer("the same in a session", "mcp==2.3.0", "peer_mcp.py", ("--stateful",))
FASTMCP = Peer("fastmcp 4.1.2", "fastmcp==4.1.2", "peer_fastmcp.py")


def _python(package: str) -> Path:
    pins = (package, *_SAME_AS_OURS)
    folder = _ENVIRONMENTS / package.replace("==", "-")
    interpreter, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join((sys.version, *pins))
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"building an environment for {package} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = (interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run([*pip, *pins], check=True, stderr=subprocess.DEVNULL)
        stamp.write_text(wanted)
    return interpreter
