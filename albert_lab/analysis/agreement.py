"""The agreement with the paper: how often two rows have its order here in a score, beside a baseline and a ceiling."""

import math
from collections import Counter
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
    found = {}
    for pair in _pairs(experiment, here):
        if not pair.left_out:
            named = frozenset(frozenset(run.name for run in row.runs) for row in pair.rows)
            found[named, pair.metric] = _of_pair(here, pair)
    return found


def left_out(experiment: Experiment, here: TableScores) -> Counter[str]:
    """The pairs of rows with a score here and in the paper that are not compared, counted by the reason."""
    return Counter(pair.left_out for pair in _pairs(experiment, here) if pair.left_out)


def total(tables: Iterable[Mapping[Comparison, Agreement]]) -> Agreement:
    """The agreement of some tables; the same runs compared by the same score in two of them count once."""
    distinct = {key: found for table in tables for key, found in table.items()}
    return sum(distinct.values(), Agreement())


@dataclass(frozen=True)
class _Pair:
    """Two rows with a score that the paper prints of both: its difference in points, and why they are not compared."""

    rows: tuple[Row, Row]
    metric: str
    column: str
    theirs: float
    left_out: str


def _pairs(experiment: Experiment, here: TableScores) -> Iterator[_Pair]:
    printed_columns = experiment.paper.columns if experiment.paper else ()
    for metric in printed_columns:
        if metric not in scores() or metric == AVERAGE:
            continue
        column, cells = here.column(metric), {}
        for place, row in enumerate(here.table):
            value = printed(paper_cells(experiment, row).get(metric, ""))
            if value is not None and here.sample(row, column):
                cells[place] = float(value)
        for first, second in combinations(cells, 2):
            rows, theirs = (here.table[first], here.table[second]), cells[first] - cells[second]
            yield _Pair(rows, metric, column, theirs, _why_left_out(here, rows, column, theirs))


def _why_left_out(here: TableScores, rows: tuple[Row, Row], column: str, theirs: float) -> str:
    """Why two rows are not compared: they have to differ in one factor, and be scored alike on the same answers."""
    factors = sum(rows[0].labels[axis] != label for axis, label in rows[1].labels.items())
    if factors != 1 or {run.name for run in rows[0].runs} & {run.name for run in rows[1].runs}:
        return "of more than one setting, or of the same runs"
    if _is_probed(rows[0], column) != _is_probed(rows[1], column) or not here.is_of_one_set(rows, column):
        return "scored in different ways or on different sets"
    if any(here.is_at_floor(row, column) for row in rows):
        return "with a row at the floor"
    if round(abs(theirs), 6) < LEAST_DIFFERENCE:
        return f"less than {LEAST_DIFFERENCE:g} point apart in the paper"
    return ""


def _of_pair(here: TableScores, pair: _Pair) -> Agreement:
    rows, column, theirs = pair.rows, pair.column, pair.theirs
    # A column, and its sign if more is better.
    loss, sign = (loss_name(pair.metric), -1) if pair.metric in catalog.labels() else (MLM_LIKELIHOOD, 1)

    def has_order(value: float) -> bool:  # rounded: means of the same scores may differ in their last bits
        return round(value, 9) * theirs > 0

    ours = here.estimate([(1.0, rows[0]), (-1.0, rows[1])], column)
    agrees, interval = has_order(ours.value), ours.interval
    is_decided = ours.n >= FEWEST_SEEDS and interval is not None and not interval[0] <= 0 <= interval[1]
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


def _is_probed(row: Row, column: str) -> bool:
    return any(score.by == LINEAR_PROBE for run in row.runs if (score := run.scores.get(column)))
