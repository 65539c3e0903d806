"""How far a run is, and the learning rate that goes with it."""

from albert_lab.config.schema import BudgetConfig


class Budget:
    """How long a run trains, whatever the unit: until its share reaches stop_at."""

    def __init__(self, config: BudgetConfig):
        self._unit = config.unit
        self._value = config.value
        self.stop_at = config.stop_at

    def share(self, *, steps: int, seconds: float, tokens: int) -> float:
        """Share of the budget that is used up: 0 at the start, 1 or (in seconds and tokens) somewhat more when spent.

        seconds are those of the training clock; tokens leave padding out.
        """
        used = {"steps": steps, "seconds": seconds, "tokens": tokens}
        return used[self._unit] / self._value


def learning_rate_factor(share: float, warmup: float) -> float:
    """Learning rate as a part of its peak, for the step that starts when this share of the budget is used up.

    It rises in a line from 0 until `warmup` and then falls in a line to 0. As released, the fall is that of the whole
    budget: it starts from 1 - warmup, below the peak of the rise, and the first step of a warm-up moves nothing.

    Source: optimization.py of google-research/albert.
    """
    if share < warmup:
        return share / warmup
    return max(0.0, 1.0 - share)
