"""Where the data is: a path or a URL, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.kept import Kept
from zibaldone.errors import ConfigurationError
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, inspect_store, open_store, store_url


@pytest.mark.parametrize("form", ["{}", "sqlite:{}", "sqlite://{}", "SQLite:{}"])
def test_a_path_and_its_urls_are_the_same_store(tmp_path: Path, form: str) -> None:
    path = tmp_path / "deep" / "a b%20#?.db"
    store = open_store(form.format(path), Limits())
    try:
        Kept(store, Limits()).create("a")
        assert store.description == f"the SQLite file {path}"
    finally:
        store.close()
    assert path.is_file()


def test_a_relative_path_counts_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:sub/x.db", Limits()).close()
    open_store("y.db", Limits()).close()
    assert (tmp_path / "sub" / "x.db").is_file()
    assert (tmp_path / "y.db").is_file()


@pytest.mark.parametrize("folder", ["data", "sqlite:data", "postgresql:", "a:b"])
def test_without_a_url_it_is_the_file_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for data in (Path(folder), tmp_path / folder):
        open_store(store_url(data), Limits()).close()
        assert [file.name for file in data.iterdir()] == [DATABASE_NAME]
    assert store_url(Path("data"), "other.db") == "other.db"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:secret@host:x/kb", "URL is not well formed"),
        ("postgres://me:secret@host/kb?connections_max=none", "must be a whole number"),
        ("mysql://me:secret@host/kb", "no engine for mysql: URLs"),
        ("sqlite://host/kb.db", "takes a path, not a host"),
        ("sqlite:", "must name a file"),
        ("folder/", "must name a file"),
        ("~nobody-of-that-name/x.db", "home of no user"),
    ],
)
def test_other_urls_are_refused_without_repeating_a_password(url: str, message: str) -> None:
    for function in (inspect_store, lambda url: open_store(url, Limits())):
        with pytest.raises(ConfigurationError, match=message) as refusal:
            function(url)
        assert "secret" not in str(refusal.value)


def test_looking_at_a_store_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    place = inspect_store(str(path))
    assert (place.engine, place.is_made, place.problem) == ("sqlite", False, "")
    assert not path.exists()
    open_store(str(path), Limits()).close()
    assert inspect_store(str(path)).is_made
