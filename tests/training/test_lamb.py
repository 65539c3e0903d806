import re

import numpy as np
import pytest
import torch
from torch import nn

from albert_lab.training.optimizer import Lamb

BETAS, EPS, WEIGHT_DECAY = (0.9, 0.999), 1e-6, 0.01


class Released:
    """The released rule in numpy and float64, with exclusions by name; adapted=False is its
    AdamW.
    """

    def __init__(self, weights: dict[str, np.ndarray], *, adapted: bool):
        self.weights = weights
        self.m = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.v = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.adapted = adapted

    def step(self, gradients: dict[str, np.ndarray], lr: float) -> None:
        for name, gradient in gradients.items():
            weight = self.weights[name]
            self.m[name] = BETAS[0] * self.m[name] + (1 - BETAS[0]) * gradient
            self.v[name] = BETAS[1] * self.v[name] + (1 - BETAS[1]) * gradient**2
            update = self.m[name] / (np.sqrt(self.v[name]) + EPS)
            ratio = 1.0
            if not re.search("LayerNorm|layer_norm|bias", name):
                update = update + WEIGHT_DECAY * weight
                weight_norm, update_norm = np.sqrt(np.sum(weight**2)), np.sqrt(np.sum(update**2))
                if self.adapted and weight_norm > 0 and update_norm > 0:
                    ratio = weight_norm / update_norm
            self.weights[name] = weight - lr * ratio * update


def toy_parameters() -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    values = {
        # a norm that a clamp would change
        "word_embeddings": 100 * torch.randn(30, 4, generator=generator),
        "dense.kernel": torch.randn(4, 8, generator=generator),
        "dense.bias": torch.zeros(8),
        "LayerNorm.gamma": torch.ones(4),
        "LayerNorm.beta": torch.zeros(4),
        "starts_at_zero": torch.zeros(3, 3),
        "never_moved": torch.zeros(2, 2),
    }
    return {name: nn.Parameter(value) for name, value in values.items()}


@pytest.mark.parametrize("adapted", [True, False])
def test_fifty_steps_match_the_released_rule_in_numpy(adapted: bool):
    parameters = toy_parameters()
    released = Released(
        {name: p.detach().double().numpy() for name, p in parameters.items()}, adapted=adapted
    )
    excluded = [p for name, p in parameters.items() if re.search("LayerNorm|bias", name)]
    others = [p for name, p in parameters.items() if not re.search("LayerNorm|bias", name)]
    without_gradient = nn.Parameter(torch.ones(2))
    optimizer = Lamb(
        [
            {"params": [*others, without_gradient]},
            {"params": excluded, "weight_decay": 0.0, "trust_ratio": False},
        ],
        lr=0.0,
        betas=BETAS,
        eps=EPS,
        weight_decay=WEIGHT_DECAY,
        trust_ratio=adapted,
    )
    random = np.random.Generator(np.random.Philox(1))
    for step in range(50):
        lr = 0.02 * (1 - step / 50)
        gradients = {
            name: random.normal(size=tuple(p.shape)) * 10.0 ** random.integers(-4, 2)
            for name, p in parameters.items()
        }
        # both norms zero: the ratio must be 1, not a division by zero
        gradients["never_moved"][:] = 0
        for name, parameter in parameters.items():
            parameter.grad = torch.from_numpy(gradients[name]).float()
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        released.step(gradients, lr)
    for name, parameter in parameters.items():
        np.testing.assert_allclose(
            parameter.detach().numpy(), released.weights[name], rtol=2e-5, atol=1e-6, err_msg=name
        )
    assert without_gradient.tolist() == [1, 1]
    assert without_gradient not in optimizer.state
    assert not parameters["never_moved"].any()
    assert parameters["starts_at_zero"].all()
