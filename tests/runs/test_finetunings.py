from dataclasses import replace

import pytest
from toy import states_of, toy_overrides, train
from toy_tasks import toy_task

from albert_lab import paths
from albert_lab.cli import tasks
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.runs import finetunings, results, states
from albert_lab.runs import run as runs
from albert_lab.runs.reported import AVERAGE, AVERAGED
from albert_lab.studies import execute, experiment, study
from albert_lab.studies.experiment import from_overrides
from albert_lab.studies.plan import Plan, plan_study
from albert_lab.tasks.records import read_record, record_file
from albert_lab.training.evaluate import DivergedError


@pytest.fixture
def planned(corpus, own_home, monkeypatch, runs_here):
    """A run of a second, to be fine-tuned on two tasks of a few examples."""
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(own_home / "data"))
    for name in ("mnli", "squad1"):
        toy_task(name, own_home / "data")
    return plan_on(corpus)


def plan_on(corpus, *overrides) -> Plan:
    """The plan of the second row of a sweep, whose first has the random weights."""
    asked = toy_overrides(corpus, "budget.value=1", "inter_sentence=none,sop", *overrides)
    plan = plan_study(*from_overrides(asked), ["mnli", "squad1"])
    return replace(plan, points=plan.points[1:])


def test_failures_of_tasks_are_recorded_and_only_missing_ones_are_trained(
    planned, own_home, monkeypatch
):
    (item,) = planned.points
    squad = own_home / "data" / "squad" / "train-v1.1.json"
    whole = squad.read_text()
    squad.write_text(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match=r"train-v1\.1\.json"):
        train(planned)
    monkeypatch.setattr(execute, "SPLITS", ())  # as if it were damaged later
    outcome = train(planned)
    failure = f"{item.run.name}, squad1, seed 0"
    assert outcome.code == 1
    assert "train-v1.1.json" in outcome.failures[failure]
    assert states_of(planned) == ["trained"]
    kept = (item.run.folder / results.RECORD, record_file(item.run.folder, "mnli", 0))
    written = [file.stat().st_mtime_ns for file in kept]
    collected = study.collect(planned.updated(), outcome.failures, "albert-lab sweep", print)
    assert "squad1, seed 0" in collected.points[0].failed_tasks
    assert not collected.points[0].reason
    (run,) = collected.runs
    assert 1 < run.scores["mnli"].value <= 100, "in percent"
    assert "squad1" not in run.scores

    squad.write_text(whole)
    assert train(planned).code == 0, "what failed is tried again"
    assert states_of(planned) == ["done"]
    assert written == [file.stat().st_mtime_ns for file in kept]

    (run,) = study.collect(planned.updated(), {}, "", print).runs
    row = run.numbers
    assert row["squad1"] == pytest.approx((row["squad1_f1"] + row["squad1_exact_match"]) / 2)
    assert [(column.task, column.is_random) for column in run.columns] == [
        *(("mnli", True), ("squad1", True)),
        *(("mnli", False), ("squad1", False)),
    ]
    assert AVERAGE not in row

    result = [*finetunings.finetune_run(item.run.name, ["mnli"], [0, 1], print)]
    assert [record.seed for record in result] == [0, 1, *finetunings.RANDOM_SEEDS]
    assert [record.weights for record in result[1:]] == [
        "pre-trained",
        *["random"] * len(finetunings.RANDOM_SEEDS),
    ]
    assert result[0] == read_record(item.run.folder, "mnli", 0)


def test_a_fine_tuning_that_diverged_is_tried_again(planned, monkeypatch):
    (item,) = planned.points
    assert train(planned).code == 0
    record_file(item.run.folder, "mnli", 0).unlink()
    with monkeypatch.context() as patch:
        patch.setattr("albert_lab.tasks.finetune.finetune", diverge)
        assert finetunings.train(
            missing := finetunings.missing(item.finetunings), print, lambda: False
        )
    assert finetunings.failures(missing) == {"mnli, seed 0": "the loss is nan"}
    assert train(planned.updated()).code == 0
    assert states_of(planned) == ["done"]


def test_the_fine_tunings_of_a_run_with_the_same_weights_are_taken_over(
    planned, corpus, monkeypatch
):
    assert train(planned).code == 0
    plan = plan_on(corpus, "evaluation.num_pairs=40")
    assert states_of(plan) == ["unscored"]
    monkeypatch.setattr("albert_lab.tasks.finetune._Finetuning", diverge)
    monkeypatch.setattr("albert_lab.training.pretrain.Pretrainer", diverge)
    assert train(plan).code == 0
    assert states_of(plan) == ["done"]
    (item,), (other,) = plan.points, planned.points
    assert item.run.name != other.run.name
    taken, before = (read_record(run.folder, "mnli", 0) for run in (item.run, other.run))
    assert taken is not None
    assert before is not None
    assert (taken.run, taken.best, taken.dev) == (item.run.name, before.best, before.dev)
    file = record_file(item.run.folder, "mnli", 0)
    written = file.stat().st_mtime_ns
    next(finetunings.finetune_run(item.run.name, ["mnli"], [0], print))
    assert file.stat().st_mtime_ns == written, "one that is there is not overwritten"


def diverge(*_, **__):
    raise DivergedError("the loss is nan")


def test_an_unknown_or_unfinished_run_is_not_fine_tuned(planned):
    with pytest.raises(ConfigError, match="fits 0 runs"):
        states.find_run("nowhere")
    runs.create(planned.points[0].run)
    with pytest.raises(ConfigError, match="is not finished"):
        states.find_run(planned.points[0].run.name)


def test_a_run_is_fine_tuned_by_one_process_at_a_time(planned):
    assert train(planned).code == 0
    run = planned.points[0].run
    for record in finetunings.finetune_run(run.name, ["mnli"], [0], print):
        assert runs.is_locked(run.folder)
        assert record.run == run.name or runs.is_locked(run.folder.with_name(record.run)) is False
    assert not runs.is_locked(run.folder)


@pytest.mark.parametrize("text", ["0,x", "-1", "1,1", "4294967296"])
def test_seeds_are_different_whole_numbers_that_generators_take(text):
    assert tasks._read_seeds("0,12") == (0, 12)
    with pytest.raises(ConfigError, match=f"--seeds {text}"):
        tasks._read_seeds(text)


def test_a_column_without_task_files_is_left_out_and_said(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path))
    toy_task("mnli", tmp_path)
    said: list[str] = []
    assert finetunings.choose_tasks(["mlm_accuracy", *AVERAGED, AVERAGE], said.append) == {
        "mnli": "mnli"
    }
    (line,) = said
    assert all(name in line for name in ("squad1, squad2, sst2, race", "docs/data-and-tasks.md"))


def test_an_own_task_of_conf_is_a_column_and_its_record_is_read_without_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path / "data"))
    folder, file = tmp_path / "conf" / "task", tmp_path / "study.yaml"
    folder.mkdir(parents=True)
    text = (
        "{kind: classification, data: {train: a.tsv, dev: b.tsv}, format: {text_a: text, labels: "
        "[n, y]}}"
    )
    (folder / "mine.yaml").write_text(text)
    study = "title: t\nsource: s\ngrid: {dropout: [0, 0.1]}\ncolumns: [mlm_accuracy, mine]\n"
    study += (
        "claims: [{quote: q, metric: mine, check: greater, row: {dropout: 0}, than: "
        "{dropout: 0.1}}]\n"
    )
    file.write_text(study)
    try:
        paths.use_conf([tmp_path / "conf"])
        result = experiment.read(file)
        assert finetunings.choose_tasks(result.columns, print) == {}
        for name in ("a.tsv", "b.tsv"):
            (folder / name).write_text(f"text\tlabel\n{name}\tn\nc\ty\n")
        assert finetunings.choose_tasks(result.columns, print) == {"mine": "mine"}
    finally:
        paths.use_conf([])
    with pytest.raises(ConfigError, match="mine"):
        experiment.read(file)
    file.write_text(study + "is_record: true\n")
    assert experiment.read(file).columns == result.columns


def test_a_named_task_must_have_its_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"mnli: no train data at .*train\.tsv"):
        finetunings.choose_tasks([], print, ["mnli"])
    with pytest.raises(ConfigError, match=r"is unknown \(allowed: .*mnli"):
        finetunings.choose_tasks([], print, ["mnl"])
