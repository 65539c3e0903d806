from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from albert_lab import paths
from albert_lab.config import compose as config
from albert_lab.errors import ConfigError
from albert_lab.tasks.task import load_task, task_names

TASKS = {name: load_task(name) for name in task_names()}
PRINTED = yaml.safe_load(Path(__file__).with_name("table14.yaml").read_text())
COLA = (paths.CONF / "task/cola.yaml").read_text()


def test_the_task_files_fit_each_other_and_the_scales():
    for name, task in TASKS.items():
        assert task.name == name
        assert sorted(task.settings) == sorted(config.groups()["scale"])
        assert task.start_from is None or task.start_from in TASKS


@pytest.fixture
def own(tmp_path):
    """A function that loads an own task: a file of the project with other values of its keys."""

    def load(name, *overrides):
        content = OmegaConf.merge(
            OmegaConf.load(paths.CONF / f"task/{name}.yaml"), OmegaConf.from_dotlist([*overrides])
        )
        OmegaConf.save(content, tmp_path / "own.yaml")
        return load_task(str(tmp_path / "own.yaml"))

    return load


def test_a_scale_inherits_missing_settings_from_the_defaults_of_its_kind(tmp_path):
    file = tmp_path / "mine.yaml"
    text = COLA[: COLA.index("settings:")]
    file.write_text(
        f"{text}settings: {{paper: {{dropout: 0.3}}, laptop: {{steps: 7, warmup_steps: 1}}}}"
    )
    task = load_task(str(file))
    dropout = {scale: settings.dropout for scale, settings in task.settings.items()}
    assert dropout.items() >= {"paper": 0.3, "smoke": 0.3, "laptop": 0.0}.items()
    assert (task.at("laptop").steps, task.at("gpu").steps) == (7, TASKS["sst2"].at("gpu").steps)


def test_the_learning_rate_falls_with_the_width_unless_it_is_given(own):
    runs = [config.load([f"model={name}", "scale=laptop"]) for name in ("tiny", "base")]
    narrow, wide = (run.model.hidden_size for run in runs)
    settings = TASKS["sst2"].at("laptop")
    assert settings.rate_hidden_size is not None
    assert narrow < settings.rate_hidden_size < wide

    def rates(*overrides):
        return [own("sst2", *overrides).fitted(run).learning_rate for run in runs]

    full = settings.learning_rate
    assert rates()[0] == full > rates()[1]
    assert rates("settings.laptop.learning_rate=0.01") == [0.01, 0.01]
    scaled = ["settings.laptop.learning_rate=0.01", f"settings.laptop.rate_hidden_size={wide // 4}"]
    assert rates(*scaled) == pytest.approx([0.01, 0.00125]), (
        "four times as wide, an eighth of the rate"
    )


def test_a_task_that_starts_from_another_keeps_the_pooler_that_was_tuned_there():
    run = config.load(["scale=laptop"])
    assert TASKS["mnli"].fitted(run).pooler == "new"
    for name in ("mrpc", "rte", "stsb"):
        assert TASKS[name].start_from == "mnli"
        assert TASKS[name].fitted(run).pooler == "pretrained"


def test_lengths_never_exceed_the_pretraining_length():
    task = load_task("squad2")
    fitted = task.fitted(config.load(["scale=paper", "max_sequence_length=64"]))
    assert (fitted.max_sequence_length, fitted.question_length, fitted.stride) == (64, 8, 16)
    assert task.fitted(config.load(["scale=paper"])) == task.at("paper")
    with pytest.raises(
        ConfigError, match="max_sequence_length=8 of the run is too short for squad2"
    ):
        task.fitted(
            config.load(["scale=laptop", "length_schedule=constant", "max_sequence_length=8"])
        )


@pytest.mark.parametrize(
    ("name", "override", "says"),
    [
        ("sst2", "colour=red", "colour"),
        ("sst2", f"settings.smoke.steps={10**22}", r"smoke\.steps=10{22}"),
        ("sst2", "settings.laptop.warmup_steps=500", "warmup_steps=500"),
        ("sst2", "settings.laptop.steps=1,2", r"settings\.laptop\.steps"),
        ("sst2", "settings.smok.retries=1", "settings=smok"),
        ("mnli", "format.metrics=[f1]", "metrics=f1"),
        ("sst2", "format.name=glu", "format"),
        ("squad2", "settings.paper.beam_size=null", r"settings\.paper\.beam_size"),
        ("squad1", "settings.laptop.question_length=50", "question_length=50"),
        ("sst2", "format.labels=[0]", "labels"),
        ("sst2", "format.text_b=label", "label is given twice"),
        ("sst2", "data.dev=./glue/SST-2/train.tsv", "data="),
        ("sst2", "kind=[classification]", "kind="),
        ("sst2", "kind=other", "kind="),
    ],
)
def test_an_invalid_setting_is_refused_with_its_key(name, override, says, own):
    with pytest.raises(ConfigError, match=says):
        own(name, override)


@pytest.mark.parametrize(
    "name", ["mlm_accuracy", "average", "seed", "parameters", "mnli", "mine_loss"]
)
def test_a_task_cannot_be_named_like_a_score_a_column_a_setting_or_a_task(name, tmp_path):
    file = tmp_path / f"{name}.yaml"
    file.write_text(
        "kind: classification\ndata: {train: a.jsonl, dev: b.jsonl}\nformat: {text_a: text, "
        "labels: [x, y]}"
    )
    with pytest.raises(ConfigError, match=name):
        load_task(str(file))


@pytest.mark.parametrize("name", PRINTED["rows"])
def test_the_settings_of_a_task_at_full_scale_are_those_of_the_papers_table_14(name):
    settings = load_task(name).at("paper")
    configured = [getattr(settings, key) for key in PRINTED["keys"]]
    assert configured == [float(cell) for cell in PRINTED["rows"][name]]
