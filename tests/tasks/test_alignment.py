import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_tasks import UNCASED, toy_tokenizer

from albert_lab.data.tokenizer.cleaning import Cleaning
from albert_lab.tasks.features import align

CASED = Cleaning()
TEXT = st.text(
    alphabet=st.one_of(
        st.characters(codec="utf-8"), st.sampled_from("Σσςİıéé́½ﬁ한국  \t\n\u200b\u3000ẞ,.1864 abcXYZ\u0301\u0300")
    ),
    max_size=40,
)


def aligned(text, cleaning=UNCASED):
    return align(text, toy_tokenizer(cleaning))


def text_of(alignment, first, last):
    """The raw text that a range of tokens covers."""
    return alignment.text[alignment.starts[first] : alignment.ends[last]]


@given(TEXT, st.sampled_from([UNCASED, CASED]))
def test_tokens_are_those_of_pretraining_in_order(text, cleaning):
    result = aligned(text, cleaning)
    assert result.ids == toy_tokenizer(cleaning).encode([text])[0]
    assert len(result.starts) == len(result.ends) == len(result.ids)
    assert result.starts == sorted(result.starts)
    assert result.ends == sorted(result.ends)
    assert all(0 <= start <= end <= len(text) for start, end in zip(result.starts, result.ends, strict=True))


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("The CAT sat.", "CAT"),
        ("the café was red", "café"),
        ("the cafe\u0301 was red", "cafe\u0301"),
        ("It was  red\tin\u00a01864, and big", "1864"),
        ("a \u00bd cat", "\u00bd"),
        ("\u201cthe cat\u201d", "the cat"),
        ("the \u01c4 \ufb01g", "\ufb01g"),
        ("ΟΔΟΣ the cat", "the cat"),
        ("the İ cat", "cat"),
        ("x\u200b the cat sat", "cat"),
    ],
)
def test_an_answer_is_recovered_exactly(text, gold):
    result = aligned(text)
    start = text.index(gold)
    tokens = result.tokens_of(start, start + len(gold))
    assert tokens is not None
    assert text_of(result, *tokens) == gold


def test_at_least_985_of_1000_gold_answers_of_squad_are_recovered_exactly(shared_data):
    import json
    import tarfile

    import numpy as np

    from albert_lab.data.tokenizer.cache import load as load_model

    tokenizer = load_model(shared_data / "sentencepiece/30k-clean.model", UNCASED)
    with tarfile.open(shared_data / "squad.tar.xz") as archive:
        member = next(name for name in archive.getnames() if name.endswith("dev-v1.1.json"))
        stream = archive.extractfile(member)
        assert stream is not None
        articles = json.load(stream)["data"]
    asked = [
        (paragraph["context"], question["answers"][0])
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    chosen = np.random.Generator(np.random.Philox(key=0)).permutation(len(asked))[:2000]
    right = 0
    for context, answer in (asked[index] for index in chosen):
        result = align(context, tokenizer)
        tokens = result.tokens_of(answer["answer_start"], answer["answer_start"] + len(answer["text"]))
        right += tokens is not None and text_of(result, *tokens) == answer["text"]
    assert right / len(chosen) >= 0.985
