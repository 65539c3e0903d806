import numpy as np
import pytest
from toy_tasks import toy_start, toy_task, values_of, write_examples

from albert_lab.errors import ConfigError
from albert_lab.files import read_arrays
from albert_lab.tasks.ensembles import ensemble
from albert_lab.tasks.finetune import finetune
from albert_lab.tasks.records import output_folder


def members(tmp_path, name, seeds=(0,)):
    data = tmp_path / "data"
    task = toy_task(name, data)
    start = toy_start(tmp_path / "run")
    records = [finetune(start, task, seed, data=data, say=lambda line: None) for seed in seeds]
    return (
        task,
        data,
        [output_folder(start.folder, name, seed) / "best.npz" for seed in seeds],
        records,
    )


@pytest.mark.parametrize("name", ["sst2", "race", "squad1", "squad2"])
def test_an_ensemble_of_one_member_equals_that_member(tmp_path, name):
    task, data, files, (record,) = members(tmp_path, name)
    averaged, singles = ensemble(task, files, data, scale="smoke")
    assert {metric: averaged.values[metric] for metric in record.best.scores} == values_of(
        record.best
    )
    assert averaged.threshold == record.best.threshold
    assert singles == [record.best.main.value]
    assert ensemble(task, files * 2, data, scale="smoke")[0].answers == averaged.answers


def test_probabilities_are_averaged_over_members(tmp_path):
    task, data, files, _ = members(tmp_path, "sst2", (0, 1))
    for file, probability in zip(files, (0.9, 0.3), strict=True):
        scores = read_arrays(file)
        values = np.tile([1 - probability, probability], (len(scores["ids"]), 1))
        np.savez_compressed(file, **{**scores, "values": values})
    averaged, _ = ensemble(task, files, data, scale="smoke")
    assert set(averaged.answers) == {"1"}
    assert len(ensemble(task, files, data, scale="smoke", best=1)[1]) == 1


def test_members_that_were_scored_on_other_examples_than_those_of_today_are_refused(tmp_path):
    task, data, files, _ = members(tmp_path, "mnli")
    examples, _ = task.read(data, "dev")
    write_examples(task, task.file(data, "dev"), examples[:5])
    with pytest.raises(
        ConfigError, match=r"best\.npz: scores of other examples than those of mnli today"
    ):
        ensemble(task, files, data, scale="smoke")
