import pandas as pd
import pytest
from pydantic import ValidationError

from albert_lab.files import csv_text, read_csv
from albert_lab.score import Score

FORMULAS = ["=cmd|' /C calc'!A0", "@SUM(1)", "+x", "-x", "\tx", "'=1"]


def test_no_cell_or_heading_of_a_csv_file_is_a_formula_and_all_are_read_back_unchanged(tmp_path):
    table = pd.DataFrame({"label": FORMULAS, "=1+1": range(len(FORMULAS)), "number": [-1.5] * len(FORMULAS)})
    file = tmp_path / "table.csv"
    file.write_text(csv_text(table))
    lines = file.read_text().splitlines()
    assert lines[0] == "label,'=1+1,number"
    assert all(line.lstrip('"').startswith("'") for line in lines[1:])
    assert all(line.endswith(",-1.5") for line in lines[1:])
    pd.testing.assert_frame_equal(read_csv(file), table)


@pytest.mark.parametrize("value", [750.0, -101.0, float("nan"), float("inf")])
def test_a_score_above_100_percent_is_refused(value):
    with pytest.raises(ValidationError):
        Score(value=value, n=10, low=None, high=None, floor=50.0, by="head")
