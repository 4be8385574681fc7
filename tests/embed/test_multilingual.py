"""The Universal Sentence Encoder, with its real weights: one meaning in several languages."""

from __future__ import annotations

import threading

import pytest

from tests.embed.built_in import needs
from zibaldone.embed.multilingual import TOKENS_MAX, Multilingual

NEAR = {
    "German": ("Wie setze ich mein Passwort zurück?", "Ein vergessenes Kennwort wiederherstellen"),
    "Spanish": ("¿Cuántos días de vacaciones tengo?", "Los empleados reciben 30 días libres"),
    "Chinese": ("如何重置我的密码", "忘记登录密码后的恢复步骤"),
    "German and English": ("Die Katze schläft auf dem Sofa", "A kitten naps on the couch"),
    "Spanish and Chinese": ("El gato duerme en el sofá", "小猫在沙发上睡觉"),
}
FAR = (
    "Quarterly revenue grew by eight percent",
    "Ein Rezept für Sauerteigbrot mit Roggenmehl",
    "数据库每晚备份到另一栋楼",
)


@pytest.fixture(scope="module")
def model() -> Multilingual:
    return Multilingual()


@needs("multilingual")
@pytest.mark.parametrize("languages", NEAR)
def test_what_is_meant_alike_is_near(model: Multilingual, languages: str) -> None:
    one, other = NEAR[languages]
    vectors = model.embed([one, other, *FAR])
    cosines = vectors[1:] @ vectors[0]
    assert cosines[0] > model.similarity_min
    assert cosines[0] > 1.5 * max(cosines[1:])


@needs("multilingual")
def test_it_reads_passages_to_their_end_in_any_of_its_languages(model: Multilingual) -> None:
    for sentence in ("The kitten naps on the couch. ", "小猫在沙发上睡觉。"):
        passage = (sentence * 200)[:1_400]
        first, second = model.embed([passage, passage + "数据库 backup"])
        assert first.tobytes() != second.tobytes()


@needs("multilingual")
def test_few_characters_that_stand_for_many_are_cut_off(model: Multilingual) -> None:
    """One letter for a sentence of 18: as many tokens as would need a gigabyte."""
    sentence = "\ufdfa"
    first, second = model.embed([sentence * TOKENS_MAX, sentence * 2 * TOKENS_MAX])
    assert first.tobytes() == second.tobytes()


@needs("multilingual")
def test_a_query_does_not_wait_for_a_whole_batch(model: Multilingual) -> None:
    done: list[str] = []
    begun = threading.Event()

    class Noting(list[str]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            for text in super().__iter__():
                begun.set()
                yield text

    def embed_batch() -> None:
        model.embed(Noting(["a passage of some words. " * 40] * 100))
        done.append("batch")

    batch = threading.Thread(target=embed_batch)
    batch.start()
    assert begun.wait(20)
    for _ in range(3):
        model.embed(["a query"])
    done.append("queries")
    batch.join()
    assert done == ["queries", "batch"]


def test_it_trusts_itself_only_with_languages_it_knows() -> None:
    model = Multilingual()
    for known in (
        "plain English words",
        "Öffnungszeiten für Bürger über Ämter",
        "¿Dónde está el año pasado?",
        "Zażółć gęślą jaźń",
        "Şu göl çok büyük, gökyüzü güneşli",
        "知识库搜索",
        "検索エンジン",
        "지식 검색",
        "Поиск знаний",
        "البحث عن المعرفة",
        "ค้นหาความรู้",
        "12 + 34 = 46",
        "",
    ):
        assert model.language_trust(known) == 0.8, known
    for unknown in ("חיפוש ידע", "Αναζήτηση γνώσης", "ज्ञान खोज", "ცოდნის ძებნა"):
        assert model.language_trust(unknown) == 0.0, unknown
    assert 0.0 < model.language_trust("Tìm kiếm tri thức ở Việt Nam được") < 0.8
    assert model.language_trust("a word of Greek, γνώσης, in English") == 0.4
