"""What each row learnt of the pair measures, in one sentence per row."""

from itertools import groupby

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.learnt import Learnt
from albert_lab.report.markdown import decimal
from albert_lab.score import CHANCE
from albert_lab.studies.checks import CHANCE as LIMITS
from albert_lab.studies.table import named_labels


def sentences(analysis: Analysis) -> list[str]:
    """One sentence per row on its pair accuracies, each with its floors; empty if the study has no such accuracy."""
    lines = []
    for _, of_row in groupby(analysis.learnt, key=lambda item: id(item.row)):
        scores = list(of_row)
        name = ", ".join(named_labels(analysis.experiment, scores[0].row, analysis.axes))
        lines.append(f"{name + ' row: ' if name else ''}{'; '.join(map(_words, scores))}.")
    return lines


def _place(score: Learnt) -> str:
    if score.column.unit != "%":
        return f"{'at' if score.place == 'across' else score.place} zero"
    if score.place == "across":
        inside = [f"{limit:g} %" for limit in LIMITS if score.low <= limit <= score.high]
        return f"straddles {' and '.join(inside)}, the limit of {CHANCE}"
    limits = f" ({LIMITS[0]:g} to {LIMITS[1]:g} %)" if score.place == "at" else ""
    return f"{score.place} {CHANCE}{limits}"


def _words(score: Learnt) -> str:
    unit = score.column.unit
    text = f"{score.column.heading} {decimal(score.mean)} {unit} [{decimal(score.low)}, {decimal(score.high)}]"
    text += f", {_place(score)}"
    for floor in score.floors:
        text += f", {'above' if floor.is_below else 'not above'} {floor.floor} ({decimal(floor.bound)} {unit})"
    return text
