import math

import pytest
from records import scored, toy_column, toy_curve_point, toy_finetuning, toy_layer, toy_run

from albert_lab.analysis.analysis import summary
from albert_lab.analysis.frame import HERE, PAPER, RANDOM, frame, printed
from albert_lab.score import Documents
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study, StudyPoint

SIZES: dict[str, str] = {"64": "12", "768": "96"}
GRID = {"sharing": ["not-shared", "all-shared"], "embedding_size": SIZES, "dropout": ["0.1"]}
CELLS = {
    "sharing": "all-shared",
    "embedding_size": "64",
    "dropout": "0.1",
    "sop_accuracy": "86.5",
    "parameters": "12M",
}


def point(sharing: str, size: str, seed: int, run: str) -> StudyPoint:
    own = {"sharing": sharing, "embedding_size": size, "dropout": "0.1"}
    values = own | {"embedding_size": SIZES.get(size) or size}
    return StudyPoint(
        values=values, labels=own, seed=seed, run=run, scale="smoke", corpus="sotu", command="sweep"
    )


def study(*runs, points):
    paper = {
        "table": "Table 3",
        "columns": {"sop_accuracy": "SOP", "parameters": "parameters"},
        "rows": [CELLS],
    }
    asked = Experiment.model_validate(
        {"name": "toy", "title": "toy", "source": "", "grid": GRID, "paper": paper}
    )
    return Study(experiment=asked, points=points, runs=runs)


@pytest.fixture
def tables():
    first = toy_run("one", 0, {"sop_accuracy": scored(60, loss=0.6, segments_floor=55)})
    second = toy_run("two", 1, {"sop_accuracy": scored(64)})
    asked = [point("not-shared", "768", 0, "missing")]
    asked += [point("all-shared", "64", seed, run) for seed, run in ((1, "two"), (0, "one"))]
    return frame(study(first, second, points=asked))


def test_a_row_is_named_by_the_labels_that_differ_with_the_values_that_were_run(tables):
    assert tables.rows["row"].tolist() == ["not-shared, E=96", "all-shared, E=12"]
    assert tables.rows["embedding_size"].tolist() == ["768", "64"]
    assert tables.rows[f"{HERE}embedding_size"].tolist() == ["96", "12"]
    assert tables.rows[f"{PAPER}sop_accuracy"].tolist() == ["", "86.5"]
    assert tables.row({"sharing": "all-shared", "embedding_size": "64"}) == "all-shared, E=12"
    assert tables.row({"dropout": "0.1"}) is None


def test_rows_have_distinct_names_whatever_their_labels_are():
    asked = [point("all-shared", label, 0, label) for label in ("12", "64")]
    labels = [("x, y", "z"), ("x", "y, z"), ("x", "random weights")]
    asked += [point(*row, 0, f"run{place}") for place, row in enumerate(labels)]
    names = frame(study(points=asked)).rows["row"].tolist()
    assert names[:2] == ["all-shared, E=12", "all-shared, E=12 (2)"]
    assert names[2:] == ["x, y, z", "x, y, z (2)", "“x, random weights”"]


def test_a_line_is_a_number_with_what_belongs_to_it(tables):
    of_sop = tables.of("sop_accuracy")
    assert of_sop[["run", "row", "seed", "value", "n"]].values.tolist() == [
        ["one", "all-shared, E=12", 0, 60, 2000],
        ["two", "all-shared, E=12", 1, 64, 2000],
    ]
    assert of_sop["segments"].tolist()[0] == 55
    assert math.isnan(of_sop["segments"].tolist()[1])


def test_a_summary_has_mean_spread_and_the_papers_cell(tables):
    line = summary(tables).loc[("sop_accuracy", "all-shared, E=12")]
    assert line[["mean", "seeds", "n", "floor", "paper", "counts"]].tolist() == [
        62,
        2,
        2000,
        50,
        "86.5",
        True,
    ]
    assert line["sd"] == pytest.approx(math.sqrt(8))
    assert line["low"] < 60
    assert line["high"] > 64


def test_random_weights_of_a_row_are_a_row_of_their_own():
    own, random = (
        toy_finetuning("one", "mnli", best, examples=[1.0, 0.0]) for best in (44.0, 37.0)
    )
    columns = (
        toy_column(own),
        toy_column(random.model_copy(update={"weights": "random", "run": "shape"})),
    )
    run = toy_run("one", 0, {}, columns)
    vars(run).pop("numbers")
    found = frame(study(run, points=[point("all-shared", "64", 0, "one")]))
    assert dict(found.of("mnli")[["row", "value"]].values.tolist()) == {
        "all-shared, E=12": 44.0,
        f"all-shared, E=12{RANDOM}": 37.0,
    }
    assert set(found.documents_of("mnli")) == {"one", "shape"}
    assert found.tasks == {"mnli": "mnli"}


def test_curves_and_layers_are_lines():
    curve = (toy_curve_point(6, sop_accuracy=55.0, sop_accuracy_n=768, sop_loss=0.7),)
    run = toy_run("one", 0, {"sop_accuracy": scored(60)})
    run = run.model_copy(update={"curve": curve, "layers": (toy_layer(1),)})
    found = frame(study(run, points=[point("all-shared", "64", 0, "one")]))
    of_sop = found.curves.query("metric == 'sop_accuracy'")
    assert of_sop[["step", "value", "n"]].values.tolist() == [[6, 55, 768], [12, 60, 2000]]
    assert found.layers[["run", "layer", "token"]].values.tolist() == [["one", 1, "mean"]]


def test_documents_have_the_sums_of_runs_and_the_mean_of_their_fine_tunings():
    tuned = [
        toy_finetuning("one", "mnli", 50.0, seed=seed, examples=examples)
        for seed, examples in enumerate(([1.0, 0.0], [1.0, 1.0]))
    ]
    run = toy_run("one", 0, {}, (toy_column(*tuned),))
    kept = {"mlm_loss": Documents(n=(2, 0), sum=(5.5, 0))}
    run = run.model_copy(update={"record": run.record.model_copy(update={"documents": kept})})
    found = frame(study(run, points=[point("all-shared", "64", 0, "one")]))
    n, nats = found.documents_of("mlm_loss")["one"]
    assert (n.tolist(), nats.tolist()) == ([2, 0], [5.5, 0])
    assert found.documents_of("mnli")["one"][1].tolist() == [1, 0.5]


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("89.3/82.3", 85.8),
        ("12M", 12e6),
        ("1.7x", 1.7),
        ("-0.5", -0.5),
        ("-", math.nan),
        ("", math.nan),
    ],
)
def test_a_printed_cell_is_a_number(cell, number):
    assert printed(cell) == pytest.approx(number, nan_ok=True)
