"""Plans before anything is trained, as data and as text: what they take."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from albert_lab.errors import ConfigError
from albert_lab.machine import busy
from albert_lab.messages import counted, duration, printable
from albert_lab.studies import prices
from albert_lab.studies.jobs import Options
from albert_lab.studies.plan import Plan
from albert_lab.studies.study import EXPERIMENT

# lines: a dry run has at most twelve
MOST_ROWS = 6
MOST_CLAIMS = 2


def costs(plans: Sequence[Plan], how: Options) -> tuple[dict[str, Any], str]:
    """What is to train: a line a study; of one its rows, of several all, in which a run counts
    once.
    """
    of_studies = {plan.experiment.name: prices.price([plan], how.slurm) for plan in plans}
    if len(plans) > 1:
        of_studies["all of them"] = prices.price(plans, how.slurm)
    lines = [f"{name}: {in_words(price)}" for name, price in of_studies.items()]
    if len(plans) == 1:
        lines += [*_rows(plans[0]), *_seeds_needed(plans[0])]
    if how.is_here and busy():
        lines.append(busy())
    return {name: asdict(price) for name, price in of_studies.items()}, "\n".join(lines)


def in_words(price: prices.Price) -> str:
    took = f"{price.flops:.1e} FLOPs (no speed known for {price.device})"
    if price.seconds is not None:
        took = f"about {duration(price.seconds)} {'of a GPU' if price.device == 'cuda' else 'here'}"
    if price.speed_of:
        took += f" (rough: from steps with H = {price.speed_of})"
    tuned = f", {price.finetunings} fine-tunings" if price.finetunings else ""
    return f"{counted(price.runs, 'run')}{tuned}, {took}"


def _rows(plan: Plan) -> list[str]:
    seeds: dict[str, list[int]] = {}
    for item in plan.points:
        seeds.setdefault(printable(item.row), []).append(item.config.seed)
    lines = [f"  {row}, seed {', '.join(map(str, of_row))}" for row, of_row in seeds.items()]
    hidden = len(lines) - MOST_ROWS
    return [*lines[:MOST_ROWS], f"  and {hidden} more rows"] if hidden > 0 else lines


def _seeds_needed(plan: Plan) -> list[str]:
    """How many seeds open claims would need, by the spread in the report of this scale and text:
    a line each for those that need fewest; none without a report.
    """
    if not (plan.report_folder / EXPERIMENT).exists():
        return []
    from albert_lab.analysis.analysis import read  # these load pandas
    from albert_lab.analysis.verdict import Outcome
    from albert_lab.report.wording import short

    needed = set[tuple[int, str]]()
    with suppress(ConfigError):  # damaged: it is written anew
        for verdict in read(plan.report_folder).verdicts:
            if verdict.seeds_needed and verdict.outcome is Outcome.UNDECIDED:
                needed.add((verdict.seeds_needed, printable(short(verdict.claim))))
    return [
        f"  an effect as measured needs {seeds} seeds a row: {claim}"
        for seeds, claim in sorted(needed)[:MOST_CLAIMS]
    ]


def too_wide(plan: Plan) -> str:
    """That E is above H, as with the paper's sizes at a small scale; empty if it is not."""
    configs = [point.config for point in plan.points]
    wide = [config for config in configs if config.embedding_size > config.model.hidden_size]
    if not wide:
        return ""
    sizes = ",".join(map(str, sorted({config.embedding_size for config in wide})))
    width = wide[0].model.hidden_size
    return (
        f"embedding_size={sizes} above model.hidden_size={width}: the layers read {width} numbers "
        "of a token, so such rows have more parameters alone. The table of E, at sizes of this "
        f"scale: albert-lab embedding-size scale={wide[0].scale.name}"
    )
