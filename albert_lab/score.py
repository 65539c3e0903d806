"""One score, from evaluation to the cell of a table: percent, with its answers, interval, floors and how it was got."""

from typing import Any

from pydantic import BaseModel, ConfigDict

CONFIDENCE = 0.95


class Score(BaseModel):
    """A score in percent, made once and then only read.

    Attributes:
        value: the score.
        n: answers that it is taken over.
        low, high: its 95 % interval over those answers, or None where its metric has none.
        floor: what the best constant answer scores on the same examples.
        lexical_floor: what bags of tokens score, which cannot relate two segments; None where it does not apply.
        by: what gave the answers, such as "head" or "linear probe".
        loss: mean negative log-likelihood of the right answers in nats; None where the answers have no likelihood.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    n: int
    low: float | None
    high: float | None
    floor: float
    lexical_floor: float | None = None
    by: str
    loss: float | None = None


def wilson(correct: float, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share of n answers, in percent.

    Args:
        correct: right answers; a mean of shares such as F1 counts as so many of them.
        n: all answers.
    """
    from statsmodels.stats.proportion import proportion_confint

    interval: Any = proportion_confint(correct, n, alpha=1 - CONFIDENCE, method="wilson")
    low, high = interval
    return 100 * float(low), 100 * float(high)


def share(correct: int, n: int, *, floor: float, by: str, loss: float | None = None) -> Score:
    """The score of so many right answers of n; floor is in percent."""
    low, high = wilson(correct, n)
    return Score(value=100 * correct / n, n=n, low=low, high=high, floor=floor, by=by, loss=loss)
