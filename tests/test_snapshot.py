"""Every number of the committed reports against a file, as `albert_lab.read_report` has them.

The numbers of `snapshot.csv` stay when the package or the form of records changes. `python
tests/test_snapshot.py` writes the file, after a study was added; a line without a report is of that
above it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from albert_lab import read_report

REPORTS = Path(__file__).parents[1] / "reports"
FILE = Path(__file__).with_name("snapshot.csv")
KEYS = ["report", "row", "metric"]


def numbers(report: str) -> Iterator[pd.DataFrame]:
    """The numbers of a report, with rows as labels of the paper: metric and value."""
    frame = read_report(REPORTS / report)
    axes = [name.removeprefix("here_") for name in frame.rows if name.startswith("here_")]
    labels: Any = frame.rows.set_index("row")[axes].agg(" ".join, axis=1)
    own: Any = frame.numbers[frame.numbers["row"].isin(frame.rows["row"])]
    yield own.assign(row=own["row"].map(labels))
    # They belong to a set of examples, not to a row.
    for kind, name in (("n", "n"), ("floor", "floor"), ("segments", "segments_floor")):
        yield own.assign(row="(all)", metric=own["metric"] + f" {name}", value=own[kind])
    curves: Any = frame.curves
    yield curves.assign(row=curves["row"].map(labels), metric="curve " + curves["metric"])
    if not frame.layers.empty:
        layers: Any = frame.layers.assign(row=frame.layers["row"].map(labels))
        for kind in ("l2_distance", "cosine_similarity", "degrees"):
            place = layers["layer"].astype(str) + " " + layers["token"]
            yield layers.assign(metric="layer " + place + f" {kind}", value=layers[kind])


def snapshot() -> pd.DataFrame:
    """Mean, standard deviation and number of values by report, row and metric, over seeds (and
    points of a curve).
    """
    reports = sorted(str(file.parent.relative_to(REPORTS)) for file in REPORTS.glob("*/*/runs"))
    tables = [table.assign(report=report) for report in reports for table in numbers(report)]
    values: Any = pd.concat(tables)[[*KEYS, "value"]]
    values = values.assign(value=values["value"].astype(float)).dropna()
    return values.groupby(KEYS)["value"].agg(mean="mean", sd="std", n="count")


def test_the_numbers_of_the_committed_reports_are_those_of_the_snapshot():
    lines = pd.read_csv(FILE)
    saved = lines.assign(report=lines["report"].ffill()).set_index(KEYS)
    pd.testing.assert_frame_equal(snapshot(), saved, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    lines = snapshot().reset_index()
    first_of_report = lines["report"].where(~lines["report"].duplicated())
    lines.assign(report=first_of_report).to_csv(FILE, index=False, float_format="%.6g")
