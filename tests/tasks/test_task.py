import json
import re

import pytest

from albert_lab import paths
from albert_lab.config import compose as config
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.task import load_task, task_names

TASKS = {name: load_task(name) for name in task_names()}
COLA = (paths.CONF / "task/cola.yaml").read_text()


def test_the_task_files_fit_each_other_and_the_scales():
    for name, task in TASKS.items():
        assert task.name == name
        assert sorted(task.settings) == config.groups()["scale"]
        assert task.start_from is None or task.start_from in TASKS
        assert task.hub is None or set(task.hub.splits) <= set(task.data)


def test_a_task_is_not_a_setting_of_a_run():
    assert "task" not in config.groups()
    with pytest.raises(ConfigError, match="unknown key task"):
        config.load(["task=sst2"])


def test_a_scale_inherits_missing_settings_from_paper():
    squad2 = TASKS["squad2"]
    assert squad2.at("laptop").n_best == squad2.at("paper").n_best
    assert squad2.at("laptop").steps != squad2.at("paper").steps
    changed = load_task("squad2", ["settings.paper.n_best=7", "settings.laptop.retries=3"])
    assert (changed.at("laptop").n_best, changed.at("laptop").retries, changed.at("paper").retries) == (7, 3, 1)


def test_a_scale_inherits_missing_settings_from_the_defaults_of_its_kind(tmp_path):
    file = tmp_path / "mine.yaml"
    text = COLA[: COLA.index("settings:")]
    file.write_text(f"{text}settings: {{paper: {{dropout: 0.3}}, laptop: {{steps: 7, warmup_steps: 1}}}}")
    task = load_task(str(file))
    assert (task.at("paper").dropout, task.at("smoke").dropout, task.at("laptop").dropout) == (0.3, 0.3, 0.0)
    assert (task.at("laptop").steps, task.at("gpu").steps) == (7, TASKS["sst2"].at("gpu").steps)


def test_the_learning_rate_falls_with_the_width_unless_it_is_given():
    runs = [config.load([f"model={name}", "scale=laptop"]) for name in ("tiny", "base")]
    narrow, wide = (run.model.hidden_size for run in runs)
    settings = TASKS["sst2"].at("laptop")
    assert settings.rate_hidden_size is not None
    assert narrow < settings.rate_hidden_size < wide

    def rates(*overrides):
        return [load_task("sst2", overrides).fitted(run).learning_rate for run in runs]

    full = settings.learning_rate
    assert rates()[0] == full > rates()[1]
    assert rates("settings.laptop.learning_rate=0.01") == [0.01, 0.01]
    own = ["settings.laptop.learning_rate=0.01", f"settings.laptop.rate_hidden_size={wide // 4}"]
    assert rates(*own) == pytest.approx([0.01, 0.00125]), "four times as wide, an eighth of the rate"


def test_a_task_that_starts_from_another_keeps_the_pooler_that_was_tuned_there():
    run = config.load(["scale=laptop"])
    assert (TASKS["mnli"].fitted(run).pooler, TASKS["squad1"].fitted(run).pooler) == ("new", "pretrained")
    assert {TASKS[name].start_from for name in ("mrpc", "rte", "stsb")} == {"mnli"}
    assert {TASKS[name].fitted(run).pooler for name in ("mrpc", "rte", "stsb")} == {"pretrained"}


def test_a_scale_without_settings_in_the_task_is_refused():
    with pytest.raises(ConfigError, match=r"sst2 has no settings for scale=huge \(it has: paper, gpu"):
        TASKS["sst2"].at("huge")


def test_the_column_of_squad_is_the_mean_of_f1_and_exact_match():
    assert TASKS["squad1"].main_score({"exact_match": 82.3, "f1": 89.3}) == pytest.approx(85.8)
    assert TASKS["squad2"].main_score({"exact": 77.1, "f1": 80.0, "NoAns_f1": 1.0}) == pytest.approx(78.55)
    assert TASKS["mrpc"].main_score({"accuracy": 90.0, "f1": 80.0}) == 90


def test_a_file_of_the_user_is_a_task(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(COLA.replace("title: CoLA", "title: Mine"))
    assert (load_task(str(file)).name, load_task(str(file)).title) == ("mine", "Mine")


@pytest.mark.parametrize(
    ("name", "overrides", "says"),
    [
        ("sst", [], r"task sst is unknown; did you mean sst2\? \(allowed: .*cola, .*mnli, .* or a \.yaml file\)"),
        ("nowhere.yaml", [], r"task nowhere\.yaml is unknown"),
        ("sst2", ["colour=red"], r"sst2\.yaml: unknown key colour"),
        ("sst2", ["settings.laptop.stepz=3"], r"unknown key settings\.laptop\.stepz"),
        ("sst2", ["settings.smoke.pooler=old"], r"settings\.smoke\.pooler=old: .*'pretrained' or 'new'"),
        ("sst2", ["settings.paper.steps=many"], r"settings\.paper\.steps=many: .*integer"),
        ("sst2", ["settings.paper.steps=0"], r"settings\.paper\.steps=0: .*greater than 0"),
        ("sst2", [f"settings.smoke.steps={10**22}"], r"smoke\.steps=10{22}: .*less than or equal to 1000000000$"),
        ("sst2", ["settings.laptop.warmup_steps=500"], r"settings\.laptop: warmup_steps=500 is more than steps=200"),
        ("sst2", ["settings.laptop=3"], r"settings\.laptop=3"),
        ("sst2", ["settings.laptop.steps=1,2"], "has several values, but a task allows only one"),
        ("sst2", ["metrics=[f2]"], r"metrics=f2 is unknown \(allowed: accuracy, f1, matthews\)"),
        ("sst2", ["main=[f1]"], r"main=f1 is unknown \(allowed: accuracy\)"),
        ("mnli", ["metrics=[f1]"], r"metrics=f1 is unknown \(allowed: accuracy, matthews\)"),
        ("stsb", ["metrics=[accuracy]"], r"metrics=accuracy is unknown \(allowed: pearson, spearman\)"),
        ("sst2", ["format.name=glu"], r"format=.*'glue', 'squad', 'race'"),
        ("sst2", ["format.labels=3"], r"format\.labels=3: .*array"),
        (
            "squad1",
            ["settings.paper.stride=null"],
            r"settings\.paper\.stride must be",
        ),
        (
            "squad1",
            ["settings.laptop.question_length=50"],
            "settings.laptop: max_sequence_length=64 leaves 11 tokens of text next to question_length=50, fewer than",
        ),
    ],
)
def test_an_invalid_setting_is_refused_with_its_key_and_the_allowed_values(name, overrides, says):
    with pytest.raises(ConfigError, match=says):
        load_task(name, overrides)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "cannot be read as YAML"),
        ("[1]", "has no keys"),
        ("", r"mine\.yaml: has no keys"),
        (COLA.replace("dev: glue", "validation: glue"), r"mine\.yaml: data="),
        (COLA.replace("  labels:", "  lables:"), r"format\.labels is missing\n.*unknown key format\.lables"),
        (COLA.replace("  paper: {learning_rate", "  paper: {rate"), r"unknown key settings\.paper\.rate"),
    ],
)
def test_a_file_without_a_task_is_refused(text, says, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_task(str(file))


def test_missing_data_is_reported_with_its_path_and_a_remedy(tmp_path):
    with pytest.raises(MissingDataError, match=rf"no dev data at {tmp_path}/race/dev: .*`albert-lab data fetch race`"):
        TASKS["race"].read(tmp_path, "dev")


def test_lengths_never_exceed_the_pretraining_length():
    task = load_task("squad2")
    fitted = task.fitted(config.load(["scale=paper", "max_sequence_length=64"]))
    assert (fitted.max_sequence_length, fitted.question_length, fitted.stride) == (64, 8, 16)
    assert task.fitted(config.load(["scale=paper"])) == task.at("paper")
    with pytest.raises(ConfigError, match="max_sequence_length=8 of the run is too short for squad2"):
        task.fitted(config.load(["scale=laptop", "length_schedule=constant", "max_sequence_length=8"]))


def test_settings_of_an_unknown_scale_are_refused():
    with pytest.raises(ConfigError, match=r"settings=smok is unknown \(allowed: gpu, laptop, "):
        load_task("sst2", ["settings.smok.learning_rate=0.001"])


@pytest.mark.parametrize(
    ("texts", "labels", "says"),
    [
        (["a cat", "a dog"], ["yes", "yes"], "the label yes"),
        (["", " "], ["yes", "no"], "texts"),
    ],
)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_examples_from_which_nothing_can_be_learnt_are_refused(texts, labels, says, split, tmp_path):
    content = (
        "kind: classification\ndata: {train: train.jsonl, dev: dev.jsonl}\nformat: {text_a: text, labels: [yes, no]}\n"
    )
    (tmp_path / "own.yaml").write_text(content.replace("[yes, no]", "['yes', 'no']"))
    lines = [json.dumps({"text": text, "label": label}) for text, label in zip(texts, labels, strict=True)]
    (tmp_path / f"{split}.jsonl").write_text("\n".join(lines))
    with pytest.raises(ConfigError, match=re.escape(says)):
        load_task(str(tmp_path / "own.yaml")).read(tmp_path, split)
