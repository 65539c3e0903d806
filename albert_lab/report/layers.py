"""The layers of each run as single numbers: the roughness of their curve, and its last value."""

import math
from collections.abc import Sequence

from albert_lab.report.markdown import MISSING, as_table
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Row, Spread, axis_labels, axis_names
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
    header = [*axis_names(axes), "seeds", *(_HEADINGS[number] for number in LAYER_NUMBERS), "last layer: L2"]
    body = [
        [
            *axis_labels(experiment, row, axes),
            str(len(row.runs)),
            *(_cell(row.spread(number)) for number in LAYER_NUMBERS),
            _last_distance(row),
        ]
        for row in rows
    ]
    return as_table(header, body)


def _last_distance(row: Row) -> str:
    """The L2 distance of the last layer, as in the figure."""
    sizes = {run.record.config.model.hidden_size for run in row.having("last_rms_change")}
    return _cell(row.spread("last_rms_change"), math.sqrt(sizes.pop())) if len(sizes) == 1 else MISSING


def _cell(spread: Spread | None, factor: float = 1.0) -> str:
    if spread is None:
        return MISSING
    if not spread.sd:
        return f"{factor * spread.mean:.3g}"
    digits = max(0, 1 - math.floor(math.log10(factor * spread.sd)))  # two of the standard deviation
    return f"{factor * spread.mean:.{digits}f} ± {factor * spread.sd:.{digits}f}"
