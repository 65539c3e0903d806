"""The layers of each run as single numbers: the roughness of their curve, and its last value."""

from collections.abc import Sequence

from albert_lab.report.markdown import MISSING, as_table
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Row, axis_labels, axis_names
from albert_lab.training.layer_numbers import LAYER_NUMBERS

_HEADINGS = {
    "l2_roughness": "roughness of L2",
    "degrees_roughness": "roughness of the angle",
    "last_rms_change": "last layer: L2 / √H",
    "last_degrees": "last layer: degrees",
}


def layers_table(experiment: Experiment, axes: Sequence[str], rows: Sequence[Row]) -> str:
    if not any(row.spread(LAYER_NUMBERS[-1]) for row in rows):
        return ""
    header = [*axis_names(axes), "seeds", *(_HEADINGS[number] for number in LAYER_NUMBERS)]
    body = [
        [*axis_labels(experiment, row, axes), str(len(row.runs)), *(_cell(row, number) for number in LAYER_NUMBERS)]
        for row in rows
    ]
    return as_table(header, body)


def _cell(row: Row, number: str) -> str:
    spread = row.spread(number)
    if spread is None:
        return MISSING
    return f"{spread.mean:.3g}" + ("" if spread.sd is None else f" ± {spread.sd:.2g}")
