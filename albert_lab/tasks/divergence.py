"""Signs that a fine-tuning did not learn: it ends near chance."""

import math

from albert_lab.score import Score

# Share of the steps over which the final loss is averaged; share of the chance loss above which it is near chance.
END_SHARE, NEAR_CHANCE = 0.1, 0.97
_Z = 1.96


def signs_of(end_loss: float, chance_loss: float, last: Score, is_constant: bool) -> tuple[str, ...]:
    """The signs that a fine-tuning did not learn; empty if it learnt.

    It did not if it gives every dev example the same answer, or if both its training loss and its score end near
    those of a model that ignores the example.

    Args:
        end_loss: mean training loss of the last END_SHARE of the steps.
        chance_loss: the lowest training loss of a model that ignores the example.
        last: the main score after the last step; its floor is the score of constant answers.
        is_constant: whether every dev example has the same answer after the last step.
    """
    signs = ["it gives every dev example the same answer"] if is_constant else []
    low = last.low
    if low is None:  # a correlation, whose standard error near zero is 1 / sqrt(n)
        low = last.value - 100 * _Z / math.sqrt(last.n)
    if end_loss >= NEAR_CHANCE * chance_loss and low <= last.floor:
        signs.append(
            f"it ends near chance: training loss {end_loss:.3f} (chance {chance_loss:.3f}),"
            f" score {last.value:.1f} (constant answers {last.floor:.1f})"
        )
    return tuple(signs)
