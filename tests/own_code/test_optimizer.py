"""A toy test of an own optimizer: copy it to test yours."""

import pytest
import torch
from torch import nn

from albert_lab import registry
from albert_lab.config.compose import load
from albert_lab.errors import ConfigError
from albert_lab.model.heads import PretrainingModel
from albert_lab.training.optimizer import build_optimizer, set_learning_rate

SIGN = """
from collections.abc import Sequence
from typing import Any

import torch
from torch.optim import Optimizer

from albert_lab.extend import OptimizerConfig, optimizer


class Sign(Optimizer):
    def __init__(self, groups, lr):
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter -= group["lr"] * parameter.grad.sign()


@optimizer("sign", like="adamw")
def sign(groups: Sequence[dict[str, Any]], settings: OptimizerConfig, learning_rate: float) -> Optimizer:
    return Sign([*groups], learning_rate)
"""


@pytest.fixture(autouse=True)
def nothing_included(tmp_path):
    with registry.separate():
        (tmp_path / "own.py").write_text(SIGN)
        registry.include(tmp_path / "own.py")
        yield


def test_an_own_optimizer_is_an_option_with_the_settings_of_another_one():
    config = load(["scale=smoke", "optimizer=sign", "optimizer.learning_rate=0.5"])
    assert config.optimizer.model_dump() == load(
        ["scale=smoke", "optimizer=adamw", "optimizer.learning_rate=0.5"]
    ).optimizer.model_dump() | {"name": "sign"}
    assert [included.file for included in config.include] == ["own.py"]


def test_an_own_optimizer_steps_at_the_rate_of_the_schedule():
    config = load(["scale=smoke", "optimizer=sign"])
    model = PretrainingModel.from_config(config)
    optimizer = build_optimizer(model, config.optimizer, 1.0)
    set_learning_rate(optimizer, 0.25)
    weight = model.pooler.dense.weight
    before = weight.detach().clone()
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), before - 0.25)


def test_an_own_optimizer_must_keep_the_groups(tmp_path):
    (tmp_path / "other.py").write_text(
        SIGN.replace('"sign"', '"ungrouped"').replace("[*groups]", "groups[0]['params']")
    )
    registry.include(tmp_path / "other.py")
    config = load(["scale=smoke", "optimizer=ungrouped"])
    model: nn.Module = PretrainingModel.from_config(config)
    with pytest.raises(ConfigError, match="optimizer=ungrouped: its param_groups must be the groups"):
        build_optimizer(model, config.optimizer, 1.0)


def test_the_option_of_a_file_that_is_not_included_is_unknown():
    with registry.separate(), pytest.raises(ConfigError, match="optimizer=sign is unknown"):
        load(["scale=smoke", "optimizer=sign"])
