"""Numbers of a report as text: values, scores with spread and the paper's number, effects with intervals."""

import math
from typing import Any

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.frame import PAPER

MISSING = "—"
BY_PROBE = "*"


def value(number: float, unit: str) -> str:
    """A number with the digits that its unit deserves, without the unit; a dash for NaN."""
    if math.isnan(number):
        return MISSING
    if unit in ("%", "points"):
        return f"{round(number + math.copysign(1e-9, number), 1) + 0.0:.1f}"  # the paper's 0.85 is 0.9, as printed
    if unit == "nats":
        return f"{number:.3f}"
    if abs(number) >= 1e6:
        return f"{float(f'{number:.3g}') / 1e6:,g}M"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def cell(analysis: Analysis, metric: str, row: str, *, spread: bool = True) -> str:
    """A cell of a table: the mean over seeds, its standard deviation, and the paper's number in brackets."""
    table, unit = analysis.summary, analysis.unit(metric)
    cells: Any = analysis.frame.rows.set_index("row").get(PAPER + metric)
    brackets = "" if cells is None or not cells.get(row) else f" ({cells[row]})"
    if (metric, row) not in table.index:
        return MISSING + brackets
    line: Any = table.loc[(metric, row)]
    probe = BY_PROBE if (metric, row) in analysis.by_probe else ""
    sd = f" ± {value(line['sd'], unit)}" if spread and line["sd"] > 1e-9 * abs(line["mean"]) else ""
    return f"{value(line['mean'], unit)}{sd}{probe}{brackets}"


def effect(line: Any, unit: str) -> str:
    """The effect of a verdict with its interval and unit: a level, a difference with its sign, or a factor."""
    shown = number(line, line["effect"], unit)
    ends = (
        "" if math.isnan(line["low"]) else f" [{', '.join(number(line, line[end], unit) for end in ('low', 'high'))}]"
    )
    return f"{shown} {_unit(line, unit)}".strip() + ends


def number(line: Any, amount: float, unit: str) -> str:
    """An amount of a verdict: differences have a sign, factors three digits."""
    if line["kind"] == "ratio" and not math.isnan(amount):
        return f"{amount:.3g}"
    return ("+" if line["kind"] == "difference" and amount >= 0 else "") + value(amount, unit)


def _unit(line: Any, unit: str) -> str:
    return {"ratio": "times", "difference": unit.replace("%", "points")}.get(line["kind"], unit)
