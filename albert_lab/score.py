"""A score, from evaluation to the cell of a table: percent, with n, floors and method; and its
documents.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from albert_lab.files import Record

# a correlation can be below 0; a boolean is no number
_Percent = Annotated[float, Field(strict=True, ge=-100, le=100)]
_LeftOut = Field(exclude_if=lambda value: value is None)  # of a record, where there is none

_MOST = 1 << 53  # up to which a float counts exactly
BLOCKS = 64
# more are joined to blocks of consecutive ones: a spread over so many is known well enough
MOST_DOCUMENTS = 128
LINEAR_PROBE = "linear probe"  # marks a score that does not come from a head of the model


class Score(Record, extra="ignore"):  # records from before say more
    """An immutable score in percent, or a difference of two in points.

    Attributes:
        value: the score.
        n: number of scored answers.
        low, high: of older records, its 95 % interval over those answers.
        floor: the score of the best constant answer on the same examples.
        lexical_floor: the score of bags of words, of a fine-tuned task (tasks/metrics.py).
        segments_floor: the score of each segment by itself, by a classifier that cannot relate the
            two (see measures/segments_floor.py); None if it does not apply.
        by: the method that gave the answers, such as "head" or "linear probe".
        loss: mean negative log-likelihood of the right answers in nats; None if the answers have no
            likelihood.
    """

    value: _Percent
    n: int = Field(strict=True, ge=1, lt=1 << 63)
    low: Annotated[_Percent | None, _LeftOut] = None
    high: Annotated[_Percent | None, _LeftOut] = None
    floor: _Percent
    lexical_floor: Annotated[_Percent | None, _LeftOut] = None
    segments_floor: Annotated[_Percent | None, _LeftOut] = None
    by: str
    loss: Annotated[float | None, Field(ge=0), _LeftOut] = None


def loss_name(name: str) -> str:
    return f"{name.removesuffix('_accuracy')}_loss"


def share(correct: int, n: int, *, floor: float, by: str, loss: float | None = None) -> Score:
    """The score of `correct` right answers of n; the floor is in percent, the loss in nats per
    answer.
    """
    return Score(value=100 * correct / n, n=n, floor=floor, by=by, loss=loss)


class Documents(Record):
    """A score by document of the held-out text, by its number there; of a task by block of
    consecutive examples.

    Attributes:
        n: the number of answers; 0 for a document without any.
        sum: of right answers (of shares in [0, 1] for F1), or of nats for a loss.
    """

    n: tuple[Annotated[int, Field(ge=0, le=_MOST)], ...]
    sum: tuple[Annotated[float, Field(ge=-_MOST, le=_MOST)], ...]

    @model_validator(mode="after")
    def _parts_fit(self) -> "Documents":
        if len(self.n) != len(self.sum):
            raise ValueError(
                f"numbers of answers of {len(self.n)} documents, but sums of {len(self.sum)}"
            )
        if not any(self.n):
            raise ValueError("no document has an answer")
        return self

    def minus(self, other: "Documents") -> "Documents":
        """The difference of two scores of the same pairs."""
        return Documents(
            n=self.n, sum=tuple(a - b for a, b in zip(self.sum, other.sum, strict=True))
        )


def by_document(source: np.ndarray, values: np.ndarray) -> Documents:
    """The number and the sum of values by their source document. [values]

    Args:
        source: the number of the document of each value; of many documents, consecutive ones are
            joined.
    """
    number = int(source.max()) + 1
    source = source if number <= MOST_DOCUMENTS else source.astype(int) * MOST_DOCUMENTS // number
    return Documents(
        n=np.bincount(source).tolist(), sum=np.bincount(source, values).round(3).tolist()
    )


def by_block(shares: Sequence[float]) -> Documents:
    """Sums of the shares of examples by at most 64 blocks of consecutive ones, which come from the
    same texts.
    """
    blocks = np.arange(len(shares)) * min(BLOCKS, len(shares)) // len(shares)
    return by_document(blocks, np.array(shares, float))
