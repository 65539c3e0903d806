"""The verdicts of a report, as Markdown and as data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pandas as pd

from albert_lab.report.claims import ALPHA, CHANCE, FEWEST_SEEDS, Decision, Verdict, decide, name
from albert_lab.report.speedups import INFERENCE, TRAINING
from albert_lab.report.statistics import BOOTSTRAP_FROM, POWER, Components, components
from albert_lab.studies.claim import AtChance, Claim, Greater, Labels, Monotone, Ordered, PeakAt, Ratio, Within
from albert_lab.studies.experiment import AVERAGE, INTRINSIC, Experiment, scores
from albert_lab.studies.table import Row, half_up

HOW_TO_READ = (
    "Each claim is a sentence of the paper with a check over pre-training seeds; a verdict speaks of these runs, at"
    " this scale. Supported: the check holds at a"
    f" level of {100 * ALPHA:.0f} % after Holm's correction over the claims of this table, with its whole 95 %"
    f" interval; not supported: the opposite does; undecided: neither, or fewer than {FEWEST_SEEDS} seeds, or at"
    " chance in a table where no row is above chance; not run: no scores. The effect is that of the weakest"
    " comparison that a claim needs, or of the one that speaks against it. Intervals: Student's t below"
    f" {BOOTSTRAP_FROM} seeds, BCa from there on."
)
PAPERS_NOISE = (
    "The paper's own noise: one model (E = 128, all shared) has MNLI 81.6 in its Table 3 and 82.0 in its Table 4,"
    " another (E = 128, not shared) 83.7 and 83.2, which is half a point for the same model."
)


def section(experiment: Experiment, table: Sequence[Row], finetunings: pd.DataFrame | None = None) -> str:
    """The text below the heading of the verdicts.

    Args:
        experiment: its claims.
        table: the rows of its table.
        finetunings: a line a fine-tuning: run, column, task, seed, best in percent.
    """
    columns = filled(finetunings)
    decided = decide(experiment, table, columns)
    lines = []
    for number, verdict in enumerate(decided, 1):
        claim = verdict.claim
        lines.append(f"{number}. **{str(verdict.decision).capitalize()}**: “{claim.quote}” (section {claim.section})")
        lines += [f"   - {line}" for line in _details(verdict, columns)]
    counts = Counter(verdict.decision for verdict in decided)
    summary = ", ".join(f"{counts[decision]} {decision}" for decision in Decision if counts[decision])
    parts = [f"{HOW_TO_READ} Here: {summary}.", "\n".join(lines)]
    if {claim.metric for claim in experiment.claims}.intersection(scores()).difference(INTRINSIC):
        parts.append(PAPERS_NOISE)
    if spread := _spread(experiment, table, finetunings):
        parts.append(spread)
    return "\n\n".join(parts)


def as_data(
    experiment: Experiment, table: Sequence[Row], finetunings: pd.DataFrame | None = None
) -> list[dict[str, Any]]:
    """The verdicts as plain values; what is missing is null."""
    columns = filled(finetunings)
    return [
        {
            "quote": verdict.claim.quote,
            "section": verdict.claim.section,
            "check": check(verdict.claim),
            "metric": columns.get(verdict.claim.metric, verdict.claim.metric),
            "verdict": str(verdict.decision),
            "effect": verdict.effect,
            "low": verdict.interval[0] if verdict.interval else None,
            "high": verdict.interval[1] if verdict.interval else None,
            "unit": unit(verdict),
            "n": verdict.n,
            "paired": verdict.is_paired,
            "p": verdict.p,
            "paper": None if verdict.papers_effect is None else float(verdict.papers_effect),
            "seeds_needed": verdict.seeds,
            "reason": "; ".join(filter(None, (verdict.reason, verdict.lack))) or None,
            "alarmed_runs": verdict.alarmed,
        }
        for verdict in decide(experiment, table, columns)
    ]


def filled(finetunings: pd.DataFrame | None) -> dict[str, str]:
    """The task that fills each downstream column of a table."""
    if finetunings is None or finetunings.empty:
        return {}
    return dict(zip(finetunings["column"], finetunings["task"], strict=True))


def unit(verdict: Verdict) -> str:
    """The unit of an effect: a score is in percent, a difference of scores in points."""
    claim = verdict.claim
    if isinstance(claim, Ratio):
        return "times"
    if claim.metric in scores():
        return "%" if len(verdict.of) == 1 else "points"
    return claim.metric


def check(claim: Claim) -> str:
    """What is checked, in words."""
    match claim:
        case Greater(than=dict(other)):
            first, second = _short([claim.row, other])
            words, held = f"{first} above {second}", _held([claim.row, other])
        case Greater():
            words, held = f"{name(claim.row)} above {claim.than:g}" + (" %" if claim.metric in scores() else ""), ""
        case Within():
            first, second = _short([claim.row, claim.of])
            margin = "points" if claim.metric in scores() else claim.metric
            words, held = f"{first} within {claim.margin:g} {margin} of {second}", _held([claim.row, claim.of])
        case Ordered():
            words, held = " above ".join(_short(claim.order)), _held(claim.order)
        case AtChance():
            words, held = f"{name(claim.row)} within {CHANCE[0]:g} to {CHANCE[1]:g} %", ""
        case Ratio():
            first, second = _short([claim.row, claim.to])
            words, held = f"{first} {_bounds(claim)} times {second}", _held([claim.row, claim.to])
        case Monotone():
            words, held = f"{claim.direction} with {claim.axis}", name(claim.where)
        case PeakAt():
            words, held = f"highest at {claim.axis}={claim.at}", name(claim.where)
    return words + (f", at {held}" if held else "")


def _bounds(claim: Ratio) -> str:
    if claim.low is None:
        return f"below {claim.high:g}"
    return f"above {claim.low:g}" if claim.high is None else f"{claim.low:g} to {claim.high:g}"


def _held(rows: Sequence[Labels]) -> str:
    """The labels that all rows have alike."""
    return name({axis: label for axis, label in rows[0].items() if all(row.get(axis) == label for row in rows)})


def _short(rows: Sequence[Labels]) -> list[str]:
    """The rows by the labels in which they differ."""
    same = {axis for axis, label in rows[0].items() if all(row.get(axis) == label for row in rows)}
    return ["/".join(label for axis, label in row.items() if axis not in same) for row in rows]


def effect(verdict: Verdict) -> str:
    """What was measured of a claim in one cell, with its interval; empty where nothing was."""
    if verdict.effect is None:
        return ""
    shown = _number(verdict.effect, verdict)
    if verdict.interval:
        shown += f" [{_number(verdict.interval[0], verdict)}, {_number(verdict.interval[1], verdict)}]"
    return f"{shown} {unit(verdict)}"


def papers_effect(verdict: Verdict) -> str:
    """The same of the paper's own cells; empty where it prints none."""
    return "" if verdict.papers_effect is None else _number(verdict.papers_effect, verdict)


def _details(verdict: Verdict, columns: Mapping[str, str]) -> list[str]:
    claim = verdict.claim
    column = f"`{columns.get(claim.metric, claim.metric)}`"
    others = {task: official for official, task in columns.items() if task != official}
    if claim.metric in others.values():
        column += f", which stands in for `{claim.metric}`,"
    if claim.metric == AVERAGE and others:
        column += f", in which {', '.join(f'`{task}` stands in for `{own}`' for task, own in others.items())},"
    lines = [f"Check: {column} {check(claim)}."]
    if verdict.effect is None:
        return [*lines, f"{str(verdict.decision).capitalize()}: {verdict.reason}."]
    shown = f"{_compared(verdict)}: {_number(verdict.effect, verdict)}"
    if verdict.interval:
        shown += f", 95 % interval [{_number(verdict.interval[0], verdict)}, {_number(verdict.interval[1], verdict)}]"
    shown += f", {verdict.n} seed{'' if verdict.n == 1 else 's'}" + (" paired" if verdict.is_paired else "")
    shown += "" if verdict.p is None else f", p {_p(verdict.p)} after Holm"
    if verdict.papers_effect is not None:
        shown += f". In the paper: {_number(verdict.papers_effect, verdict)}"
    lines.append(shown + ".")
    if claim.metric in (TRAINING, INFERENCE):
        lines.append("Throughputs of runs made at different times; `albert-lab speed` measures side by side.")
    if verdict.reason:
        lines.append(f"{str(verdict.decision).capitalize()}: {verdict.reason}.")
    if power := _power(verdict):
        lines.append(power)
    if verdict.alarmed:
        lines.append(f"Alarms on {verdict.alarmed} of its runs, listed below.")
    return lines


def _compared(verdict: Verdict) -> str:
    if isinstance(verdict.claim, Monotone) and len(verdict.of) > 2:
        return f"Slope per step (least squares over ranks), in {unit(verdict)}"
    rows = [labels for _, labels in verdict.of]
    if len(rows) == 1:
        return f"{name(rows[0])}, in {unit(verdict)}"
    first, second = _short(rows)
    if isinstance(verdict.claim, Ratio):
        return f"{first} / {second}"
    return f"{first} − {second}, in {unit(verdict)}"


def _number(value: float | Decimal, verdict: Verdict) -> str:
    if isinstance(verdict.claim, Ratio):
        return f"{value:.3g}"
    if verdict.claim.metric in scores():
        value = half_up(value) if isinstance(value, Decimal) else value
        return f"{value:.1f}" if len(verdict.of) == 1 else f"{value:+.1f}"
    return f"{float(value):+,.0f}" if abs(value) >= 1000 else f"{float(value):+.4g}"


def _p(value: float) -> str:
    return f"= {value:.3f}" if value >= 0.001 else "below 0.001"


def _power(verdict: Verdict) -> str:
    if verdict.seeds is None:
        return verdict.lack and f"Power: {verdict.lack}."
    if verdict.n >= verdict.seeds:
        return (
            f"Power: these {verdict.n} seeds were enough for an effect of the paper's size; the measured one clears the"
            " claim's bound by less, or not at all."
        )
    return (
        f"Power: {verdict.seeds} seeds would decide an effect of the paper's size with a chance of {100 * POWER:.0f} %"
        f" after the correction, by the spread of these {verdict.n}."
    )


def _spread(experiment: Experiment, table: Sequence[Row], finetunings: pd.DataFrame | None) -> str:
    """The spread of fine-tuning and that of pre-training, of every claimed score; empty with one fine-tuning seed."""
    if finetunings is None or finetunings.empty or not finetunings.duplicated(["run", "task"]).any():
        return ""
    by_run: dict[tuple[str, str], list[float]] = {}
    for line in finetunings.to_dict("records"):
        by_run.setdefault((line["column"], line["run"]), []).append(float(line["best"]))
    lines = []
    for column, task in filled(finetunings).items():
        if column not in {claim.metric for claim in experiment.claims}:
            continue
        for row in table:
            values = [by_run[column, run["run"]] for run in row.runs if (column, run["run"]) in by_run]
            if not values:
                continue
            found = components(values)
            if found.pretraining is not None or found.finetuning is not None:
                lines.append(f"- `{task}`, {name(row.labels)}: {_sources(found)}")
    if not lines:
        return ""
    heading = "Standard deviations in points, told apart where runs were fine-tuned with several seeds:"
    return "\n".join([heading, "", *lines])


def _sources(found: Components) -> str:
    counts = f"{found.runs} pre-trainings, {found.finetunings} fine-tunings"
    if found.pretraining is None:
        return f"pre-training unknown, fine-tuning {_sd(found.finetuning)} ({counts})"
    if found.finetuning is None:
        return f"both together {_sd(found.pretraining)} ({counts})"
    return f"pre-training {_sd(found.pretraining)}, fine-tuning {_sd(found.finetuning)} ({counts})"


def _sd(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
