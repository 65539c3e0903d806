"""The verdicts of a report, as Markdown and as data."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from albert_lab.analysis.alarms import RowAlarm
from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.statistics import POWER
from albert_lab.analysis.table_scores import AVERAGE_LIKELIHOOD, MLM_LIKELIHOOD
from albert_lab.analysis.verdicts import Decision, Verdict
from albert_lab.report import agreement
from albert_lab.report.alarms import sentence
from albert_lab.report.templates import call, fill, fill_lines
from albert_lab.runs.results import INFERENCE_SPEED, NUMBERS, TRAINING_SPEED
from albert_lab.score import CHANCE, loss_name
from albert_lab.studies.checks import Greater, Ratio
from albert_lab.studies.claim import name, number_in
from albert_lab.studies.experiment import AVERAGE, Experiment
from albert_lab.studies.table import Row, axis_labels, half_up
from albert_lab.training.layer_numbers import LAYER_NUMBERS

MOST_NAMED = 2  # rows at a floor
EQUALS = " = "


@dataclass(frozen=True)
class Shown:
    """The values of a verdict as they are shown; empty ones are left out. The sentences are in templates/verdict.md.j2.

    Attributes:
        number: of the claim, from 1; 0 if it is not shown.
        floors: those above chance that the score of a supported claim is not above.
        sides: what the effect compares, in front of it.
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
    sides: str
    effect: str
    n: int
    n_of: str
    is_paired: bool
    p: str
    paper: str
    detectable: str
    is_enough: str
    seeds: int | None
    lack: str
    chance: str
    alarms: Sequence[str]
    power: str = f"{100 * POWER:.0f}"


def section(analysis: Analysis) -> str:
    columns = analysis.scores.columns
    # A companion of a claim that was not run was not run either.
    others = [verdict for verdict in analysis.companions if verdict.decision is not Decision.NOT_RUN]
    return fill(
        "verdicts.md.j2",
        verdicts=[call("verdict.md.j2", "line", _shown(verdict, columns)) for verdict in analysis.verdicts],
        **_notes(analysis),
        companions=[call("verdict.md.j2", "companion", _companion(verdict, analysis)) for verdict in others],
        sources=[(source, name(source.row.labels)) for source in analysis.sources],
        agreement=agreement.as_text(analysis.agreement),
    )


def headlines(analysis: Analysis) -> list[str]:
    """A line for each claim that was run; if there is none, one line that says so."""
    run = [verdict for verdict in analysis.verdicts if verdict.decision is not Decision.NOT_RUN]
    return [short(verdict, analysis.scores.columns) for verdict in run] or _asides(analysis, companions=())


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


def short(verdict: Verdict, columns: Mapping[str, str]) -> str:
    """A claim that was run in one line: its verdict, its words, what was measured, and the paper's number.

    The sides of its effect are left out if its check names them.
    """
    shown = _shown(verdict, columns)
    sides = re.split(" [−/] ", shown.sides.removesuffix(EQUALS))
    return call(
        "verdict.md.j2", "short", replace(shown, sides="") if all(side in shown.check for side in sides) else shown
    )


def tested(verdict: Verdict, columns: Mapping[str, str]) -> str:
    """What was tested, the same in all reports of an experiment: the metric and the check."""
    return f"`{columns.get(verdict.claim.metric, verdict.claim.metric)}` {check(verdict)}"


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
    """A line for each claim that a measure decides which is not the paper's."""
    return [
        call("verdict.md.j2", "decided", _shown(verdict, analysis.scores.columns))
        for verdict in analysis.companions
        if verdict.decision in (Decision.SUPPORTED, Decision.NOT_SUPPORTED)
    ]


def _shown(verdict: Verdict, columns: Mapping[str, str]) -> Shown:
    second = [alarm for alarm in verdict.alarms if _is_of_second_floor(alarm, verdict)]
    return Shown(
        number=0,
        decision=str(verdict.decision).capitalize(),
        reason=verdict.reason,
        quote=verdict.claim.quote,
        floors=floors(verdict),
        section=verdict.claim.section or "",
        metric=columns.get(verdict.claim.metric, verdict.claim.metric),
        check=check(verdict),
        sides=_compared(verdict),
        effect=effect(verdict),
        n=verdict.n,
        n_of=verdict.n_of,
        is_paired=verdict.is_paired,
        p="" if verdict.p is None else _p(verdict.p),
        paper=papers_effect(verdict),
        detectable=_detectable(verdict),
        is_enough=_enough(verdict),
        seeds=verdict.seeds,
        lack=verdict.lack,
        chance="" if verdict.chance is None else f"{100 * verdict.chance:.0f}",
        # That a pair loss can be learnt from single segments concerns only its own score.
        alarms=[sentence(alarm) for alarm in verdict.alarms if alarm.floor == CHANCE or alarm in second],
    )


def _companion(verdict: Verdict, analysis: Analysis) -> Shown:
    """A companion with the number of its claim, which has the alarms."""
    claim = verdict.claim.model_copy(update={"metric": AVERAGE})
    number = analysis.experiment.claims.index(claim) + 1
    return replace(_shown(verdict, analysis.scores.columns), number=number, alarms=())


def _is_of_second_floor(alarm: RowAlarm, verdict: Verdict) -> bool:
    """Whether an alarm says that the score of a verdict, above chance, is not above another floor."""
    return alarm.floor != CHANCE and alarm.metric == verdict.claim.metric


def _notes(analysis: Analysis) -> dict[str, object]:
    """What notes on several verdicts say: replacements of tasks, tasks at their floor, the paper's noise, speeds."""
    scored = {verdict.claim.metric for verdict in analysis.verdicts if verdict.effect is not None}
    metrics = {claim.metric for claim in analysis.experiment.claims}
    tasks = {
        column: task for column, task in analysis.scores.columns.items() if column in metrics or AVERAGE in metrics
    }
    return {
        "replaced": ", ".join(f"`{task}` for `{column}`" for column, task in tasks.items() if task != column),
        "values": _replaced_values(analysis.experiment, analysis.rows),
        "floors": tasks_at_floor(analysis) if AVERAGE in metrics else "",
        "has_task": analysis.experiment.is_of_paper and bool(scored & {*analysis.experiment.tasks, AVERAGE}),
        "has_speed": bool(metrics & {TRAINING_SPEED, INFERENCE_SPEED}),
        "is_side_by_side": any(row.rounds for row in analysis.rows),
    }


def _replaced_values(experiment: Experiment, table: Sequence[Row]) -> str:
    """Which of the paper's values the values of numeric axes replace, in words; empty if they replace none."""
    names = {}
    for row in table:
        axes = [axis for axis in row.labels if axis in row.values]
        for axis, shown in zip(axes, axis_labels(experiment, row, axes), strict=True):
            if shown != row.labels[axis] and number_in(row.labels[axis]) is not None:
                names[f"{axis}={row.labels[axis]} is {row.values[axis]}"] = None
    return ", ".join(names)


def tasks_at_floor(analysis: Analysis) -> str:
    """The tasks of the average that rows have not learnt, in a sentence; empty if there are none."""
    tasks = [(task, [name(row.labels) for row in task.rows]) for task in analysis.tasks_at_floor]
    return call("alarm.md.j2", "tasks_at_floor", tasks, len(analysis.rows), MOST_NAMED) if tasks else ""


def as_data(decided: Sequence[Verdict], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "quote": verdict.claim.quote,
            "section": verdict.claim.section,
            "check": check(verdict),
            "metric": columns.get(verdict.claim.metric, verdict.claim.metric),
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
            "level": verdict.level,
            "detectable": verdict.detectable,
            "chance": verdict.chance,
            "reason": "; ".join(filter(None, (verdict.reason, verdict.lack))) or None,
            "alarms": [sentence(alarm) for alarm in verdict.alarms],
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
    likelihoods = {MLM_LIKELIHOOD: "nats per token", AVERAGE_LIKELIHOOD: "nats per example"}
    is_quantity = metric in {*NUMBERS, *LAYER_NUMBERS} or metric.endswith(loss_name(""))
    return likelihoods.get(metric, metric if is_quantity else "points")


def _is_score(verdict: Verdict) -> bool:
    return _unit_of_differences(verdict.claim.metric) == "points"


def check(verdict: Verdict) -> str:
    return verdict.claim.words(_unit_of_differences(verdict.claim.metric))


def effect(verdict: Verdict) -> str:
    if verdict.effect is None:
        return ""
    shown = _number(verdict.effect, verdict)
    if verdict.interval:
        shown += f" [{_number(verdict.interval[0], verdict)}, {_number(verdict.interval[1], verdict)}]"
    return shown if unit(verdict) == verdict.claim.metric else f"{shown} {unit(verdict)}"


def papers_effect(verdict: Verdict) -> str:
    """The effect in the paper's cells; empty if it prints none."""
    return "" if verdict.papers_effect is None else _number(verdict.papers_effect, verdict)


def _compared(verdict: Verdict) -> str:
    """The two sides of the effect, if there are two; empty without an effect."""
    if verdict.effect is None or verdict.comparison is None or len(verdict.comparison.weights) == 1:
        return ""
    return f"{verdict.comparison.words}{EQUALS}"


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
    return f"{shown} {_unit_of_differences(verdict.claim.metric)}"


def _enough(verdict: Verdict) -> str:
    """How the measured effect differs from the paper's, if the seeds were enough for one of the paper's size."""
    if verdict.seeds is None or verdict.n < verdict.seeds:
        return ""
    assert verdict.comparison is not None
    is_bound_below = verdict.comparison.is_required and math.isinf(verdict.comparison.high)
    return "smaller" if is_bound_below else "less clear"
