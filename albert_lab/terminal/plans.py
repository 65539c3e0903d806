"""Plans before anything is trained, as data and as text: what they take."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from rich.filesize import decimal

from albert_lab.errors import ConfigError
from albert_lab.machine import busy
from albert_lab.messages import duration, printable
from albert_lab.studies import prices
from albert_lab.studies.jobs import Options
from albert_lab.studies.plan import Plan
from albert_lab.studies.study import EXPERIMENT

MOST_ROWS, MOST_CLAIMS = 6, 2  # lines: a dry run has at most twelve


def costs(plans: Sequence[Plan], how: Options) -> tuple[dict[str, Any], str]:
    """What is to train: a line a study; of one its rows, of several all, in which a run counts
    once.
    """
    of_studies = {plan.experiment.name: prices.price([plan], how.slurm) for plan in plans}
    if len(plans) > 1:
        of_studies["all of them"] = prices.price(plans, how.slurm)
    lines = [f"{name}: {in_words(its)}" for name, its in of_studies.items()]
    if len(plans) == 1:
        lines += [*_rows(plans[0]), *_seeds_needed(plans[0])]
    if how.is_here and busy():
        lines.append(busy())
    return {name: asdict(its) for name, its in of_studies.items()}, "\n".join(lines)


def in_words(its: prices.Price) -> str:
    tuned = f", {its.finetunings} fine-tunings" if its.finetunings else ""
    took = f"{its.flops:.1e} FLOPs (no speed known for {its.device})"
    if its.seconds is not None:
        took = f"about {duration(its.seconds)} {'of a GPU' if its.device == 'cuda' else 'here'}"
    if its.speed_of:
        took += f" (rough: from steps with H = {its.speed_of})"
    return f"{its.runs} run{'s' * (its.runs != 1)}{tuned}, {took}, {decimal(its.disk_bytes)}"


def _rows(plan: Plan) -> list[str]:
    seeds: dict[str, dict[str, None]] = {}
    for item in plan.points:
        seeds.setdefault(item.row, {})[str(item.config.seed)] = None
    lines = [
        f"  {printable(row)}, seed{'s' * (len(of_row) > 1)} {', '.join(of_row)}"
        for row, of_row in seeds.items()
    ]
    if len(lines) > MOST_ROWS:
        lines[MOST_ROWS:] = [f"  and {len(lines) - MOST_ROWS} more rows"]
    return lines


def _seeds_needed(plan: Plan) -> list[str]:
    """How many seeds open claims would need, by the spread in the report of this scale and text:
    a line each for those that need fewest; none without a report.
    """
    needed: dict[str, int] = {}
    if (plan.report_folder / EXPERIMENT).exists():
        from albert_lab.analysis.analysis import read  # these load pandas
        from albert_lab.analysis.verdict import Outcome
        from albert_lab.report.wording import short

        with suppress(ConfigError):  # damaged: it is written anew
            for verdict in read(plan.report_folder).verdicts:
                if verdict.seeds_needed and verdict.outcome is Outcome.UNDECIDED:
                    needed.setdefault(printable(short(verdict.claim)), verdict.seeds_needed)
    fewest = sorted(needed, key=needed.__getitem__)[:MOST_CLAIMS]
    return [
        f"  an effect as measured needs {needed[claim]} seeds a row: {claim}" for claim in fewest
    ]


def too_wide(plan: Plan) -> str:
    """That E is above H, as with the paper's sizes at a small scale; empty if it is not."""
    wide = [
        item.config
        for item in plan.points
        if item.config.embedding_size > item.config.model.hidden_size
    ]
    if not wide:
        return ""
    sizes = ",".join(map(str, sorted({config.embedding_size for config in wide})))
    width = " or ".join(map(str, sorted({config.model.hidden_size for config in wide})))
    table = f"albert-lab embedding-size scale={wide[0].scale.name}"
    return (
        f"embedding_size={sizes} above model.hidden_size={width}: the layers read {width} numbers "
        "of a token, so such rows have more parameters alone. The table of E, at sizes of this "
        f"scale: {table}"
    )
