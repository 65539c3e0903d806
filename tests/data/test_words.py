from itertools import chain
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_lab.data.words import NGRAM, apart, ngrams, repeated
from albert_lab.tasks.metrics import _words


@pytest.mark.parametrize(
    "text",
    ["Ein Satz, naïve: ½ £ “so”.", "Ελληνικά", "Русский текст", "한국어 문장", "हिन्दी", "عربي"],
)
def test_words_of_scripts_with_spaces_are_left_together(text):
    assert apart(text) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [("他在北京大学学习2年", 10), ("東京タワー", 5), ("ภาษาไทย", 7), ("aB 中", 2)],
)
def test_characters_of_scripts_without_spaces_are_words(text, count):
    assert len(apart(text).split()) == count


@pytest.mark.parametrize(
    "held_out",
    [
        "这座桥建于一九三五年，是当地最古老的建筑之一。",
        "橋は一九三五年に建てられた古い建物です。",
        "é " * 9,
    ],
)
def test_a_repeated_text_is_found_without_spaces_and_in_any_unicode_form(held_out):
    known = {*ngrams(f"新的开头。{held_out}")}
    assert repeated([normalize("NFD", held_out), "没有关系的另外一段文字在这里。"], known) == [
        True,
        False,
    ]


words = st.lists(st.sampled_from("abc"), max_size=40)


@given(st.lists(words, max_size=4), st.lists(st.lists(words, max_size=3), max_size=4))
def test_a_part_repeats_texts_that_have_most_of_its_n_grams_or_of_its_documents(
    held_out, documents
):
    def grams(text):
        return [tuple(text[at : at + NGRAM]) for at in range(len(text) - NGRAM + 1)]

    def repeats(text):
        return 2 * sum(gram in known for gram in grams(text)) > len(grams(text))

    known = {*chain(*map(grams, held_out))}
    hashes = {*chain(*(ngrams(" ".join(text)) for text in held_out))}
    for document in documents:
        whole = repeats([*chain(*document)])
        expected = [whole or repeats(part) for part in document]
        assert repeated([", ".join(part).upper() for part in document], hashes) == expected


def test_the_floor_of_bags_of_words_sees_the_character_that_decides():
    assert _words("我不喜欢这部电影") - _words("我喜欢这部电影") == {"不"}
    assert _words("A film by 王家卫, in words") == {"a", "film", "by", "王家卫", "in", "words"}
