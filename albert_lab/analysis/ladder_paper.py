"""The paper's own effects beside a ladder: of its rows that a contrast stands for, or of rows that only it has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from albert_lab.studies.claim import number_in
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.ladder import Ladder
from albert_lab.studies.table import AXIS_NAMES

Labels = Mapping[str, str]


@dataclass(frozen=True)
class PaperEffect:
    """The difference of two rows of the paper, in its units by the heading of its column.

    Attributes:
        words: the two rows, under their own names.
        row: the first of them, for a place where the second is named once.
        against: the second.
        is_of_other_rows: whether no contrast of the ladder stands for them.
    """

    words: str
    row: str
    against: str
    differences: Mapping[str, float]
    is_of_other_rows: bool = False


def differences(experiment: Experiment, ladder: Ladder, first: Labels, second: Labels) -> dict[str, float]:
    """The paper's difference of two rows in each column with plain numbers; empty if it lacks one of them."""
    return _differences(experiment, _row(experiment, ladder, first), _row(experiment, ladder, second))


def own_effects(experiment: Experiment, ladder: Ladder, axis: str, second: Labels) -> Iterator[PaperEffect]:
    """The effects of the paper's rows that differ in one axis alone from the row that it has for `second`.

    They stand for no row of a ladder with values in proportion: the paper's E = 256 is neither H/2 nor H/4.
    """
    reference = _row(experiment, ladder, second)
    if experiment.paper is None or not reference:
        return
    name = AXIS_NAMES.get(axis, axis)
    others = {key: reference[key] for key in second if key != axis}
    for entry in experiment.paper.rows:
        if others.items() <= entry.items() and entry[axis] != reference[axis]:
            of_row, against = f"{name}={entry[axis]}", f"{name}={reference[axis]}"
            words = f"paper {of_row} − {against}"
            yield PaperEffect(words, of_row, against, _differences(experiment, entry, reference), is_of_other_rows=True)


def _row(experiment: Experiment, ladder: Ladder, row: Labels) -> Labels:
    """The paper's row of these labels, with its numbers; empty if it has none."""
    labels = {axis: ladder.paper_labels.get(axis, {}).get(label, label) for axis, label in row.items()}
    rows = experiment.paper.rows if experiment.paper else ()
    return next((entry for entry in rows if labels.items() <= entry.items()), {})


def _differences(experiment: Experiment, first: Labels, second: Labels) -> dict[str, float]:
    shared: dict[str, float] = {}
    for column, heading in (experiment.paper.columns if experiment.paper else {}).items():
        numbers = [number_in(entry.get(column, "")) for entry in (first, second)]
        if numbers[0] is not None and numbers[1] is not None:
            shared[heading] = round(numbers[0] - numbers[1], 6)
    return shared
