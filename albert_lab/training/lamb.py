"""LAMB as released with ALBERT; without its trust ratio, the AdamW of the release's fine-tuning."""

# pyright: reportPrivateImportUsage=false
# torch's own optimizers are written with the same torch._foreach_* functions; there is no public name for them.

from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, ParamsT


class Lamb(Optimizer):
    """Layer-wise adaptive moments; `trust_ratio` and `weight_decay` may be set per parameter group.

    With `trust_ratio=False` it is the release's AdamWeightDecayOptimizer: AdamW without bias correction. Norms are
    taken per parameter tensor, so a shared tensor counts once. Trust ratios stay on the device: a step never waits for
    the device.

    Source: lamb_optimizer.py and optimization.py of google-research/albert; You et al. 2020, Algorithm 2.
    """

    def __init__(
        self,
        params: ParamsT,
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        trust_ratio: bool = True,
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "trust_ratio": trust_ratio}
        super().__init__(params, options)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        assert closure is None, "gradients are there before a step"
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                self._update(parameters, group)

    def _update(self, parameters: list[Tensor], group: dict) -> None:
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        moments = [self._moments(parameter) for parameter in parameters]
        means = [moment["exp_avg"] for moment in moments]
        squares = [moment["exp_avg_sq"] for moment in moments]
        beta1, beta2 = group["betas"]

        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)

        # In place from here: on a CPU, a new tensor costs as much as three passes over an existing one.
        updates = torch._foreach_sqrt(squares)
        torch._foreach_add_(updates, group["eps"])
        torch._foreach_reciprocal_(updates)
        torch._foreach_mul_(updates, means)
        if group["weight_decay"]:
            torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
        if group["trust_ratio"]:
            torch._foreach_addcmul_(parameters, updates, _trust_ratios(parameters, updates), value=-group["lr"])
        else:
            torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def _moments(self, parameter: Tensor) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            for moment in ("exp_avg", "exp_avg_sq"):
                state[moment] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        return state


def _trust_ratios(parameters: list[Tensor], updates: tuple[Tensor, ...]) -> list[Tensor]:
    weight_norms = torch.stack(torch._foreach_norm(parameters))
    update_norms = torch.stack(torch._foreach_norm(updates))
    both_positive = (weight_norms > 0) & (update_norms > 0)
    return list(torch.where(both_positive, weight_norms / update_norms, 1.0).unbind())
