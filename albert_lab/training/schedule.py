"""The used share of a run's budget, and the learning rate at that share."""

from albert_lab.config.schema import BudgetConfig


class Budget:
    """The length of a run in any unit: it ends when the used share reaches stop_at."""

    def __init__(self, config: BudgetConfig):
        self._unit = config.unit
        self._value = config.value
        self.stop_at = config.stop_at

    def share(self, *, steps: int, seconds: float, tokens: int) -> float:
        """Used share of the budget: 0 at the start, 1 at the end, or slightly more in seconds and tokens.

        seconds are those of the training clock; tokens exclude padding.
        """
        used = {"steps": steps, "seconds": seconds, "tokens": tokens}
        return used[self._unit] / self._value


def learning_rate_factor(share: float, warmup: float) -> float:
    """Learning rate relative to its peak, for the step that starts at this used share of the budget.

    It rises linearly from 0 until `warmup`, and then falls linearly to 0. As released, the decay is computed over the
    whole budget: it starts at 1 - warmup, below the peak, and the first step of a warm-up changes no weight.

    Source: optimization.py of google-research/albert.
    """
    if share < warmup:
        return share / warmup
    return max(0.0, 1.0 - share)
