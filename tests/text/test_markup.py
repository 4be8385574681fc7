"""HTML of rows becomes Markdown, in time that grows with its length."""

from __future__ import annotations

import time

import pytest

from zibaldone.text.markup import looks_like_html, to_markdown


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("", ""),
        ("plain text", "plain text"),
        ("a &lt; b &amp;&amp; c &#233; &unknown;", "a < b && c é &unknown;"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<p>one\n   two</p>", "one two"),
        ("<p>a<br>b<br/>c</p>", "a\nb\nc"),
        ("<h1>Top</h1><h3>Sub</h3>text", "# Top\n\n### Sub\n\ntext"),
        ("<b>bold</b> <em>light</em> <code>x</code>", "**bold** *light* `x`"),
        ("<pre><code>a = 1\n\n  b &lt; 2\n</code></pre>", "```\na = 1\n\n  b < 2\n```"),
        ("<p>x</p><pre>y</pre><p>z</p>", "x\n\n```\ny\n```\n\nz"),
        ("<ul><li>a</li><li>b</li></ul>after", "- a\n- b\n\nafter"),
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
        ("<blockquote><p>a</p><p>b</p></blockquote><p>c</p>", "> a\n>\n> b\n\nc"),
        ('<a href="https://x.y/?a=1&amp;b">t</a>', "[t](https://x.y/?a=1&b)"),
        ("<a href='javascript:x()'>t</a><a>u</a>", "tu"),
        ('<img src="x.png" alt="a picture">', "a picture"),
        (
            "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>",
            "a | b\n1 | 2",
        ),
        ("<script>alert('<p>')</script>x<style>p{}</style>", "x"),
        ("<SCRIPT>a</SCRIPT>b", "b"),
        ("a<!-- hidden <p> -->b", "ab"),
        ("a<!-- never closed", "a"),
        ("<!DOCTYPE html><p>a</p>", "a"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("if (a<b) c", "if (a<b) c"),
        ("<a title='a > b' href=x>t</a>", "[t](x)"),
        ("<p unclosed", "<p unclosed"),
        ("</p></ul></a></pre>x", "x"),
        ("x<hr>y", "x\n\n---\n\ny"),
        ("&#" + "9" * 5_000 + ";", "&#" + "9" * 5_000 + ";"),
    ],
)
def test_what_a_reader_reads(html: str, markdown: str) -> None:
    assert to_markdown(html) == markdown


@pytest.mark.parametrize(
    ("text", "is_html"),
    [
        ("<p>a</p>", True),
        ("a<br>b", True),
        ("see <b>this</b>", True),
        ("List<String> names", False),
        ("a < b > c", False),
        ("plain", False),
    ],
)
def test_what_looks_like_html(text: str, is_html: bool) -> None:
    assert looks_like_html(text) is is_html


HOSTILE = {
    "comments": "<!--",
    "brackets": "<",
    "tags": "<a ",
    "quotes": '<a x="',
    "both quotes": "<a '\"",
    "lists": "<ul><li>",
    "quotations": "<blockquote>x",
    "scripts": "<script>",
    "closed scripts": "<script></script",
    "declarations": "<![CDATA[",
    "references": "&#x",
    "links": "<a href=x>",
    "code": "<pre>",
    "quoted ends": "<a b='>",
    "blanks": "<p>" + " " * 50,
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_markup_takes_time_by_its_length(unit: str) -> None:
    """Four times the markup may take about four times as long; quadratic would be sixteen."""
    short, long = (unit * (size // len(unit)) for size in (50_000, 200_000))

    def seconds(markup: str) -> float:
        began_s = time.process_time()
        to_markdown(markup)
        return time.process_time() - began_s

    taken_s = min(seconds(short) for _ in range(3))
    assert min(seconds(long) for _ in range(2)) < 11 * taken_s + 0.2


@pytest.mark.parametrize(
    "markup",
    [
        "<a " + '"' * 3_000_000 + ">",
        "<a " + "'\"\"'" * 250_000 + ">",
        "<a " * 300_000 + '">"',
        '<a ">" ' * 100_000 + "'",
        '<a "' * 250_000 + '">"',
    ],
    ids=["quotes", "both", "tags before quotes", "a quote alone", "quoted tags"],
)
def test_quotes_in_tags_are_passed_over_once(markup: str) -> None:
    began_s = time.thread_time()
    to_markdown(markup)
    assert time.thread_time() - began_s < 5


def test_quotes_that_leave_a_tag_without_an_end_do_not_count() -> None:
    assert to_markdown("<p title='a>b'>one</p>") == "one"
    assert to_markdown("<p title='>one</p>") == "one"
    assert to_markdown('<p>one <b "x> "two') == 'one ** "two'


@pytest.mark.parametrize("deep", ["<br>x", "<pre>" + "\n" * 50_000, "<li>"])
def test_nesting_does_not_make_a_text_far_longer(deep: str) -> None:
    markup = "<blockquote>" * 20 + "<ul>" * 20 + deep * (50_000 // len(deep))
    assert len(to_markdown(markup)) < 4 * len(markup)
