"""Numbers of a report as text: values, scores with spread and the paper's number, effects with
intervals.
"""

import math

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.frame import PAPER
from albert_lab.analysis.verdict import Effect, Form

MISSING = "—"
BY_PROBE = "*"


def value(number: float, unit: str) -> str:
    """A number with the digits that its unit deserves, without the unit; a dash for NaN."""
    if math.isnan(number):
        return MISSING
    if unit in ("%", "points"):
        # the paper's 0.85 is 0.9, as printed
        return f"{round(number + math.copysign(1e-9, number), 1) + 0.0:.1f}"
    if unit == "nats":
        return f"{number:.3f}"
    if abs(number) >= 1e6:
        return f"{float(f'{number:.3g}') / 1e6:,g}M"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def cell(analysis: Analysis, metric: str, row: str, *, spread: bool = True) -> str:
    """A cell of a table: the mean over seeds, its standard deviation, `*` if a linear probe
    answered for a head that the model lacks, and the paper's number in brackets; a dash without
    runs.
    """
    table = analysis.summary
    printed = analysis.frame.cells.get(PAPER + metric, {}).get(row)
    brackets = f" ({printed})" if printed else ""
    if (metric, row) not in table.index:
        return MISSING + brackets
    line = table.loc[(metric, row)]
    unit = analysis.unit(metric)
    probe = BY_PROBE if (metric, row) in analysis.by_probe else ""
    sd = f" ± {value(line['sd'], unit)}" if spread and line["sd"] > 1e-9 * abs(line["mean"]) else ""
    return f"{value(line['mean'], unit)}{sd}{probe}{brackets}"


def effect(measured: Effect) -> str:
    """An effect with its unit and interval: a level, a difference or slope with its sign, or a
    factor.
    """
    shown = f"{amount(measured, measured.value)} {unit_of(measured)}".strip()
    if math.isnan(measured.low) or measured.low == measured.high:
        return shown
    return f"{shown} [{amount(measured, measured.low)}, {amount(measured, measured.high)}]"


def amount(measured: Effect, number: float) -> str:
    """A number as that of an effect is written: differences have a sign, factors three digits."""
    if measured.form is Form.RATIO and not math.isnan(number):
        return f"{number:.3g}"
    has_sign = measured.form in (Form.DIFFERENCE, Form.SLOPE) and number >= 0
    return "+" * has_sign + value(number, measured.unit)


def unit_of(measured: Effect) -> str:
    if measured.form is Form.RATIO:
        return "times"
    if measured.form is Form.LEVEL:
        return measured.unit
    return measured.unit.replace("%", "points")
