"""Debian's nginx in front of a server, under the very configuration that docs/howto/ ships."""

from __future__ import annotations

import datetime
import fcntl
import ipaddress
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx2 as httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.drivers.server import Server, free_port

CONFIGURATION = Path(__file__).parents[2] / "docs" / "howto" / "nginx.conf"
HOST = "kb.example.org"
_WAIT_SECONDS_MAX = 20
_FORGET_FAILURE_SECONDS = 3_600

# What the file cannot know of this machine; everything else in it runs as it stands.
_MAIN = """
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 128; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/zibaldone.conf;
}}
"""


def nginx_command() -> str:
    """The program, installed first where that is possible; by one of several test processes.

    TESTS_NGINX names another program; empty means that there is none.
    """
    chosen = os.environ.get("TESTS_NGINX")
    found = _found_or_installed() if chosen is None else shutil.which(chosen)
    if found is None:
        pytest.skip("nginx is not installed; Debian: apt-get install nginx-light")
    return found


def _found_or_installed() -> str | None:
    with (Path(tempfile.gettempdir()) / "zibaldone-nginx.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _found()
        if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
            if time.time() - _failed_at(lock) < _FORGET_FAILURE_SECONDS:
                return None
            found = _installed()
            if found is None:
                lock.truncate(0)
                lock.write(str(time.time()))
        return found


def _failed_at(lock: IO[str]) -> float:
    """When installing failed last: without a network each try takes minutes."""
    lock.seek(0)
    return float(lock.read() or 0)


def _installed() -> str | None:
    install = ["apt-get", "install", "-y", "--no-install-recommends", "nginx-light"]
    for command in (install, ["apt-get", "update"], install):
        subprocess.run(
            command,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if _found() is not None:
            break
    return _found()


def _found() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class Nginx:
    def __init__(self, folder: Path, *servers: Server) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._command = nginx_command()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        _write_certificate(folder / "certificate.pem", folder / "key.pem")
        (folder / "zibaldone.conf").write_text(self._configuration(servers))
        user = "user root;" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(_MAIN.format(folder=folder, user=user))
        self.trusted = ssl.create_default_context(cafile=folder / "certificate.pem")
        self.client = httpx.Client(
            base_url=self.url,
            headers={"Host": HOST},
            verify=self.trusted,
            timeout=30,
            trust_env=False,
        )

    def _configuration(self, servers: Sequence[Server]) -> str:
        text = CONFIGURATION.read_text()
        upstream = "\n    ".join(f"server 127.0.0.1:{server.port};" for server in servers)
        lives = f"/etc/letsencrypt/live/{HOST}"
        for written, here in (
            ("server 127.0.0.1:8321;", upstream),
            ("listen 443 ssl;", f"listen 127.0.0.1:{self.port} ssl;"),
            (f"{lives}/fullchain.pem", str(self.folder / "certificate.pem")),
            (f"{lives}/privkey.pem", str(self.folder / "key.pem")),
            ("/var/log/nginx/zibaldone.log", str(self.access_log)),
        ):
            assert text.count(written) == 1, written
            text = text.replace(written, here)
        return text

    @property
    def access_log(self) -> Path:
        return self.folder / "access.log"

    def __enter__(self) -> Self:
        with (self.folder / "stderr.log").open("wb") as stderr:
            self._process = subprocess.Popen(
                [self._command, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        self.wait_for(self._is_up)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=_WAIT_SECONDS_MAX)

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.logs()
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + _WAIT_SECONDS_MAX
        while not condition():
            assert time.monotonic() < deadline_s, self.logs()
            time.sleep(0.01)

    def logs(self) -> str:
        """Everything it wrote, whichever file it chose."""
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(file.read_text(errors="replace") for file in files)

    def access_line(self, answer: httpx.Response) -> str:
        """The line of one request; nginx writes it after the answer has gone out."""
        found: list[str] = []

        def is_there() -> bool:
            lines = self.access_log.read_text().splitlines()
            found[:] = [line for line in lines if answer.headers["X-Request-ID"] in line]
            return bool(found)

        self.wait_for(is_there)
        (line,) = found
        return line


def _write_certificate(certificate: Path, key_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
