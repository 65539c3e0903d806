from typing import Any

import pytest
from torch import nn

from albert_lab.config.compose import load
from albert_lab.config.training import OptimizerConfig
from albert_lab.model.encoder import PretrainingModel
from albert_lab.training.optimizer import (
    Lamb,
    PlainAdamW,
    build_optimizer,
    set_learning_rate,
    split_parameters,
)


def configure(name: str, **options: Any) -> OptimizerConfig:
    common = {"learning_rate": None, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01}
    return OptimizerConfig(name=name, warmup=0.1, max_grad_norm=1.0, **common, **options)


def test_only_norms_and_biases_are_excluded_and_a_shared_weight_is_listed_once():
    parts = {"table": nn.Embedding(5, 4), "first": nn.LayerNorm(4), "second": nn.RMSNorm(4)}
    model = nn.ModuleDict(parts | {"dense": nn.Linear(4, 4), "decoder": nn.Linear(4, 5)})
    model["decoder"].weight = model["table"].weight
    names = {parameter: name for name, parameter in model.named_parameters()}
    adapted, excluded = split_parameters(model)
    assert [names[p] for p in adapted] == ["table.weight", "dense.weight"]
    of_norms = ["first.weight", "first.bias", "second.weight"]
    assert [names[p] for p in excluded] == [*of_norms, "dense.bias", "decoder.bias"]


@pytest.mark.parametrize(("name", "kind"), [("lamb", Lamb), ("adamw", PlainAdamW)])
def test_excluded_parameters_have_no_decay_and_no_trust_ratio(name: str, kind: type):
    optimizer = build_optimizer(nn.Linear(4, 4), configure(name), learning_rate=0.5)
    assert type(optimizer) is kind
    *adapted, excluded = optimizer.param_groups
    assert [group["weight_decay"] for group in adapted] == [0.01, 0.01]
    assert excluded["weight_decay"] == 0.0
    assert {group["lr"] for group in optimizer.param_groups} == {0.5}
    if kind is Lamb:
        assert [group["trust_ratio"] for group in optimizer.param_groups] == [True, True, False]


@pytest.mark.parametrize("name", ["lamb", "adamw"])
def test_embeddings_and_heads_can_have_a_rate_of_their_own(name: str):
    model = PretrainingModel.from_config(load(["scale=smoke"]))
    optimizer = build_optimizer(model, configure(name, embedding_ratio=3.0), learning_rate=0.5)
    set_learning_rate(optimizer, 0.1)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    by_name = {name: rates[id(parameter)] for name, parameter in model.named_parameters()}
    assert len(by_name) == len(rates)
    fast = {name for name, rate in by_name.items() if rate == pytest.approx(0.3)}
    assert fast == {
        n for n in by_name if "_blocks." not in n and n.endswith("weight") and "layer_norm" not in n
    }
    assert {rate for name, rate in by_name.items() if name not in fast} == {0.1}
