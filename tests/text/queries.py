"""Queries of all kinds, sensible ones and others."""

from __future__ import annotations

import string

from hypothesis import strategies as st

QUERIES = st.one_of(
    st.text(),
    st.text(alphabet=string.printable),
    st.text(alphabet="ab \"-*:()+#.^{}|~\\/&_'titleNOTARD東京é\u0301\ud800\x00"),
    st.lists(
        st.sampled_from(
            [
                *("AND", "OR", "NOT", "NEAR(", ")", '"', "-", "*", "title:", "body:", "c++", "a b"),
                *("^x", "{a}", "-title:", '-"', '"x" *', "東", "東京", "é", "foo-bar", "x*", "--"),
            ]
        )
    ).map(" ".join),
)
