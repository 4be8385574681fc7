"""URLs of databases as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from zibaldone.errors import InvalidArgument
from zibaldone.pull.address import database_url


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("/srv/shop.db", "sqlite:////srv/shop.db"),
        ("sqlite:////srv/shop.db", "sqlite:////srv/shop.db"),
        ("sqlite:///${SHOP}", "sqlite:///${SHOP}"),
        ("$SHOP_URL", "${SHOP_URL}"),
        ("${SHOP_URL}", "${SHOP_URL}"),
        ("mysql://a:$PASSWORD@host/shop", "mysql://a:${PASSWORD}@host/shop"),
        ("mysql+pymysql://a:${PASSWORD}@host/shop", "mysql+pymysql://a:${PASSWORD}@host/shop"),
        ("postgresql://$USER:${WORD}@host/shop", "postgresql://${USER}:${WORD}@host/shop"),
    ],
)
def test_what_is_kept(given: str, kept: str) -> None:
    assert database_url(given) == kept
    assert database_url(kept) == kept


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    for given in ("shop.db", "sqlite:///shop.db", "./shop.db"):
        assert database_url(given) == f"sqlite:///{tmp_path}/shop.db"
    assert database_url("~/shop.db") == "sqlite:////home/me/shop.db"
    (tmp_path / "odd:name.db").touch()
    assert database_url("odd:name.db") == f"sqlite:///{tmp_path}/odd:name.db"


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="sqlite:///PATH"):
        database_url("mysql:host/shop")
