import csv

import pandas as pd
import pytest
from pydantic import ValidationError

from albert_lab.files import csv_text
from albert_lab.score import Score

FORMULAS = ["=cmd|' /C calc'!A0", "@SUM(1)", "+x", "-x", "\tx", "'=1"]


def test_no_cell_or_heading_of_a_csv_file_is_a_formula():
    table = pd.DataFrame({"label": FORMULAS, "=1+1": range(len(FORMULAS)), "number": [-1.5] * len(FORMULAS)})
    heading, *lines = csv.reader(csv_text(table).splitlines())
    assert heading == ["label", "'=1+1", "number"]
    assert lines == [[f"'{text}", str(number), "-1.5"] for number, text in enumerate(FORMULAS)]


@pytest.mark.parametrize("value", [750.0, -101.0, float("nan"), float("inf")])
def test_a_score_above_100_percent_is_refused(value):
    with pytest.raises(ValidationError):
        Score(value=value, n=10, low=None, high=None, floor=50.0, by="head")
