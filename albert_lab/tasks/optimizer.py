"""The optimizer of a fine-tuning: torch's AdamW, or Adam as released."""

from torch import nn
from torch.optim import AdamW, Optimizer

from albert_lab.training.lamb import Lamb
from albert_lab.training.optimizer import can_fuse, split_parameters

# AdamWeightDecayOptimizer in optimization.py of the release.
BETAS, EPS, WEIGHT_DECAY = (0.9, 0.999), 1e-6, 0.01


def build_optimizer(model: nn.Module, name: str, learning_rate: float) -> Optimizer:
    """An optimizer over a model's parameters, without weight decay for LayerNorm and biases.

    Args:
        model: what is fine-tuned.
        name: adamw, or adam-release, whose moments are not corrected for their start at zero: its first steps are
            up to 6.6 times as long.
        learning_rate: at the peak of the schedule.
    """
    adapted, excluded = split_parameters(model)
    groups = [{"params": adapted}, {"params": excluded, "weight_decay": 0.0}]
    if name == "adam-release":
        return Lamb(groups, lr=learning_rate, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, trust_ratio=False)
    # Differs from the release: moments are corrected for their start at zero.
    return AdamW(groups, lr=learning_rate, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, fused=can_fuse(model))
