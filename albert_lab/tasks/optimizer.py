"""The optimizer of a fine-tuning: torch's AdamW, or the release's Adam."""

from torch import nn
from torch.optim import AdamW, Optimizer

from albert_lab.training.lamb import Lamb
from albert_lab.training.optimizer import can_fuse, split_parameters

# AdamWeightDecayOptimizer in optimization.py of the release.
BETAS, EPS, WEIGHT_DECAY = (0.9, 0.999), 1e-6, 0.01


def build_optimizer(model: nn.Module, name: str, learning_rate: float) -> Optimizer:
    """An optimizer over a model's parameters, without weight decay for LayerNorm and biases.

    Args:
        name: adamw, or adam-release, which has no bias correction of the moments: its first steps are up to 6.6 times
            as long.
    """
    adapted, excluded = split_parameters(model)
    groups = [{"params": adapted}, {"params": excluded, "weight_decay": 0.0}]
    if name == "adam-release":
        return Lamb(groups, lr=learning_rate, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, trust_ratio=False)
    # Differs from the release: AdamW corrects the bias of the moments.
    return AdamW(groups, lr=learning_rate, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, fused=can_fuse(groups))
