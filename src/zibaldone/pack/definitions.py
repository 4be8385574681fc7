"""Where a text defines a name, in whatever programming language. Pure, and no parser.

A line defines a name if it looks like a definition in one of the common languages: a keyword
(`def`, `class`, `func`, `fn`, `struct`, `create table` …) after any modifiers, a C or Java
signature that is not a call, or a value bound at the left margin. It is a guess. A wrong one costs
little: definitions only raise a rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = r"[^\W\d][\w$]{0,99}+[!?]?"
_OWNER = r"(?:[\w$]++(?:\.|::)){0,8}"
_MODIFIER = (
    r"(?:export|default|declare|public|private|protected|internal|fileprivate|open|final|abstract"
    r"|static|inline|constexpr|virtual|override|sealed|data|partial|readonly|async|unsafe|extern"
    r"|const|pub(?:\([^()\n]{0,40}\))?|local|suspend|implicit|case|typedef|mutating|lazy)"
)
_KEYWORD = (
    r"(?:def|defp|defmodule|defmacro|defprotocol|class|function\*?|func|fn|fun"
    r"|(?:struct|enum|union)(?![ \t]++[\w$]++[ \t]*+\*)"  # not the type of what is returned
    r"|trait|interface|protocol|record|object|module|mod|namespace|type|newtype"
    r"|macro_rules!|macro|sub|proc|procedure|extension|actor|contract|message|service|rpc"
    r"|(?i:create[ \t]{1,8}(?:or[ \t]{1,8}replace[ \t]{1,8})?"
    r"(?:table|view|function|procedure|index|trigger|type)"
    r"(?:[ \t]{1,8}if[ \t]{1,8}not[ \t]{1,8}exists)?))"
)
_DECLARED = (
    rf"(?:{_MODIFIER}[ \t]++){{0,5}}{_KEYWORD}[ \t]++"
    r"(?:\([^()\n]{0,80}\)[ \t]*+)?"  # the receiver of a method in Go
    rf"{_OWNER}(?P<declared>{_NAME})"
)
_MACRO = rf"#[ \t]*+define[ \t]++(?P<macro>{_NAME})"
_NEVER_FIRST = (
    r"(?!(?:return|else|new|throw|await|if|for|while|import|from|case|yield|assert|raise|goto"
    r"|print|echo|del|not|and|or|using)\b)"
)
_BOUND = (
    r"(?<=^)(?:(?:export|pub|static|public)[ \t]++){0,2}(?:const|let|var|val|final)[ \t]++"
    rf"(?:mut[ \t]++)?(?P<bound>{_NAME})[ \t]*+(?:[:=]|$)"
)
_AT_MARGIN = rf"(?<=^)(?P<margin>{_NAME})[ \t]*+(?::[^=\n]{{1,80}})?=(?!=)"
_METHOD = (
    r"(?:(?:static|async|get|set|public|private|protected|override)[ \t]++){0,4}"
    rf"(?P<method>{_NAME})[ \t]*+\([^;{{}}\n]{{0,200}}\)[^;{{}}()\n]{{0,60}}\{{[ \t]*+$"
)
_SIGNATURE = (
    rf"(?:[\w$<>\[\],.*&:?@]{{1,60}}+[ \t]++){{1,6}}[*&]{{0,3}}{_OWNER}"
    rf"(?P<signature>~?{_NAME})[ \t]*+\([^;\n]{{0,300}}$"
)
_SHELL = rf"(?<=^)(?P<shell>{_NAME})[ \t]*+\([ \t]*+\)[ \t]*+\{{?[ \t]*+$"
_DEFINITION = re.compile(
    rf"^[ \t]*+(?:{_DECLARED}|{_MACRO}"
    rf"|(?=[\w$<@~]){_NEVER_FIRST}(?:{_BOUND}|{_AT_MARGIN}|{_SHELL}|{_METHOD}|{_SIGNATURE}))",
    re.MULTILINE,
)
_NO_NAMES = frozenset(
    """if for while switch catch return else elif do new throw await when match case with unless
    until foreach sizeof yield assert self this super import from in is not and or of to the that
    a an""".split()  # noqa: SIM905
)


def definitions(text: str) -> Iterator[tuple[int, str]]:
    """Where a line seems to define a name, and the name."""
    for found in _DEFINITION.finditer(text):
        name = found[found.lastgroup or 0]
        if name not in _NO_NAMES:
            yield found.start(), name


def defined_names(text: str) -> list[str]:
    """The names alone, in order; a name may come twice."""
    return [name for _, name in definitions(text)]
