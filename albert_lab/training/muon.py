"""Muon for weight matrices, with torch's AdamW for all other parameters: one optimizer with one state."""

# pyright: reportPrivateImportUsage=false
# See lamb.py on torch._foreach_*.

import math
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.optimizer import Optimizer

from albert_lab.training.device import choose_precision

# Coefficients and smallest norm of the iteration: Jordan et al. 2024.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_EPS = 1e-7
# Root mean square of an update of AdamW: Liu et al. 2025, section 2.2.
_RMS_OF_ADAMW = 0.2


class Muon(Optimizer):
    """Orthogonalised momentum for groups with the keys `momentum` and `newton_schulz_steps`; AdamW for other groups.

    An update has the root mean square of AdamW's, so that one learning rate suits both. The result is that of
    torch.optim.Muon with adjust_lr_fn="match_rms_adamw", but matrices of one shape are orthogonalised together, and in
    float32 if the device has no bf16: there, torch's takes 17 times as long.

    Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/; Liu et al. 2025, arXiv 2502.16982.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        fused: bool,
    ):
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay})
        self._adamw = AdamW(self._others(), lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=fused)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        assert closure is None, "gradients are there before a step"
        self._adamw.param_groups, self._adamw.state = self._others(), self.state  # load_state_dict replaces them
        self._adamw.step()
        for group in self.param_groups:
            matrices = [parameter for parameter in group["params"] if parameter.grad is not None]
            if "momentum" in group and matrices:
                self._update(matrices, group)

    def _others(self) -> list[dict[str, Any]]:
        return [group for group in self.param_groups if "momentum" not in group]

    def _update(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        means = [self._momentum(matrix) for matrix in matrices]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        updates = torch._foreach_lerp(gradients, means, group["momentum"])  # Nesterov's
        torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])

        is_bf16 = choose_precision("auto", matrices[0].device) == "bf16"
        by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for matrix, update in zip(matrices, updates, strict=True):
            # A tall matrix is transposed, since the products of the iteration are of the size of the rows.
            pair = (matrix.mT, update.mT) if matrix.shape[0] > matrix.shape[1] else (matrix, update)
            by_shape[tuple(pair[0].shape)].append(pair)
        for shape, pairs in by_shape.items():
            stacked = torch.stack([update for _, update in pairs]).to(torch.bfloat16 if is_bf16 else torch.float32)
            steps = orthogonalized(stacked, group["newton_schulz_steps"]).to(pairs[0][0].dtype)
            rate = group["lr"] * _RMS_OF_ADAMW * math.sqrt(max(shape))
            targets = [matrix for matrix, _ in pairs]
            if isinstance(rate, Tensor):
                torch._foreach_sub_(targets, list((steps * rate).unbind()))
            else:
                torch._foreach_add_(targets, list(steps.unbind()), alpha=-rate)

    def _momentum(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix, memory_format=torch.preserve_format)
        return state["momentum_buffer"]


def orthogonalized(matrices: Tensor, steps: int) -> Tensor:
    """The nearest semi-orthogonal matrices, roughly: singular values end between 0.7 and 1.2 for the usual five steps.

    Args:
        matrices: [matrix, rows, columns], with at most as many rows as columns.
    """
    whitened = matrices / torch.linalg.matrix_norm(matrices, keepdim=True).clamp(min=_EPS)
    for _ in range(steps):
        gram = whitened @ whitened.mT
        whitened = torch.baddbmm(whitened, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), whitened, beta=_A)
    return whitened
