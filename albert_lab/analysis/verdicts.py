"""Verdicts: the claims of an experiment, tested on the frame of its study."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pandas as pd

from albert_lab.analysis.contrasts import Contrast, contrast, counts, holm
from albert_lab.analysis.frame import PAPER, Frame, printed
from albert_lab.analysis.trend import trend
from albert_lab.measures.catalog import units
from albert_lab.runs.reported import AVERAGE
from albert_lab.score import loss_name
from albert_lab.studies.claims import AtChance, BaseClaim, Comparison, Labels, Trend
from albert_lab.studies.study import Study

SUPPORTED, NOT_SUPPORTED, UNDECIDED, CANNOT_TELL = "supported", "not supported", "undecided", "cannot tell"
WORDS = (SUPPORTED, NOT_SUPPORTED, UNDECIDED, CANNOT_TELL)
ALPHA = 0.05
OTHER_SETS = "with one text, vocabulary, length and masking they could be compared"
NUMBERS = ("effect", "low", "high", "paper", "p")
COLUMNS = ("quote", "section", "metric", "check", "compared", "kind", *NUMBERS, "verdict", "can_tell", "why")


@dataclass(frozen=True)
class _Finding:
    """A comparison with its contrast, whose effect is in logarithms for a ratio; p-values are two-sided."""

    comparison: Comparison
    contrast: Contrast
    support: float
    denial: float


def verdicts(study: Study, frame: Frame) -> pd.DataFrame:
    """A line a claim of the study's experiment, in its order.

    Columns: quote and section (of the paper), metric, check (in words); compared, the rows of the comparison that
    decides, which is the weakest one that the claim needs, or the one that contradicts it most; kind: level, difference
    or ratio; effect, its size, with low and high, the 95 % interval over seeds and documents, and paper, the same of
    the paper's cells (NaN without them): a difference in points for scores, a factor for a ratio, a level for a claim
    about one row, a change for ten times the compute for a trend. p is two-sided, of the claim or against it, after
    Holm's correction over the claims of the study; NaN if it was not tested.

    verdict is one of WORDS: supported, if p is below 0.05; not supported, if that of the opposite is; undecided
    otherwise; cannot tell, if a row was not run, no row has learnt the metric, or it is a task that does not count.
    can_tell says whether this scale can tell: whether the score counts and its interval is narrow enough
    (`can_tell()`). why is the reason of a verdict that is not clear, empty for others.
    """
    lines = [_line(claim, study, frame) for claim in study.experiment.claims]
    for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True):
        line["p"] = p
        if line["verdict"] in (SUPPORTED, NOT_SUPPORTED) and p >= ALPHA:
            line["verdict"] = UNDECIDED
    return pd.DataFrame(lines, columns=pd.Index(COLUMNS))


def can_tell(low: float, high: float, size: float) -> bool:
    """Whether a scale can tell a claim on a score that counts: half of its interval is at most half of the size.

    Args:
        low, high: the 95 % interval of the effect, in logarithms for a ratio.
        size: the paper's effect, as the distance from the bound of the claim, or the margin that the claim names; NaN
            if neither is known, and then any interval will do.
    """
    half = (high - low) / 2
    return not math.isnan(half) and (math.isnan(size) or half <= abs(size) / 2)


def _line(claim: BaseClaim, study: Study, frame: Frame) -> dict[str, Any]:
    metric = claim.metric
    unit = frame.unit(metric)
    words = claim.words("points" if unit == "%" else unit, lambda labels: _name(frame, labels))
    line = {"quote": claim.quote, "section": claim.section or "", "metric": metric, "check": words, "compared": ""}
    line |= {"kind": "level", "verdict": CANNOT_TELL, "can_tell": False, "why": ""} | dict.fromkeys(NUMBERS, math.nan)
    rows = {tuple(labels.items()): frame.row(labels) for labels in claim.rows(study.experiment.grid)}
    if more := [axis for of in study.points[:1] for axis in of.labels if axis not in study.experiment.grid]:
        return line | {"why": f"not run: each of its rows is several here: give one value of {', '.join(more)}"}
    known = set(frame.of(metric)["row"])
    absent = [key for key, row in rows.items() if row is None]
    if missing := [_name(frame, dict(key)) for key in absent or rows if rows[key] not in known]:
        what = "no average, for not all of its tasks were run" if metric == AVERAGE else f"no {metric}"
        what = "no row in this table" if absent else what
        return line | {"why": f"not run: {', '.join(missing)} {'has' if len(missing) == 1 else 'have'} {what}"}
    runs: Any = frame.of(metric).groupby("row")["run"].agg(tuple)
    if runs[list(rows.values())].duplicated().any():
        return line | {"why": "at this scale its rows are the same runs"}
    if len(rows) > 1 and not is_of_one_set(study, metric, {run for row in rows.values() for run in runs[row]}):
        return line | {"why": f"its rows were scored on different held-out sets: {OTHER_SETS}"}
    finding = _of_trend(claim, frame) if isinstance(claim, Trend) else _decisive(claim, study, frame)
    line |= _shown(finding, frame, metric)
    if not counts(frame, metric):
        return line | {"why": "its score does not count: see the table"}
    if why := _not_learnt(claim, frame, [str(row) for row in rows.values()]):
        return line | {"why": why}
    found, comparison = finding.contrast, finding.comparison
    size = _size(comparison, _paper(comparison, frame, metric))
    line |= {"can_tell": can_tell(found.low, found.high, size)}
    if math.isnan(found.p):
        why = "a ratio needs numbers above 0" if math.isnan(found.effect) else "too few runs to show a spread"
        why = "a trend needs three rungs of several seeds" if isinstance(claim, Trend) else why
        return line | {"verdict": UNDECIDED, "why": why}
    is_against = finding.denial < finding.support
    p = finding.denial if is_against else finding.support
    return line | {"p": p, "verdict": NOT_SUPPORTED if is_against else SUPPORTED}


def is_of_one_set(study: Study, metric: str, runs: Collection[str]) -> bool:
    """Whether these runs were scored on one held-out set, or the metric is none of held-out text."""
    sets = {run.record.evaluation_set for run in study.runs if run.name in runs}
    return len(sets) < 2 or metric not in {*units(), *map(loss_name, units())}


def _decisive(claim: BaseClaim, study: Study, frame: Frame) -> _Finding:
    """The comparison that decides a claim, with the p-values of the whole claim.

    It is true if all required comparisons are, so that the weakest decides; each of them can deny it (Bonferroni), and
    one that is clearly false does, whatever the others say.
    """
    findings = [_finding(item, frame, claim.metric) for item in claim.comparisons(study.experiment.grid)]
    weakest = max((item for item in findings if item.comparison.is_required), key=lambda item: _rounded(item.support))
    against = min(findings, key=lambda item: _rounded(item.denial))
    denial = min(1.0, len(findings) * against.denial)
    support = 1.0 if against.denial < ALPHA else weakest.support
    shown = against if denial < support else weakest
    return _Finding(shown.comparison, shown.contrast, support, denial)


def _rounded(p: float) -> float:
    # The last bits of a tiny p differ from one processor to another; of equal evidence, all then show the first.
    return round(p, 12)


def _finding(comparison: Comparison, frame: Frame, metric: str) -> _Finding:
    weights = dict[str, float]()
    for weight, labels in comparison.weights:  # an interaction may have one row twice
        row = str(frame.row(labels))
        weights[row] = weights.get(row, 0.0) + weight
    bounds = [bound for bound in (comparison.low, comparison.high) if math.isfinite(bound)]
    found = [contrast(frame, metric, weights, bound, log=comparison.is_log) for bound in bounds]
    inside = [item.p if bound == comparison.low else item.p_against for bound, item in zip(bounds, found, strict=True)]
    support, denial = 2 * max(inside), 2 * min(1 - p for p in inside)
    return _Finding(comparison, found[0], min(1.0, support), min(1.0, denial))


def _of_trend(claim: Trend, frame: Frame) -> _Finding:
    found = trend(frame, claim.metric, claim.row, claim.than, claim.axis).slope
    sign = 1.0 if claim.direction == "rising" else -1.0
    support, denial = (found.p, found.p_against) if sign > 0 else (found.p_against, found.p)
    bounds = (0.0, math.inf) if sign > 0 else (-math.inf, 0.0)
    return _Finding(Comparison((), *bounds), found, min(1.0, 2 * support), min(1.0, 2 * denial))


def _shown(finding: _Finding, frame: Frame, metric: str) -> dict[str, Any]:
    comparison, found = finding.comparison, finding.contrast
    paper = _paper(comparison, frame, metric)
    numbers = {"effect": found.effect, "low": found.low, "high": found.high, "paper": paper}
    if comparison.is_log:
        numbers = {key: math.exp(value) for key, value in numbers.items()}
    names = [_name(frame, labels) for _, labels in comparison.weights]
    is_slope = len(names) != 2 and not all(abs(weight) == 1 for weight, _ in comparison.weights)
    kind = "ratio" if comparison.is_log else "level" if len(names) == 1 else "difference"
    if comparison.is_log:
        compared = " / ".join(names)
    else:
        signs = ["−" if weight < 0 else "+" for weight, _ in comparison.weights]
        compared = " ".join(f"{sign} {name}" for sign, name in zip(signs, names, strict=True)).removeprefix("+ ")
    compared = "slope per step" if is_slope else compared or "slope for ten times the compute"
    return {**numbers, "compared": compared, "kind": kind}


def _paper(comparison: Comparison, frame: Frame, metric: str) -> float:
    """The same comparison of the paper's cells; NaN if it does not print all of them."""
    if not comparison.weights or PAPER + metric not in frame.rows:
        return math.nan
    cells = frame.rows.set_index("row")[PAPER + metric]
    values = [printed(str(cells[str(frame.row(labels))])) for _, labels in comparison.weights]
    if comparison.is_log:
        values = [math.log(value) if value > 0 else math.nan for value in values]
    return sum(weight * value for (weight, _), value in zip(comparison.weights, values, strict=True))


def _size(comparison: Comparison, paper: float) -> float:
    """What an interval has to be narrow against: the margin of a claim, or the paper's effect beyond the bound."""
    if math.isfinite(comparison.low) and math.isfinite(comparison.high):
        return (comparison.high - comparison.low) / 2
    return paper - (comparison.low if math.isfinite(comparison.low) else comparison.high)


def _not_learnt(claim: BaseClaim, frame: Frame, rows: list[str]) -> str:
    """Why nothing was learnt that the claim is about; empty if something was, or if the metric has no floor.

    A claim about the level of a row, such as chance, needs some row of the table above the floor, and one about
    differences a row of its own. A row at chance must have learnt what it was trained for.
    """
    column: Any = frame.of(claim.metric)
    if isinstance(claim, AtChance) and claim.trained_for and not _is_above_floor(frame, claim.trained_for, rows[0]):
        return f"not learnt: {rows[0]} is at the floor of {claim.trained_for}, which it was trained for"
    if column["floor"].isna().all():
        return ""
    others = list(column["row"].unique()) if claim.level is not None else rows
    is_learnt = any(_is_above_floor(frame, claim.metric, row) for row in others)
    return "" if is_learnt else "not learnt: no row is clearly above the floor"


def _is_above_floor(frame: Frame, metric: str, row: str) -> bool:
    column: Any = frame.of(metric)
    own = column[column["row"] == row]
    if own.empty or own["floor"].isna().all():
        return True
    return not contrast(frame, metric, {row: 1.0}).low <= own["floor"].mean()


def _name(frame: Frame, labels: Labels) -> str:
    return frame.row(labels) or ", ".join(labels.values())
