from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from records import SOP_ALARM, toy_column, toy_curve_point, toy_finetuning, toy_record, toy_run
from toy_reports import toy_report

from albert_lab.analysis.analysis import analyse
from albert_lab.errors import ConfigError
from albert_lab.figures.files import NONE_DRAWN
from albert_lab.report import finetuning, report
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import experiment
from albert_lab.studies.study import Study, StudyPoint
from albert_lab.studies.table import Row, RowNames, axis_labels

pytestmark = pytest.mark.usefixtures("empty_figures")


def toy_points(seeds=(0, 1), losses=("none", "nsp", "sop"), missing=()) -> list[StudyPoint]:
    return [
        StudyPoint(
            values={"inter_sentence": loss},
            labels={"inter_sentence": loss},
            seed=seed,
            run=f"{loss}-{seed}",
            state="failed" if f"{loss}-{seed}" in missing else "done",
            reason="the loss is nan at step 3" if f"{loss}-{seed}" in missing else "",
            scale="smoke",
            corpus="sotu",
            command="albert-lab sop-vs-nsp scale=smoke",
            failed_tasks="race, seed 0: the loss is nan at step 2" if f"{loss}-{seed}" == "sop-0" else "",
        )
        for loss in losses
        for seed in seeds
    ]


def changed(point: StudyPoint, **content: object) -> StudyPoint:
    return point.model_copy(update=content)


def toy_runs(points: Sequence[StudyPoint], **changes) -> list[ReportedRun]:
    """The finished runs of points, each fine-tuned on SST-2 and SQuAD1.1.

    Args:
        points: of a report.
        changes: of their records.
    """
    scores = {"none": (30, 51, 50), "nsp": (29, 80, 51), "sop": (28, 55, 70)}
    runs = []
    for point in points:
        if point.state != "done":
            continue
        name, loss = point.run, point.labels["inter_sentence"]
        mlm, nsp, sop = (value + 2.0 * point.seed for value in scores[loss])
        by = "linear probe" if loss == "none" else "head"
        alarms = (SOP_ALARM,) if name == "sop-1" else ()
        record = toy_record(name=name, mlm=mlm, nsp=nsp, sop=sop, by=by, alarms=alarms, seed=point.seed)
        sentiment = toy_finetuning(name, "sst2", sop, interval=(sop - 7, sop + 7), parts={"accuracy": sop}, floor=50.9)
        parts = {"f1": 15.0, "exact_match": 5.0}
        spans = toy_finetuning(name, "squad1", 10.0, interval=(7.0, 13.0), parts=parts, floor=2.0)
        columns = (toy_column("sst2", sentiment), toy_column("squad1", spans))
        curve = (toy_curve_point(6, mlm_accuracy=10.0),) if name == "sop-0" else ()
        runs.append(ReportedRun(record=record.model_copy(update=changes), columns=columns, curve=curve))
    return runs


def report_of(
    folder: Path, points: Sequence[StudyPoint], runs: Sequence[ReportedRun], name: str = "sop-vs-nsp"
) -> Path:
    """A report in a folder; its path."""
    report.write(folder, analyse(Study(experiment.named(name), points, runs)))
    return folder


def written(folder: Path, points: Sequence[StudyPoint], name: str = "sop-vs-nsp") -> str:
    return (report_of(folder / name, points, toy_runs(points), name) / report.REPORT).read_text()


def test_runs_that_left_a_study_are_removed_from_its_folder(tmp_path):
    points = toy_points()
    folder = report_of(tmp_path / "sop-vs-nsp", points, toy_runs(points))
    some = [point for point in points if point.seed == 0]
    report_of(folder, some, toy_runs(some))
    assert sorted(file.stem for file in (folder / "runs").iterdir()) == ["none-0", "nsp-0", "sop-0"]


def test_a_single_seed_shows_the_interval_of_its_answers(tmp_path):
    assert "70.0 [67.0, 73.0]" in written(tmp_path, toy_points(seeds=(0,)))


def test_scores_of_rows_on_different_sets_are_shown_but_not_compared(tmp_path):
    points = toy_points(seeds=(0, 1, 2))
    runs = [
        replace(run, record=run.record.model_copy(update={"evaluation_set": run.name[:3]})) for run in toy_runs(points)
    ]
    folder = report_of(tmp_path / "sop-vs-nsp", points, runs)
    text, result = (folder / report.REPORT).read_text(), report.read(folder)
    assert "MLM % ‡" in text
    assert "compare a score with the floors of its row" in text
    assert result.agreement.pairs == 0


def test_the_paper_is_named_only_for_values_that_it_prints():
    axes = ["sharing", "embedding_size"]
    values = {"sharing": "groups", "embedding_size": "16"}
    beyond = Row({"sharing": "2-groups", "embedding_size": "128"}, values, [], {})
    assert axis_labels(experiment.named("sharing"), beyond, axes) == ["2-groups", "16 (paper: 128)"]
    figure = Row({"model": "BERT-large"}, {"model": "medium"}, [], {})
    assert axis_labels(experiment.named("layer-similarity"), figure, ["model"]) == ["medium (paper: BERT-large)"]
    own = experiment.Experiment.model_validate(
        {"name": "own", "title": "Own", "source": "none", "grid": {"model": {"BERT-large": "medium"}}}
    )
    assert axis_labels(own, figure, ["model"]) == ["BERT-large"]


def test_a_label_whose_value_depends_on_the_row_is_named_by_all_its_values():
    rows = [Row({"sharing": "s", "embedding_size": "768"}, {"embedding_size": size}, [], {}) for size in ("36", "72")]
    names = RowNames(experiment.named("sharing"), rows)
    assert names({"embedding_size": "768"}) == "E = 36 or 72 (paper: 768)"


def test_the_only_value_of_an_axis_is_left_out_of_sentences_unless_it_is_all_that_a_row_has():
    names = RowNames(experiment.named("depth"), [])
    assert names({"warm_start": "true", "model.num_layers": "12"}) == "layers = 12"
    assert names({"warm_start": "false", "model.num_layers": "12"}) == "warm_start = false, layers = 12"
    assert not names({"warm_start": "true"})
    own = {"name": "own", "title": "Own", "source": "none", "grid": {"dropout": ["0.1"], "seed": [0, 1]}}
    assert RowNames(experiment.Experiment.model_validate(own), [])({"dropout": "0.1"}) == "dropout = 0.1"


def test_a_label_that_is_a_name_stands_for_its_value_in_sentences():
    rows = [
        Row({"dropout": label}, {"dropout": value}, [], {})
        for label, value in (("With dropout", "0.1"), ("Without dropout", "0.0"))
    ]
    names = RowNames(experiment.named("dropout"), rows)
    assert [names(row.labels) for row in rows] == ["With dropout", "Without dropout"]


def test_a_folder_that_is_no_report_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"study\.json"):
        report.rebuild(tmp_path)


@pytest.mark.parametrize(("seeds", "heading"), [((0,), "seed"), ((0, 1), "seeds")])
def test_a_single_fine_tuning_seed_is_not_shown_as_a_number_of_seeds(seeds, heading):
    tuned = [toy_finetuning("run", "sst2", 60.0, seed=seed) for seed in seeds]
    text = finetuning.tunings_table([toy_run("run", 0, {}, (toy_column("sst2", *tuned),))])
    header = [cell.strip() for cell in text.splitlines()[0].split("|")[1:-1]]
    assert (header[2], header[-1]) == (heading, "remarks")


def test_compared_rows_have_speed_ups_of_training_and_inference(tmp_path):
    folder = toy_report(tmp_path / "model-sizes", experiment.named("model-sizes"), seeds=1)
    table = report.render(report.read(folder), NONE_DRAWN).split("## Sizes and speeds")[1].split("##")[0]
    header, _, first, second, *_ = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in header[-3:]] == ["speed-up", "inference speed-up", "paper speed-up"]
    # 3,000 tokens/s in training over 3,500 of BERT-large; all infer 9,000.
    assert [cell.strip() for cell in first[-3:]] == ["0.86x", "1.00x", "4.7x"]
    assert [cell.strip() for cell in second[-3:]] == ["1.00x", "1.00x", "1.0"]
