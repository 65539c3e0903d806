"""The rule for lists of settings in which no value may be repeated."""

from collections import Counter
from collections.abc import Hashable, Sequence

from pydantic import AfterValidator


def check_distinct(values: Sequence[Hashable] | None) -> Sequence[Hashable] | None:
    """Returns the values if no two of them are equal.

    Raises:
        ValueError: a value is given twice.
    """
    for value, count in Counter(values or ()).most_common(1):
        if count > 1:
            raise ValueError(f"{value} is given twice")
    return values


Distinct = AfterValidator(check_distinct)
