import pytest
from toy import toy_experiment, toy_overrides, train
from toy_tasks import toy_task

from albert_lab.errors import DamagedFileError
from albert_lab.files import read_arrays
from albert_lab.studies import study
from albert_lab.studies.plan import plan_study
from albert_lab.tasks.records import output_folder, read_record

CONTENT = {
    "grid": {"embedding_size": ["4"]},
    "columns": ["mnli", "qnli"],
    "finetuning_seeds": ["0", "1", "2"],
    "ensemble": {"members": "2", "paper": {"mnli": "91.3"}},
}


@pytest.fixture
def trained(corpus, own_home, monkeypatch, runs_here):
    """The plan of an experiment that asks for three fine-tunings, trained."""
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(own_home / "data"))
    toy_task("mnli", own_home / "data")
    experiment = toy_experiment(**CONTENT)
    plan = plan_study(experiment, toy_overrides(corpus, "budget.value=1"))
    assert train(plan).code == 0
    return plan.updated()


def test_the_fine_tunings_of_the_best_run_are_averaged_and_are_part_of_the_study(trained):
    (item,) = trained.points
    assert item.tasks == {"mnli": "mnli"}, "no data of QNLI, and no task replaces it"
    assert item.state == "done"
    (run,) = study.collect(trained, {}, "", print).runs
    seeds = [record.seed for record in run.columns[0].finetunings]
    assert seeds == [0, 1, 2], "the experiment's own fine-tuning seeds"
    (line,) = study.collect(trained, {}, "a command", print).ensembles
    records = [read_record(item.run.folder, "mnli", seed) for seed in (0, 1, 2)]
    singles = [record.best.main.value for record in records if record]
    assert line.single == sorted(singles)[1]
    assert list(line.members) == pytest.approx(sorted(singles)[:0:-1])
    best = sorted(range(3), key=lambda seed: -singles[seed])[:2]
    scores = [
        read_arrays(output_folder(item.run.folder, "mnli", seed) / "best.npz") for seed in best
    ]
    assert all(
        len(score["ids"]) == record.best.main.n for score in scores for record in records if record
    )

    (output_folder(item.run.folder, "mnli", best[0]) / "best.npz").unlink()
    with pytest.raises(DamagedFileError, match=r"best\.npz"):
        study.ensembles(trained.points, 2)


def test_an_ensemble_of_one_fine_tuning_has_its_scores_and_no_others(
    corpus, own_home, monkeypatch, runs_here
):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(own_home / "data"))
    tasks = ["cola", "squad2", "race"]
    for task in tasks:
        toy_task(task, own_home / "data")
    experiment = toy_experiment(**CONTENT | {"columns": tasks, "finetuning_seeds": ["0"]})
    plan = plan_study(experiment, toy_overrides(corpus, "budget.value=1"))
    assert train(plan).code == 0
    lines = study.ensembles(plan.points, 2)
    assert [line.column for line in lines] == tasks
    for line in lines:
        assert line.single == pytest.approx(line.ensemble), (
            "an ensemble of one fine-tuning has its score"
        )
