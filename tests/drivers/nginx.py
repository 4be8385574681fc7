"""Debian's nginx in front of a server, under the very configuration that docs/howto/ ships."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx2 as httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.drivers.debian import debian_program
from tests.drivers.server import Server, free_port

CONFIGURATION = Path(__file__).parents[2] / "docs" / "howto" / "nginx.conf"
HOST = "kb.example.org"
_WAIT_SECONDS_MAX = 20

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


class Nginx:
    def __init__(self, folder: Path, *servers: Server) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._command = debian_program("nginx", "nginx-light")
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
