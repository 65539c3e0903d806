"""The used share of a run's budget, and the learning rate at that share."""

from albert_lab.config.training import BudgetConfig


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
