"""Environments of clients: built once, and a failure is not repeated by every test."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.clients import environments
from tests.clients.environments import CannotBuildError

PINS = ("one==1",)


class Builder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.problem: str | None = None

    def build(self) -> None:
        self.count += 1
        self.folder.mkdir()
        if self.problem is not None:
            raise CannotBuildError(self.problem)

    def ensure(self, pins: tuple[str, ...] = PINS) -> None:
        environments._ensure(self.folder, pins, self.build)

    @property
    def failure(self) -> Path:
        return self.folder.with_name("client.failed")


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "client")


def test_it_is_built_once_for_the_same_pins(builder: Builder) -> None:
    builder.ensure()
    builder.ensure()
    assert builder.count == 1
    builder.ensure(("one==2",))
    assert builder.count == 2


def test_a_failure_is_told_again_without_another_try(builder: Builder) -> None:
    builder.problem = "npm is not on this machine"
    for _ in range(3):
        with pytest.raises(CannotBuildError, match="npm is not on this machine"):
            builder.ensure()
    assert builder.count == 1
    with pytest.raises(CannotBuildError, match=r"delete .*client\.failed"):
        builder.ensure()


def test_other_pins_or_an_hour_or_a_deleted_file_try_again(builder: Builder) -> None:
    builder.problem = "no network"
    with pytest.raises(CannotBuildError):
        builder.ensure()
    os.utime(builder.failure, (time.time() - 4_000,) * 2)
    with pytest.raises(CannotBuildError):
        builder.ensure()
    builder.failure.unlink()
    with pytest.raises(CannotBuildError):
        builder.ensure()
    with pytest.raises(CannotBuildError):
        builder.ensure(("one==2",))
    assert builder.count == 4
    builder.problem = None
    builder.ensure()
    assert not builder.failure.exists()


def test_without_npm_it_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    for _ in range(2):
        with pytest.raises(CannotBuildError, match="npm is not on this machine"):
            environments.node()
    assert (tmp_path / "node.failed").is_file()
