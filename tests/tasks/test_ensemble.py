from dataclasses import replace

import numpy as np
import pytest
from toy_tasks import toy_start, toy_task, values_of, write_examples

from albert_lab.errors import ConfigError
from albert_lab.tasks.ensemble import ensemble
from albert_lab.tasks.finetune import finetune
from albert_lab.tasks.records import load_scores, output_folder, save_scores


def members(tmp_path, name, seeds=(0,)):
    data = tmp_path / "data"
    task = toy_task(name, data)
    start = toy_start(tmp_path / "run")
    records = [finetune(start, task, seed, data=data, say=lambda line: None) for seed in seeds]
    return task, data, [output_folder(start.folder, name, seed) / "best.npz" for seed in seeds], records


@pytest.mark.parametrize("name", ["sst2", "race", "squad1", "squad2"])
def test_an_ensemble_of_one_member_equals_that_member(tmp_path, name):
    task, data, files, (record,) = members(tmp_path, name)
    assert record is not None
    result = ensemble(task, files, data, scale="smoke")
    best = record.best
    assert {metric: result.outcome.values[metric] for metric in best.scores} == values_of(best)
    assert result.outcome.threshold == record.best.threshold
    assert result.main == best.main.value == result.members[files[0]]
    twice = ensemble(task, files * 2, data, scale="smoke")
    assert twice.outcome.answers == result.outcome.answers


def test_probabilities_are_averaged_over_members(tmp_path):
    task, data, files, _ = members(tmp_path, "sst2", (0, 1))
    for file, probability in zip(files, (0.9, 0.3), strict=True):
        scores = load_scores(file)
        values = np.tile([1 - probability, probability], (len(scores["ids"]), 1))
        save_scores(scores | {"values": values}, file)
    result = ensemble(task, files, data, scale="smoke")
    assert set(result.outcome.answers.values()) == {"1"}
    worst = ensemble(task, files, data, scale="smoke", best=1)
    assert list(worst.members) == files[:1]


def test_members_with_scores_of_other_examples_are_refused(tmp_path):
    task, data, files, _ = members(tmp_path, "sst2", (0, 1))
    scores = load_scores(files[1])
    save_scores(scores | {"ids": scores["ids"][::-1]}, files[1])
    with pytest.raises(ConfigError, match="has scores of other examples"):
        ensemble(task, files, data, scale="smoke")


def test_members_that_were_scored_on_other_examples_than_those_of_today_are_refused(tmp_path):
    task, data, files, _ = members(tmp_path, "mnli")
    examples, _ = task.read(data, "dev")
    write_examples(task, task.file(data, "dev"), examples[::-1])
    with pytest.raises(ConfigError, match=r"best\.npz has scores of other examples than .*dev_matched\.tsv has today"):
        ensemble(task, files, data, scale="smoke")


def test_a_file_without_scores_is_named(tmp_path):
    file = tmp_path / "scores.npz"
    file.write_text("no scores")
    with pytest.raises(ConfigError, match=r"scores\.npz: not an \.npz file"):
        load_scores(file)


def with_another_split(task):
    return task.model_copy(update={"data": dict(task.data) | {"other": task.data["dev"]}})


def test_members_for_another_split_are_chosen_on_dev(tmp_path):
    task, data, files, _ = members(tmp_path, "sst2", (0, 1))
    others = [file.with_name("other.npz") for file in files]
    # One gives every example the label 1, the other one 0, and on the other split they do the opposite.
    for file, other, probability in zip(files, others, (0.9, 0.1), strict=True):
        scores = load_scores(file)
        values = np.tile([1 - probability, probability], (len(scores["ids"]), 1))
        save_scores(scores | {"values": values}, file)
        save_scores(scores | {"values": values[:, ::-1]}, other)
    on_dev = ensemble(task, files, data, scale="smoke", best=1)
    on_other = ensemble(with_another_split(task), others, data, scale="smoke", split="other", best=1)
    assert list(on_dev.members) == files[:1]
    assert list(on_other.members) == others[:1]
    assert set(on_other.outcome.answers.values()) == {"0"}


def test_the_no_answer_threshold_of_another_split_is_that_of_dev(tmp_path):
    task, data, files, _ = members(tmp_path, "squad2")
    scores = load_scores(files[0])
    others = [files[0].with_name("other.npz")]
    save_scores(scores, others[0])
    on_dev = ensemble(task, files, data, scale="smoke")
    examples, _ = task.read(data, "dev")
    unlabelled = [replace(example, answers=(), is_impossible=False) for example in examples]
    write_examples(task, data / "other.json", unlabelled)
    task = task.model_copy(update={"data": dict(task.data) | {"other": "other.json"}})
    on_other = ensemble(task, others, data, scale="smoke", split="other")
    assert on_other.main is None
    assert on_other.outcome.threshold == on_dev.outcome.threshold
    assert on_other.outcome.answers == on_dev.outcome.answers
