import pandas as pd
from records import toy_record
from test_report import toy_points

from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import experiment, spreadsheets
from albert_lab.studies.study import Study


def test_a_line_of_results_has_axes_seed_and_run_and_every_score_with_n_and_interval(tmp_path):
    run = ReportedRun(record=toy_record(name="sop-3", sop=75, seed=3))
    spreadsheets.write(tmp_path, Study(experiment.named("sop-vs-nsp"), toy_points((3,), ("sop",)), [run]))
    (row,) = pd.read_csv(tmp_path / "results.csv").to_dict("records")
    assert (row["inter_sentence"], row["paper_inter_sentence"], row["seed"], row["run"]) == ("sop", "sop", 3, "sop-3")
    assert (row["sop_accuracy"], row["sop_accuracy_n"]) == (75, 1000)
    assert row["sop_accuracy_low"] < 75 < row["sop_accuracy_high"]
    assert row["sop_accuracy_by"] == "head"
