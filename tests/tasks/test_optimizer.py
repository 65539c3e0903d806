import pytest
import torch
from torch import nn

from albert_lab.tasks.finetune import build_optimizer


@pytest.mark.parametrize(("name", "length"), [("adamw", 1.0), ("adam-release", 0.1 / 0.001**0.5)])
def test_only_the_adam_of_the_release_starts_with_longer_steps(name, length):
    model = nn.Linear(3, 1, bias=False)
    before = model.weight.detach().clone()
    optimizer = build_optimizer(model, name, 1e-3)
    model(torch.full((1, 3), 100.0)).sum().backward()
    optimizer.step()
    moved = before - model.weight.detach()
    assert torch.allclose(moved, torch.full_like(moved, 1e-3 * length), rtol=0.01)


def test_biases_and_layer_norm_have_no_weight_decay():
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    optimizer = build_optimizer(model, "adamw", 1e-3)
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert [decay[id(p)] for p in model.parameters()] == [0.01, 0.0, 0.0, 0.0]
