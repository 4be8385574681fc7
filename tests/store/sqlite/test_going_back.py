"""Going back: listing needs neither its index nor the newest code."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.drivers.server import clean_environment, parsed, run_cli
from tests.store.backends import Sqlite
from tests.store.kept import Kept
from zibaldone.limits import Limits

ROOT = Path(__file__).resolve().parents[3]
MIGRATIONS = "src/zibaldone/store/sqlite/migrations"
PATHS = ["a", "a/b", "knowledge/ä", "knowledge/z_1", "knowledge/z1", "z"]


@pytest.fixture
def filled(data: Path) -> Path:
    store = Sqlite(data).open(Limits())
    kept = Kept(store, Limits())
    for path in [*PATHS, "gone"]:
        kept.create(path, f"The text of {path}")
    kept.delete("gone")
    store.close()
    return data


def git(*arguments: str) -> bytes:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and the history of this repository")
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, check=True
    ).stdout.strip()


def first_with_this_schema() -> str:
    """The commit that last changed the schema: the oldest code that opens such a file."""
    commit = git("log", "-1", "--format=%H", "--", MIGRATIONS).decode()
    assert commit, "the history is cut off; fetch all of it"
    return commit


@pytest.mark.requirement("000/P1.12")
def test_the_oldest_code_of_this_schema_lists_what_the_newest_wrote(
    filled: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    packed = io.BytesIO(git("archive", first_with_this_schema(), "src"))
    with tarfile.open(fileobj=packed) as archive:
        archive.extractall(older, filter="data")
    program = "from zibaldone.cli.main import main; import zibaldone; print(zibaldone.__file__)"
    environment = {**clean_environment(), "PYTHONPATH": str(older / "src")}
    where = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert where.stdout.startswith(str(older)), "the older code is what runs"
    listed = subprocess.run(
        [sys.executable, "-m", "zibaldone", "--data", str(filled), "ls", "--json"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    assert json.loads(listed.stdout) == parsed(run_cli("ls", "--json", data=filled))


@pytest.mark.requirement("000/P1.12")
@pytest.mark.parametrize("prefix", ["", "knowledge/z_"])
def test_without_its_index_a_list_is_the_same(filled: Path, prefix: str) -> None:
    before = parsed(run_cli("ls", prefix, "--json", data=filled))
    assert [item["document_id"] for item in before["items"]] == [
        path for path in sorted(PATHS, key=str.encode) if path.startswith(prefix)
    ]
    Sqlite(filled).execute("DROP INDEX documents_live")
    assert parsed(run_cli("ls", prefix, "--json", data=filled)) == before
