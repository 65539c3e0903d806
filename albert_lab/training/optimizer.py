"""The optimizer of a run: LAMB, AdamW or Muon, over groups of parameters; and the course of its
learning rate.
"""

# pyright: reportPrivateImportUsage=false
# torch's own optimizers are written with the same torch._foreach_* functions; there is no public
# name for them.

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import AdamW
from torch.optim.optimizer import Optimizer, ParamsT

from albert_lab.config.training import OptimizerConfig
from albert_lab.model.blocks import Block, LayerScale
from albert_lab.training.device import choose_precision

_NORMS = (nn.LayerNorm, nn.RMSNorm, LayerScale)
# Coefficients and smallest norm of the iteration: Jordan et al. 2024.
_A = 3.4445
_B = -4.7750
_C = 2.0315
_EPS = 1e-7
# Root mean square of an update of AdamW: Liu et al. 2025, section 2.2.
_RMS_OF_ADAMW = 0.2
Group = dict[str, Any]  # of parameters, as in torch.optim
# From groups of parameters, as in torch.optim (matrices of the blocks; other parameters with weight
# decay; LayerNorm and biases, with a weight_decay of 0), the settings of `optimizer`, and the first
# learning rate. A group's rate is set at every step.
Build = Callable[[Sequence[Group], OptimizerConfig, float], Optimizer]


class PlainOptimizer(Optimizer):
    """torch's optimizer, without what keeps its methods out of compiled code.

    To do so, each of them loads torch's compiler: 1.3 s of a CPU in every process that trains, and
    nothing here is compiled. What they do is below their wrappers.
    """

    add_param_group = unwrap(Optimizer.add_param_group)
    zero_grad = unwrap(Optimizer.zero_grad)
    state_dict = unwrap(Optimizer.state_dict)
    load_state_dict = unwrap(Optimizer.load_state_dict)


class PlainAdamW(PlainOptimizer, AdamW):
    """torch's AdamW, which does not load the compiler."""

    step = torch.no_grad()(unwrap(AdamW.step))


class Lamb(PlainOptimizer):
    """Layer-wise adaptive moments; `trust_ratio` and `weight_decay` may be set per parameter group.

    With `trust_ratio=False` it is the release's AdamWeightDecayOptimizer: AdamW without bias
    correction. Norms are taken per parameter tensor, so a shared tensor counts once. Trust ratios
    stay on the device: a step never waits for the device.

    Source: lamb_optimizer.py and optimization.py of google-research/albert; You et al. 2020,
    Algorithm 2.
    """

    def __init__(self, params: ParamsT, **options: Any) -> None:
        """Takes lr, betas, eps and weight_decay as AdamW does."""
        super().__init__(params, {"trust_ratio": True} | options)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            parameters, gradients = _with_gradients(group)
            if parameters:
                self._update(parameters, gradients, group)

    def _update(self, parameters: list[Tensor], gradients: list[Tensor], group: Group) -> None:
        means = _moments(self, parameters, "exp_avg")
        squares = _moments(self, parameters, "exp_avg_sq")
        beta1, beta2 = group["betas"]

        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)

        # In place from here: on a CPU, a new tensor costs as much as three passes over an existing
        # one.
        updates = torch._foreach_sqrt(squares)
        torch._foreach_add_(updates, group["eps"])
        torch._foreach_reciprocal_(updates)
        torch._foreach_mul_(updates, means)
        if group["weight_decay"]:
            torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
        if group["trust_ratio"]:
            weight_norms = torch.stack(torch._foreach_norm(parameters))
            update_norms = torch.stack(torch._foreach_norm(updates))
            both_positive = (weight_norms > 0) & (update_norms > 0)
            ratios = torch.where(both_positive, weight_norms / update_norms, 1.0).unbind()
            torch._foreach_addcmul_(parameters, updates, list(ratios), value=-group["lr"])
        else:
            torch._foreach_add_(parameters, updates, alpha=-group["lr"])


class Muon(PlainAdamW):
    """Orthogonalised momentum for groups with the keys `momentum` and `newton_schulz_steps`; AdamW
    for other groups.

    An update has the root mean square of AdamW's, so that one learning rate suits both. The result
    is that of torch.optim.Muon with adjust_lr_fn="match_rms_adamw", but matrices of one shape are
    orthogonalised together, and in float32 if the device has no bf16: there, torch's takes 17 times
    as long.

    Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/; Liu et al. 2025, arXiv
    2502.16982.
    """

    # That of AdamW asks for AdamW's state of every parameter.
    __setstate__ = Optimizer.__setstate__

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        groups = self.param_groups
        self.param_groups = [group for group in groups if "momentum" not in group]
        super().step()
        self.param_groups = groups
        for group in groups:
            matrices, gradients = _with_gradients(group)
            if "momentum" in group and matrices:
                self._update(matrices, gradients, group)

    def _update(self, matrices: list[Tensor], gradients: list[Tensor], group: Group) -> None:
        means = _moments(self, matrices, "momentum_buffer")
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        updates = torch._foreach_lerp(gradients, means, group["momentum"])  # Nesterov's
        torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])

        by_shape = defaultdict(list)  # pairs of a matrix and its update
        for matrix, update in zip(matrices, updates, strict=True):
            if matrix.shape[0] > matrix.shape[1]:
                # A tall matrix is transposed: the products of the iteration are of the size of the
                # rows.
                matrix = matrix.mT
                update = update.mT
            by_shape[tuple(matrix.shape)].append((matrix, update))
        for pairs in by_shape.values():
            self._step_along(
                [matrix for matrix, _ in pairs], [update for _, update in pairs], group
            )

    def _step_along(self, matrices: list[Tensor], updates: list[Tensor], group: Group) -> None:
        """Move matrices of one shape along their updates, orthogonalised in bf16 where the device
        has it.
        """
        first = matrices[0]
        is_bf16 = choose_precision("auto", first.device) == "bf16"
        stacked = torch.stack(updates).to(torch.bfloat16 if is_bf16 else torch.float32)
        steps = orthogonalized(stacked, group["newton_schulz_steps"]).to(first.dtype)
        rate = group["lr"] * _RMS_OF_ADAMW * math.sqrt(max(first.shape))
        if isinstance(rate, Tensor):
            torch._foreach_sub_(matrices, list((steps * rate).unbind()))
        else:
            torch._foreach_add_(matrices, list(steps.unbind()), alpha=-rate)


def orthogonalized(matrices: Tensor, steps: int) -> Tensor:
    """The nearest semi-orthogonal matrices, roughly: singular values end between 0.7 and 1.2 for
    the usual five steps.

    Args:
        matrices: [matrix, rows, columns], with at most as many rows as columns.
    """
    whitened = matrices / torch.linalg.matrix_norm(matrices, keepdim=True).clamp(min=_EPS)
    for _ in range(steps):
        gram = whitened @ whitened.mT
        whitened = torch.baddbmm(
            whitened, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), whitened, beta=_A
        )
    return whitened


def _with_gradients(group: Group) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters of a group that have a gradient, and these gradients."""
    parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
    return parameters, [parameter.grad for parameter in parameters]


def _moments(optimizer: Optimizer, parameters: Sequence[Tensor], name: str) -> list[Tensor]:
    """The entry of the state of each parameter with this name, zeros at first."""
    for parameter in parameters:
        state = optimizer.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
    return [optimizer.state[parameter][name] for parameter in parameters]


def _options(config: OptimizerConfig, learning_rate: float) -> dict[str, Any]:
    return {
        "lr": learning_rate,
        "betas": config.betas,
        "eps": config.eps,
        "weight_decay": config.weight_decay,
    }


def _lamb(groups: Sequence[Group], config: OptimizerConfig, learning_rate: float) -> Optimizer:
    *decayed, undecayed = groups
    return Lamb([*decayed, undecayed | {"trust_ratio": False}], **_options(config, learning_rate))


def _adamw(groups: Sequence[Group], config: OptimizerConfig, learning_rate: float) -> Optimizer:
    # one kernel for all tensors
    return PlainAdamW([*groups], **_options(config, learning_rate), fused=True)


def _muon(groups: Sequence[Group], config: OptimizerConfig, learning_rate: float) -> Optimizer:
    blocks, *others = groups
    blocks |= {"momentum": config.momentum, "newton_schulz_steps": config.newton_schulz_steps}
    return Muon([blocks, *others], **_options(config, learning_rate), fused=True)


OPTIMIZERS: dict[str, Build] = {"lamb": _lamb, "adamw": _adamw, "muon": _muon}


def build_optimizer(model: nn.Module, config: OptimizerConfig, learning_rate: float) -> Optimizer:
    """The optimizer of a configuration over a model's trainable parameters; set_learning_rate()
    changes its rate, and needs its groups as they are given.
    """
    decayed, undecayed = split_parameters(model)
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    # Own blocks can have parameters of other shapes.
    in_blocks = {id(p) for block in blocks for p in block.parameters() if p.ndim == 2}
    groups = (
        {"params": [p for p in decayed if id(p) in in_blocks], "ratio": config.muon_ratio or 1.0},
        {
            "params": [p for p in decayed if id(p) not in in_blocks],
            "ratio": config.embedding_ratio or 1.0,
        },
        {"params": undecayed, "ratio": 1.0, "weight_decay": 0.0},
    )
    optimizer = OPTIMIZERS[config.name](groups, config, learning_rate)
    set_learning_rate(optimizer, learning_rate)
    return optimizer


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """Set the rate of every group to this one times the group's ratio; the last group's ratio is 1.

    A rate that is a tensor keeps its place, from which a CUDA graph reads it.
    """
    for group in optimizer.param_groups:
        rate = learning_rate * group["ratio"]
        group["lr"] = group["lr"].fill_(rate) if isinstance(group["lr"], Tensor) else rate


def learning_rate_factor(share: float, warmup: float, decay: float | None = None) -> float:
    """Learning rate relative to its peak, for the step that starts at this used share of the
    budget.

    It rises linearly from 0 until `warmup`, and then falls linearly to 0: with `decay`, in this
    share at the end of the budget, and otherwise as released. There the decay is computed over the
    whole budget: it starts at 1 - warmup, below the peak, and the first step of a warm-up changes
    no weight.

    Source: optimization.py of google-research/albert; with decay, Hägele et al. 2024, arXiv
    2405.18392.
    """
    rise = share / warmup if share < warmup else 1.0
    if decay is not None:
        # Differs from the paper: the rate stays at its peak between warm-up and decay.
        return max(0.0, min(rise, (1.0 - share) / decay))
    return rise if share < warmup else max(0.0, 1.0 - share)


def split_parameters(model: nn.Module) -> tuple[list[Parameter], list[Parameter]]:
    """Parameters with weight decay and trust ratio, and those without: norms, biases, and scales of
    layers.

    A shared parameter is listed once.

    Source: exclude_from_weight_decay in optimization.py of google-research/albert.
    """
    norms = [module for module in model.modules() if isinstance(module, _NORMS)]
    in_norms = {id(parameter) for norm in norms for parameter in norm.parameters()}
    decayed: list[Parameter] = []
    undecayed: list[Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_excluded = name.endswith("bias") or id(parameter) in in_norms
            (undecayed if is_excluded else decayed).append(parameter)
    return decayed, undecayed
