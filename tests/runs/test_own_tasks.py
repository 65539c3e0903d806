"""A task in a user's file is accepted wherever a task is named."""

import json
import re

import pandas as pd
import pytest
from command import here
from toy import toy_overrides
from toy_tasks import toy_task, write_examples

from albert_lab import paths
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.runs import finetunings
from albert_lab.runs.finetunings import RANDOM_SEEDS
from albert_lab.tasks.task import load_task


@pytest.fixture
def own_sst2(tmp_path):
    """A file with data of its own beside it."""
    text = (
        (paths.CONF / "task/sst2.yaml")
        .read_text()
        .replace("title: SST-2", "title: Mine")
        .replace("glue/SST-2/", "")
    )
    text += (
        "  smoke: {steps: 4, warmup_steps: 1, checkpoint_steps: 2, batch_size: 4, seeds: [0, 1]}\n"
    )
    file = tmp_path / "mine" / "own-sst2.yaml"
    file.parent.mkdir()
    file.write_text(text)
    for split in ("train", "dev"):
        write_examples(load_task(str(file)), file.parent / f"{split}.tsv")
    return file


def test_it_is_used_by_runs_fine_tunings_and_reports(
    own_sst2, corpus, own_home, runs_here, monkeypatch
):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(own_home / "data"))
    toy_task("sst2", own_home / "data")
    tasks = f"sst2,{own_sst2}"
    ended = here("pretrain", *toy_overrides(corpus, "budget.value=2"), "--tasks", tasks, "--json")
    assert ended.returncode == 0, ended.stderr
    (report,) = paths.reports().glob("*/*/")
    table = pd.read_csv(report / "results.csv")
    assert {"sst2", "own-sst2"} <= set(table["metric"])
    assert "Mine" in (report / "report.md").read_text()

    # the other one has random weights
    (run,) = table.loc[table["metric"] == "mlm_accuracy", "run"].unique()
    ended = here("finetune", run, "--tasks", tasks, "--json")
    own = [record for record in json.loads(ended.stdout) if record["weights"] == "pre-trained"]
    assert [record["task"] for record in own] == ["sst2", "own-sst2", "own-sst2"]
    (row,) = json.loads(here("status", "--json").stdout)
    assert row["fine_tuned"] == ["own-sst2-seed0", "own-sst2-seed1", "sst2-seed0"]

    again = here(
        "pretrain", *toy_overrides(corpus, "budget.value=2"), "--tasks", tasks, "--dry-run"
    )
    assert again.stdout.startswith("pretrain: 0 runs, about 0 s"), "nothing is repeated"

    data = own_sst2.parent / "dev.tsv"
    data.write_text(data.read_text() + data.read_text().splitlines(keepends=True)[-1])
    again = here(
        "pretrain", *toy_overrides(corpus, "budget.value=2"), "--tasks", tasks, "--dry-run"
    )
    assert f"0 runs, {2 + len(RANDOM_SEEDS)} fine-tunings" in again.stdout, (
        "scores on other data are no scores of this task"
    )
    ended = here("finetune", run, "--tasks", tasks, "--json")
    assert ended.stderr.count("its settings or its data have changed") == 2 + len(RANDOM_SEEDS)
    own = [record for record in json.loads(ended.stdout) if record["weights"] == "pre-trained"]
    assert [record["dev"]["used"] for record in own] == [16, 17, 17]


def test_data_is_searched_beside_the_file_and_then_in_the_tasks_folder(own_sst2, tmp_path):
    task, folder = load_task(str(own_sst2)), tmp_path / "data"
    assert task.file(folder, "train") == own_sst2.parent / "train.tsv"
    (own_sst2.parent / "train.tsv").unlink()
    assert task.file(folder, "train") == folder / "train.tsv"
    with pytest.raises(
        MissingDataError, match=rf"own-sst2: no train data at {folder}/train\.tsv \(nor in .*mine\)"
    ):
        task.read(folder, "train")


def test_two_files_of_one_name_are_refused(own_sst2, tmp_path):
    other = tmp_path / "own-sst2.yaml"
    other.write_text(own_sst2.read_text())
    with pytest.raises(ConfigError, match="two tasks are named own-sst2: rename the file"):
        finetunings.named_tasks([str(own_sst2), str(other)])


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("rte", "start_from=rte starts from mnli"),
        ("nowhere", r"task nowhere is unknown \(allowed: .*mnli"),
    ],
)
def test_a_start_that_is_not_there_or_starts_from_another_is_refused_at_once(start, says, own_sst2):
    own_sst2.write_text(own_sst2.read_text().replace("start_from: null", f"start_from: {start}"))
    with pytest.raises(ConfigError, match=says):
        load_task(str(own_sst2))


# A row of the data of each task in the docs, and the values of its column of labels.
STORY = {
    "story": "Sara had a bat.",
    "question": "What?",
    "a": "A bat",
    "b": "b",
    "c": "c",
    "d": "d",
}
ANSWERS = [{"text": "on Monday", "answer_start": 14}]
QUESTION = {"id": "1", "question": "When did the dam break?", "answers": ANSWERS}
NEWS = {"context": "The dam broke on Monday.", "qas": [QUESTION]}
OF_THE_DOCS: dict[str, tuple[dict[str, str], str, str]] = {
    "anli": ({"context": "A cat slept.", "hypothesis": "Something slept."}, "label", "enc"),
    "mctest": (STORY, "answer", "ABCD"),
    "winogrande": ({"sentence": "It _.", "option1": "is", "option2": "was"}, "answer", "12"),
}


def test_the_tasks_of_the_docs_are_files_of_at_most_ten_lines_that_read_their_data(tmp_path):
    page = (paths.PACKAGE.parent / "docs" / "data-and-tasks.md").read_text()
    shown = dict(re.findall(r"^```yaml\n# (\w+)\.yaml(.*?)^```", page, re.MULTILINE | re.DOTALL))
    assert shown.keys() == {*OF_THE_DOCS, "newsqa"}
    for name, text in shown.items():
        assert len(text.splitlines()) <= 10
        (tmp_path / f"{name}.yaml").write_text(f"#{text}")
        task = load_task(str(tmp_path / f"{name}.yaml"))
        file = tmp_path / task.data["train"]
        file.parent.mkdir()
        if name == "newsqa":
            file.write_text(json.dumps({"data": [{"paragraphs": [NEWS]}]}))
            labels = "1"
        else:
            row, column, labels = OF_THE_DOCS[name]
            table = pd.DataFrame([row | {column: label} for label in labels])
            if file.suffix == ".tsv":
                table.to_csv(file, sep="\t", index=False)
            else:
                table.to_json(file, orient="records", lines=True)
        examples, issues = task.read(tmp_path, "train")
        assert (len(examples), issues) == (len(labels), "")


OWN = (
    "{kind: classification, data: {train: a.jsonl, dev: b.jsonl}, format: {text_a: text, labels: "
    "[n, y]}}"
)


def test_one_file_is_not_train_and_dev_but_can_be_split(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(OWN.replace("b.jsonl", "a.jsonl"))
    with pytest.raises(ConfigError, match=r"split: 0\.2"):
        load_task(str(file))
    file.write_text(OWN.replace("a.jsonl, dev: b.jsonl}", "a.jsonl}, split: 0.3"))
    rows = [{"text": f"text {number // 2}", "label": "ny"[number % 2]} for number in range(200)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    train, dev = (
        {example.text_a for example in load_task(str(file)).read(tmp_path, of)[0]}
        for of in ("train", "dev")
    )
    assert train | dev == {row["text"] for row in rows}
    assert not train & dev, "equal texts are on the same side"
    assert 15 < len(dev) < 45
