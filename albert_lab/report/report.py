"""A report as Markdown and as a page: pure functions of the study in its folder."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial, wraps
from pathlib import Path
from typing import TypeVar

from albert_lab.figures import files as plots
from albert_lab.report import alarms, ensembles, finetuning, verdicts
from albert_lab.report import layers as layer_table
from albert_lab.report.agreement import agreement
from albert_lab.report.departures import departures, distinct, mean_percent, mixed
from albert_lab.report.markdown import (
    MISSING,
    as_table,
    decimal,
    interval,
    losses_table,
    number,
    scores_table,
)
from albert_lab.report.page import curves as learning_curves
from albert_lab.report.page import html
from albert_lab.report.speedups import INFERENCE, TRAINING, speedups
from albert_lab.storage import write_atomically
from albert_lab.studies import study as studies
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study
from albert_lab.studies.table import (
    Row,
    Run,
    axis_labels,
    axis_names,
    fitting,
    intrinsic_columns,
    paper_cells,
    task_columns,
)

T = TypeVar("T")

REPORT, PAGE = "report.md", "report.html"
ALARMS = (
    "At chance, or not above: the 95 % interval of a run's answers reaches down to what constant answers score, or"
    " bags of tokens. Of the scores on held-out documents, those of a run's own objectives are looked at."
)
LEXICAL_FLOOR = (
    "Chance is what constant answers score. Bags of tokens: a logistic regression over the tokens of each segment by"
    " itself, fitted on training pairs; it cannot relate the two segments, so only what a model scores above it shows"
    " that the model does."
)
LOSSES = (
    "Mean negative log-likelihood of the right answer, in nats: of a masked token, and of a pair. A fair coin has"
    " 0.693. A pair head that does not know the set's negative kind answers with all else that it knows."
)


def _of_one_folder(function: Callable[[Path], T]) -> Callable[[Path], T]:
    """The function of a report folder, with the errors of fitting()."""

    @wraps(function)
    def fitted(folder: Path) -> T:
        with fitting(folder):
            return function(folder)

    return fitted


def write(folder: Path, found: Study) -> Path:
    """Write a study into a report's folder, and the report itself in both forms; the path of the Markdown."""
    studies.write(folder, found)
    return rebuild(folder)


def rebuild(folder: Path) -> Path:
    """Write report.md, report.html, figures and CSV files again from the records beside them; the path of the first.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    with fitting(folder):
        found = studies.read(folder)
        studies.write_tables(folder, found)
        text = render(found, plots.section(folder, found))
        page = html.page(text, folder, *learning_curves.sections(found))
    write_atomically(folder / REPORT, text)
    write_atomically(folder / PAGE, page)
    return folder / REPORT


@_of_one_folder
def scores(folder: Path) -> str:
    """The tables of scores of a report, as Markdown."""
    found = studies.read(folder)
    experiment, tunings, table, axes = found.experiment, found.finetunings, found.rows, found.axes
    columns = [intrinsic_columns(experiment), task_columns(experiment, tunings)]
    return "\n\n".join(scores_table(experiment, axes, table, some) for some in columns if some)


@_of_one_folder
def as_json(folder: Path) -> str:
    """The table of scores of a report as one JSON document; what is missing is null."""
    study = studies.read(folder)
    experiment, tunings, table = study.experiment, study.finetunings, study.rows
    keys = [column.key for column in (*intrinsic_columns(experiment), *task_columns(experiment, tunings))]
    found = []
    for row in table:
        spreads = {key: row.spread(key) for key in keys}
        cells = {column: None if spread is None else asdict(spread) for column, spread in spreads.items()}
        runs = [run["run"] for run in row.runs]
        paper = paper_cells(experiment, row)
        found.append({**row.values, "runs": runs, "missing": row.missing, **cells, "paper": paper})
    decided = verdicts.as_data(experiment, table, tunings)
    others = verdicts.companions_as_data(experiment, table, tunings)
    content = {"experiment": folder.name, "title": experiment.title, "rows": found, "verdicts": decided}
    content |= {"companions": others, "agreement": asdict(agreement(experiment, table, tunings))}
    return json.dumps(content, indent=2)


@_of_one_folder
def decisions(folder: Path) -> set[str]:
    """The different verdicts on the claims of a report."""
    found = studies.read(folder)
    return {item["verdict"] for item in verdicts.as_data(found.experiment, found.rows, found.finetunings)}


def render(found: Study, figures: str) -> str:
    """The text of a report; figures is the text that shows them."""
    experiment, points, tunings = found.experiment, found.points, found.finetunings
    table, axes = found.rows, found.axes
    finished = _finished(table)
    seeds = len(set(points["seed"]))
    parts = [
        f"# {experiment.title} ({found.scale}, {found.corpus})",
        f"Source: {experiment.source}. Scale `{found.scale}`, corpus `{found.corpus}`,"
        f" {seeds} pre-training seed{'' if seeds == 1 else 's'}. Made by `{points['command'].iloc[0]}`.",
        "## Scores on held-out documents",
        scores_table(experiment, axes, table, intrinsic_columns(experiment)),
        _how_to_read(table),
        *_floors(experiment, finished),
    ]
    if losses := losses_table(experiment, axes, table, intrinsic_columns(experiment)):
        parts += ["## Losses on held-out documents", losses, LOSSES]
    if columns := task_columns(experiment, tunings):
        parts += ["## Scores after fine-tuning", scores_table(experiment, axes, table, columns)]
    parts += ensembles.sections(experiment, found.ensembles)
    if experiment.claims:
        parts += ["## Verdicts", verdicts.section(experiment, table, tunings)]
    if layers := layer_table.section(experiment, axes, table):
        parts += ["## Layers", layers]
    parts += [
        "## Cost",
        _costs(experiment, axes, table),
        "## Every run",
        _runs(experiment, finished),
        *finetuning.sections(tunings),
    ]
    if experiment.paper:
        parts += [f"## The paper's table: {experiment.paper.table}", _paper(experiment)]
    missing = [f"- `{name}`: {reason}" for row in table for name, reason in row.missing.items()]
    raised = alarms.section(experiment, table, tunings)
    parts += ["## Figures", figures, "## Alarms", f"{raised}\n\n{ALARMS}" if raised else "None."]
    missing += [
        f"- `{point['run']}`: {point['failed_tasks']}" for point in points.to_dict("records") if point["failed_tasks"]
    ]
    if missing:
        parts += ["## Missing", "\n".join(missing)]
    notes = [
        *experiment.notes,
        *departures(found.scale, finished),
        *mixed(finished),
        *finetuning.notes(experiment, tunings),
    ]
    parts += ["## Notes", "\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    if finished:
        parts += ["## Provenance", _provenance(finished)]
    return "\n\n".join(parts) + "\n"


def _how_to_read(table: Sequence[Row]) -> str:
    sizes = {len(row.runs) for row in table}
    parts = []
    if sizes - {0, 1}:
        parts.append("Mean ± standard deviation over pre-training seeds.")
    if 1 in sizes:
        parts.append(
            "In brackets: the 95 % Wilson interval of a single run over the answers of its held-out set, which does not"
            " hold the spread between seeds."
        )
    parts.append("The paper's numbers come from its own scale, data and held-out set: compare directions, not values.")
    return " ".join(parts)


def _floors(experiment: Experiment, finished: Sequence[Run]) -> list[str]:
    """What chance and bags of tokens score on the held-out sets, from the least to the most where runs differ."""

    def span(key: str) -> str:
        values = [decimal(run[key]) for run in finished if not math.isnan(run.get(key, math.nan))]
        return " to ".join(dict.fromkeys([min(values, key=float), max(values, key=float)])) if values else ""

    lines = []
    for column in intrinsic_columns(experiment):
        named = {"chance": f"{column.key}_floor", "bags of tokens": f"{column.key}_lexical_floor"}
        found = [f"{name} {value} %" for name, key in named.items() if (value := span(key))]
        lines += [f"- {column.heading}: {', '.join(found)}"] if found else []
    return ["Floors of the held-out sets:", "\n".join(lines), LEXICAL_FLOOR] if lines else []


def _costs(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> str:
    header = axis_names(axes)
    header += ["parameters", "training FLOPs a token", "steps", "tokens", "training seconds", "tokens/s"]
    header += ["inference tokens/s", "peak MiB"]
    columns = ["parameters", "train_flops_per_token", "steps", "tokens", "training_seconds", TRAINING, INFERENCE]
    body = []
    for row in table:
        line = axis_labels(experiment, row, axes)
        for column in columns:
            spread = row.spread(column)
            line.append(MISSING if spread is None else number(spread.mean))
        memory = row.spread("peak_memory_bytes")
        line.append(MISSING if memory is None else number(memory.mean / 2**20))
        body.append(line)
    if experiment.speed_relative_to:
        header += ["speed-up", "paper speed-up", "inference speed-up"]
        ratios = [speedups(table, experiment.speed_relative_to, column) for column in (TRAINING, INFERENCE)]
        for line, row, *both in zip(body, table, *ratios, strict=True):
            training, inference = (MISSING if ratio is None else f"{ratio:.1f}x" for ratio in both)
            line += [training, paper_cells(experiment, row).get("speedup", MISSING), inference]
    return as_table(header, body)


def _finished(table: Sequence[Row]) -> list[Run]:
    return list({run["run"]: run for row in table for run in row.runs}.values())


def _runs(experiment: Experiment, finished: Sequence[Run]) -> str:
    columns = intrinsic_columns(experiment)
    header = ["run", *(f"{column.heading} % [95 %] (n; floors)" for column in columns), "by", "training loss"]
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


def _paper(experiment: Experiment) -> str:
    assert experiment.paper is not None
    columns = experiment.paper.columns
    header = [*axis_names(experiment.axes), *columns.values()]
    body = [
        [*(cells[axis] for axis in experiment.axes), *(cells.get(column, MISSING) for column in columns)]
        for cells in experiment.paper.rows
    ]
    return as_table(header, body) + "\n\nAs printed; SQuAD cells are F1/EM."


def _provenance(runs: Sequence[Run]) -> str:
    values = partial(distinct, runs)

    def total(column: str) -> str:
        return f"{sum(run[column] for run in runs):,.0f}"

    shares: dict[str, list[float]] = {}
    for run in runs:
        for kind, share in {**json.loads(run["label_shares"]), "across documents": run["cross_document_share"]}.items():
            shares.setdefault(kind, []).append(share)
    waiting = max(run["data_wait_share"] for run in runs)
    lines = {
        "Code": f"albert-lab {values('albert_lab')}, results version {values('results_version')}",
        "Packages": values("packages"),
        "Machine": f"{values('machine')}; device {values('device')}, precision {values('precision')}, threads"
        f" {values('threads')}",
        "Corpus fingerprint": f"{values('corpus_fingerprint')}; tokenizer {values('tokenizer_fingerprint')}",
        "Held-out set": values("evaluation_set"),
        "Tokens and seconds": f"{total('tokens')} tokens, {total('training_seconds')} s of training,"
        f" {total('total_seconds')} s in all, over {len(runs)} run{'s' if len(runs) > 1 else ''}",
        "Waiting for data": f"{100 * waiting:.2f} % of the training seconds at most",
        "Padding": f"{mean_percent(runs, 'padding_share')} of the positions",
        "Dropped chunks of one sentence": f"{mean_percent(runs, 'dropped_chunk_share')} of the chunks, with"
        f" {mean_percent(runs, 'dropped_text_share')} of the text",
        "Label shares, smallest to largest": ", ".join(
            f"{kind} {min(of_runs):.3f} to {max(of_runs):.3f} ({len(of_runs)} run{'s' if len(of_runs) > 1 else ''})"
            for kind, of_runs in shares.items()
        ),
        "Finished": values("finished"),
    }
    return "\n".join(f"- {key}: {value}" for key, value in lines.items())
