import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_tasks import UNCASED, toy_tokenizer

from albert_lab.data.tokenizer import Cleaning
from albert_lab.data.tokenizer import load as load_model
from albert_lab.tasks.alignment import align
from albert_lab.tasks.examples import subsample
from albert_lab.tasks.task import load_task

CASED = Cleaning()
TEXT = st.text(
    alphabet=st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from("Σσςİıéé́½ﬁ한국  \t\n\u200b\u3000ẞ,.1864 abcXYZ\u0301\u0300"),
    ),
    max_size=40,
)


def recovered(text, gold, start, result):
    """The text of the tokens that cover a gold answer."""
    first, last = result.tokens_of(start, start + len(gold))
    return text[result.starts[first] : result.ends[last]]


def aligned(text, cleaning=UNCASED):
    return align(text, toy_tokenizer(cleaning))


@given(TEXT, st.sampled_from([UNCASED, CASED]))
def test_tokens_are_those_of_pretraining_in_order(text, cleaning):
    result = aligned(text, cleaning)
    assert result.ids == toy_tokenizer(cleaning).encode([text])[0]
    assert len(result.starts) == len(result.ends) == len(result.ids)
    assert result.starts == sorted(result.starts)
    assert result.ends == sorted(result.ends)
    assert all(
        0 <= start <= end <= len(text)
        for start, end in zip(result.starts, result.ends, strict=True)
    )


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
    assert recovered(text, gold, text.index(gold), aligned(text)) == gold


def test_at_least_985_of_1000_gold_answers_of_squad_are_recovered_exactly(shared_data, tmp_path):
    tokenizer = load_model(shared_data / "sentencepiece/30k-clean.model", UNCASED)
    subprocess.run(["tar", "-xJf", shared_data / "squad.tar.xz", "-C", tmp_path], check=True)
    examples = subsample(load_task("squad1").read(tmp_path, "dev")[0], 2000)
    right = []
    for example in examples:
        result, (text, start) = align(example.context, tokenizer), example.answers[0]
        right.append(recovered(example.context, text, start, result) == text)
    assert sum(right) / len(right) >= 0.985
