import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_lab.config.compose import load
from albert_lab.data.tokenizer import Cleaning

UNCASED = Cleaning(lower_case=True, strip_accents=True)


def words(text):
    return text.split()


@given(
    st.text(
        st.characters(max_codepoint=0x24F, exclude_categories=["Cc"])
        | st.sampled_from("\u0301\u0327ﬁ½ \t")
    )
)
def test_latin_text_is_cleaned_by_the_released_rule(text):
    decomposed = unicodedata.normalize("NFKD", " ".join(text.split()))
    released = "".join(char for char in decomposed if not unicodedata.combining(char)).lower()
    assert words(UNCASED(text)) == words(unicodedata.normalize("NFKC", released))


@given(st.text(), st.sampled_from([Cleaning(), Cleaning(lower_case=True), UNCASED]))
def test_ascii_text_is_cleaned_as_by_the_normalizer_and_nothing_changes_twice(text, cleaning):
    assert words(cleaning(text)) == words(cleaning.normalizer.normalize_str(text))
    assert words(cleaning(cleaning(text))) == words(cleaning(text))


@pytest.mark.parametrize(
    ("text", "language", "cleaned"),
    [
        ("Ça\u00a0 va,\tNAÏVE ﬁlm½", "en", "ca va, naive film1⁄2"),
        ("Schöne Füße", "de", "schöne füße"),
        ("ΟΔΟΣ καλή", "el", "οδοσ καλή"),
        *(
            (text, "en", text)
            for text in ("हिन्दी फ़िल्म", "がぎぐ パン", "ශ්‍රී", "คำว่า", "أحمد مُدَرِّس", "日本語")
        ),
    ],
)
def test_words_of_each_language_keep_their_letters(text, language, cleaned):
    corpus = load(["corpus=files", "corpus.path=x", f"corpus.language={language}"]).corpus
    clean = Cleaning(corpus.lower_case, corpus.strip_accents)
    assert words(clean(text)) == words(unicodedata.normalize("NFKC", cleaned))
