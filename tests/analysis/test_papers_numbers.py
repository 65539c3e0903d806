from decimal import Decimal

import pytest

from albert_lab.analysis.papers_numbers import printed


@pytest.mark.parametrize(
    ("cell", "value"),
    [("89.3/82.3", "85.8"), ("12M", "12e6"), ("4.7x", "4.7"), ("80.1", "80.1"), ("125k steps", None), ("", None)],
)
def test_a_cell_of_the_paper_as_a_number(cell, value):
    assert printed(cell) == (None if value is None else Decimal(value))
