import numpy as np
import pytest

from albert_lab.documents import BLOCKS, by_block, by_document


def test_answers_are_counted_and_summed_by_document():
    kept = by_document(np.array([0, 2, 2]), np.array([True, False, True]))
    assert (kept.n, kept.sum) == ((1, 0, 2), (1, 0, 1))
    kept = by_document(np.array([0, 2, 2]), np.array([1, 2, 3]), np.array([4, 5, 6]))
    assert (kept.n, kept.sum) == ((4, 0, 11), (1, 0, 5))


@pytest.mark.parametrize("n", [1, 5, 64, 1000])
def test_blocks_are_of_consecutive_examples_and_of_about_one_size(n):
    kept = by_block([1.0] * n)
    assert len(kept.n) == min(n, BLOCKS)
    assert sum(kept.n) == sum(kept.sum) == n
    assert max(kept.n) - min(kept.n) <= 1
