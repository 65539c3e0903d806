"""The verdicts of a report, as Markdown and as data."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from albert_lab.measures.catalog import labels
from albert_lab.report import agreement
from albert_lab.report.alarms import sentence
from albert_lab.report.claims import ALPHA, FEWEST_SEEDS, Decision, Verdict, companions, decide
from albert_lab.report.statistics import POWER, Components, components
from albert_lab.report.table_scores import AVERAGE_LEARNT, AVERAGE_LIKELIHOOD, MLM_LIKELIHOOD, TableScores
from albert_lab.runs.results import INFERENCE_SPEED, TRAINING_SPEED
from albert_lab.score import CHANCE
from albert_lab.studies.checks import Greater, Ratio
from albert_lab.studies.claim import name
from albert_lab.studies.experiment import AVERAGE, Experiment, scores
from albert_lab.studies.seed_plan import SeedPlan
from albert_lab.studies.table import Row, axis_labels, filled_columns, half_up

HOW_TO_READ = f"""\
Each claim is a sentence of the paper with a check over pre-training seeds; a verdict speaks of these runs, at\
 this scale.

- Supported: the check passes (corrected p below {ALPHA:g}, or below the level of a planned look).
- Not supported: the opposite of the check passes.
- Not learnt: these rows cannot show it. A compared row is at chance, and no two other rows contradict the claim; or\
 the claim is about one row, and no row is clearly above the upper limit of chance; or the row is at chance on the\
 task that it was trained for. For a likelihood, its accuracy tells whether a row is at chance; for what layers do,\
 that of MLM.
- Undecided: neither the check nor its opposite passes, or fewer than {FEWEST_SEEDS} seeds.
- Not run: no scores.

The number is the measured effect with its 95 % interval (Student's t). The spread over seeds is estimated from\
 all rows together, and is larger for a row that varies more; the error of the dev examples is added where it is\
 recorded. If a claim needs several comparisons, the weakest is shown, or the one that contradicts it. p is\
 two-sided and corrected (Holm) over the claims that could be tested; for “not supported” it is the p of the\
 opposite. The interval is that of one claim alone, so a claim can be undecided although its interval excludes 0."""
COMPANIONS = (
    "The same claims by other measures, which are not the paper's and do not count above; corrected by themselves:"
)
MEASURES = {
    AVERAGE_LEARNT: "leaves out tasks that no row has learnt",
    MLM_LIKELIHOOD: "is minus the held-out MLM loss, in nats per token",
    AVERAGE_LIKELIHOOD: "is minus the mean loss of the same tasks after the last step, in nats per example (tasks with"
    " many possible answers, such as spans of a text, weigh most)",
}
WHY_LIKELIHOODS = (
    "Likelihoods are more informative than accuracies where models are small (DataDecide, arXiv 2504.11393)."
)
PAPERS_NOISE = (
    "The paper's own noise: the same model has MNLI 81.6 in its Table 3 and 82.0 in its Table 4 (E = 128, all"
    " shared), and 83.7 and 83.2 (E = 128, not shared)."
)
SPEEDS = "Throughputs are of runs made at different times; `albert-lab speed --report` measures rows side by side."
SPEEDS_SIDE_BY_SIDE = (
    "Throughputs were measured side by side, each row once per round, on the machine that is named below Cost."
)
STANDS_FOR = "Verdicts and alarms name rows by the paper's values; the values here: {pairs}."
MOST_NAMED = 2  # rows at a floor


def filled(table: Sequence[Row]) -> dict[str, str]:
    """The task that fills each downstream column of a table."""
    return {name: column.task for name, column in filled_columns(table).items()}


def section(experiment: Experiment, table: Sequence[Row], plan: SeedPlan | None = None) -> str:
    """The text below the heading of the verdicts.

    Args:
        experiment: its claims.
        table: the rows of its table.
    """
    columns = filled(table)
    decided = decide(experiment, table, plan)
    others = [
        verdict
        for verdict in companions(experiment, table, plan)
        if verdict.decision is not Decision.NOT_RUN  # as is the claim itself
    ]
    lines = [f"{number}. {_line(verdict, columns)}" for number, verdict in enumerate(decided, 1)]
    parts = ["\n".join(lines), HOW_TO_READ]
    if notes := _notes(experiment, decided, TableScores(table)):
        parts.append("\n".join(f"- {line}" for line in notes))
    if others:
        lines = [f"- {_companion_line(verdict, experiment, columns)}" for verdict in others]
        used = {verdict.claim.metric for verdict in others}
        words = "; ".join(f"`{measure}` {text}" for measure, text in MEASURES.items() if measure in used)
        parts += [f"{COMPANIONS} {words}. {WHY_LIKELIHOODS}", "\n".join(lines)]
    if spread := _spread(experiment, table):
        parts.append(spread)
    if agreeing := agreement.as_text(agreement.agreement(experiment, table)):
        parts.append(agreeing)
    return "\n\n".join(parts)


def groups(experiment: Experiment, table: Sequence[Row], plan: SeedPlan | None = None) -> list[str]:
    """One sentence per verdict that occurs, with the claims in words, and one on other measures that decide claims.

    A sentence of the paper that stands for several claims has their numbers in section(). The arguments are those of
    section().
    """
    decided = decide(experiment, table, plan)
    checks = Counter(verdict.claim.quote for verdict in decided)
    found = []
    for decision in Decision:
        own = [(number, verdict) for number, verdict in enumerate(decided, 1) if verdict.decision is decision]
        numbers: dict[str, list[int]] = {}
        for number, verdict in own:
            numbers.setdefault(_quote(verdict), []).extend([number] if checks[verdict.claim.quote] > 1 else [])
        if own:
            words = "; ".join(quote + _numbered(claims) for quote, claims in numbers.items())
            found.append(f"**{str(decision).capitalize()}**, {len(own)} of {len(decided)} claims: {words}.")
    if lines := decided_by_companions(experiment, table, plan):
        found.append(f"By measures that are not the paper's: {'; '.join(lines)}.")
    return found


def decided_by_companions(experiment: Experiment, table: Sequence[Row], plan: SeedPlan | None = None) -> list[str]:
    """A line for each claim that a measure decides which is not the paper's; arguments as for section()."""
    columns = filled(table)
    return [
        f"**{verdict.decision}** “{verdict.claim.quote}” ({measure(verdict, columns)} {check(verdict)})"
        for verdict in companions(experiment, table, plan)
        if verdict.decision in (Decision.SUPPORTED, Decision.NOT_SUPPORTED)
    ]


def _quote(verdict: Verdict) -> str:
    """The words of the paper, with a qualification if a score above chance is not above its second floor."""
    is_above = verdict.decision is Decision.SUPPORTED and isinstance(verdict.claim, Greater)
    is_score = verdict.claim.metric in labels()
    floors = dict.fromkeys(alarm.floor for alarm in verdict.alarms if alarm.floor != CHANCE)
    qualified = is_above and is_score and floors
    return f"“{verdict.claim.quote}”" + (f" (not above {' or '.join(floors)})" if qualified else "")


def _numbered(claims: Sequence[int]) -> str:
    return f" (claim{'' if len(claims) == 1 else 's'} {', '.join(map(str, claims))})" if claims else ""


def _line(verdict: Verdict, columns: Mapping[str, str]) -> str:
    """A verdict in one line: its reason, the words of the paper, the check, and the measurement."""
    return (
        f"{_decision(verdict)}: “{verdict.claim.quote}” (section {verdict.claim.section}). {_found(verdict, columns)}"
    )


def _companion_line(verdict: Verdict, experiment: Experiment, columns: Mapping[str, str]) -> str:
    number = experiment.claims.index(verdict.claim.model_copy(update={"metric": AVERAGE})) + 1
    # The alarms are those of the claim itself.
    return f"Claim {number}. {_decision(verdict)}: {_found(replace(verdict, alarms=()), columns)}"


def _decision(verdict: Verdict) -> str:
    return f"**{str(verdict.decision).capitalize()}**" + (f" ({verdict.reason})" if verdict.reason else "")


def _found(verdict: Verdict, columns: Mapping[str, str]) -> str:
    text = f"{measure(verdict, columns)} {check(verdict)}"
    if verdict.effect is None:
        return f"{text}."
    text += f": {_compared(verdict)}{effect(verdict)}, {verdict.n} {verdict.n_of}{'' if verdict.n == 1 else 's'}"
    text += " paired" if verdict.is_paired else ""
    text += "" if verdict.p is None else f", corrected p {_p(verdict.p)}"
    text += f"; paper {papers_effect(verdict)}" if verdict.papers_effect is not None else ""
    # That a pair loss can be learnt from single segments concerns only its own score.
    alarms = [alarm for alarm in verdict.alarms if verdict.claim.metric in labels() or alarm.floor == CHANCE]
    raised = f"Alarms: {'; '.join(map(sentence, alarms))}" if alarms else ""
    return ". ".join(filter(None, (text, _power(verdict), raised))) + "."


def measure(verdict: Verdict, columns: Mapping[str, str]) -> str:
    """The column of a verdict."""
    return f"`{columns.get(verdict.claim.metric, verdict.claim.metric)}`"


def _notes(experiment: Experiment, decided: Sequence[Verdict], here: TableScores) -> list[str]:
    """Notes on several verdicts: replacements of tasks, tasks at their floor, the paper's noise, speeds."""
    scored = {verdict.claim.metric for verdict in decided if verdict.effect is not None}
    metrics = {claim.metric for claim in experiment.claims}
    tasks = {column: task for column, task in here.columns.items() if column in metrics or AVERAGE in metrics}
    instead = [f"`{task}` for `{column}`" for column, task in tasks.items() if task != column]
    notes = [f"Tasks of the corpus stand in for official ones: {', '.join(instead)}."] if instead else []
    notes += [STANDS_FOR.format(pairs=pairs)] if (pairs := _stand_ins(experiment, here.table)) else []
    if AVERAGE in metrics and (floors := members_at_floor(here)):
        notes.append(floors)
    if scored.intersection(scores()).difference(labels()):
        notes.append(PAPERS_NOISE)
    if metrics & {TRAINING_SPEED, INFERENCE_SPEED}:
        notes.append(SPEEDS_SIDE_BY_SIDE if any(row.rounds for row in here.table) else SPEEDS)
    return notes


def _stand_ins(experiment: Experiment, table: Sequence[Row]) -> str:
    """Which of the paper's values the values of numeric axes replace, in words; empty if they replace none."""
    found = {}
    for row in table:
        axes = [axis for axis in row.labels if axis in row.values]
        for axis, shown in zip(axes, axis_labels(experiment, row, axes), strict=True):
            if shown != row.labels[axis] and row.labels[axis].replace(".", "", 1).isdigit():
                found[f"{axis}={row.labels[axis]} is {row.values[axis]}"] = None
    return ", ".join(found)


def members_at_floor(here: TableScores) -> str:
    """The tasks of the average that rows have not learnt, in a sentence; empty if there are none."""
    found = []
    for task in here.tasks:
        low = here.at_floor(task)
        scored = [row for row in here.table if here.sample(row, task)]
        if task in here.unlearnt_tasks:
            every = len(scored) == len(here.table)
            found.append(f"`{task}` in {'every row' if every else f'all {len(scored)} rows that have it'}")
        elif len(low) > MOST_NAMED:
            found.append(f"`{task}` in {len(low)} of {len(scored)} rows")
        elif low:
            found.append(f"`{task}` in {', '.join(name(row.labels) for row in low)}")
    return f"Tasks of the average at the floor of constant answers: {'; '.join(found)}." if found else ""


def as_data(experiment: Experiment, table: Sequence[Row], plan: SeedPlan | None = None) -> list[dict[str, Any]]:
    """The verdicts on the paper's claims as plain values; missing values are null."""
    return _values(decide(experiment, table, plan), filled(table))


def companions_as_data(
    experiment: Experiment, table: Sequence[Row], plan: SeedPlan | None = None
) -> list[dict[str, Any]]:
    """The verdicts by measures that are not the paper's, in the same form."""
    return _values(companions(experiment, table, plan), filled(table))


def _values(decided: Sequence[Verdict], columns: Mapping[str, str]) -> list[dict[str, Any]]:
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
    if metric in scores() or metric == AVERAGE_LEARNT:
        return "points"
    return {MLM_LIKELIHOOD: "nats per token", AVERAGE_LIKELIHOOD: "nats per example"}.get(metric, metric)


def _is_score(verdict: Verdict) -> bool:
    return _unit_of_differences(verdict.claim.metric) == "points"


def check(verdict: Verdict) -> str:
    """The check in words."""
    return verdict.claim.words(_unit_of_differences(verdict.claim.metric))


def effect(verdict: Verdict) -> str:
    """The measured effect in one cell, with its interval; empty if there is none."""
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
    if verdict.seeds is None:
        return verdict.lack.capitalize() if verdict.papers_effect is not None else ""
    if verdict.n >= verdict.seeds:
        assert verdict.comparison is not None
        is_bound_below = verdict.comparison.is_required and math.isinf(verdict.comparison.high)
        clear = "smaller" if is_bound_below else "less clear"
        return f"These {verdict.n} seeds were enough for an effect of the paper's size; the measured one is {clear}"
    return f"{verdict.seeds} seeds would decide an effect of the paper's size (power {100 * POWER:.0f} %)"


def _spread(experiment: Experiment, table: Sequence[Row]) -> str:
    """The spread due to fine-tuning and to pre-training, of every claimed score; empty with one fine-tuning seed."""
    metrics = {claim.metric for claim in experiment.claims}
    has_several, lines = False, []
    for name_of_column, task in filled(table).items():
        for row in table:
            tuned = [each for run in row.runs for each in run.columns if each.column == name_of_column]
            has_several = has_several or any(len(each.finetunings) > 1 for each in tuned)
            values = [[record.best.main.value for record in each.finetunings] for each in tuned]
            if name_of_column not in metrics or not values:
                continue
            found = components(values)
            if found.pretraining is not None or found.finetuning is not None:
                lines.append(f"- `{task}`, {name(row.labels)}: {_sources(found)}")
    if not lines or not has_several:
        return ""
    heading = "Standard deviations in points by source, where runs were fine-tuned with several seeds:"
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
