"""The optimizer of a run, with the parameters that are excluded from weight decay and trust ratio."""

from typing import Any

from torch import nn
from torch.nn import Parameter
from torch.optim import AdamW, Optimizer

from albert_lab.config.training import OptimizerConfig
from albert_lab.errors import ConfigError
from albert_lab.model.blocks import Block
from albert_lab.training.lamb import Lamb
from albert_lab.training.muon import Muon


def build_optimizer(model: nn.Module, config: OptimizerConfig, learning_rate: float) -> Optimizer:
    """LAMB, AdamW, or Muon with AdamW, over a model's trainable parameters; set_learning_rate() changes its rate.

    Raises:
        ConfigError: unknown optimizer.
    """
    blocks, others, excluded = _groups(model, config)
    options = {"lr": learning_rate, "betas": config.betas, "eps": config.eps, "weight_decay": config.weight_decay}
    match config.name:
        case "lamb":
            optimizer = Lamb([blocks, others, excluded | {"trust_ratio": False}], **options)
        case "adamw":
            # One kernel for all tensors; the meta device (for models that are only counted) does not have it.
            optimizer = AdamW([blocks, others, excluded], **options, fused=can_fuse(model))
        case "muon":
            blocks |= {"momentum": config.momentum, "newton_schulz_steps": config.newton_schulz_steps}
            optimizer = Muon([blocks, others, excluded], **options, fused=can_fuse(model))
        case _:
            raise ConfigError(f"optimizer={config.name} is unknown (allowed: adamw, lamb, muon)")
    set_learning_rate(optimizer, learning_rate)
    return optimizer


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """Set the rate of every group to this one times the group's ratio; the last group's ratio is 1."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group["ratio"]


def num_moments(group: dict[str, Any]) -> int:
    """Tensors as large as a parameter that the optimizer keeps for each parameter of a group."""
    return 1 if "momentum" in group else 2


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


def can_fuse(model: nn.Module) -> bool:
    """Whether torch has a fused AdamW for the device of a model's parameters."""
    return all(parameter.device.type in ("cpu", "cuda") for parameter in model.parameters())


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
