"""The verdicts of a report, as Markdown and as data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from albert_lab.analysis.alarms import RowAlarm
from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.decisions import Decision, Verdict
from albert_lab.analysis.statistics import POWER
from albert_lab.analysis.table_scores import AVERAGE_LIKELIHOOD, MLM_LIKELIHOOD
from albert_lab.report import agreement
from albert_lab.report.alarms import sentence
from albert_lab.report.markdown import percent_interval
from albert_lab.report.templates import call, fill, fill_lines
from albert_lab.runs.results import NUMBERS
from albert_lab.score import CHANCE, loss_name
from albert_lab.studies.claims import Greater, Name, Ratio, Within
from albert_lab.studies.experiment import AVERAGE
from albert_lab.studies.table import half_up
from albert_lab.training.layer_numbers import LAYER_NUMBERS

MOST_NAMED = 2  # rows at a floor


@dataclass(frozen=True)
class Shown:
    """The values of a verdict as they are shown; empty ones are left out. The sentences are in templates/verdict.md.j2.

    Attributes:
        number: of the claim, from 1; 0 if it is not shown.
        floors: those above chance that the score of a supported claim is not above.
        is_margin: whether detectable is a margin on both sides.
        is_smaller: whether p is that of an effect as large as the paper's.
        is_enough: how the measured effect differs from the paper's, if the seeds were enough for one of that size.
    """

    number: int
    decision: str
    reason: str
    quote: str
    floors: str
    section: str
    metric: str
    check: str
    effect: str
    n: int
    n_of: str
    is_paired: bool
    p: str
    paper: str
    detectable: str
    is_margin: bool
    is_smaller: bool
    is_enough: str
    seeds: int | None
    lack: str
    alarms: Sequence[str]
    power: str = f"{100 * POWER:.0f}"


def section(analysis: Analysis) -> str:
    # A companion of a claim that was not run was not run either.
    others = [verdict for verdict in analysis.companions if verdict.decision is not Decision.NOT_RUN]
    return fill(
        "verdicts.md.j2",
        verdicts=[call("verdict.md.j2", "line", _shown(verdict, analysis)) for verdict in analysis.verdicts],
        **_notes(analysis),
        companions=[call("verdict.md.j2", "companion", _companion(verdict, analysis)) for verdict in others],
        sources=[(source, analysis.names(source.row.labels)) for source in analysis.sources],
        agreement=agreement.of_report(analysis),
    )


def headlines(analysis: Analysis) -> list[str]:
    """A line for each claim that was run; if there is none, one line that says so."""
    run = [verdict for verdict in analysis.verdicts if verdict.decision is not Decision.NOT_RUN]
    return [short(verdict, analysis) for verdict in run] or _asides(analysis, companions=())


def asides(analysis: Analysis) -> list[str]:
    """What else there is to say of the claims: which were not run, and what other measures decide."""
    said = headlines(analysis)
    return [line for line in _asides(analysis, decided_by_companions(analysis)) if line not in said]


def _asides(analysis: Analysis, companions: Sequence[str]) -> list[str]:
    numbered = enumerate(analysis.verdicts, 1)
    return fill_lines(
        "claims.md.j2",
        not_run=[number for number, verdict in numbered if verdict.decision is Decision.NOT_RUN],
        companions=companions,
        is_of_paper=analysis.experiment.is_of_paper,
    )


def short(verdict: Verdict, analysis: Analysis) -> str:
    """A claim that was run in one line: its verdict, its words, what was measured, and the paper's number."""
    return call("verdict.md.j2", "short", _shown(verdict, analysis))


def tested(verdict: Verdict, analysis: Analysis, name: Name) -> str:
    """What was tested, the metric and the check, with rows by name: one of all reports gives the same text in each."""
    return f"`{analysis.scores.column(verdict.claim.metric)}` {check(verdict, name)}"


def effects(of_reports: Sequence[Verdict]) -> str:
    """The effect of one verdict with its interval; of several on the same claim, the least and the greatest."""
    if len(of_reports) == 1:
        return effect(of_reports[0])
    measured = sorted(
        (verdict.effect, number) for number, verdict in enumerate(of_reports) if verdict.effect is not None
    )
    ends = [effect(replace(of_reports[number], interval=None)) for _, number in measured]
    return f"{ends[0].split()[0]} to {ends[-1]}" if ends else ""


def floors(verdict: Verdict) -> str:
    """The floors above chance that the score of a supported claim is not above; empty if there are none."""
    is_above = verdict.decision is Decision.SUPPORTED and isinstance(verdict.claim, Greater)
    second = [alarm.floor for alarm in verdict.alarms if _is_of_second_floor(alarm, verdict)]
    return " or ".join(dict.fromkeys(second)) if is_above else ""


def decided_by_companions(analysis: Analysis) -> list[str]:
    """A line for each claim that a measure decides which is not the paper's, with the verdict of the claim itself."""
    return [
        call(
            "verdict.md.j2", "decided", _shown(verdict, analysis), analysis.verdicts[_place(verdict, analysis)].decision
        )
        for verdict in analysis.companions
        if verdict.decision in (Decision.SUPPORTED, Decision.NOT_SUPPORTED)
    ]


def _shown(verdict: Verdict, analysis: Analysis) -> Shown:
    second = [alarm for alarm in verdict.alarms if _is_of_second_floor(alarm, verdict)]
    return Shown(
        number=0,
        decision=str(verdict.decision).capitalize(),
        reason=verdict.reason,
        quote=verdict.claim.quote,
        floors=floors(verdict),
        section=verdict.claim.section or "",
        metric=analysis.scores.column(verdict.claim.metric),
        check=check(verdict, analysis.names),
        effect=_compared(verdict, analysis.names) + effect(verdict),
        n=verdict.n,
        n_of=verdict.n_of,
        is_paired=verdict.is_paired,
        p="" if verdict.p is None else _p(verdict.p),
        paper=papers_effect(verdict),
        detectable=_detectable(verdict),
        is_smaller=verdict.decision is Decision.SMALLER,
        is_margin=verdict.comparison is not None and verdict.comparison.has_two_bounds,
        is_enough=_enough(verdict),
        seeds=verdict.seeds,
        lack=verdict.lack,
        # That a pair loss can be learnt from single segments concerns only its own score.
        alarms=[
            sentence(alarm, analysis.names) for alarm in verdict.alarms if alarm.floor == CHANCE or alarm in second
        ],
    )


def _companion(verdict: Verdict, analysis: Analysis) -> Shown:
    """A companion with the number of its claim, which has the alarms."""
    return replace(_shown(verdict, analysis), number=_place(verdict, analysis) + 1, alarms=())


def _place(companion: Verdict, analysis: Analysis) -> int:
    """The place among the claims, from 0, of the one that a companion tests by another measure."""
    return analysis.experiment.claims.index(companion.claim.model_copy(update={"metric": AVERAGE}))


def _is_of_second_floor(alarm: RowAlarm, verdict: Verdict) -> bool:
    """Whether an alarm says that the score of a verdict, above chance, is not above another floor."""
    return alarm.floor != CHANCE and alarm.metric == verdict.claim.metric


def _notes(analysis: Analysis) -> dict[str, object]:
    """What notes on several verdicts say: tasks at their floor, the paper's noise."""
    scored = {verdict.claim.metric for verdict in analysis.verdicts if verdict.effect is not None}
    metrics = {claim.metric for claim in analysis.experiment.claims}
    return {
        "has_smaller": any(verdict.decision is Decision.SMALLER for verdict in analysis.verdicts),
        "floors": tasks_at_floor(analysis) if AVERAGE in metrics else "",
        "has_task": analysis.experiment.is_of_paper and bool(scored & {*analysis.experiment.tasks, AVERAGE}),
    }


def tasks_at_floor(analysis: Analysis) -> str:
    """The tasks of the average that rows have not learnt, in a sentence; empty if there are none."""
    tasks = [(task, [analysis.names(row.labels) for row in task.rows]) for task in analysis.tasks_at_floor]
    return call("alarm.md.j2", "tasks_at_floor", tasks, len(analysis.rows), MOST_NAMED) if tasks else ""


def as_data(decided: Sequence[Verdict], analysis: Analysis) -> list[dict[str, Any]]:
    """Verdicts of an analysis as plain values."""
    return [
        {
            "quote": verdict.claim.quote,
            "section": verdict.claim.section,
            "check": check(verdict, analysis.names),
            "metric": analysis.scores.column(verdict.claim.metric),
            "verdict": str(verdict.decision),
            "effect": verdict.effect,
            "low": verdict.interval[0] if verdict.interval else None,
            "high": verdict.interval[1] if verdict.interval else None,
            "unit": unit(verdict),
            "n": verdict.n,
            "n_of": f"{verdict.n_of}s",
            "paired": verdict.is_paired,
            "p": verdict.p,
            "paper": None if verdict.papers_effect is None else float(verdict.papers_effect),
            "seeds_needed": verdict.seeds,
            "detectable": verdict.detectable,
            "reason": "; ".join(filter(None, (verdict.reason, verdict.lack))) or None,
            "alarms": [sentence(alarm, analysis.names) for alarm in verdict.alarms],
        }
        for verdict in decided
    ]


def unit(verdict: Verdict) -> str:
    """The unit of an effect: a score is in percent, a difference of scores in points."""
    is_level = verdict.comparison is not None and len(verdict.comparison.weights) == 1
    if isinstance(verdict.claim, Ratio):
        return "times"
    return "%" if is_level and _is_score(verdict) else _unit_of_differences(verdict.claim.metric)


def _unit_of_differences(metric: str) -> str:
    named = {MLM_LIKELIHOOD: "nats per token", AVERAGE_LIKELIHOOD: "nats per example", "last_degrees": "degrees"}
    is_quantity = metric in {*NUMBERS, *LAYER_NUMBERS} or metric.endswith(loss_name(""))
    return named.get(metric, metric if is_quantity else "points")


def _is_score(verdict: Verdict) -> bool:
    return _unit_of_differences(verdict.claim.metric) == "points"


def check(verdict: Verdict, name: Name) -> str:
    return verdict.claim.words(_unit_of_differences(verdict.claim.metric), name)


def effect(verdict: Verdict) -> str:
    if verdict.effect is None:
        return ""
    shown = _number(verdict.effect, verdict)
    if verdict.interval and unit(verdict) == "%":
        shown += f" {percent_interval(*verdict.interval)}"
    elif verdict.interval:
        shown += f" [{_number(verdict.interval[0], verdict)}, {_number(verdict.interval[1], verdict)}]"
    return _with_unit(shown, unit(verdict), verdict)


def _with_unit(shown: str, unit: str, verdict: Verdict) -> str:
    return shown if unit == verdict.claim.metric else f"{shown} {unit}"  # a quantity without a unit


def papers_effect(verdict: Verdict) -> str:
    """The effect in the paper's cells; empty if it prints none."""
    return "" if verdict.papers_effect is None else _number(verdict.papers_effect, verdict)


def _compared(verdict: Verdict, name: Name) -> str:
    """The two sides of the effect, if there are two that the check does not name in this order; else empty."""
    is_named = isinstance(verdict.claim, Greater | Within | Ratio)
    if verdict.effect is None or verdict.comparison is None or is_named or len(verdict.comparison.weights) == 1:
        return ""
    return f"{verdict.comparison.words(name)} = "


def _number(value: float | Decimal, verdict: Verdict) -> str:
    if isinstance(verdict.claim, Ratio):
        return f"{value:.3g}"
    if _is_score(verdict):
        value = half_up(value) if isinstance(value, Decimal) else value
        return f"{value:.1f}" if unit(verdict) == "%" else f"{value:+.1f}"
    return f"{float(value):+,.0f}" if abs(value) >= 1000 else f"{float(value):+.3g}"


def _p(value: float) -> str:
    return f"= {value:.3f}" if value >= 0.001 else "below 0.001"


def _detectable(verdict: Verdict) -> str:
    if verdict.detectable is None:
        return ""
    shown = f"{verdict.detectable:.3g}"
    if isinstance(verdict.claim, Ratio):
        return f"a factor of {shown}"
    return _with_unit(shown, _unit_of_differences(verdict.claim.metric), verdict)


def _enough(verdict: Verdict) -> str:
    """How the measured effect differs from the paper's, if the seeds were enough for one of the paper's size."""
    if verdict.seeds is None or verdict.n < verdict.seeds:
        return ""
    assert verdict.comparison is not None
    is_bound_below = verdict.comparison.is_required and math.isinf(verdict.comparison.high)
    return "smaller" if is_bound_below else "less clear"
