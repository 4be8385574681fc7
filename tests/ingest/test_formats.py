"""reStructuredText, Org and notebooks become Markdown; texts in any encoding become text."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.commands import Commands
from zibaldone.errors import InvalidArgument
from zibaldone.ingest.extract import extract
from zibaldone.text.chunk import chunk_document

RST = """\
.. _deploy:

========
Deploying
========

.. toctree::

   other

See :ref:`the guide <guide>`, :func:`os.path.join` and `Python <https://python.org>`_. Use ``make``.

First steps
===========

Run this::

    make serve

Then
----

.. code-block:: python
   :linenos:

   print("#")

.. note:: Mind the *gap*.

   And the step.

.. a comment
   over two lines

>>> 1 + 1
2

Last
====

Done.
"""

RST_MARKDOWN = """\
# Deploying

See the guide, `os.path.join` and [Python](https://python.org). Use `make`.

## First steps

Run this:

```
make serve
```

### Then

```python
print("#")
```

**Note:** Mind the *gap*.

And the step.

```python
>>> 1 + 1
2
```

## Last

Done."""

ORG = """\
#+TITLE: Deploying
#+FILETAGS: :ops:web:
#+DATE: <2026-01-02 Fri>
#+STARTUP: overview
# a comment
* TODO [#A] First steps :urgent:
:PROPERTIES:
:ID: 1
:END:
Use =make=, *bold* and /slanted/ words; see [[https://e.org/x][the page]].
#+BEGIN_SRC sh
  make serve
#+END_SRC
** Then
| a | b |
|---+---|
| 1 | 2 |
"""

ORG_MARKDOWN = """\
---
title: Deploying
tags:
- ops
- web
date: 2026-01-02 Fri
---

# Deploying

## TODO First steps
Use `make`, **bold** and *slanted* words; see [the page](https://e.org/x).

```sh
make serve
```

### Then
| a | b |
|---|---|
| 1 | 2 |"""

NOTEBOOK = {
    "nbformat": 4,
    "metadata": {"kernelspec": {"language": "python", "name": "python3"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Analysis\n", "\n", "Why."]},
        {
            "cell_type": "code",
            "source": "print('```')",
            "outputs": [{"output_type": "stream", "text": "printed words"}],
        },
        {"cell_type": "code", "source": [], "outputs": []},
        {"cell_type": "markdown", "source": "## Result"},
    ],
}

NOTEBOOK_MARKDOWN = "# Analysis\n\nWhy.\n\n```python\nprint('```')\n```\n\n## Result"


@pytest.mark.parametrize(
    ("name", "source", "markdown", "title"),
    [
        ("a.rst", RST, RST_MARKDOWN, "Deploying"),
        ("a.org", ORG, ORG_MARKDOWN, "Deploying"),
        ("a.ipynb", json.dumps(NOTEBOOK), NOTEBOOK_MARKDOWN, "Analysis"),
    ],
)
def test_markup_becomes_markdown(name: str, source: str, markdown: str, title: str) -> None:
    extracted = extract(source.encode(), name=name)
    assert extracted.text == markdown
    assert (extracted.title, extracted.mime) == (title, "text/markdown")


def test_chunks_know_their_heading() -> None:
    chunks = chunk_document(extract((RST + "words " * 900).encode(), name="a.rst").text)
    assert chunks[-1].heading == "Deploying > Last"


def test_the_fence_of_code_is_longer_than_any_in_it() -> None:
    cell = {"cell_type": "code", "source": "```\nx\n```"}
    text = extract(json.dumps({"cells": [cell]}).encode(), name="a.ipynb").text
    assert text == "````\n```\nx\n```\n````"


def test_notebooks_that_are_none() -> None:
    for source in (b"{", b"[]", b"{}", b'{"cells": [1, {"source": 3}]}'):
        with pytest.raises(InvalidArgument):
            extract(source, name="a.ipynb")


@pytest.mark.parametrize("name", ["a.rst", "a.org", "a.ipynb"])
@given(
    lines=st.lists(
        st.sampled_from(
            [
                *("", "Title", "=====", "-----", ".. note:: x", "   deeper", "::", "x::", ">>> 1"),
                *(".. code:: c", "* head", "** b :t:", "#+begin_src", "#+end_src", ":x:", ":END:"),
                *(
                    "#+TITLE: t",
                    "|-+-|",
                    "`a <b>`_ ``c`` :r:`~d.e`",
                    "[[a][b]] *c* /d/",
                    "..",
                    "  ",
                ),
            ]
        ),
        max_size=12,
    )
)
def test_any_lines_are_text_or_refused(name: str, lines: list[str]) -> None:
    with suppress(InvalidArgument):
        extract("\n".join(lines).encode(), name=name)


@pytest.mark.parametrize(
    "hostile",
    [
        *("``" * 250_000, ":a:`" * 100_000, ".. a" + " " * 500_000, "`a <" * 100_000),
        *("[[a" * 100_000, "*a " * 60_000, ".. x::\n\n" * 25_000, "* a\n" * 25_000),
        *("a::\n" + "\n" * 200_000 + " b", "a::\n b" + "\n" * 200_000 + " c"),
        *("* a" + " " * 200_000 + "b", "#+FILETAGS: " + "a " * 250_000),
    ],
)
def test_time_grows_with_the_length_only(hostile: str) -> None:
    for name in ("a.rst", "a.org"):
        started_s = time.process_time()
        extract(("x\n" + hostile).encode(), name=name)
        assert time.process_time() - started_s < 20


SENTENCES = {
    "cp1252": "Die Größe der Tür über dem Fluß – naïve “Übung” für 5 €.",
    "latin-1": "Le café où l'élève a étudié était très fréquenté.",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "cp1251": "Съешь же ещё этих мягких французских булок.",
    "koi8-r": "В чащах юга жил был цитрус, да но фальшивый экземпляр.",
    "cp1253": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία και την αλήθεια.",
    "cp1255": "דג סקרן שט בים מאוכזב ולפתע מצא חברה",
    "cp1256": "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر",
    "shift_jis": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "euc_jp": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "iso2022_jp": "吾輩は猫である。名前はまだ無い。",
    "euc_kr": "모든 국민은 법 앞에 평등하다. 누구든지 차별을 받지 아니한다.",
    "gb18030": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。",
    "big5": "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心。",
    "utf-8-sig": "Größe – 猫",
    "utf-16": "Größe – 猫",
    "utf-16-le": "Größe of plain text – and some words.",
    "utf-16-be": "Größe of plain text – and some words.",
    "utf-32": "Größe – 猫",
}


@pytest.mark.parametrize("encoding", SENTENCES)
def test_encodings_are_detected(encoding: str) -> None:
    sentence = SENTENCES[encoding]
    data = f"# Heading\r\n\r\n{sentence}\r\n".encode(encoding)
    assert extract(data, name="a.md").text == f"# Heading\n\n{sentence}\n"


def test_a_few_wrong_bytes_do_not_change_the_encoding() -> None:
    data = "Größe, Übung, Straße, Tür".encode() + b" \xff and \xe4"
    assert extract(data, name="a.txt").text.startswith("Größe, Übung, Straße, Tür \ufffd and")


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01" + bytes(range(256)),
        bytes(range(1, 32)) * 8 + b"\xff\xfe\xfd",
        b"\x93\x01\x02\x85\x03\x04\xff\x05" * 50,
        b"ab\0cd",
    ],
)
def test_binary_files_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgument, match="binary"):
        extract(data, name="a.txt")


def test_headings_of_sphinx_have_no_links_to_themselves() -> None:
    page = (
        '<h1>Intro<a class="headerlink" href="#intro" title="Link to this heading">\u00b6</a></h1>'
        '<h2>Next <a href="#next">#</a></h2><p>Read <a href="#more">more</a>.</p>'
        '<h2>Last<a class="headerlink" href="#last">Permalink</a></h2><p>End.</p>'
    )
    extracted = extract(page.encode(), name="a.html")
    assert extracted.title == "Intro"
    assert extracted.text == "# Intro\n\n## Next\n\nRead [more](#more).\n\n## Last\n\nEnd."


def test_all_of_it_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.rst").write_text(RST)
    (folder / "b.org").write_text(ORG)
    (folder / "c.ipynb").write_text(json.dumps(NOTEBOOK))
    (folder / "d.txt").write_bytes(SENTENCES["shift_jis"].encode("shift_jis"))
    (folder / "e.md").write_bytes(SENTENCES["latin-1"].encode("latin-1"))
    (folder / "f.txt").write_bytes(bytes(range(256)))
    cli = Commands(tmp_path / "data")
    summary = cli.json("import", str(folder))
    assert (summary["created"], summary["failed"]) == (5, 1)
    assert "binary" in summary["problems"][0]["reason"]
    assert cli.ok("get", "a.rst") == RST_MARKDOWN
    assert cli.ok("get", "d.txt") == SENTENCES["shift_jis"]
    assert cli.ok("get", "e.md") == SENTENCES["latin-1"]
    assert cli.json("import", str(folder))["unchanged"] == 5
