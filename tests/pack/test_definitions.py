"""Definitions are recognised by the look of their line, in many languages."""

from __future__ import annotations

import time

import pytest

from zibaldone.pack.definitions import defined_names, definitions


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("def parse_url(text):", "parse_url"),
        ("    async def fetch(self):", "fetch"),
        ("class Session(Base):", "Session"),
        ("MAX_SIZE = 3", "MAX_SIZE"),
        ("timeout: float = 4.0", "timeout"),
        ("func (s *Server) Serve(l net.Listener) error {", "Serve"),
        ("func New() *Server {", "New"),
        ("type Handler interface {", "Handler"),
        ("pub(crate) async fn connect<T>(x: T) -> Result<()> {", "connect"),
        ("macro_rules! vec2 {", "vec2"),
        ("export default class App extends React.Component {", "App"),
        ("export const useStore = () => {", "useStore"),
        ("  render(props) {", "render"),
        ("export interface Props<T> {", "Props"),
        ("  public static void main(String[] args) {", "main"),
        ("    private final List<String> names(int first)", "names"),
        ("static struct foo *make_foo(struct bar *b)", "make_foo"),
        ("struct point {", "point"),
        ("#define MAX(a,b) ((a)>(b)?(a):(b))", "MAX"),
        ("void Parser::next(int x) const {", "next"),
        ("CREATE TABLE IF NOT EXISTS users (", "users"),
        ("defmodule My.App do", "App"),
        ("  def self.run(args)", "run"),
        ("fun String.toSlug(): String =", "toSlug"),
        ("function M.setup(opts)", "setup"),
        ("build() {", "build"),
        ("data class User(val id: Int)", "User"),
    ],
)
def test_a_definition_is_seen(line: str, name: str) -> None:
    assert defined_names(line) == [name]


@pytest.mark.parametrize(
    "line",
    [
        "  if (x > 3) {",
        "  return foo(bar)",
        "  for (item of items) {",
        "  } else if (a) {",
        "  foo.bar(baz)",
        "    x = compute(a,",
        "# class Foo",
        " * class of things",
        "the class of things is here",
        "from module import name",
        "impl Display for Foo {",
    ],
)
def test_other_lines_define_nothing(line: str) -> None:
    assert defined_names(line) == []


def test_places_are_those_of_the_lines() -> None:
    text = "import x\n\ndef first():\n    pass\n\n\nclass Second:\n"
    assert [(text[at:].split("\n", maxsplit=1)[0].strip(), name) for at, name in definitions(text)]
    assert [name for _, name in definitions(text)] == ["first", "Second"]


@pytest.mark.parametrize(
    "text",
    [
        "a " * 50000,
        "x." * 50000 + "(",
        ("<" * 60 + " ") * 2000 + "x(",
        "class " + "a." * 50000,
        "create" + " " * 100000,
        "public " * 20000,
        ("a b(" + "x" * 290 + ";\n") * 500,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    started_s = time.perf_counter()
    defined_names(text)
    assert time.perf_counter() - started_s < 5
