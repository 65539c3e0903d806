"""A report as Markdown and as a page: pure functions of the study in its folder."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from albert_lab.figures import files as plots
from albert_lab.report import alarms, ensembles, finetuning, looks, run_sections, verdicts
from albert_lab.report import layers as layer_table
from albert_lab.report.agreement import agreement
from albert_lab.report.claims import decide
from albert_lab.report.departures import departures, mixed, replaced
from albert_lab.report.learnt import learnt
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
from albert_lab.runs.reported import ReportedRun
from albert_lab.score import BAGS, SEGMENTS, Floor
from albert_lab.storage import write_atomically
from albert_lab.studies import spreadsheets
from albert_lab.studies import study as studies
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study, StudyPoint
from albert_lab.studies.table import (
    Row,
    axis_names,
    intrinsic_columns,
    paper_cells,
    task_columns,
)

REPORT, PAGE = "report.md", "report.html"
FIGURES, PAPERS_TABLE = "Figures", "The paper's table"
# Sections that are folded until the reader opens them.
FOLDED = (
    FIGURES,
    "Losses on held-out documents",
    "Regime",
    "Cost",
    "Every run",
    *finetuning.HEADINGS,
    PAPERS_TABLE,
    "Notes",
    "Provenance",
)
ALARMS = (
    "An alarm means that the 95 % interval of a run reaches down to chance (or to {floor}) or lies below it."
    " Checked are the losses that a run was trained with, and the tasks that it was fine-tuned on."
)
FLOORS = (
    "Chance: the score of the best constant answer (for MLM, always the most frequent token). {floor}: {classifier}. It"
    " cannot relate the segments, so only a score above it shows that a model relates them. Rows are compared with it"
    " by the errors of both scores."
)
CLASSIFIERS = {
    SEGMENTS: "a linear classifier of the tokens, neighbours and edges of each segment, fitted on training pairs",
    BAGS: "a logistic regression on the tokens of each segment separately, fitted on training pairs",
}
LOSSES = (
    "Mean negative log-likelihood of the right answer, in nats: per masked token, and per pair. Guessing one of two"
    " labels costs 0.693. A head that was not trained on a task can be confidently wrong, so its loss can exceed that."
)


def write(folder: Path, found: Study) -> Path:
    """Write a study and its report in both forms into a folder; return the path of the Markdown."""
    studies.write(folder, found)
    return rebuild(folder)


def rebuild(folder: Path) -> Path:
    """Rebuild report.md, report.html, figures and CSV files from the folder's records; return the path of report.md.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    found = studies.read(folder)
    spreadsheets.write(folder, found)
    text = render(found, plots.section(folder, found))
    page = html.page(text, folder, *learning_curves.sections(found), folded=FOLDED)
    write_atomically(folder / REPORT, fold(text, FOLDED))
    write_atomically(folder / PAGE, page)
    return folder / REPORT


def scores(folder: Path) -> str:
    """The tables of scores of a report, as Markdown."""
    found = studies.read(folder)
    experiment, table, axes = found.experiment, found.rows, found.axes
    columns = [intrinsic_columns(experiment), task_columns(experiment, table)]
    return "\n\n".join(scores_table(experiment, axes, table, some) for some in columns if some)


def as_json(folder: Path) -> str:
    """The table of scores of a report as one JSON document; missing values are null."""
    study = studies.read(folder)
    experiment, table = study.experiment, study.rows
    keys = [column.key for column in (*intrinsic_columns(experiment), *task_columns(experiment, table))]
    found = []
    for row in table:
        spreads = {key: row.spread(key) for key in keys}
        cells = {column: None if spread is None else asdict(spread) for column, spread in spreads.items()}
        runs = [run.name for run in row.runs]
        paper = paper_cells(experiment, row)
        found.append({**row.values, "runs": runs, "missing": row.missing, **cells, "paper": paper})
    decided = verdicts.as_data(experiment, table, study.plan)
    others = verdicts.companions_as_data(experiment, table, study.plan)
    content = {"experiment": folder.name, "title": experiment.title, "rows": found, "verdicts": decided}
    content |= {"plan": study.plan.model_dump(mode="json") if study.plan else None}
    content |= {"companions": others, "agreement": asdict(agreement(experiment, table))}
    return json.dumps(content, indent=2)


def decisions(folder: Path) -> set[str]:
    """The different verdicts on the claims of a report."""
    found = studies.read(folder)
    return {item["verdict"] for item in verdicts.as_data(found.experiment, found.rows, found.plan)}


def open_claims(folder: Path) -> int:
    """The number of claims that the looks that are left can decide."""
    found = studies.read(folder)
    return sum(verdict.is_open for verdict in decide(found.experiment, found.rows, found.plan))


def render(found: Study, figures: str) -> str:
    """The text of a report; figures is the text that shows them, the most important one first."""
    experiment, points, seeds = found.experiment, found.points, found.seeds
    table, axes = found.rows, found.axes
    finished, records = found.finished, [run.record for run in found.finished]
    figure, further = _first_figure(figures)
    off, regime = run_sections.regime(records, experiment.source) if records else ("", "")
    parts = [
        f"# {experiment.title} ({found.scale}, {found.corpus})",
        f"Source: {experiment.source}. Scale `{found.scale}`, corpus `{found.corpus}`,"
        f" {seeds} pre-training seed{'' if seeds == 1 else 's'}. {_commands(points)}.",
        *filter(None, [looks.sentence(found, decide(experiment, table, found.plan))]),
        *_list(verdicts.groups(experiment, table, found.plan)),
        *figure,
        "## Scores on held-out documents",
        scores_table(experiment, axes, table, intrinsic_columns(experiment)),
        *_list(learnt(experiment, axes, table)),
        " ".join(filter(None, [_how_to_read(table), run_sections.dropped(records), off])),
        *_floors(experiment, finished),
    ]
    if columns := task_columns(experiment, table):
        parts += ["## Scores after fine-tuning", scores_table(experiment, axes, table, columns)]
    parts += ensembles.sections(experiment, found.ensembles)
    if experiment.claims:
        parts += ["## Verdicts", verdicts.section(experiment, table, found.plan)]
    if layers := layer_table.section(experiment, axes, table):
        parts += ["## Layers", layers]
    raised = alarms.section(experiment, table)
    parts += ["## Alarms", f"{raised}\n\n{ALARMS.format(floor=_second_floor(finished))}" if raised else "None."]
    missing = [f"`{name}`: {reason}" for row in table for name, reason in row.missing.items()]
    missing += [f"`{point.run}`: {point.failed_tasks}" for point in points if point.failed_tasks]
    if missing:
        parts += ["## Missing", *_list(missing)]
    parts += [f"## {FIGURES}", "\n\n".join(further)]
    if losses := losses_table(experiment, axes, table, intrinsic_columns(experiment)):
        parts += ["## Losses on held-out documents", losses, LOSSES]
    if finished:
        parts += ["## Regime", regime]
    parts += ["## Cost", run_sections.costs(experiment, axes, table, found.throughput)]
    parts += ["## Every run", run_sections.every_run(experiment, finished)]
    parts += finetuning.sections(finished)
    if experiment.paper:
        parts += [f"## {PAPERS_TABLE}", _paper(experiment)]
    notes = [*experiment.notes, *replaced(experiment.fixed, [point.command for point in points])]
    notes += [*departures(found.scale, records), *mixed(records)]
    notes += finetuning.notes(experiment, finished)
    parts += ["## Notes", "\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    if finished:
        parts += ["## Provenance", run_sections.provenance(records)]
    return "\n\n".join(parts) + "\n"


def _list(lines: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def _first_figure(figures: str) -> tuple[list[str], list[str]]:
    """The first figure with its caption, and the other paragraphs of the text on figures."""
    parts = figures.split("\n\n")
    place = next((place for place, part in enumerate(parts) if part.startswith("![")), None)
    return ([], parts) if place is None else (parts[place : place + 2], parts[:place] + parts[place + 2 :])


def _how_to_read(table: Sequence[Row]) -> str:
    sizes = {len(row.runs) for row in table}
    parts = []
    if sizes - {0, 1}:
        parts.append(
            "Mean ± standard deviation over pre-training seeds; in the list, the 95 % interval of the mean, over seeds"
            " and held-out answers."
        )
    if 1 in sizes:
        parts.append(
            "In brackets: the 95 % Wilson interval of a single run over the answers of its held-out set, which does not"
            " include the spread between seeds."
        )
    parts.append("The paper's numbers come from its own scale, data and held-out set: compare directions, not values.")
    return " ".join(parts)


def _floors(experiment: Experiment, finished: Sequence[ReportedRun]) -> list[str]:
    """The scores of the floors on the held-out sets, as ranges if runs differ."""
    lines = []
    for column in intrinsic_columns(experiment):
        scores = [run.scores[column.key] for run in finished if column.key in run.scores]
        floors = {name: [score.floors[name] for score in scores if name in score.floors] for name in get_args(Floor)}
        found = [f"{name} {_span(values)} {column.unit}" for name, values in floors.items() if values]
        n = sorted({f"{score.n:,}" for score in scores})
        lines += [f"- {column.heading}: {', '.join(found)}; n = {' or '.join(n)}"] if found else []
    if not lines:
        return []
    second = _second_floor(finished)
    about = FLOORS.format(floor=second.capitalize(), classifier=CLASSIFIERS[second])
    return ["Floors and numbers of answers (n) of the held-out sets:", "\n".join(lines), about]


def _second_floor(finished: Sequence[ReportedRun]) -> Floor:
    """The second floor of pair measures: older records have bags of tokens."""
    found = {name for run in finished for score in run.scores.values() for name in score.floors}
    return BAGS if BAGS in found and SEGMENTS not in found else SEGMENTS


def _span(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(map(decimal, (min(values), max(values)))))


def _commands(points: Sequence[StudyPoint]) -> str:
    commands = list(dict.fromkeys(point.command for point in points))
    return f"Command{'s' * (len(commands) > 1)}: {', and '.join(f'`{command}`' for command in commands)}"


def _paper(experiment: Experiment) -> str:
    assert experiment.paper is not None
    columns = experiment.paper.columns
    header = [*axis_names(experiment.axes), *columns.values()]
    body = [
        [*(cells[axis] for axis in experiment.axes), *(cells.get(column, MISSING) for column in columns)]
        for cells in experiment.paper.rows
    ]
    return f"{experiment.paper.table}.\n\n{as_table(header, body)}\n\nAs printed; SQuAD cells are F1/EM."
