"""The agreement with the paper: how many pairs of rows have the same order here."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from albert_lab.analysis.claims import FEWEST_SEEDS
from albert_lab.analysis.papers_numbers import printed
from albert_lab.analysis.table_scores import TableScores
from albert_lab.score import LINEAR_PROBE
from albert_lab.studies.experiment import AVERAGE, Experiment, scores
from albert_lab.studies.table import Row, paper_cells


@dataclass(frozen=True)
class Agreement:
    """Pairs of rows with different scores in the paper: all pairs with scores here, and those decided here.

    A pair is decided if the 95 % interval of its difference excludes 0, neither row is at the floor, and both have
    enough seeds for a verdict. Each count is given for all pairs and for those in the paper's order.
    """

    pairs: int = 0
    agreeing: int = 0
    decided: int = 0
    decided_agreeing: int = 0

    def __add__(self, other: "Agreement") -> "Agreement":
        """The sum of two agreements."""
        return Agreement(
            self.pairs + other.pairs,
            self.agreeing + other.agreeing,
            self.decided + other.decided,
            self.decided_agreeing + other.decided_agreeing,
        )


def agreement(experiment: Experiment, here: TableScores) -> Agreement:
    """The agreement of a table with the paper's, over all pairs of its rows in every score that the paper prints.

    The average is left out, since it repeats its tasks, and so is a linear probe next to a trained head. Equal means
    here never agree with the paper's order.

    Args:
        experiment: the paper's cells.
        here: the rows of its table.
    """
    if experiment.paper is None:
        return Agreement()
    found = Agreement()
    for metric in experiment.paper.columns:
        if metric in scores() and metric != AVERAGE:
            found += _of_column(experiment, here, metric)
    return found


def _of_column(experiment: Experiment, here: TableScores, metric: str) -> Agreement:
    column = here.column(metric)
    cells = {}
    for place, row in enumerate(here.table):
        value = printed(paper_cells(experiment, row).get(metric, ""))
        if value is not None and here.sample(row, column):
            cells[place] = value
    found = Agreement()
    for first, second in combinations(cells, 2):
        theirs = cells[first] - cells[second]
        rows = here.table[first], here.table[second]
        if not theirs or {run.name for run in rows[0].runs} & {run.name for run in rows[1].runs}:
            continue
        if _is_probed(rows[0], column) != _is_probed(rows[1], column):
            continue
        ours = here.estimate([(1.0, rows[0]), (-1.0, rows[1])], column)
        agrees = (
            round(ours.value, 9) * float(theirs) > 0
        )  # rounded: means of the same scores may differ in their last bits
        is_decided = (
            ours.n >= FEWEST_SEEDS
            and ours.interval is not None
            and not ours.interval[0] <= 0 <= ours.interval[1]
            and not any(here.is_at_floor(row, column) for row in rows)
        )
        found += Agreement(1, int(agrees), int(is_decided), int(is_decided and agrees))
    return found


def _is_probed(row: Row, column: str) -> bool:
    return any(score.by == LINEAR_PROBE for run in row.runs if (score := run.scores.get(column)))


def total(found: Iterable[Agreement]) -> Agreement:
    """The sum of the agreements of several tables."""
    return sum(found, Agreement())
