"""Every number of the committed reports against a file, read from the records by pandas alone.

The numbers of `snapshot.csv` stay when the package or the form of records changes; `rows` and
`numbers` follow it. `python tests/test_snapshot.py` writes the file, after a study was added; a
line without a report is of that above it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pandas as pd
import pytest

REPORTS = Path(__file__).parents[1] / "reports"
FILE = Path(__file__).with_name("snapshot.csv")
KEYS = ["report", "row", "metric"]
STUDIES = sorted(str(file.parent.relative_to(REPORTS)) for file in REPORTS.glob("*/*/study.json"))
AVERAGED = {"squad1", "squad2", "mnli", "sst2", "race"}


def rows(folder: Path) -> list[tuple[str, str]]:
    """The row of each planned run of a report, as labels of the paper, and its name."""
    points = json.loads((folder / "study.json").read_text())["points"]
    return [(" ".join(point["labels"].values()), point["run"]) for point in points]


def numbers(content: dict) -> Iterator[tuple[str, float | None]]:
    """The numbers of a run by metric; a curve has several, one a point."""
    record = content["record"]
    for name, score in record["scores"].items():
        yield name, score["value"]
        yield loss_name(name), score.get("loss")
        yield from ((f"{name} {key}", score.get(key)) for key in ("n", "floor", "segments_floor"))
    best = {}
    for column in content["columns"]:
        task, tunings = column["task"], column["finetunings"]
        if tunings[0].get("weights") == "random":  # a baseline
            continue
        best[task] = median(tuning["best"]["main"]["value"] for tuning in tunings)
        yield task, best[task]
        yield from (
            (f"{task} {key}", tunings[0]["best"]["main"].get(key)) for key in ("n", "floor")
        )
        parts = tunings[0]["best"]["scores"]
        for part in parts if len(parts) > 1 else ():
            yield (
                f"{task}_{part}",
                median(tuning["best"]["scores"][part]["value"] for tuning in tunings),
            )
    if best.keys() >= AVERAGED:
        yield "average", fmean(best[column] for column in AVERAGED)
    yield "parameters", record["parameters"]["total"]
    yield "encoder_parameters", record["parameters"]["encoder"]
    yield "train_flops_per_token", record["train_flops_per_token"]
    yield from (
        (key, value) for key, value in record["training"].items() if key != "data_wait_share"
    )
    for point in content["curve"]:
        yield from (
            (f"curve {key}", value)
            for key, value in point.items()
            if not key.endswith(("_n", "share"))
        )
    for layer in content["layers"]:
        place = f"layer {layer['layer']} {layer['token']}"
        yield from (
            (f"{place} {key}", layer[key])
            for key in ("l2_distance", "cosine_similarity", "degrees")
        )


def loss_name(metric: str) -> str:
    return f"{metric.removesuffix('_accuracy')}_loss"


def snapshot() -> pd.DataFrame:
    """Mean, standard deviation and number of values by report, row and metric, over seeds (and
    points of a curve).

    Floors and numbers of answers belong to a set of examples, not to a row: they are over all rows.
    """
    lines = []
    for folder in sorted(file.parent for file in REPORTS.glob("*/*/runs")):
        contents = {
            file.stem: json.loads(file.read_text()) for file in (folder / "runs").glob("*.json")
        }
        report = str(folder.relative_to(REPORTS))
        lines += [
            (report, row, *pair)
            for row, run in rows(folder)
            if run in contents
            for pair in numbers(contents[run])
        ]
    values = pd.DataFrame(lines, columns=[*KEYS, "value"]).dropna()
    values.loc[values["metric"].str.endswith((" n", "floor")), "row"] = "(all)"
    return summary(values)


def summary(values: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(values.groupby(KEYS)["value"].agg(mean="mean", sd="std", n="count"))


@pytest.fixture(scope="module")
def saved() -> pd.DataFrame:
    lines = pd.read_csv(FILE)
    return lines.assign(report=lines["report"].ffill()).set_index(KEYS)


def test_the_numbers_of_the_committed_reports_are_those_of_the_snapshot(saved):
    pd.testing.assert_frame_equal(snapshot(), saved, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("report", STUDIES)
def test_the_frame_of_a_report_has_the_means_of_the_snapshot(report, saved):
    from albert_lab import read_report  # the rest is to work without the package

    frame = read_report(REPORTS / report)
    axes = [name.removeprefix("here_") for name in frame.rows if name.startswith("here_")]
    row: Any = frame.rows.set_index("row")[axes].agg(" ".join, axis=1)
    values = frame.numbers.assign(report=report, row=frame.numbers["row"].map(row)).dropna(
        subset=["row"]
    )
    both = summary(values)[["mean"]].join(saved["mean"].rename("saved"), how="inner")
    known = {"mlm_accuracy", "mlm_loss", "sop_accuracy", "parameters"}
    known &= {*saved.loc[report].index.unique("metric")}  # a converted encoder has no MLM head
    assert "parameters" in known
    assert known <= {*both.index.unique("metric")}
    assert both["mean"].to_numpy() == pytest.approx(both["saved"].to_numpy(), rel=1e-5)


if __name__ == "__main__":
    lines = snapshot().reset_index()
    first_of_report = lines["report"].where(~lines["report"].duplicated())
    lines.assign(report=first_of_report).to_csv(FILE, index=False, float_format="%.6g")
