"""Plans before anything is trained, as data and as text: what they take (--dry-run), where runs are
(--list).
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.filesize import decimal

from albert_lab.machine import busy
from albert_lab.messages import duration, printable, visible
from albert_lab.runs import preparing
from albert_lab.studies import prices, slurm
from albert_lab.studies.jobs import Options, jobs_of
from albert_lab.studies.plan import Plan

MOST_ROWS = 6


def costs(plans: Sequence[Plan], how: Options) -> tuple[dict[str, Any], str]:
    """What is to train: a line a study; of one its rows and scripts, of several all, in which a run
    counts once.
    """
    of_studies = {plan.experiment.name: prices.price([plan], how.slurm) for plan in plans}
    if len(plans) > 1:
        of_studies["all of them"] = prices.price(plans, how.slurm)
    lines = [f"{name}: {in_words(its)}" for name, its in of_studies.items()]
    lines += _rows_and_scripts(plans[0], how) if len(plans) == 1 else []
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


def _rows_and_scripts(plan: Plan, how: Options) -> list[str]:
    seeds: dict[str, dict[str, None]] = {}
    for item in plan.points:
        seeds.setdefault(item.row, {})[str(item.config.seed)] = None
    lines = [
        f"  {printable(row)}, seed{'s' * (len(of_row) > 1)} {', '.join(of_row)}"
        for row, of_row in seeds.items()
    ]
    if len(lines) > MOST_ROWS:
        lines[MOST_ROWS:] = [f"  and {len(lines) - MOST_ROWS} more rows"]
    if how.slurm is not None:
        scripts = list(
            slurm.scripts(
                jobs_of(plan.to_train), preparing.lacking(p.run for p in plan.to_train), how
            )
        )
        names = ", ".join(
            f"{file.name} ({len(of)} run{'s' * (len(of) > 1)})" if of else file.name
            for file, _, of in scripts
        )
        lines += [f"scripts in {scripts[0][0].parent}: {names}"] if scripts else []
    return lines


def folders(plans: Sequence[Plan]) -> tuple[list[dict[str, Any]], str]:
    """The folder and the state of each run, once, after those of the runs that it starts from.

    As data with its row; is_row is false for a run that is not in the table.
    """
    names = {item.run.name for plan in plans for item in plan.points}
    family = {name: item for plan in plans for name, item in plan.family.items()}
    rows = [
        {
            "folder": str(item.run.folder),
            "title": item.title,
            "is_row": item.run.name in names,
            "state": item.state,
        }
        | item.values
        for item in family.values()
    ]
    lines = [
        f"{row['state']:<8} {printable(row['title']):<40} {visible(row['folder'])}" for row in rows
    ]
    return rows, "\n".join(lines)


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
        f"of a token, so such rows have more parameters alone. The table of E, at sizes of this "
        f"scale: {table}"
    )
