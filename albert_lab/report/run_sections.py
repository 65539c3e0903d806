"""The sections of a report on its runs: their regime, cost, single scores and provenance."""

import json
import math
import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from albert_lab.report.departures import distinct, mean_percent
from albert_lab.report.markdown import MISSING, as_table, decimal, interval, number
from albert_lab.report.speedups import speedups
from albert_lab.runs import regime as regimes
from albert_lab.runs.results import INFERENCE_SPEED, TRAINING_SPEED, RunRecord
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.side_by_side import SideBySide
from albert_lab.studies.table import Row, Run, Spread, axis_labels, axis_names, intrinsic_columns, paper_cells

MUCH_TEXT = 0.1
_LOADED = ("training_seconds", TRAINING_SPEED, INFERENCE_SPEED)
LOAD = "Seconds and tokens/s of runs depend on what else the machine computed at the time"
NOT_MEASURED = "`albert-lab speed --report` measures the rows of a report side by side."


def regime(records: Sequence[RunRecord], source: str) -> tuple[str, str]:
    """One line on numbers of the runs' regime that are far from the paper's, and a table of all of them.

    The line has the numbers that matter for the tables in the source of the study; all if it names no table.
    """
    quantities = regimes.together([regimes.of_record(record) for record in records])
    cells = regimes.cells(quantities)
    tables = set(re.findall(r"\d+", "".join(re.findall(r"Tables?[\d, and]+", source))))
    far = [
        f"{each.name} {each.times_off:,.0f} times {'lower' if each.times_below > 1 else 'higher'}"
        for each in quantities
        if each.is_far
        and (not tables or each.tables == regimes.ALL_TABLES or tables & set(re.findall(r"\d+", each.tables)))
    ]
    line = f"Far from the paper's regime (more than {regimes.FAR:.0f} times): {', '.join(far)}." if far else ""
    return line, as_table(list(cells[0]), [list(line.values()) for line in cells])


def dropped(runs: Sequence[Run]) -> str:
    """The share of text dropped because a chunk has a single sentence, in runs that drop any; empty if it is small."""
    dropping = [run for run in runs if run["dropped_text_share"] > 0]
    if not dropping or max(run["dropped_text_share"] for run in dropping) < MUCH_TEXT:
        return ""
    except_some = "" if len(dropping) == len(runs) else ", except in rows that pair them"
    chunks, text = (mean_percent(dropping, f"dropped_{what}_share") for what in ("chunk", "text"))
    return f"Chunks of a single sentence were dropped{except_some}: {chunks} of the chunks, with {text} of the text."


def costs(experiment: Experiment, axes: Sequence[str], table: Sequence[Row], measured: SideBySide | None) -> str:
    """The cost of the runs of each row, as means over seeds; and throughput side by side, if it was measured."""
    header = axis_names(axes)
    header += ["parameters", "training FLOPs per token", "steps", "tokens", "training seconds", "tokens/s"]
    header += ["inference tokens/s", "peak MiB"]
    columns = ["parameters", "train_flops_per_token", "steps", "tokens", *_LOADED]
    body = []
    for row in table:
        line = axis_labels(experiment, row, axes)
        for column in columns:
            line.append(_cost(row.spread(column), has_spread=column in _LOADED))
        memory = row.spread("peak_memory_bytes")
        line.append(MISSING if memory is None else number(memory.mean / 2**20))
        body.append(line)
    if experiment.speed_relative_to:
        header += ["speed-up", "paper speed-up", "inference speed-up"]
        ratios = [speedups(table, experiment.speed_relative_to, column) for column in (TRAINING_SPEED, INFERENCE_SPEED)]
        for line, row, *both in zip(body, table, *ratios, strict=True):
            training, inference = (MISSING if ratio is None else f"{ratio:.1f}x" for ratio in both)
            line += [training, paper_cells(experiment, row).get("speedup", MISSING), inference]
    if measured and any(row.rounds for row in table):
        paragraphs = [f"{LOAD}.", *_side_by_side(experiment, axes, table, measured)]
    else:
        paragraphs = [f"{LOAD}; {NOT_MEASURED}"]
    return "\n\n".join([as_table(header, body), *paragraphs])


def _side_by_side(experiment: Experiment, axes: Sequence[str], table: Sequence[Row], measured: SideBySide) -> list[str]:
    """The throughput of rows in the same rounds: medians with quartiles, and ratios to the first row within rounds."""
    speeds = {"training": TRAINING_SPEED, "inference": INFERENCE_SPEED}
    shown = [row for row in table if row.rounds]
    header = axis_names(axes)
    for what in speeds:
        header += [f"{what} tokens/s", "over the first row"]
    body = []
    for row in shown:
        line = axis_labels(experiment, row, axes)
        for column in speeds.values():
            values, first = row.rounds[column], shown[0].rounds[column]
            line += [_quartiles(values, ",.0f")]
            line += [_quartiles([own / other for own, other in zip(values, first, strict=True)], ".3f")]
        body.append(line)
    opening = (
        f"Throughput side by side ({measured.conditions}): {measured.num_rounds} rounds, in each of which every row was"
        " measured once, in a random order. Medians, quartiles in brackets; ratios are taken within rounds. Training:"
        " optimizer steps at full length. Inference: forward passes of encoder and heads."
    )
    return [opening, as_table(header, body)]


def _quartiles(values: Sequence[float], form: str) -> str:
    low, median, high = (format(float(value), form) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    return f"{median} [{low}, {high}]"


def _cost(spread: Spread | None, *, has_spread: bool) -> str:
    if spread is None:
        return MISSING
    return number(spread.mean) + (f" ± {number(spread.sd)}" if has_spread and spread.sd is not None else "")


def every_run(experiment: Experiment, finished: Sequence[Run]) -> str:
    """The scores of each single run, with their intervals and floors."""
    columns = intrinsic_columns(experiment)
    header = ["run", *(f"{column.heading} % [95 %] (n; floors)" for column in columns), "scored by", "training loss"]
    body = []
    for run in finished:
        line = [f"`{run['run']}`"]
        for key in (column.key for column in columns):
            floors = [decimal(run[f"{key}_floor"])]
            if not math.isnan(run.get(f"{key}_lexical_floor", math.nan)):
                floors.append(decimal(run[f"{key}_lexical_floor"]))
            line.append(f"{decimal(run[key])} {interval(run, key)} ({int(run[f'{key}_n']):,}; {', '.join(floors)})")
        line.append(", ".join(sorted({run[f"{column.key}_by"] for column in columns})))
        line.append(f"{run['final_loss']:.3f}")
        body.append(line)
    return as_table(header, body)


def provenance(runs: Sequence[Run]) -> str:
    """The place, time, software and hardware of the runs."""
    values = partial(distinct, runs)

    def total(column: str) -> str:
        return f"{sum(run[column] for run in runs):,.0f}"

    shares: dict[str, list[float]] = {}
    for run in runs:
        for kind, share in {**json.loads(run["label_shares"]), "across documents": run["cross_document_share"]}.items():
            shares.setdefault(kind, []).append(share)
    waiting = max(run["data_wait_share"] for run in runs)
    lines = {
        "Code": f"albert-lab {values('albert_lab')}, {_commits(runs)}results version {values('results_version')}",
        "Packages": values("packages"),
        "Machine": f"{values('machine')}; device {values('devices')}, precision {values('precision')}, threads"
        f" {values('threads')}",
        "Corpus fingerprint": f"{values('corpus_fingerprint')}; tokenizer {values('tokenizer_fingerprint')}",
        "Held-out set": values("evaluation_set"),
        "Tokens and seconds": f"{total('tokens')} tokens, {total('training_seconds')} s of training,"
        f" {total('total_seconds')} s in all, over {len(runs)} run{'s' if len(runs) > 1 else ''}",
        "Waiting for data": f"{100 * waiting:.2f} % of the training seconds at most",
        "Padding": f"{mean_percent(runs, 'padding_share')} of the positions",
        "Dropped chunks of one sentence": f"{mean_percent(runs, 'dropped_chunk_share')} of the chunks, with"
        f" {mean_percent(runs, 'dropped_text_share')} of the text",
        "Shares of the pair labels": ", ".join(
            f"{kind} {min(of_runs):.3f} to {max(of_runs):.3f} ({len(of_runs)} run{'s' if len(of_runs) > 1 else ''})"
            for kind, of_runs in shares.items()
        ),
        "Runs finished": values("finished"),
    }
    return "\n".join(f"- {key}: {value}" for key, value in lines.items())


def _commits(runs: Sequence[Run]) -> str:
    """The commits of the code, if recorded; runs of an installed package have none."""
    found = [run["commit"] for run in runs if isinstance(run.get("commit"), str)]
    without = f" ({len(runs) - len(found)} of {len(runs)} runs have none)" if len(found) < len(runs) else ""
    return f"commit {'; '.join(dict.fromkeys(found))}{without}, " if found else ""
