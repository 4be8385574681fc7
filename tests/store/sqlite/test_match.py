"""Texts and queries in FTS5: what is written is found, whatever the script."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.text.queries import QUERIES
from zibaldone.model.query import Query
from zibaldone.store.sqlite.match import TOKENIZER, column_text, to_fts5
from zibaldone.text.query import parse_query
from zibaldone.text.terms import index_terms


class Index:
    """The keyword index as the store declares it."""

    def __init__(self) -> None:
        self._connection = apsw.Connection(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE chunks USING fts5(title, heading, body, "
            f"content = '', contentless_delete = 1, tokenize = \"{TOKENIZER}\")"
        )
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(chunks, instance)")

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, body: str, title: str = "", heading: str = "") -> int:
        columns = [column_text(index_terms(text)) for text in (title, heading, body)]
        self._connection.execute(
            "INSERT INTO chunks (title, heading, body) VALUES (?, ?, ?)", columns
        )
        return self._connection.last_insert_rowid()

    def find(self, query: str | Query, *, require_all: bool = False) -> list[int]:
        asked = parse_query(query) if isinstance(query, str) else query
        match = to_fts5(asked, require_all=require_all)
        if not match:
            return []
        return [
            rowid
            for (rowid,) in self._connection.execute(
                "SELECT rowid FROM chunks WHERE chunks MATCH ? ORDER BY rank, rowid", (match,)
            )
        ]

    def stored(self) -> list[str]:
        rows = self._connection.execute("SELECT term FROM terms ORDER BY doc, col, offset")
        return [term for (term,) in rows]


@pytest.fixture
def index() -> Iterator[Index]:
    with Index() as opened:
        yield opened


TEXTS = {
    "english": "The committees were discussing configurations of heated aircraft.",
    "german": "Die größte Straße Münchens heißt Fürstenrieder Straße.",
    "french": "Les élèves naïfs étaient là dès l'été.",
    "vietnamese": "Đội tuyển bóng đá Việt Nam giành chiến thắng tại Hà Nội.",
    "chinese": "数据库支持全文检索和向量搜索。",
    "japanese": "東京都庁舎は新宿区にあります。カタカナとひらがな。",
    "thai": "ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำ",
    "hindi": "हिन्दी विश्व की एक प्रमुख भाषा है।",
    "korean": "서울에서 부산까지 기차로 갑니다.",
    "russian": "Ёлка стоит в новом районе, чай горячий.",
    "arabic": "اللغة العربية لغة جميلة",
    "greek": "Στην Ελλάδα έχει πολλούς φίλους.",
    "code": "def json_extract(path): return HTTPServer.load(path, 'src/app/main.py')  # C++ API",
}

WANTED = {
    "english": ["committee", "configuration", "heated aircraft", "CONFIGURATIONS", "discuss*"],
    "german": ["größte", "grosste", "GRÖSSTE", "Straße", "strasse", "munchens", "Münchens"],
    "french": ["élèves", "eleves", "naif", "été", "ete"],
    "vietnamese": ["bóng đá", "bong da", "Việt Nam", '"viet nam"', '"Việt Nam"', "doi tuyen"],
    "chinese": ["数据库", "全文检索", "库", "索", "向量搜索", '"支持全文"', "据"],
    "japanese": ["東京", "新宿区", "カタカナ", "ひらがな", "庁", "区", "ﾀｶﾅ", '"東京都庁舎"'],
    "thai": ["ภาษา", "ภาษาไทย", "ระดับเสียง", "คำ", "ไ"],
    "hindi": ["हिन्दी", "भाषा", "प्रमुख भाषा", '"विश्व की"'],
    "korean": ["서울", "부산", "기차", "서"],
    "russian": ["елка", "ёлка", "районе", "чай", "ГОРЯЧИЙ"],
    "arabic": ["العربية", "اللُّغة"],
    "greek": ["ελλαδα", "Ελλάδα", "ΦΊΛΟΥΣ"],
    "code": [
        *("json_extract", "json", "extract", "HTTPServer", "httpserver", "server", "main.py"),
        *("src/app/main.py", "c++", "httpserver.load", "load", "app", "json_ex*", '"C++ API"'),
    ],
}


@pytest.mark.parametrize(
    ("language", "query"), [(language, query) for language in WANTED for query in WANTED[language]]
)
@pytest.mark.parametrize("require_all", [False, True])
def test_a_text_is_found_as_it_is_written(
    index: Index, language: str, query: str, require_all: bool
) -> None:
    rowids = {name: index.add(text) for name, text in TEXTS.items()}
    assert index.find(query, require_all=require_all)[:1] == [rowids[language]]


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("json_extract", ["json", "extract"]),
        ("foo-bar", ["foo", "bar"]),
        ("apt-28", ["apt", "28"]),
        ("node.js", ["node", "js"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("camelCase", ["camel", "case", "camelcase"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("v1.2.3", ["v1", "2"]),
        ("192.168.0.1", ["192", "168"]),
        ("user@example.com", ["user", "example", "example.com"]),
        ("src/app/main.py", ["src", "main", "main.py"]),
        ("std::vector", ["std", "vector"]),
        ("pkg.mod.json_extract", ["mod", "json_extract"]),
        ("posts:12345#0", ["posts", "12345"]),
        ("AT&T", ["at"]),
        (".gitignore", ["gitignore"]),
        ("kỹ-thuật", ["kỹ", "thuat"]),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(
    index: Index, identifier: str, parts: list[str]
) -> None:
    index.add("nothing of the kind")
    wanted = index.add(f"Call ({identifier}), then wait.")
    for query in (identifier, identifier.upper(), *parts):
        assert index.find(query) == [wanted]
        assert index.find(query, require_all=True) == [wanted]


@pytest.mark.parametrize("name", ["c++", "C#", "f#"])
def test_a_sign_tells_names_apart(index: Index, name: str) -> None:
    wanted = {spelled: index.add(f"Written in {spelled}.") for spelled in ("c", "c++", "c#", "f#")}
    assert index.find(name) == [wanted[name.lower()]]
    assert wanted["c"] in index.find("c")


def test_the_whole_identifier_comes_first(index: Index) -> None:
    for language in TEXTS.keys() - {"code"}:
        index.add(TEXTS[language])
    loose = index.add("extract the json and the json extract")
    exact = index.add("json_extract takes a path and gives a value from it")
    assert index.find("json_extract") == [exact, loose]


def test_a_written_accent_prefers_the_exact_word_and_still_finds_the_folded(index: Index) -> None:
    plain = index.add("bong da")
    other = index.add("bông đà")
    exact = index.add("bóng đá")
    assert index.find("bóng đá")[0] == exact
    assert set(index.find("bóng đá")) == {plain, other, exact}
    assert set(index.find("bong da")) == {plain, other, exact}


class TestStoredTerms:
    @given(st.one_of(st.text(), st.text(alphabet=st.characters(max_codepoint=0x2FF))))
    @example("c++ \U0001fae0 x\u200dy a\u00adb 6½ ǅ İstanbul ﬁn ｶﾞ 한")
    @settings(max_examples=300)
    def test_each_reaches_the_index_as_one_token(self, text: str) -> None:
        terms = column_text(index_terms(text)).split(" ")
        with Index() as index:
            index.add(text)
            stored = index.stored()
        terms = list(filter(None, terms))
        assert len(stored) == len(terms)
        for term, token in zip(terms, stored, strict=True):
            if term.isascii():
                assert token == term

    @given(st.text(min_size=1))
    @settings(max_examples=200)
    def test_a_text_is_found_by_any_of_its_words(self, text: str) -> None:
        with Index() as index:
            rowid = index.add(text)
            for word in text.split()[:20]:
                query = parse_query(f'"{word.replace(chr(34), " ")}"')
                assert query.is_empty or index.find(query) == [rowid]


class TestPhrases:
    @pytest.mark.parametrize(
        ("text", "phrase", "found"),
        [
            ("the quick brown fox", '"quick brown"', True),
            ("the quick brown fox", '"brown quick"', False),
            ("quick and brown", '"quick brown"', False),
            ("use json_extract now", '"use json_extract now"', True),
            ("use json_extract now", '"json extract"', True),
            ("a-b xx c-d", '"b c"', False),
            ("end here HTTPServer", '"here http"', False),
            ("getUserName setUserName", '"name set"', False),
            ("Việt Nam", '"viet nam"', True),
            ("Việt xx Nam", '"viet nam"', False),
            ("Viet Nam", '"việt nam"', False),
            ("modern C++ templates", '"c++ templates"', True),
            ("modern C templates", '"c++ templates"', False),
            ("東京都庁舎", '"京都庁"', True),
            ("東京都庁舎", '"東京庁舎"', False),
            ("東京 AI", '"東京 AI"', True),
            ("新東京 AI 会議", '"京 AI 会"', True),
            ("running shoes", '"run shoe"', True),
        ],
    )
    def test_words_stand_side_by_side(
        self, index: Index, text: str, phrase: str, found: bool
    ) -> None:
        index.add(text)
        assert bool(index.find(phrase)) is found

    def test_a_phrase_is_required_and_words_beside_it_only_rank(self, index: Index) -> None:
        plain = index.add("the red fox sleeps")
        better = index.add("the red fox and the hound")
        index.add("hound alone")
        assert index.find('+"red fox" hound') == [better, plain]
        assert index.find('+"red fox" hound', require_all=True) == [better]

    def test_a_quotation_beside_words_counts_like_one_of_them(self, index: Index) -> None:
        index.add("something else")
        apart = index.add("a fox and a red hen")
        beside = index.add("a red fox and a hen")
        assert index.find('hen "red fox"') == [beside, apart]
        assert {*index.find(Query(wishes=(("red", "fox"), ("red", "hen"))))} == {beside, apart}


class TestLongQueries:
    def test_keeps_the_beginning_of_an_unspaced_phrase_that_is_too_long(self, index: Index) -> None:
        text = "".join(chr(0x4E00 + nth) for nth in range(200))
        rowid = index.add(text)
        assert index.find(f'"{text}"') == [rowid]

    def test_a_query_that_only_excludes_finds_nothing(self, index: Index) -> None:
        index.add("something")
        assert parse_query("-other").is_empty
        assert to_fts5(parse_query("-other")) == ""


class TestMatchExpressions:
    @given(QUERIES, st.booleans())
    @example('"', False)
    @example("a" * 20_000, True)
    @example(".".join(f"a{nth}" for nth in range(2000)), True)
    @example("東" * 9000, True)
    @example(" ".join(f"é{nth}*" for nth in range(500)), False)
    @settings(max_examples=500)
    def test_never_break_the_index(self, query: str, require_all: bool) -> None:
        with Index() as index:
            index.add(query, title=query)
            index.find(query, require_all=require_all)

    def test_exclude(self, index: Index) -> None:
        kept = index.add("fox and den")
        index.add("fox and hound")
        index.add("fox and foot ball")
        assert index.find('fox -hound -"foot ball"') == [kept]

    def test_exclude_only_what_is_written(self, index: Index) -> None:
        plain = index.add("code in c, ma")
        index.add("code in c++")
        accented = index.add("code má")
        assert set(index.find("code -c++")) == {plain, accented}
        assert plain in index.find("code -má")
        assert accented not in index.find("code -má")

    def test_look_into_the_title(self, index: Index) -> None:
        index.add("intro in the body")
        named = index.add("something else", title="The intro")
        assert index.find("title:intro") == [named]
        assert index.find("title:intro body") == [named]

    @pytest.mark.parametrize("prefix", ["conf", "configur", "configurat", "configuratio"])
    def test_complete_prefixes_past_the_stem(self, index: Index, prefix: str) -> None:
        wanted = index.add("its configuration")
        index.add("its container")
        assert index.find(f"{prefix}*") == [wanted]

    def test_require_every_term_when_asked(self, index: Index) -> None:
        both = index.add("fox and hound")
        one = index.add("fox alone here")
        assert index.find("fox hound", require_all=True) == [both]
        assert set(index.find("fox hound")) == {both, one}

    @given(QUERIES)
    @settings(max_examples=200)
    def test_require_all_narrows(self, query: str) -> None:
        with Index() as index:
            for text in (query, query[: len(query) // 2], *query.split()[:5], "fox"):
                index.add(text)
            assert set(index.find(query, require_all=True)) <= set(index.find(query))
