"""Counts and sums of a score by held-out document: what a record keeps of the answers of a run."""

from collections.abc import Sequence

import numpy as np

from albert_lab.record import Record

BLOCKS = 64
MOST_DOCUMENTS = (
    128  # more are joined to as many blocks of consecutive ones: a spread over so many is known well enough
)
SEGMENTS = "_segments"  # after a metric: the right answers of single segments


class Documents(Record):
    """A score by document of the held-out text, by its number there; of a task by block of consecutive examples.

    Attributes:
        n: the number of answers; 0 for a document without any.
        sum: of right answers (of shares in [0, 1] for F1), or of nats for a loss.
    """

    n: tuple[int, ...]
    sum: tuple[float, ...]

    def minus(self, other: "Documents") -> "Documents":
        """The difference of two scores of the same pairs."""
        return Documents(n=self.n, sum=tuple(a - b for a, b in zip(self.sum, other.sum, strict=True)))


def by_document(source: np.ndarray, values: np.ndarray, n: np.ndarray | None = None) -> Documents:
    """Sums of values, and of the numbers of answers n (None: one a value), by their source document. [values]

    Args:
        source: the number of the document of each value; of many documents, consecutive ones are joined.
    """
    number = int(source.max()) + 1
    source = source if number <= MOST_DOCUMENTS else source.astype(int) * MOST_DOCUMENTS // number
    counts = np.bincount(source, n).astype(int)
    return Documents(n=counts.tolist(), sum=np.bincount(source, values).round(3).tolist())


def by_block(shares: Sequence[float]) -> Documents:
    """Sums of the shares of examples by at most 64 blocks of consecutive ones, which come from the same texts."""
    blocks = np.arange(len(shares)) * min(BLOCKS, len(shares)) // len(shares)
    return by_document(blocks, np.array(shares, float))
