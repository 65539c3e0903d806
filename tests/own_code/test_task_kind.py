"""A toy test of an own kind of task: copy it to test yours."""

import pytest
import torch

from albert_lab import registry
from albert_lab.config.compose import load
from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.kind import load_kind
from albert_lab.tasks.records import identity_of
from albert_lab.tasks.task import load_task

DEEP = """
import torch

from albert_lab.extend import EncoderShape, task_kind
from albert_lab.tasks.classification import Kind


@task_kind("averaged", like="classification")
class Averaged(Kind):
    def build_head(self, shape: EncoderShape) -> torch.nn.Module:
        head = super().build_head(shape)
        head.averaged = torch.nn.Linear(shape.hidden_size, shape.hidden_size)
        return head
"""
TASK = """
kind: averaged
source: mine
data: {train: train.tsv, dev: dev.tsv}
format: {columns: [text, label], text_a: text, label: label, labels: [bad, good]}
"""


@pytest.fixture(autouse=True)
def nothing_included():
    with registry.separate():
        yield


@pytest.fixture
def task(tmp_path):
    (tmp_path / "mine.yaml").write_text(TASK)
    return str(tmp_path / "mine.yaml")


@pytest.fixture
def own(tmp_path):
    def include(text):
        (tmp_path / "own.py").write_text(text)
        return registry.include(tmp_path / "own.py")

    return include


def test_an_own_kind_of_task_has_the_formats_and_settings_of_another_and_a_head_of_its_own(task, own):
    own(DEEP)
    mine = load_task(task)
    assert mine.format.name == "glue"
    kind = load_kind(mine, mine.at("smoke"))
    head = kind.build_head(EncoderShape.from_config(load(["scale=smoke"])))
    assert isinstance(head.averaged, torch.nn.Linear)


def test_a_changed_kind_of_task_gives_other_fine_tunings_of_the_same_run(task, own):
    own(DEEP)
    config = load(["scale=smoke"])
    before = identity_of("run", config, load_task(task), 0)
    assert config.include == ()
    assert registry.options()[0] == "--include"
    with registry.separate():
        own(DEEP + "# changed\n")
        assert identity_of("run", config, load_task(task), 0) != before


def test_a_kind_that_is_not_included_is_unknown(task):
    with pytest.raises(ConfigError, match="kind=averaged is unknown"):
        load_task(task)


def test_a_kind_is_like_one_that_exists(own):
    with pytest.raises(ConfigError, match="task kind averaged like clasification"):
        own(DEEP.replace('classification"', 'clasification"'))
