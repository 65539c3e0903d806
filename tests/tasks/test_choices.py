import json

import numpy as np
import pytest
import torch
from toy_tasks import toy_start, toy_tokenizer

from albert_lab.errors import ConfigError
from albert_lab.tasks.examples import ChoiceExample, Issue
from albert_lab.tasks.features import TextEncoder
from albert_lab.tasks.formats.choices import ChoicesFormat
from albert_lab.tasks.formats.glue import GlueFormat
from albert_lab.tasks.formats.rows import read_rows
from albert_lab.tasks.model import build_model
from albert_lab.tasks.multiple_choice import Kind
from albert_lab.tasks.task import load_task

PLAIN = {"name": "choices", "columns": (), "header": True, "passage": None, "label": "label", "labels": None}


def form(**changes):
    return ChoicesFormat.model_validate(PLAIN | {"question": "goal", "options": ("one", "two", "three")} | changes)


def write(file, *rows):
    text = [json.dumps(row) if isinstance(row, dict) else row for row in rows]
    file.write_text("\n".join(text) + "\n")
    return file


def test_each_option_has_a_column_and_the_last_columns_may_be_empty(tmp_path):
    file = write(tmp_path / "a.tsv", "goal\tone\ttwo\tthree\tlabel", "g\tx\ty\tz\tC", "h\tx\ty\t\t1", "i\tx\t\t\tA")
    examples, issues = form().read(file, labelled=True)
    assert examples == [
        ChoiceExample("0", "", "g", ("x", "y", "z"), 2),
        ChoiceExample("1", "", "h", ("x", "y"), 1),
    ]
    assert issues == [Issue("a.tsv:4", "1 options")]


def test_options_are_a_list_in_json_and_labels_can_be_named(tmp_path):
    rows = [{"goal": "g", "all": ["x", "y", 3], "label": 2}, {"goal": "h", "all": ["x", "y"], "label": 3}, "{", "[1]"]
    file = write(tmp_path / "a.jsonl", *rows)
    examples, issues = form(options="all", labels=("1", "2", "3")).read(file, labelled=True)
    assert examples == [ChoiceExample("0", "", "g", ("x", "y", "3"), 1)]
    assert [issue.reason for issue in issues] == ["label is '3', none of the 2 options", "no JSON", "no JSON object"]
    with pytest.raises(ConfigError, match=r"a\.jsonl: no column answer; its columns: goal, all, label"):
        form(options="all", label="answer").read(file, labelled=True)


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_written_examples_are_read_back(name, tmp_path):
    examples = [ChoiceExample("0", "p", "q", ("x", "y", "z"), 2), ChoiceExample("1", "p", "r", ("x", "y"), 0)]
    choices = form(passage="text")
    choices.write(examples, tmp_path / name)
    assert choices.read(tmp_path / name, labelled=True) == (examples, [])
    choices.write_predictions({"0": 2, "1": 0}, tmp_path / "p.json")
    assert choices.read_predictions(tmp_path / "p.json") == {"0": 2, "1": 0}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"question": None}, "passage or question must name a column"),
        ({"options": ("one",)}, "options must name 2 to 26 columns"),
        ({"labels": ("1", "2")}, "2 labels for 3 options"),
        ({"labels": ("1", "2", "1")}, "1 is given twice"),
    ],
)
def test_an_unreadable_form_is_refused(changes, says):
    with pytest.raises(ValueError, match=says):
        form(**changes)


def test_a_question_with_fewer_options_never_gets_a_missing_option(tmp_path):
    task = load_task("race")
    kind, encoder = Kind(task, task.at("smoke")), TextEncoder(toy_tokenizer())
    few = ChoiceExample("0", "the cat", "it was", ("red", "big"), 1)
    many = ChoiceExample("1", "the cat", "it was", ("red", "green", "blue", "big", "bad"), 4)
    features = kind.make_features([few, many], encoder, training=True)
    model = build_model(toy_start(tmp_path), kind, 0.0, 0).eval()
    values = model.scores(features.batch(np.array([0, 1]), torch.device("cpu")))["values"].detach().numpy()
    assert values.shape == (2, 5)
    assert values.sum(axis=1) == pytest.approx([1, 1])
    assert values[0, 2:].tolist() == [0, 0, 0]
    alone = kind.make_features([few], encoder, training=True)
    assert model.scores(alone.batch(np.array([0]), torch.device("cpu")))["values"].detach().numpy() == pytest.approx(
        values[:1, :2], rel=1e-5
    )
    assert kind.chance_loss(features) == pytest.approx(np.log([2, 5]).mean())
    assert kind.constant([few], [few, many]).answers == {"0": 1, "1": 4}


def test_json_lines_without_an_object_are_refused_with_the_reason(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text":\n[1]\n')
    with pytest.raises(ConfigError, match=r"a\.jsonl: no line is a JSON object; the first one is no JSON"):
        read_rows(tmp_path / "a.jsonl", [], False, "")


def test_texts_and_labels_are_read_from_and_written_to_json_lines(tmp_path):
    two = GlueFormat(name="glue", columns=(), header=True, text_a="a", text_b="b", label="label", labels=("0", "1"))
    rows = [{"a": "x", "b": "y", "label": 1}, {"a": "x", "label": 0}, {"a": "x", "b": "y", "label": None}]
    file = write(tmp_path / "a.jsonl", *rows)
    examples, issues = two.read(file, labelled=True)
    assert [(example.text_a, example.text_b, example.label) for example in examples] == [("x", "y", "1")]
    assert [issue.reason for issue in issues] == ["no text in b", "label is None, not one of 0, 1"]
    two.write(examples, tmp_path / "b.jsonl")
    assert two.read(tmp_path / "b.jsonl", labelled=True) == (examples, [])
