import numpy as np
import pytest
from pydantic import ValidationError

from albert_lab.score import BLOCKS, Documents, Score, by_block, by_document


@pytest.mark.parametrize("value", [750.0, -101.0, float("nan"), float("inf")])
def test_a_score_above_100_percent_is_refused(value):
    with pytest.raises(ValidationError):
        Score(value=value, n=10, floor=50.0, by="head")


def test_answers_are_counted_and_summed_by_document():
    kept = by_document(np.array([0, 2, 2]), np.array([True, False, True]))
    assert (kept.n, kept.sum) == ((1, 0, 2), (1, 0, 1))


@pytest.mark.parametrize("n", [1, 5, 64, 1000])
def test_blocks_are_of_consecutive_examples_and_of_about_one_size(n):
    kept = by_block([1.0] * n)
    assert len(kept.n) == min(n, BLOCKS)
    assert sum(kept.n) == sum(kept.sum) == n
    assert max(kept.n) - min(kept.n) <= 1


def test_numbers_and_sums_of_as_many_documents_are_needed():
    with pytest.raises(ValueError, match="of 2 documents, but sums of 1"):
        Documents(n=(1, 2), sum=(1.0,))


@pytest.mark.parametrize(
    ("n", "total"),
    [
        ((), ()),
        ((0, 0), (0, 0)),
        ((2, -1), (1, 0)),
        ((1 << 60,), (1,)),
        ((1,), (1e300,)),
    ],
)
def test_numbers_and_sums_that_no_answers_have_are_refused(n, total):
    with pytest.raises(ValidationError):
        Documents(n=n, sum=total)
