import pytest

from albert_lab.messages import YEAR, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (90, "90 s"),
        (49.3 * 60, "49 min"),
        (3.94 * 3600, "3.9 h"),
        (29_764 * YEAR, "30,000 years"),
        (2_976_489.7 * YEAR, "3 million years"),
    ],
)
def test_a_duration_has_two_digits_in_the_largest_unit_that_fits(seconds, text):
    assert duration(seconds) == text
