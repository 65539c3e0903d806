"""The sections of a report on its runs: their regime, cost, single scores and provenance."""

import re
from collections.abc import Sequence

import numpy as np

from albert_lab.report.departures import distinct, mean_percent
from albert_lab.report.markdown import MISSING, as_table, decimal, interval, number
from albert_lab.report.speedups import speedups
from albert_lab.runs import regime as regimes
from albert_lab.runs.reported import ReportedRun
from albert_lab.runs.results import INFERENCE_SPEED, TRAINING_SPEED, Provenance, RunRecord
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.side_by_side import SideBySide
from albert_lab.studies.table import Row, Spread, axis_labels, axis_names, intrinsic_columns, paper_cells

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


def dropped(runs: Sequence[RunRecord]) -> str:
    """The share of text dropped because a chunk has a single sentence, in runs that drop any; empty if it is small."""
    dropping = [run.data for run in runs if run.data.dropped_text_share > 0]
    if not dropping or max(data.dropped_text_share for data in dropping) < MUCH_TEXT:
        return ""
    except_some = "" if len(dropping) == len(runs) else ", except in rows that pair them"
    chunks = mean_percent(data.dropped_chunk_share for data in dropping)
    text = mean_percent(data.dropped_text_share for data in dropping)
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


def every_run(experiment: Experiment, finished: Sequence[ReportedRun]) -> str:
    """The scores of each single run, with their intervals and floors."""
    columns = intrinsic_columns(experiment)
    header = [
        "run",
        *(f"{column.heading} {column.unit} [95 %] (n; floors)" for column in columns),
        "scored by",
        "training loss",
    ]
    body = []
    for run in finished:
        scores = [run.scores.get(column.key) for column in columns]
        cells = []
        for score in scores:
            if score is None:
                cells.append(MISSING)
                continue
            floors = ", ".join(map(decimal, score.floors.values()))
            cells.append(f"{decimal(score.value)} {interval(score)} ({score.n:,}; {floors})")
        by = ", ".join(sorted({score.by for score in scores if score}))
        body.append([f"`{run.name}`", *cells, by, f"{run.record.training.final_loss:.3f}"])
    return as_table(header, body)


def provenance(runs: Sequence[RunRecord]) -> str:
    """The place, time, software and hardware of the runs."""
    made = [run.provenance for run in runs]
    data, training = [run.data for run in runs], [run.training for run in runs]
    shares: dict[str, list[float]] = {}
    for each in data:
        for kind, share in {
            **dict(sorted(each.label_shares.items())),
            "across documents": each.cross_document_share,
        }.items():
            shares.setdefault(kind, []).append(share)
    several = "s" if len(runs) > 1 else ""
    lines = {
        "Code": f"albert-lab {distinct(each.albert_lab for each in made)}, {_commits(made)}results version"
        f" {distinct(run.results_version for run in runs)}",
        "Packages": distinct(each.software for each in made),
        "Machine": f"{distinct(each.machine for each in made)}; device"
        f" {distinct(each.device_names for each in made)}, precision {distinct(each.precision for each in made)},"
        f" threads {distinct(each.threads for each in made)}",
        "Corpus fingerprint": f"{distinct(run.fingerprints['corpus'] for run in runs)}; tokenizer"
        f" {distinct(run.fingerprints['tokenizer'] for run in runs)}",
        "Held-out set": distinct(run.evaluation_set for run in runs),
        "Tokens and seconds": f"{sum(each.tokens for each in training):,} tokens,"
        f" {sum(each.training_seconds for each in training):,.0f} s of training,"
        f" {sum(each.total_seconds for each in training):,.0f} s in all, over {len(runs)} run{several}",
        "Waiting for data": f"{100 * max(each.data_wait_share for each in training):.2f} % of the training seconds at"
        " most",
        "Padding": f"{mean_percent(each.padding_share for each in data)} of the positions",
        "Dropped chunks of one sentence": f"{mean_percent(each.dropped_chunk_share for each in data)} of the chunks,"
        f" with {mean_percent(each.dropped_text_share for each in data)} of the text",
        "Shares of the pair labels": ", ".join(
            f"{kind} {min(of_runs):.3f} to {max(of_runs):.3f} ({len(of_runs)} run{'s' if len(of_runs) > 1 else ''})"
            for kind, of_runs in shares.items()
        ),
        "Runs finished": distinct(each.finished for each in made),
    }
    return "\n".join(f"- {key}: {value}" for key, value in lines.items())


def _commits(made: Sequence[Provenance]) -> str:
    """The commits of the code, if recorded; runs of an installed package have none."""
    found = [each.code for each in made if each.code]
    without = f" ({len(made) - len(found)} of {len(made)} runs have none)" if len(found) < len(made) else ""
    return f"commit {distinct(found)}{without}, " if found else ""
