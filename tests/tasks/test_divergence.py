import pytest

from albert_lab.score import Score, share
from albert_lab.tasks.evaluation import signs_of


def accuracy(correct, n=100, floor=50.0):
    return share(correct, n, floor=floor, by="fine-tuned")


def test_constant_answers_count_as_diverged_for_any_loss():
    (sign,) = signs_of(0.5, 0.69, accuracy(50), is_constant=True)
    assert "same answer" in sign


@pytest.mark.parametrize(
    ("end_loss", "correct", "diverged"),
    [
        (0.69, 50, True),
        (0.69, 59, True),  # the interval includes the floor
        (0.69, 62, False),  # it has learnt, although the loss has hardly changed
        (0.60, 50, False),  # it has learnt the training examples
        (0.69, 30, True),
    ],
)
def test_only_loss_and_score_together_are_near_chance(end_loss, correct, diverged):
    assert bool(signs_of(end_loss, 0.693, accuracy(correct), is_constant=False)) == diverged


@pytest.mark.parametrize(("value", "diverged"), [(5.0, True), (7.0, False)])
def test_a_correlation_within_its_standard_error_is_near_chance(value, diverged):
    score = Score(value=value, n=1000, low=None, high=None, floor=0.0, by="fine-tuned")
    assert bool(signs_of(1.0, 1.0, score, is_constant=False)) == diverged
