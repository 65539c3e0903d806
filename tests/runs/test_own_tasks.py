"""A task in a file of the user's is that task wherever a task is named."""

import json
from typing import Any

import pandas as pd
import pytest
from command import here
from toy import toy_overrides
from toy_tasks import text_examples, toy_task

from albert_lab import paths
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.runs import columns
from albert_lab.tasks.task import load_task


@pytest.fixture
def own_sst2(tmp_path):
    """A file named like a task of the project, with data of its own beside it."""
    text = (paths.CONF / "task/sst2.yaml").read_text().replace("title: SST-2", "title: Mine").replace("glue/SST-2/", "")
    text += "  smoke: {steps: 4, warmup_steps: 1, checkpoint_steps: 2, batch_size: 4, seeds: [0, 1]}\n"
    file = tmp_path / "mine" / "sst2.yaml"
    file.parent.mkdir()
    file.write_text(text)
    task = load_task(str(file))
    form: Any = task.format
    for split in ("train", "dev"):
        form.write(text_examples(task), file.parent / f"{split}.tsv")
    return file


def test_it_is_the_task_of_runs_fine_tunings_reports_and_ensembles(own_sst2, corpus, own_home, runs_here, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(own_home / "data"))
    toy_task("sst2", own_home / "data")
    tasks = f"sst2,{own_sst2}"
    ended = here("pretrain", *toy_overrides(corpus, "budget.value=2"), "--tasks", tasks, "--json")
    assert ended.returncode == 0, ended.stderr
    (report,) = paths.reports().glob("*/*/")
    tunings = pd.read_csv(report / "finetuning.csv")
    assert list(zip(tunings["task"], tunings["title"], tunings["n"], strict=True)) == [
        ("sst2", "SST-2", 16),
        ("own-sst2", "Mine", 16),
        ("own-sst2", "Mine", 16),
    ]
    assert {"sst2", "own-sst2", "own-sst2_accuracy"} <= set(pd.read_csv(report / "results.csv"))
    assert "Mine" in (report / "report.md").read_text()

    (run,) = tunings["run"].unique()
    ended = here("finetune", run, "--tasks", tasks, "--json")
    assert [record["task"] for record in json.loads(ended.stdout)] == ["sst2", "own-sst2", "own-sst2"]
    ended = here("ensemble", str(own_sst2), run, "--json")
    assert ended.returncode == 0, ended.stderr
    assert len(json.loads(ended.stdout)["members"]) == 2
    (row,) = json.loads(here("status", "--json").stdout)
    assert row["fine_tuned"] == ["own-sst2-seed0", "own-sst2-seed1", "sst2-seed0"]

    again = here("pretrain", *toy_overrides(corpus, "budget.value=2"), "--tasks", tasks, "--list")
    assert again.stdout.startswith("done"), "nothing of it is made again"


def test_data_is_looked_for_beside_the_file_and_then_in_the_tasks_folder(own_sst2, tmp_path):
    task, folder = load_task(str(own_sst2)), tmp_path / "data"
    assert task.file(folder, "train") == own_sst2.parent / "train.tsv"
    (own_sst2.parent / "train.tsv").unlink()
    assert task.file(folder, "train") == folder / "train.tsv"
    with pytest.raises(MissingDataError, match=rf"own-sst2: no train data at {folder}/train\.tsv \(nor in .*mine\)"):
        task.read(folder, "train")


def test_missing_data_is_said_before_anything_is_trained(own_sst2, tmp_path):
    (own_sst2.parent / "dev.tsv").unlink()
    with pytest.raises(MissingDataError, match="no dev data"):
        columns.check_data(load_task(str(own_sst2)))


def test_two_files_of_one_name_are_refused(own_sst2, tmp_path):
    other = tmp_path / "sst2.yaml"
    other.write_text(own_sst2.read_text())
    with pytest.raises(ConfigError, match="two tasks are named own-sst2: rename the file"):
        columns.load_named([str(own_sst2), str(other)])


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("sst2.yaml", "start_from leads in a circle: own-sst2 -> own-sst2"),
        ("nowhere", "start_from=nowhere: task nowhere is unknown"),
    ],
)
def test_a_start_that_is_not_there_or_leads_in_a_circle_is_refused_at_once(start, says, own_sst2):
    own_sst2.write_text(own_sst2.read_text().replace("start_from: null", f"start_from: {start}"))
    with pytest.raises(ConfigError, match=says):
        load_task(str(own_sst2))
