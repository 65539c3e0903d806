"""A report as Markdown and as a page: pure functions of the study in its folder."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from albert_lab.analysis.analysis import Analysis, analyse
from albert_lab.figures import files as plots
from albert_lab.figures.drawing import READ_OFF
from albert_lab.report import alarms, ensembles, finetuning, run_sections, verdicts
from albert_lab.report.departures import departures, mixed, own_parts, replaced
from albert_lab.report.layers import layers_table
from albert_lab.report.learnt import sentences
from albert_lab.report.markdown import (
    MISSING,
    as_table,
    decimal,
    fold,
    losses_table,
    scores_table,
)
from albert_lab.report.page import curves as learning_curves
from albert_lab.report.page import html
from albert_lab.report.templates import fill
from albert_lab.score import Floor
from albert_lab.storage import write_atomically
from albert_lab.studies import figure, frames
from albert_lab.studies import study as studies
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import (
    axis_names,
    paper_cells,
)

REPORT, PAGE = "report.md", "report.html"
FIGURES, PAPERS_TABLE = "Figures", "The paper's table"
# Sections that are folded until the reader opens them.
FOLDED = (
    FIGURES,
    "Losses on held-out documents",
    "Cost",
    "Every run",
    "The downstream tasks",
    "Every fine-tuning",
    PAPERS_TABLE,
    "Notes",
    "Provenance",
)


def write(folder: Path, analysis: Analysis) -> Path:
    """Write an analysed study and its report in both forms into a folder; return the path of the Markdown."""
    studies.write(folder, analysis.study)
    return _write_pages(folder, analysis)


def rebuild(folder: Path) -> Path:
    """Rebuild report.md, report.html, figures and CSV files from the folder's records; return the path of report.md.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    return _write_pages(folder, read(folder))


def read(folder: Path) -> Analysis:
    """The analysis of the study in a report's folder.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    return analyse(studies.read(folder))


def _write_pages(folder: Path, analysis: Analysis) -> Path:
    frames.write(folder, analysis.study)
    text = render(analysis, plots.draw_all(folder, analysis))
    page = html.page(text, folder, *learning_curves.sections(analysis), folded=FOLDED)
    write_atomically(folder / REPORT, fold(text, FOLDED))
    write_atomically(folder / PAGE, page)
    return folder / REPORT


def as_json(name: str, analysis: Analysis) -> str:
    """The table of scores and the verdicts of a study of this name as one JSON document; missing values are null."""
    experiment = analysis.experiment
    keys = [column.key for column in (*analysis.held_out, *analysis.tasks)]
    rows = []
    for row in analysis.rows:
        spreads = {key: row.spread(key) for key in keys}
        cells = {key: None if spread is None else asdict(spread) for key, spread in spreads.items()}
        runs = [run.name for run in row.runs]
        paper = paper_cells(experiment, row)
        rows.append({**row.values, "runs": runs, "missing": row.missing, **cells, "paper": paper})
    content = {"experiment": name, "title": experiment.title, "rows": rows}
    content |= {"verdicts": verdicts.as_data(analysis.verdicts, analysis)}
    content |= {"companions": verdicts.as_data(analysis.companions, analysis)}
    content |= {"agreement": asdict(analysis.agreement)}
    return json.dumps(content, indent=2)


def render(analysis: Analysis, drawn: plots.Drawn) -> str:
    """The text of a report with the figures that were drawn, the first of them above the tables."""
    study, experiment, table, axes = analysis.study, analysis.experiment, analysis.rows, analysis.axes
    finished, records = analysis.finished, [run.record for run in analysis.finished]
    commands = list(dict.fromkeys(point.command for point in study.points))
    missing = [f"`{name}`: {reason}" for row in table for name, reason in row.missing.items()]
    missing += [f"`{point.run}`: {point.failed_tasks}" for point in study.points if point.failed_tasks]
    notes = [*experiment.notes, *replaced(experiment.fixed, commands), *departures(study.scale, records)]
    notes += [*mixed(records), *finetuning.notes(experiment, finished)]
    return fill(
        "report.md.j2",
        experiment=experiment,
        study=study,
        commands=commands,
        own_parts=own_parts(records),
        headlines=verdicts.headlines(analysis),
        asides=verdicts.asides(analysis),
        drawn=drawn,
        first_figure=next((name for name, has_data in drawn.has_data.items() if has_data), None),
        kinds_of_figures=figure.FIGURES,
        read_off=READ_OFF,
        headings={"figures": FIGURES, "papers_table": PAPERS_TABLE},
        held_out=scores_table(analysis, analysis.held_out),
        learnt=sentences(analysis),
        floors=_floors(analysis),
        remarks=[line for line in [run_sections.dropped(records)] if line],
        tasks=scores_table(analysis, analysis.tasks) if analysis.tasks else "",
        ensembles=ensembles.section(experiment, study.ensembles),
        verdicts=verdicts.section(analysis),
        layers=layers_table(experiment, axes, table),
        speeds=run_sections.sizes_and_speeds(experiment, axes, table),
        alarms=alarms.section(analysis),
        missing=missing,
        losses=losses_table(analysis),
        costs=run_sections.costs(experiment, axes, table),
        every_run=run_sections.every_run(experiment, finished),
        downstream=finetuning.tasks_table(finished),
        tunings=finetuning.tunings_table(finished),
        papers_table=_papers_table(experiment) if experiment.paper else "",
        notes=notes,
        provenance=run_sections.provenance(records) if finished else "",
    )


def _floors(analysis: Analysis) -> list[str]:
    """The scores of the floors on the held-out sets, as ranges if runs differ."""
    lines = []
    for column in analysis.held_out:
        scores = [run.scores[column.key] for run in analysis.finished if column.key in run.scores]
        floors = {name: [score.floors[name] for score in scores if name in score.floors] for name in get_args(Floor)}
        shown = [f"{name} {_span(values)} {column.unit}" for name, values in floors.items() if values]
        n = sorted({f"{score.n:,}" for score in scores})
        lines += [f"{column.heading}: {', '.join(shown)}; n = {' or '.join(n)}"] if shown else []
    return lines


def _span(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(map(decimal, (min(values), max(values)))))


def _papers_table(experiment: Experiment) -> str:
    assert experiment.paper is not None
    columns = experiment.paper.columns
    header = [*axis_names(experiment.axes), *columns.values()]
    body = [
        [*(cells[axis] for axis in experiment.axes), *(cells.get(column, MISSING) for column in columns)]
        for cells in experiment.paper.rows
    ]
    return as_table(header, body)
