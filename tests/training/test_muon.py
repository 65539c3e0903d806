import copy
from collections.abc import Callable

import pytest
import torch

from albert_lab.config.compose import load
from albert_lab.model.encoder import PretrainingModel
from albert_lab.training.optimizer import build_optimizer

MUON = ["scale=smoke", "optimizer=muon", "optimizer.muon_ratio=2", "sharing=not-shared"]
RATE = 0.01


@pytest.fixture(params=["bf16", "fp32"])
def precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The precision that the device is taken to have."""
    monkeypatch.setattr(
        "albert_lab.training.optimizer.choose_precision", lambda name, device: request.param
    )
    return request.param


def step(model: torch.nn.Module, take: Callable[[], object], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        # None at first: a matrix whose gradient is zero stays as it is.
        parameter.grad = seed * torch.randn(parameter.shape, generator=generator)
    take()


def test_steps_equal_those_of_muon_and_adamw_of_torch(precision: str):
    config = load([*MUON, "optimizer.weight_decay=0.5"])
    model = PretrainingModel.from_config(config)
    torchs, start = copy.deepcopy(model), copy.deepcopy(model)
    ours = build_optimizer(model, config.optimizer, RATE)

    named = dict(torchs.named_parameters())
    matrices = [p for name, p in named.items() if "_blocks." in name and p.ndim == 2]
    decayed = [p for name, p in named.items() if "_blocks." not in name and p.ndim == 2]
    rest = [p for p in named.values() if p.ndim < 2]
    options = {"lr": 2 * RATE, "momentum": 0.95, "ns_steps": 5, "weight_decay": 0.5}
    of_matrices = torch.optim.Muon(matrices, adjust_lr_fn="match_rms_adamw", **options)
    of_others = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.5}, {"params": rest, "weight_decay": 0}],
        lr=RATE,
        eps=1e-6,
    )
    for seed in range(4):
        step(model, ours.step, seed)
        step(torchs, lambda: (of_matrices.step(), of_others.step()), seed)
    assert len(matrices) == 2 * 6
    ids = {id(p) for p in matrices}
    for (name, other), mine, before in zip(
        named.items(), model.parameters(), start.parameters(), strict=True
    ):
        error = (mine - other).norm() / (other - before).norm()
        # torch's own iteration computes in bf16, which has eight bits.
        assert error < (0.02 if id(other) in ids else 1e-5), name
