"""The verdicts of a report, as Markdown and as data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from albert_lab.analysis.alarms import RowAlarm
from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.statistics import POWER, Components
from albert_lab.analysis.table_scores import AVERAGE_LIKELIHOOD, MLM_LIKELIHOOD
from albert_lab.analysis.verdicts import Decision, Verdict
from albert_lab.report import agreement
from albert_lab.report.alarms import sentence
from albert_lab.report.templates import fill
from albert_lab.runs.results import INFERENCE_SPEED, NUMBERS, TRAINING_SPEED
from albert_lab.score import CHANCE, loss_name
from albert_lab.studies.checks import Greater, Ratio
from albert_lab.studies.claim import name, number_in
from albert_lab.studies.experiment import AVERAGE, Experiment
from albert_lab.studies.table import Row, axis_labels, half_up
from albert_lab.training.layer_numbers import LAYER_NUMBERS

MOST_NAMED = 2  # rows at a floor


def section(analysis: Analysis) -> str:
    columns = analysis.scores.columns
    # A companion of a claim that was not run was not run either.
    others = [verdict for verdict in analysis.companions if verdict.decision is not Decision.NOT_RUN]
    return fill(
        "verdicts.md.j2",
        verdicts=[_line(verdict, columns) for verdict in analysis.verdicts],
        **_notes(analysis),
        companions=[_companion_line(verdict, analysis.experiment, columns) for verdict in others],
        sources=[
            f"`{source.task}`, {name(source.row.labels)}: {_sources(source.spread)}" for source in analysis.sources
        ],
        agreement=agreement.as_text(analysis.agreement),
    )


def lines(analysis: Analysis) -> list[str]:
    columns, is_of_paper = analysis.scores.columns, analysis.experiment.is_of_paper
    shown = [short(verdict, columns) for verdict in analysis.verdicts if verdict.decision is not Decision.NOT_RUN]
    if rest := [number for number, verdict in enumerate(analysis.verdicts, 1) if verdict.decision is Decision.NOT_RUN]:
        shown.append(f"**Not run**: claim{'' if len(rest) == 1 else 's'} {', '.join(map(str, rest))}.")
    if others := decided_by_companions(analysis):
        whose = "the paper's" if is_of_paper else "those of the claims"
        shown.append(f"By measures that are not {whose}: {'; '.join(others)}.")
    return shown


def short(verdict: Verdict, columns: Mapping[str, str]) -> str:
    """A claim that was run in one line: its verdict, its words, what was measured, and the paper's number."""
    text = f"{_decided(verdict)}: {_quote(verdict)}. {name_column(verdict, columns)} {check(verdict)}"
    if verdict.effect is not None:
        text += f": {_compared(verdict)}{effect(verdict)}"
    return text + (f"; paper {papers_effect(verdict)}." if verdict.papers_effect is not None else ".")


def decided_by_companions(analysis: Analysis) -> list[str]:
    """A line for each claim that a measure decides which is not the paper's."""
    columns = analysis.scores.columns
    return [
        f"**{verdict.decision}** “{verdict.claim.quote}” ({name_column(verdict, columns)} {check(verdict)})"
        for verdict in analysis.companions
        if verdict.decision in (Decision.SUPPORTED, Decision.NOT_SUPPORTED)
    ]


def _quote(verdict: Verdict) -> str:
    """The words of the paper, with a qualification if a score above chance is not above its second floor."""
    is_above = verdict.decision is Decision.SUPPORTED and isinstance(verdict.claim, Greater)
    floors = dict.fromkeys(alarm.floor for alarm in verdict.alarms if _is_of_second_floor(alarm, verdict))
    return f"“{verdict.claim.quote}”" + (f" (not above {' or '.join(floors)})" if is_above and floors else "")


def _line(verdict: Verdict, columns: Mapping[str, str]) -> str:
    """A verdict in one line: its reason, the words of the paper, the check, and the measurement."""
    section = verdict.claim.section
    place = f" (section {section})" if section else ""
    return f"{_decision(verdict)}: “{verdict.claim.quote}”{place}. {_finding(verdict, columns)}"


def _companion_line(verdict: Verdict, experiment: Experiment, columns: Mapping[str, str]) -> str:
    number = experiment.claims.index(verdict.claim.model_copy(update={"metric": AVERAGE})) + 1
    # The alarms are those of the claim itself.
    return f"Claim {number}. {_decision(verdict)}: {_finding(replace(verdict, alarms=()), columns)}"


def _decision(verdict: Verdict) -> str:
    return _decided(verdict) + (f" ({verdict.reason})" if verdict.reason else "")


def _decided(verdict: Verdict) -> str:
    return f"**{str(verdict.decision).capitalize()}**"


def _finding(verdict: Verdict, columns: Mapping[str, str]) -> str:
    text = f"{name_column(verdict, columns)} {check(verdict)}"
    if verdict.effect is None:
        return f"{text}."
    text += f": {_compared(verdict)}{effect(verdict)}, {verdict.n} {verdict.n_of}{'' if verdict.n == 1 else 's'}"
    text += " paired" if verdict.is_paired else ""
    text += "" if verdict.p is None else f", corrected p {_p(verdict.p)}"
    text += f"; paper {papers_effect(verdict)}" if verdict.papers_effect is not None else ""
    # That a pair loss can be learnt from single segments concerns only its own score.
    alarms = [alarm for alarm in verdict.alarms if alarm.floor == CHANCE or _is_of_second_floor(alarm, verdict)]
    raised = f"Alarms: {'; '.join(map(sentence, alarms))}" if alarms else ""
    return ". ".join(filter(None, (text, _power(verdict), raised))) + "."


def _is_of_second_floor(alarm: RowAlarm, verdict: Verdict) -> bool:
    """Whether an alarm says that the score of a verdict, above chance, is not above another floor."""
    return alarm.floor != CHANCE and alarm.metric == verdict.claim.metric


def name_column(verdict: Verdict, columns: Mapping[str, str]) -> str:
    return f"`{columns.get(verdict.claim.metric, verdict.claim.metric)}`"


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
    parts = []
    for task in analysis.tasks_at_floor:
        if len(task.rows) == task.of:
            rows = "every row" if task.of == len(analysis.rows) else f"all {task.of} rows that have it"
            parts.append(f"`{task.task}` in {rows}")
        elif len(task.rows) > MOST_NAMED:
            parts.append(f"`{task.task}` in {len(task.rows)} of {task.of} rows")
        else:
            parts.append(f"`{task.task}` in {', '.join(name(row.labels) for row in task.rows)}")
    return f"Tasks of the average at the floor of constant answers: {'; '.join(parts)}." if parts else ""


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
    assert verdict.comparison is not None
    return "" if len(verdict.comparison.weights) == 1 else f"{verdict.comparison.words} = "


def _number(value: float | Decimal, verdict: Verdict) -> str:
    if isinstance(verdict.claim, Ratio):
        return f"{value:.3g}"
    if _is_score(verdict):
        value = half_up(value) if isinstance(value, Decimal) else value
        return f"{value:.1f}" if unit(verdict) == "%" else f"{value:+.1f}"
    return f"{float(value):+,.0f}" if abs(value) >= 1000 else f"{float(value):+.3g}"


def _p(value: float) -> str:
    return f"= {value:.3f}" if value >= 0.001 else "below 0.001"


def _power(verdict: Verdict) -> str:
    parts = [_detectable(verdict), _needed(verdict)]
    if verdict.chance is not None:
        parts.append(f"Chance that the planned seeds decide it: {100 * verdict.chance:.0f} %")
    return ". ".join(filter(None, parts))


def _detectable(verdict: Verdict) -> str:
    if verdict.detectable is None:
        return ""
    shown = f"{verdict.detectable:.3g}"
    if isinstance(verdict.claim, Ratio):
        shown = f"a factor of {shown}"
    else:
        shown += f" {_unit_of_differences(verdict.claim.metric)}"
    return f"Smallest effect that {verdict.n} {verdict.n_of}s would show (power {100 * POWER:.0f} %): {shown}"


def _needed(verdict: Verdict) -> str:
    if verdict.seeds is None:
        return verdict.lack.capitalize() if verdict.papers_effect is not None else ""
    if verdict.n >= verdict.seeds:
        assert verdict.comparison is not None
        is_bound_below = verdict.comparison.is_required and math.isinf(verdict.comparison.high)
        clear = "smaller" if is_bound_below else "less clear"
        return f"These {verdict.n} seeds were enough for an effect of the paper's size; the measured one is {clear}"
    return f"{verdict.seeds} seeds would decide an effect of the paper's size (power {100 * POWER:.0f} %)"


def _sources(components: Components) -> str:
    counts = f"{components.runs} pre-trainings, {components.finetunings} fine-tunings"
    if components.pretraining is None:
        return f"pre-training unknown, fine-tuning {_sd(components.finetuning)} ({counts})"
    if components.finetuning is None:
        return f"both together {_sd(components.pretraining)} ({counts})"
    return f"pre-training {_sd(components.pretraining)}, fine-tuning {_sd(components.finetuning)} ({counts})"


def _sd(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
