"""The optimizer of a run, with the parameters that are excluded from weight decay and trust ratio."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import AdamW, Optimizer

from albert_lab.config.training import OptimizerConfig
from albert_lab.errors import ConfigError
from albert_lab.model.blocks import Block
from albert_lab.training.lamb import Lamb
from albert_lab.training.muon import Muon

# From groups of parameters, as in torch.optim (matrices of the blocks; other parameters with weight decay; LayerNorm
# and biases, with a weight_decay of 0), the settings of `optimizer`, and the first learning rate. A group's rate is set
# at every step.
Build = Callable[[Sequence[dict[str, Any]], OptimizerConfig, float], Optimizer]


def _options(config: OptimizerConfig, learning_rate: float) -> dict[str, Any]:
    return {"lr": learning_rate, "betas": config.betas, "eps": config.eps, "weight_decay": config.weight_decay}


def _lamb(groups: Sequence[dict[str, Any]], config: OptimizerConfig, learning_rate: float) -> Optimizer:
    *adapted, excluded = groups
    return Lamb([*adapted, excluded | {"trust_ratio": False}], **_options(config, learning_rate))


def _adamw(groups: Sequence[dict[str, Any]], config: OptimizerConfig, learning_rate: float) -> Optimizer:
    # One kernel for all tensors; the meta device (for models that are only counted) does not have it.
    return AdamW([*groups], **_options(config, learning_rate), fused=can_fuse(groups))


def _muon(groups: Sequence[dict[str, Any]], config: OptimizerConfig, learning_rate: float) -> Optimizer:
    blocks, *others = groups
    blocks |= {"momentum": config.momentum, "newton_schulz_steps": config.newton_schulz_steps}
    return Muon([blocks, *others], **_options(config, learning_rate), fused=can_fuse(groups))


OPTIMIZERS: dict[str, Build] = {"lamb": _lamb, "adamw": _adamw, "muon": _muon}


def build_optimizer(model: nn.Module, config: OptimizerConfig, learning_rate: float) -> Optimizer:
    """The optimizer of a configuration over a model's trainable parameters; set_learning_rate() changes its rate.

    Raises:
        ConfigError: own code that does not keep the groups.
    """
    groups = _groups(model, config)
    optimizer = OPTIMIZERS[config.name](groups, config, learning_rate)
    if not all("ratio" in group for group in optimizer.param_groups):
        raise ConfigError(f"optimizer={config.name}: its param_groups must be the groups that it is given")
    set_learning_rate(optimizer, learning_rate)
    return optimizer


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """Set the rate of every group to this one times the group's ratio; the last group's ratio is 1.

    A rate that is a tensor keeps its place, from which a CUDA graph reads it.
    """
    for group in optimizer.param_groups:
        rate = learning_rate * group["ratio"]
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def learning_rate_factor(share: float, warmup: float, decay: float | None = None) -> float:
    """Learning rate relative to its peak, for the step that starts at this used share of the budget.

    It rises linearly from 0 until `warmup`, and then falls linearly to 0: with `decay`, in this share at the end of the
    budget, and otherwise as released. There the decay is computed over the whole budget: it starts at 1 - warmup, below
    the peak, and the first step of a warm-up changes no weight.

    Source: optimization.py of google-research/albert; with decay, Hägele et al. 2024, arXiv 2405.18392.
    """
    rise = share / warmup if share < warmup else 1.0
    if decay is not None:
        # Differs from the paper: the rate stays at its peak between warm-up and decay.
        return max(0.0, min(rise, (1.0 - share) / decay))
    return rise if share < warmup else max(0.0, 1.0 - share)


def _groups(model: nn.Module, config: OptimizerConfig) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Groups of parameters: matrices of attention and FFN, other adapted parameters, and excluded ones."""
    adapted, excluded = split_parameters(model)
    # Own blocks can have parameters of other shapes.
    in_blocks = {
        id(p) for module in model.modules() if isinstance(module, Block) for p in module.parameters() if p.ndim == 2
    }
    return (
        {"params": [p for p in adapted if id(p) in in_blocks], "ratio": config.muon_ratio or 1.0},
        {"params": [p for p in adapted if id(p) not in in_blocks], "ratio": config.embedding_ratio or 1.0},
        {"params": excluded, "ratio": 1.0, "weight_decay": 0.0},
    )


def can_fuse(groups: Sequence[dict[str, Any]]) -> bool:
    """Whether torch has a fused AdamW for the device of the parameters of groups."""
    return all(parameter.device.type in ("cpu", "cuda") for group in groups for parameter in group["params"])


def split_parameters(model: nn.Module) -> tuple[list[Parameter], list[Parameter]]:
    """Parameters with weight decay and trust ratio, and parameters without: LayerNorm and biases.

    A shared parameter is listed once.

    Source: exclude_from_weight_decay in optimization.py of google-research/albert.
    """
    norms = {
        id(p)
        for module in model.modules()
        if isinstance(module, nn.LayerNorm | nn.RMSNorm)
        for p in module.parameters()
    }
    adapted: list[Parameter] = []
    excluded: list[Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_excluded = name.endswith("bias") or id(parameter) in norms
            (excluded if is_excluded else adapted).append(parameter)
    return adapted, excluded
