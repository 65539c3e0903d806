"""The paper's numbers: its printed cells, and the effect of a comparison in them."""

from decimal import Decimal, InvalidOperation
from statistics import mean

from albert_lab.studies.claims import Comparison
from albert_lab.studies.experiment import Experiment


def papers_effect(comparison: Comparison, metric: str, experiment: Experiment) -> Decimal | None:
    """The paper's value of a comparison, exact in its printed cells; None if it does not print all of them."""
    if experiment.paper is None:
        return None
    total = Decimal()
    for weight, labels in comparison.weights:
        cells = [row for row in experiment.paper.rows if labels.items() <= row.items()]
        if len(cells) != 1 or metric not in cells[0]:
            return None
        value = printed(cells[0][metric])
        if value is None or (comparison.is_log and value <= 0):
            return None
        total += Decimal(str(weight)) * (value.ln() if comparison.is_log else value)
    return total


def printed(cell: str) -> Decimal | None:
    """The number in a cell of the paper: 89.3/82.3 is the mean of both, 12M a number of millions, 1.7x a factor."""
    text, unit = cell.strip(), 1
    for suffix, factor in (("M", 10**6), ("x", 1), ("%", 1)):
        if text.endswith(suffix):
            text, unit = text.removesuffix(suffix), factor
    try:
        return unit * mean(Decimal(part) for part in text.split("/"))
    except InvalidOperation:
        return None
