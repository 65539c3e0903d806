import pytest

from albert_lab.training.optimizer import learning_rate_factor


def test_the_schedule_of_the_paper_peaks_just_before_the_end_of_its_warm_up_and_then_drops():
    steps, warmup = 125_000, 3_125 / 125_000

    def factor(step: int) -> float:
        return learning_rate_factor(step / steps, warmup)

    assert factor(0) == 0
    assert factor(1) == pytest.approx(1 / 3_125)
    assert factor(3_124) == pytest.approx(3_124 / 3_125)
    assert factor(3_125) == pytest.approx(0.975)
    assert factor(62_500) == 0.5
    assert factor(124_999) == pytest.approx(1 / 125_000)
    assert factor(125_000) == 0


@pytest.mark.parametrize(
    ("share", "warmup", "decay", "factor"),
    [
        (0.0, 0.0, None, 1.0),
        (1.25, 0.1, None, 0.0),
        (0.75, 1.0, None, 0.75),
        (1.0, 1.0, None, 0.0),
        (0.05, 0.1, 0.4, 0.5),
        (0.1, 0.1, 0.4, 1.0),
        (0.6, 0.1, 0.4, 1.0),
        (0.8, 0.1, 0.4, 0.5),
        (1.0, 0.1, 0.4, 0.0),
    ],
)
def test_the_rate_ends_at_zero_and_with_a_decay_stays_at_its_peak_until_that_share_is_left(
    share, warmup, decay, factor
):
    assert learning_rate_factor(share, warmup, decay) == pytest.approx(factor)
