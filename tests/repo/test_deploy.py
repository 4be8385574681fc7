"""Dockerfile, compose.yaml and the systemd unit say what the product understands.

No container is built here. What can be tried without is: every command line, every setting, the
health check against a real server, and the unit by systemd's own tools where they are installed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.drivers.server import Server, free_port
from zibaldone import settings
from zibaldone.cli.main import commands
from zibaldone.store.postgres.address import Address

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "zibaldone.service"
GUIDES = ("backup", "docker", "systemd", "upgrade")
EXPOSURE_MAX = 2.0
"""As systemd-analyze counts, of 10; a unit without any of this has 9.6."""


def instructions() -> list[tuple[str, str]]:
    """What the Dockerfile says: words and the rest, lines that go on joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def those(word: str) -> list[str]:
    return [rest for name, rest in instructions() if name == word]


def unit() -> dict[str, list[str]]:
    """The values of each directive of the unit."""
    values: dict[str, list[str]] = {}
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            values.setdefault(name, []).append(value)
    return values


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def understands(arguments: list[str]) -> None:
    """--help comes after the options were read, so an unknown one is refused before."""
    result = CliRunner().invoke(commands, [*arguments, "--help"])
    assert result.exit_code == 0, (arguments, result.output)


def ours(variables: dict[str, str]) -> settings.Settings:
    """An unknown setting is an error."""
    known = {name: value for name, value in variables.items() if name.startswith("ZIBALDONE_")}
    return settings.load({}, known)


class TestDockerfile:
    def test_what_is_copied_is_there_and_sent(self) -> None:
        sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        for rest in those("COPY"):
            if not rest.startswith("--from"):
                *names, _ = rest.split()
                assert all((ROOT / name).exists() for name in names)
                assert all(f"!{name}" in sent for name in names)

    def test_what_is_installed_exists(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert '".[${EXTRAS}]"' in " ".join(those("RUN"))
        extras = dict(argument.split("=") for argument in those("ARG"))["EXTRAS"]
        assert set(extras.split(",")) <= project["optional-dependencies"].keys() - {"dev"}
        pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
        (alone,) = re.findall(r"--no-deps ([\w ]+?) +&&", " ".join(those("RUN")))
        assert alone.split() == ["onnxruntime", "tokenizers"]
        assert all(re.search(rf"^{name}==", pinned, re.MULTILINE) for name in alone.split())

    def test_it_runs_as_nobody_in_particular_and_says_how_it_is(self) -> None:
        names = [name for name, _ in instructions()]
        last = len(names) - 1 - names[::-1].index("FROM")
        assert "USER" in names[last:]
        assert all(user.isdecimal() and int(user) > 0 for user in those("USER"))
        assert those("VOLUME") == ["/data"]
        assert len(those("HEALTHCHECK")) == 1

    def test_no_image_is_named_by_an_address(self) -> None:
        images = [*those("FROM"), *(service["image"] for service in compose()["services"].values())]
        assert all("." not in image.partition("/")[0].partition(":")[0] for image in images)

    def test_the_command_and_the_settings_are_understood(self) -> None:
        (entry,), (command,) = those("ENTRYPOINT"), those("CMD")
        assert json.loads(entry) == ["zibaldone"]
        understands(json.loads(command))
        variables = dict(pair.split("=", 1) for line in those("ENV") for pair in line.split())
        chosen = ours(variables)
        assert (str(chosen.data), chosen.host) == ("/data", "0.0.0.0")
        assert those("EXPOSE") == [str(chosen.port)]

    def test_the_health_check_tells_a_server_from_none(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        (check,) = those("HEALTHCHECK")
        _, *arguments = json.loads(check[check.index("[") :])

        def is_healthy(port: int) -> bool:
            environment = {"ZIBALDONE_PORT": str(port), "http_proxy": "http://127.0.0.1:1"}
            tried = subprocess.run(
                [sys.executable, *arguments], env=environment, capture_output=True, check=False
            )
            return tried.returncode == 0

        with Server(tmp_path_factory.mktemp("health") / "data") as server:
            assert is_healthy(server.port)
        assert not is_healthy(free_port())


class TestCompose:
    def test_the_services(self) -> None:
        server, database = compose()["services"]["zibaldone"], compose()["services"]["db"]
        understands(server["command"])
        store = ours(server["environment"]).store
        address = Address.parse(store)
        assert address.parameters["host"] == "db"
        assert address.parameters["user"] == database["environment"]["POSTGRES_USER"]
        assert address.parameters["dbname"] == database["environment"]["POSTGRES_DB"]
        assert server["depends_on"] == {"db": {"condition": "service_healthy"}}
        assert database["healthcheck"]["test"][0] == "CMD"
        assert all(port.startswith("127.0.0.1:") for port in server["ports"])
        assert "ports" not in database
        assert server["cap_drop"] == ["ALL"]
        assert server["read_only"] is True

    def test_it_holds_no_password(self) -> None:
        for service in compose()["services"].values():
            for name, value in service["environment"].items():
                if "PASSWORD" in name:
                    assert value.startswith("${POSTGRES_PASSWORD:?")


class TestUnit:
    def test_the_command_and_the_settings_are_understood(self) -> None:
        (start,) = unit()["ExecStart"]
        program, *arguments = shlex.split(start)
        assert program == "/opt/zibaldone/bin/zibaldone"
        understands(arguments)
        variables = dict(value.split("=", 1) for value in unit()["Environment"])
        assert str(ours(variables).data) == f"/var/lib/{unit()['StateDirectory'][0]}"
        assert float(unit()["TimeoutStopSec"][0]) > settings.Settings().limits.shutdown_seconds_max

    @pytest.fixture
    def analysed(self, tmp_path: Path) -> tuple[str, Path]:
        analyse = shutil.which("systemd-analyze")
        if analyse is None:
            pytest.skip("systemd-analyze is not installed (Debian: apt-get install systemd)")
        program = tmp_path / "zibaldone"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        file = tmp_path / "zibaldone.service"
        text = UNIT.read_text(encoding="utf-8")
        file.write_text(text.replace("/opt/zibaldone/bin/zibaldone", str(program)))
        return analyse, file

    def test_systemd_understands_every_line(self, analysed: tuple[str, Path]) -> None:
        analyse, file = analysed
        verified = subprocess.run(
            [analyse, "verify", str(file)], capture_output=True, text=True, check=False
        )
        assert (verified.returncode, verified.stderr) == (0, "")

    def test_it_may_do_little(self, analysed: tuple[str, Path]) -> None:
        analyse, file = analysed
        arguments = ["security", "--offline=true", "--no-pager", str(file)]
        rated = subprocess.run([analyse, *arguments], capture_output=True, text=True, check=False)
        if "unrecognized option" in rated.stderr:
            pytest.skip("this systemd-analyze cannot rate a unit that is not installed")
        (exposure,) = re.findall(r"exposure level for zibaldone.service: ([\d.]+)", rated.stdout)
        assert float(exposure) < EXPOSURE_MAX, rated.stdout


@pytest.mark.parametrize("guide", GUIDES)
def test_the_commands_of_the_how_to_exist(guide: str) -> None:
    text = (ROOT / "docs" / "howto" / f"{guide}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```(?:sh|console)\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    found = [
        re.search(r"(?:bin/|^ *(?:\$ )?|:/data |run --rm |exec )zibaldone (.+)", line)
        for line in lines
    ]
    assert any(found)
    for match in found:
        if match is not None:
            words = shlex.split(match[1], comments=True)
            understands([word for word in words if word != "zibaldone"])
