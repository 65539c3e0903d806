import pytest
import yaml
from datasets import ClassLabel, Dataset, Features, Value

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks import fetch
from albert_lab.tasks.task import load_task, task_names

SPLITS = {task.name: task.hub.splits for task in map(load_task, task_names()) if task.hub}
# Names of the Hub's labels, in its order, and our name of the Hub's label 1.
LABELS = {
    "sst2": (["negative", "positive"], "1"),
    "stsb": (None, 3.8),
    "mnli": (["entailment", "neutral", "contradiction"], "neutral"),
}


def publish(folder, contents, features=None):
    """A local copy of a data set: `contents` has rows by configuration name and split."""
    configs = []
    for name, splits in contents.items():
        for split, rows in splits.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            Dataset.from_list(rows, features=(features or {}).get(name)).to_parquet(folder / name / f"{split}.parquet")
        files = [{"split": split, "path": f"{name}/{split}.parquet"} for split in splits]
        configs.append({"config_name": name, "data_files": files})
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n")
    return folder


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    contents, features = {}, {}
    for name, (labels, _) in LABELS.items():
        texts = {"mnli": ["premise", "hypothesis"], "sst2": ["sentence"], "stsb": ["sentence1", "sentence2"]}
        columns = texts[name]
        kind = ClassLabel(names=labels) if labels else Value("float32")
        features[name] = Features({**dict.fromkeys(columns, Value("string")), "label": kind, "idx": Value("int32")})
        contents[name] = {
            theirs: [
                {column: f'{column} "{row}' for column in columns}
                | {"label": row % 2 * (1 if labels else 3.8), "idx": row}
                for row in range(3)
            ]
            for theirs in SPLITS[name].values()
        }
    return publish(tmp_path_factory.mktemp("hub") / "glue", contents, features)


def squad_row(id, context, *answers):
    texts = {"text": [text for text, _ in answers], "answer_start": [start for _, start in answers]}
    return {"id": id, "title": "Cats", "context": context, "question": "Who?", "answers": texts}


def race_row(id, article, answer):
    options = ["a", "b", "c", "d"]
    return {"example_id": id, "article": article, "answer": answer, "question": "Who _?", "options": options}


RACE = [race_row("high10.txt", "One.", "A"), race_row("high10.txt", "One.", "D"), race_row("middle2.txt", "Two.", "B")]


@pytest.mark.parametrize("name", LABELS)
def test_glue_is_written_in_the_official_form_and_read_back(name, glue, tmp_path):
    assert len(fetch.fetch(name, tmp_path, print, [f"hub.path={glue}"])) == 2
    task = load_task(name)
    for split in SPLITS[name]:
        examples, issues = task.read(tmp_path, split)
        assert (len(examples), issues) == (3, {})
        assert examples[1].label == LABELS[name][1]
        assert examples[1].text_a.endswith(' "1')
        assert (examples[1].text_b is None) == (name == "sst2")


def test_squad_is_written_in_the_form_of_datasets_and_read_back(tmp_path):
    rows = [squad_row("a", "The cat.", ("cat", 4), ("The cat", 0)), squad_row("b", "The dog.")]
    hub = publish(tmp_path / "hub", {"default": {"train": rows, "validation": rows}})
    fetch.fetch("squad2", tmp_path, print, [f"hub.path={hub}"])
    examples, issues = load_task("squad2").read(tmp_path, "train")
    assert [(example.id, bool(example.answers)) for example in examples] == [("a", True), ("b", False)]
    assert [answer.start for answer in examples[0].answers] == [4, 0]
    assert not issues


def test_race_is_written_in_the_official_form_and_read_back(tmp_path):
    hub = publish(tmp_path / "hub", {"all": dict.fromkeys(("train", "validation"), RACE)})
    fetch.fetch("race", tmp_path, print, [f"hub.path={hub}"])
    examples, issues = load_task("race").read(tmp_path, "dev")
    assert [example.id for example in examples] == ["high/10.txt/0", "high/10.txt/1", "middle/2.txt/0"]
    assert [(example.passage, example.label) for example in examples] == [("One.", 0), ("One.", 3), ("Two.", 1)]
    assert not issues
    assert sorted(file.name for file in (tmp_path / "race").iterdir()) == ["dev", "train"]


def test_a_data_set_of_another_form_is_refused_and_nothing_is_written(tmp_path):
    rows = [{"sentence": "good", "label": 2}]
    hub = publish(tmp_path / "hub", {"sst2": {"train": rows, "validation": rows}})
    with pytest.raises(ConfigError, match="2"):
        fetch.fetch("sst2", tmp_path / "data", print, [f"hub.path={hub}"])
    assert not list((tmp_path / "data").rglob("*"))


def test_an_unknown_name_and_a_data_set_out_of_reach_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="blue"):
        fetch.fetch("blue", tmp_path, print)
    with pytest.raises(MissingDataError, match=r"nyu-mll/glue .*hub\.path=FOLDER"):
        fetch.fetch("sst2", tmp_path, print)


def test_existing_files_are_kept_and_the_status_lists_what_is_missing_or_wrong(glue, tmp_path):
    dev = load_task("sst2").file(tmp_path, "dev")
    dev.parent.mkdir(parents=True)
    dev.write_text("sentence\tlabel\ngood\t1\nshort\n")
    train = load_task("sst2").file(tmp_path, "train")
    assert fetch.fetch("sst2", tmp_path, print, [f"hub.path={glue}"]) == [train]
    rows = {row["task"]: row for row in fetch.status(tmp_path)}
    assert list(rows) == task_names()
    assert rows["sst2"]["examples"] == {"train": 3, "dev": 1}
    assert "dev.tsv:3" in rows["sst2"]["problems"]["dev"]
    assert "no dev data" in rows["race"]["problems"]["dev"]
    train.write_text("text\n")
    assert "train" in fetch.status(tmp_path, ["sst2"])[0]["problems"]
