import numpy as np
import pytest
from pydantic import ValidationError

from albert_lab.answers import Answers, pack, unpack


@pytest.mark.parametrize(
    "array", [np.array([True, False] * 9 + [True]), np.arange(300), np.zeros(3, int), np.arange(0)]
)
def test_packed_answers_are_the_same_when_unpacked(array):
    assert np.array_equal(unpack(pack(array)), array)


def test_losses_keep_three_digits():
    losses = np.random.default_rng(0).gamma(2, 10, size=1000)
    np.testing.assert_allclose(unpack(pack(losses.astype(np.float16))), losses, rtol=1e-3)


def test_the_answers_of_a_run_stay_below_a_hundred_kilobytes():
    rng = np.random.default_rng(0)
    right = [pack(rng.random(8192) < 0.6) for _ in range(12)]  # eight scores, four floors
    sources = [pack(rng.integers(100, size=8192)) for _ in range(4)]
    counts = [pack(rng.binomial(9, 0.3, 8192)), pack(rng.integers(3, 10, size=8192))]
    losses = pack(rng.gamma(9, 4, size=8192).astype(np.float16))
    assert sum(map(len, [*right, *sources, *counts, losses])) < 100_000


BYTE = pack(np.ones(8, bool)).rpartition(" ")[2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bool 3",
        "bool 3 ???",
        f"bool 30 {BYTE}",
        f"bool -3 {BYTE}",
        "int64 3 eJwDAAAAAAE=",
        "nothing 3 eJwDAAAAAAE=",
    ],
)
def test_other_texts_are_no_answers(text):
    with pytest.raises(ValidationError):
        Answers(pairs="sop_accuracy", right=text)
