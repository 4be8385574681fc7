from __future__ import annotations

import pytest

from zibaldone.text.fulltext_escape import escape_query


@pytest.mark.requirement("SC-14")
@pytest.mark.parametrize("token", ["&&", "||", *'+-!(){}[]^"~*?:\\/'])
def test_each_operator_gets_one_backslash(token: str) -> None:
    assert escape_query(f"a{token}b") == f"a\\{token}b"


@pytest.mark.requirement("SC-14")
def test_pairs_are_one_operator_and_single_ones_are_none() -> None:
    assert escape_query("a && b || c & d | e") == "a \\&& b \\|| c & d | e"
    assert escape_query("&&&") == "\\&&&"
    assert escape_query("größe 42, naïve_term") == "größe 42, naïve_term"
