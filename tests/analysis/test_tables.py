import pytest

from albert_lab.analysis.tables import average_as_printed
from albert_lab.lab import experiment
from albert_lab.lab.downstream import AVERAGED

ROWS = [
    (file.stem, row)
    for file in experiment.files()
    if (paper := experiment.read(file).paper) and "average" in paper.columns
    for row in paper.rows
    if "average" in row
]


def test_the_papers_tables_print_averages():
    assert len(ROWS) >= 19


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_the_papers_average_is_recomputed_from_its_cells(name, row):
    assert {*AVERAGED} <= row.keys()
    assert average_as_printed(row) == row["average"]
