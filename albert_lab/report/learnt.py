"""What each row learnt of the pair measures, in one sentence per row."""

from itertools import groupby

from albert_lab.analysis.analysis import Analysis
from albert_lab.report.templates import call
from albert_lab.studies.claims import CHANCE as LIMITS


def sentences(analysis: Analysis) -> list[str]:
    """One sentence per row on its pair accuracies, each with its floors; empty if the study has no such accuracy."""
    lines = []
    for _, of_row in groupby(analysis.learnt, key=lambda item: id(item.row)):
        scores = list(of_row)
        name = analysis.names({axis: scores[0].row.labels[axis] for axis in analysis.axes})
        lines.append(call("learnt.md.j2", "row", name, scores, LIMITS))
    return lines
