"""The agreement with the paper: how often two rows have its order here in a score, beside a baseline and a ceiling."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from itertools import combinations

from scipy.special import ndtr

from albert_lab.analysis.evidence import FEWEST_SEEDS
from albert_lab.analysis.papers_numbers import printed
from albert_lab.analysis.table_scores import MLM_LIKELIHOOD, TableScores
from albert_lab.measures import catalog
from albert_lab.score import LINEAR_PROBE, loss_name
from albert_lab.studies.experiment import AVERAGE, Experiment, scores
from albert_lab.studies.table import Row, paper_cells

LEAST_DIFFERENCE = 1.0  # points: the paper's smaller differences are close to its own noise
# Points, of one score of the paper: MNLI, the only score that Tables 3 and 4 print differently for the same model, is
# 81.6 and 82.0, and 83.7 and 83.2.
PAPERS_SD = math.sqrt(((82.0 - 81.6) ** 2 + (83.7 - 83.2) ** 2) / 4)


# Two rows, each by the names of its runs, and the paper's score in which they are compared: the same in every table.
Comparison = tuple[frozenset[frozenset[str]], str]


@dataclass(frozen=True)
class Agreement:
    """Comparisons of two rows by one score.

    They differ in one factor, and by at least LEAST_DIFFERENCE in the paper; neither row is at the floor.

    Attributes:
        pairs: all comparisons.
        agreeing: those with the paper's order by the mean of the score.
        decided: those whose difference has a 95 % interval without 0, with enough seeds for a verdict.
        decided_agreeing: those of them with the paper's order.
        likely: pairs with a likelihood.
        likely_agreeing: those with the paper's order by it: by minus the loss of the score on held-out text, for a
            task by minus that of MLM.
        sized: pairs with different numbers of parameters.
        sized_agreeing: those in which the row with more has the higher score in the paper.
        rerun: the expected number in which a re-run of the paper would have its order.
    """

    pairs: int = 0
    agreeing: int = 0
    decided: int = 0
    decided_agreeing: int = 0
    likely: int = 0
    likely_agreeing: int = 0
    sized: int = 0
    sized_agreeing: int = 0
    rerun: float = 0.0

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def comparisons(experiment: Experiment, here: TableScores) -> dict[Comparison, Agreement]:
    """The agreement of a table with the paper's, by comparison, in every score that the paper prints.

    The average is left out, since it repeats its tasks, and so is a linear probe next to a trained head. Equal means
    here never agree with the paper's order.
    """
    if experiment.paper is None:
        return {}
    metrics = [metric for metric in experiment.paper.columns if metric in scores() and metric != AVERAGE]
    return {key: found for metric in metrics for key, found in _of_column(experiment, here, metric)}


def total(tables: Iterable[Mapping[Comparison, Agreement]]) -> Agreement:
    """The agreement of some tables; the same runs compared by the same score in two of them count once."""
    distinct = {key: found for table in tables for key, found in table.items()}
    return sum(distinct.values(), Agreement())


def _of_column(experiment: Experiment, here: TableScores, metric: str) -> Iterator[tuple[Comparison, Agreement]]:
    column = here.column(metric)
    cells = {}
    for place, row in enumerate(here.table):
        value = printed(paper_cells(experiment, row).get(metric, ""))
        if value is not None and here.sample(row, column) and not here.is_at_floor(row, column):
            cells[place] = float(value)
    likelihood = (loss_name(metric), -1) if metric in catalog.labels() else (MLM_LIKELIHOOD, 1)
    for first, second in combinations(cells, 2):
        theirs = cells[first] - cells[second]
        rows = here.table[first], here.table[second]
        if round(abs(theirs), 6) >= LEAST_DIFFERENCE and _are_comparable(here, rows, column):
            named = frozenset(frozenset(run.name for run in row.runs) for row in rows)
            yield (named, metric), _of_pair(here, rows, column, likelihood, theirs)


def _of_pair(
    here: TableScores, rows: tuple[Row, Row], column: str, likelihood: tuple[str, int], theirs: float
) -> Agreement:
    """The agreement of a pair; theirs is the paper's difference, likelihood a column and its sign if more is better."""

    def has_order(value: float) -> bool:  # rounded: means of the same scores may differ in their last bits
        return round(value, 9) * theirs > 0

    ours = here.estimate([(1.0, rows[0]), (-1.0, rows[1])], column)
    agrees, interval = has_order(ours.value), ours.interval
    is_decided = ours.n >= FEWEST_SEEDS and interval is not None and not interval[0] <= 0 <= interval[1]
    loss, sign = likelihood
    is_likely = all(here.sample(row, loss) for row in rows) and here.is_of_one_set(rows, loss)
    by_loss = here.estimate([(sign, rows[0]), (-sign, rows[1])], loss).value if is_likely else 0.0
    first, second = (row.runs[0].record.parameters["total"] for row in rows)
    return Agreement(
        1,
        int(agrees),
        int(is_decided),
        int(is_decided and agrees),
        int(is_likely),
        int(has_order(by_loss)),
        int(first != second),
        int(has_order(first - second)),
        # The difference of a re-run is normal around the printed one, with the noise of four scores.
        float(ndtr(abs(theirs) / (2 * PAPERS_SD))),
    )


def _are_comparable(here: TableScores, rows: tuple[Row, Row], column: str) -> bool:
    """Whether two rows differ in one factor, and were scored in the same way on the same answers."""
    factors = sum(rows[0].labels[axis] != label for axis, label in rows[1].labels.items())
    same_runs = {run.name for run in rows[0].runs} & {run.name for run in rows[1].runs}
    of_one_kind = _is_probed(rows[0], column) == _is_probed(rows[1], column)
    return factors == 1 and not same_runs and of_one_kind and here.is_of_one_set(rows, column)


def _is_probed(row: Row, column: str) -> bool:
    return any(score.by == LINEAR_PROBE for run in row.runs if (score := run.scores.get(column)))
