import shutil
from dataclasses import replace

import pytest
from records import SQUAD, toy_column, toy_curve_point, toy_finetuning, toy_layer, toy_record
from toy import states_of, toy_overrides, train
from toy_tasks import toy_task

from albert_lab import paths
from albert_lab.analysis.analysis import analyse
from albert_lab.report import report
from albert_lab.runs import finetunings, reported, results, states
from albert_lab.runs.reported import ReportedRun
from albert_lab.runs.run import create
from albert_lab.studies import recorded, study
from albert_lab.studies.collect import collect, runs, study_points
from albert_lab.studies.execute import reset
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.plan import Plan, look_again, plan_study
from albert_lab.studies.prices import costs, finetuning_flops
from albert_lab.studies.study import Study
from albert_lab.tasks.records import FOLDER as FINETUNINGS
from albert_lab.tasks.records import identity_of, write_record

pytestmark = pytest.mark.usefixtures("empty_figures")
ROWS = {"dropout": ["0.1", "0"]}
CHAIN = {"row": {"model.num_layers": "2"}, "parent": {"model.num_layers": "1"}, "keep": "weights"}


def toy(grid, **content) -> Experiment:
    return Experiment.model_validate({"name": "toy", "title": "Toy", "source": "none", "grid": grid} | content)


def planned(experiment, corpus, *overrides, tasks=()) -> Plan:
    return plan_study(experiment, toy_overrides(corpus, "budget.value=2", *overrides), list(tasks))


def report_folder(experiment, corpus):
    return planned(experiment, corpus).report_folder


def written(plan: Plan) -> dict[str, str]:
    """The files of the report on finished runs."""
    assert train(plan).code == 0
    study = collect(plan.updated(), {}, "albert-lab toy", lambda _line: None)
    report.write(plan.report_folder, analyse(study))
    files = plan.report_folder.rglob("*.*")
    return {file.name: file.read_text() for file in files if file.suffix in (".csv", ".md", ".json")}


def test_runs_recorded_in_a_report_count_as_finished_and_give_the_same_report(corpus, own_home, runs_here, capfd):
    experiment = toy(ROWS, figures=["learning-curves", "layer-similarity"])
    before = written(planned(experiment, corpus))
    shutil.rmtree(paths.runs())
    plan = planned(experiment, corpus)
    assert states_of(plan) == ["recorded"] * 2
    assert written(plan) == before
    assert not paths.runs().exists()
    assert "2 finished before, 0 to train" in capfd.readouterr().err


def test_another_seed_of_recorded_runs_is_trained(corpus, own_home, runs_here):
    experiment = toy(ROWS)
    before = written(planned(experiment, corpus, "seed=0"))
    shutil.rmtree(paths.runs())
    plan = planned(experiment, corpus, "seed=0,1")
    assert states_of(plan) == ["recorded", "missing"] * 2
    after = written(plan)
    assert {item.point.config.seed for item in plan.points if item.run.folder.exists()} == {1}
    old, new = (set(files["results.csv"].splitlines()) for files in (before, after))
    assert old < new
    assert len(new) == 5


def test_a_study_of_layers_takes_no_recorded_run_without_them(corpus, own_home, runs_here):
    written(planned(toy(ROWS), corpus))
    shutil.rmtree(paths.runs())
    plan = planned(toy(ROWS, name="toy-layers", figures=["layer-similarity"]), corpus)
    assert states_of(plan) == ["missing"] * 2
    written(plan)
    shutil.rmtree(paths.runs())
    assert states_of(planned(plan.experiment, corpus)) == ["recorded"] * 2


def test_a_fresh_start_trains_recorded_runs_again(corpus, own_home, runs_here):
    experiment = toy(ROWS)
    written(planned(experiment, corpus))
    shutil.rmtree(paths.runs())
    plan = reset(planned(experiment, corpus), fresh=True)
    assert train(plan).code == 0
    assert states_of(plan) == ["done"] * 2


def test_numbers_that_are_only_in_a_report_survive_its_replacement(corpus, own_home, runs_here):
    experiment = toy(ROWS)
    before = written(planned(experiment, corpus))
    folder = report_folder(experiment, corpus)

    def said_before_a_report_of(points) -> list[str]:
        said: list[str] = []
        recorded.set_aside(folder, list(runs(points, said.append)), said.append)
        return said

    (line,) = said_before_a_report_of(planned(experiment, corpus).points[:1])
    assert line == f"the report replaces one with 1 other run, still in {paths.runs()}"
    assert not folder.with_name("toy-before-1").exists()
    shutil.rmtree(paths.runs())
    points = planned(experiment, corpus).points
    assert not said_before_a_report_of(points), "the new report has the numbers"
    copy = folder.with_name("toy-before-1")
    (line,) = said_before_a_report_of(points[:1])
    assert line == f"1 run of the previous report has numbers that exist nowhere else: the report is kept as {copy}"
    assert {file.name: file.read_text() for file in copy.rglob("*.*") if file.name in before} == before
    shutil.rmtree(folder)
    assert states_of(planned(experiment, corpus)) == ["recorded"] * 2


def test_fine_tunings_that_are_only_in_a_report_survive_its_replacement(own_home, monkeypatch):
    folder = paths.reports() / "smoke-toy" / "toy"
    run = ReportedRun(record=toy_record(name="run"))
    tuned = toy_finetuning("run", "sst2", 60.0)
    reported.write(folder, replace(run, columns=(toy_column("sst2", tuned),)))
    monkeypatch.setattr(states, "state", lambda _folder: "done")
    said: list[str] = []
    recorded.set_aside(folder, [run], said.append)
    assert said == [
        "1 run of the previous report has numbers that exist nowhere else: the report is kept as"
        f" {folder.with_name('toy-before-1')}"
    ]
    (paths.runs() / "run" / FINETUNINGS).mkdir(parents=True)
    write_record(paths.runs() / "run", tuned)
    said.clear()
    recorded.set_aside(folder, [run], said.append)
    assert not said, "the run folder has the fine-tuning"


def fail(folder):
    folder.mkdir(parents=True)
    (folder / states.FAILURE).write_text('{"error": "out of memory"}')


def test_a_recorded_run_whose_folder_failed_here_is_no_failure(corpus, own_home, runs_here):
    experiment = toy(ROWS)
    written(planned(experiment, corpus))
    shutil.rmtree(paths.runs())
    plan = planned(experiment, corpus)
    fail(plan.points[0].run.folder)
    outcome = train(plan)
    assert (outcome.code, outcome.failures) == (0, {})
    assert states_of(plan) == ["recorded"] * 2
    result = study_points(plan.updated(), outcome.failures, "albert-lab toy")
    assert [(point.state, point.failed_tasks) for point in result] == [("done", "")] * 2


def test_a_recorded_child_does_not_need_its_failed_parent(corpus, own_home, runs_here):
    experiment = toy({"model.num_layers": ["1", "2"]}, start_from=[CHAIN])
    written(planned(experiment, corpus))
    shutil.rmtree(paths.runs())
    for file in paths.reports().rglob("runs/*L1*.json"):
        file.unlink()
    plan = planned(experiment, corpus, "model.num_layers=2")
    fail(plan.points[0].ancestors[0].run.folder)
    outcome = train(plan)
    assert (outcome.code, outcome.failures, states_of(plan)) == (0, {}, ["recorded"])


def test_a_finished_run_without_its_fine_tunings_says_which_are_missing(
    corpus, own_home, runs_here, tmp_path, monkeypatch
):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path / "tasks"))
    toy_task("sst2", tmp_path / "tasks")
    experiment = toy({"dropout": ["0"]})
    assert train(planned(experiment, corpus)).code == 0
    (point,) = study_points(planned(experiment, corpus, tasks=["sst2"]), {}, "albert-lab toy")
    assert point.failed_tasks == "sst2, seed 0: not trained"


def test_a_dry_run_prices_no_pre_training_of_runs_that_only_lack_fine_tunings(corpus, own_home, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path / "tasks"))
    toy_task("sst2", tmp_path / "tasks")
    plan = plan_study(toy({"dropout": ["0"]}), toy_overrides(corpus, "budget.value=1000000"), ["sst2"])
    nothing = "To train: 0 s, one after another"
    assert nothing not in costs(plan).notes[0]
    run = plan.points[0].run
    results.write(create(run), toy_record(name=run.name))
    assert states_of(plan) == ["stopped"]
    result = costs(plan.updated())
    assert nothing in result.notes[0]
    assert result.notes[1].startswith("Fine-tunings to train: 1,")


def test_ensembles_of_recorded_runs_come_from_the_published_report(corpus, own_home, runs_here, monkeypatch, tmp_path):
    experiment = toy(ROWS, ensemble={"members": 2})
    written(planned(experiment, corpus))
    monkeypatch.setattr(paths, "published", lambda: tmp_path / "published")
    folder = report_folder(experiment, corpus)
    published = paths.published() / folder.parent.name / folder.name
    shutil.copytree(folder, published)
    result = study.read(published)
    line = SQUAD.model_copy(update={"run": result.runs[0].name})
    of_another_row = line.model_copy(update={"run": "not-in-this-table"})
    study.write(published, Study(result.experiment, result.points, result.runs, [line, of_another_row]))
    shutil.rmtree(paths.runs())
    shutil.rmtree(paths.reports())
    assert collect(planned(experiment, corpus), {}, "albert-lab toy", print).ensembles == [line]


def test_a_run_without_a_requested_fine_tuning_is_trained(corpus, own_home, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path / "tasks"))
    toy_task("sst2", tmp_path / "tasks")
    (item,) = planned(toy({"dropout": ["0"]}), corpus, tasks=["sst2"]).points
    ((task, seed),) = finetunings.wanted(item.run.config, ["sst2"])
    tuned = toy_finetuning(item.run.name, "sst2", 60.0)
    of_others = ReportedRun(record=toy_record(name=item.run.name), columns=(toy_column("sst2", tuned),))
    identity = identity_of(item.run.name, item.run.config, task, seed)
    asked_for = toy_column("sst2", tuned.model_copy(update={"identity": identity}))
    assert recorded.complete([of_others], item.run, {}) is not None
    assert recorded.complete([of_others], item.run, item.tasks) is None
    as_asked = replace(of_others, columns=(asked_for,))
    result = recorded.complete([as_asked], item.run, item.tasks)
    assert result is not None
    assert result.identities == {identity}
    assert list(finetuning_flops(item)) == [(task.name, seed)]
    assert finetuning_flops(look_again(replace(item, records=(as_asked,)))) == {}


def test_a_parent_that_is_only_recorded_is_trained_again_for_its_child(corpus, own_home, runs_here):
    experiment = toy({"model.num_layers": ["1", "2"]}, start_from=[CHAIN])
    written(planned(experiment, corpus, "model.num_layers=1"))
    shutil.rmtree(paths.runs())
    plan = planned(experiment, corpus)
    assert states_of(plan) == ["recorded", "missing"]
    assert train(plan).code == 0
    assert [states.state(item.run.folder) for item in plan.points] == ["done", "done"]


def put(report, run):
    """Write a run into a report of that name; return the run as read from all reports."""
    reported.write(report, run)
    return recorded.read(run.name, [report.parent], print)


def test_the_tasks_of_a_run_in_several_reports_are_joined(tmp_path):
    one = ReportedRun(record=toy_record(name="x"), columns=(toy_column("sst2", toy_finetuning("x", "sst2", 60.0)),))
    other = toy_finetuning("x", "sst2", 61.0, seed=1)
    more = (toy_column("sst2", other), toy_column("mnli", toy_finetuning("x", "mnli", 50.0)))
    assert put(tmp_path / "a", one) == (one,)
    (result,) = put(tmp_path / "b", ReportedRun(record=one.record, columns=more, curve=(toy_curve_point(1),)))
    assert result.identities == {"x sst2 0", "x sst2 1", "x mnli 0"}
    assert result.curve == (toy_curve_point(1),)
    (column,) = result.filling({"squad1": "sst2"}, {"x sst2 0", "x sst2 1"}).columns
    assert (column.column, [record.seed for record in column.finetunings]) == ("squad1", [0, 1])


def test_fine_tunings_of_another_training_of_the_same_name_are_not_mixed_in(tmp_path):
    here = ReportedRun(record=toy_record(name="x"), columns=(toy_column("sst2", toy_finetuning("x", "sst2", 60.0)),))
    mnli = toy_column("mnli", toy_finetuning("x", "mnli", 50.0))
    elsewhere = ReportedRun(record=toy_record(name="x", mlm=26.0), columns=(mnli,))
    put(tmp_path / "a", here)
    assert put(tmp_path / "b", elsewhere) == (here, elsewhere)


def test_another_training_of_the_same_name_gives_the_layers_that_the_first_lacks(tmp_path):
    elsewhere = ReportedRun(record=toy_record(name="x", mlm=26.0), layers=(toy_layer(1, "mean"),))
    put(tmp_path / "a", ReportedRun(record=toy_record(name="x")))
    put(tmp_path / "b", elsewhere)
    assert recorded.read("x", [tmp_path], print, with_layers=True) == (elsewhere,)


def test_a_file_of_another_run_is_skipped_and_named(tmp_path):
    put(tmp_path / "a", ReportedRun(record=toy_record(name="y")))
    (tmp_path / "a" / "runs" / "y.json").rename(tmp_path / "a" / "runs" / "x.json")
    said = []
    assert recorded.read("x", [tmp_path], said.append) == ()
    assert "x.json" in said[0]
    assert "has the run y" in said[0]
