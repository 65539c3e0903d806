"""The optimizer of a run, with the parameters that are excluded from weight decay and trust ratio."""

from torch import nn
from torch.nn import Parameter
from torch.optim import AdamW, Optimizer

from albert_lab.config.schema import OptimizerConfig
from albert_lab.errors import ConfigError
from albert_lab.training.lamb import Lamb


def build_optimizer(model: nn.Module, config: OptimizerConfig, learning_rate: float) -> Optimizer:
    """LAMB or AdamW over a model's trainable parameters.

    Raises:
        ConfigError: unknown optimizer.
    """
    adapted, excluded = split_parameters(model)
    without_decay = {"params": excluded, "weight_decay": 0.0}
    options = {"lr": learning_rate, "betas": config.betas, "eps": config.eps, "weight_decay": config.weight_decay}
    match config.name:
        case "lamb":
            return Lamb([{"params": adapted}, without_decay | {"trust_ratio": False}], **options)
        case "adamw":
            # One kernel for all tensors; the meta device (for models that are only counted) does not have it.
            return AdamW([{"params": adapted}, without_decay], **options, fused=can_fuse(model))
    raise ConfigError(f"optimizer={config.name} is unknown (allowed: adamw, lamb)")


def can_fuse(model: nn.Module) -> bool:
    """Whether torch has a fused AdamW for the device of a model's parameters."""
    return all(parameter.device.type in ("cpu", "cuda") for parameter in model.parameters())


def split_parameters(model: nn.Module) -> tuple[list[Parameter], list[Parameter]]:
    """Parameters with weight decay and trust ratio, and parameters without: LayerNorm and biases.

    A shared parameter is listed once.

    Source: exclude_from_weight_decay in optimization.py of google-research/albert.
    """
    norms = {id(p) for module in model.modules() if isinstance(module, nn.LayerNorm) for p in module.parameters()}
    adapted: list[Parameter] = []
    excluded: list[Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_excluded = name.endswith("bias") or id(parameter) in norms
            (excluded if is_excluded else adapted).append(parameter)
    return adapted, excluded
