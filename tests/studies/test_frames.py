import subprocess
import sys

import pandas as pd
import pytest
from records import toy_column, toy_curve_point, toy_finetuning, toy_record
from test_report import toy_points

import albert_lab
from albert_lab import paths
from albert_lab.errors import ConfigError
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import experiment, frames
from albert_lab.studies import study as studies
from albert_lab.studies.study import Study

AXIS = "inter_sentence"
START = [AXIS, f"paper_{AXIS}", "seed", "run"]


@pytest.fixture
def report(tmp_path):
    """A report of two runs: one with a learning curve, and one with a fine-tuning of two tasks."""
    curve = tuple(toy_curve_point(step, mlm_accuracy=10.0 * step, mlm_accuracy_n=150, mlm_loss=5.0) for step in (1, 2))
    sop = ReportedRun(record=toy_record(name="sop-3", sop=75, seed=3), curve=curve)
    columns = [toy_column(task, toy_finetuning("none-3", task, 62.0)) for task in ("mnli", "sst2")]
    none = ReportedRun(record=toy_record(name="none-3", seed=3), columns=tuple(columns))
    named = experiment.named("sop-vs-nsp")
    studies.write(tmp_path, Study(named, toy_points((3,), ("sop", "none")), [sop, none]))
    return albert_lab.report(tmp_path)


def test_a_line_of_results_has_axes_seed_and_run_and_every_score_with_n_and_interval(tmp_path):
    run = ReportedRun(record=toy_record(name="sop-3", sop=75, seed=3))
    frames.write(tmp_path, Study(experiment.named("sop-vs-nsp"), toy_points((3,), ("sop",)), [run]))
    (row,) = pd.read_csv(tmp_path / "results.csv").to_dict("records")
    assert (row[AXIS], row[f"paper_{AXIS}"], row["seed"], row["run"]) == ("sop", "sop", 3, "sop-3")
    assert (row["sop_accuracy"], row["sop_accuracy_n"]) == (75, 1000)
    assert row["sop_accuracy_low"] < 75 < row["sop_accuracy_high"]
    assert row["sop_accuracy_by"] == "head"


def test_runs_have_a_line_a_run_with_scores_cost_and_settings(report):
    result = report.runs().set_index("run")
    assert list(result.index) == ["sop-3", "none-3"]
    assert result.loc["sop-3", "sop_accuracy"] == 75
    assert {"parameters", "training_seconds", "learning_rate", "packages", "mnli"} <= {*result.columns}


def test_scores_have_a_line_a_score_with_its_interval_and_floor(report):
    result = report.scores()
    assert [*result.columns[:4]] == START
    (sop,) = result[(result.run == "sop-3") & (result.score == "sop_accuracy")].to_dict("records")
    assert (sop["value"], sop["n"], sop["floor"], sop["by"]) == (75, 1000, 50, "head")
    assert sop["low"] < 75 < sop["high"]
    assert {*result[result.run == "none-3"].score} > {"mnli", "sst2"}
    assert result.segments_floor.dtype == float  # missing numbers are NaN


def test_curves_have_a_line_an_evaluation_and_score(report):
    result = report.curves()
    assert result[["run", "step", "score", "value", "n", "loss"]].to_numpy().tolist() == [
        ["sop-3", 1, "mlm_accuracy", 10.0, 150, 5.0],
        ["sop-3", 2, "mlm_accuracy", 20.0, 150, 5.0],
        ["sop-3", 12, "mlm_accuracy", 25.0, 1000, 3.75],  # the score of the record
    ]


def test_finetunings_have_a_line_a_finetuning(report):
    result = report.finetunings()
    assert [*result.columns[:4]] == START
    assert {*result.task} == {"mnli", "sst2"}
    assert (result.best >= result.constant_answers).all()


def test_the_values_of_an_axis_are_numbers_if_all_are():
    depth = albert_lab.report(paths.PACKAGE.parent / "reports" / "overnight-sotu" / "depth").runs()
    assert depth["model.num_layers"].dtype == int


def test_a_folder_without_a_report_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is no report"):
        albert_lab.report(tmp_path)


def test_the_interface_of_the_package_is_listed_and_loads_nothing_heavy():
    loads = (
        "import sys, albert_lab; print({'load', 'report'} <= {*dir(albert_lab)}, {'torch', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert done.stdout == "True set()\n"
