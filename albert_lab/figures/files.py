"""Figures as files, drawn into a report's folder by their names."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from albert_lab import paths
from albert_lab.analysis.analysis import Analysis, analyse
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.figures import charts as figures
from albert_lab.figures import drawing
from albert_lab.figures.charts import draw_layers
from albert_lab.figures.data import FigureData, figure_data
from albert_lab.score import wilson
from albert_lab.studies import experiment as experiments
from albert_lab.studies import study as studies
from albert_lab.studies.figure import FIGURES
from albert_lab.studies.frames import write_layers
from albert_lab.studies.table import intrinsic_columns
from albert_lab.training.layer_numbers import TOKEN, Layer

LAYERS_TABLE = "layers.csv"


def draw(folder: Path, name: str, out: Path | None = None) -> list[Path]:
    """Draw a figure of a report; the PNG and the SVG, or none if the report has no data for it.

    Args:
        out: the folder to draw into; None: the report's.

    Raises:
        ConfigError: the folder is not a report.
    """
    return drawing.write(partial(_function(name), figure_data(analyse(studies.read(folder)))), out or folder, name)


def _function(name: str) -> Callable[[FigureData], Figure | None]:
    return getattr(figures, name.replace("-", "_"))


@dataclass(frozen=True)
class CurveError:
    """Half the width in points of the 95 % interval of a learning curve's scores before its end, on n answers."""

    heading: str
    points: float
    n: int
    in_table: int


@dataclass(frozen=True)
class Drawn:
    """The figures of a report: whether there was data for each, by name, and the errors of its learning curves."""

    has_data: Mapping[str, bool]
    curve_errors: Sequence[CurveError]


NONE_DRAWN = Drawn({}, ())


def draw_all(folder: Path, study: Analysis) -> Drawn:
    """Draw a report's figures into its folder."""
    data = figure_data(study)
    has_data = {
        name: bool(drawing.write(partial(_function(name), data), folder, name)) for name in data.experiment.figures
    }
    return Drawn(has_data, list(_curve_errors(data)))


def _curve_errors(data: FigureData) -> Iterator[CurveError]:
    """Nothing for a curve whose number of answers was not recorded, or is that of the table."""
    for column in intrinsic_columns(data.experiment):
        points = [point for run in data.runs for point in run.curve]
        counts = [count for point in points if (count := point.value(f"{column.key}_n")) is not None]
        if counts and column.unit == "%":
            n = int(min(counts))
            in_table = min((run.scores[column.key].n for run in data.runs if column.key in run.scores), default=n)
            values = [value for point in points if (value := point.value(column.key)) is not None]
            low, high = wilson(statistics.fmean(values) / 100 * n, n)
            if n != in_table:
                yield CurveError(column.heading, (high - low) / 2, n, in_table)


def newest(name: str) -> Path:
    """The newest report folder that has a figure; a published one if there is no other.

    Raises:
        MissingDataError: no report has it; names the command that makes one.
    """
    for root in (paths.reports(), paths.published()):
        files = [file for file in sorted(root.glob("*/*/experiment.yaml")) if _is_figure_of(name, file)]
        if files:
            return max(files, key=lambda file: file.stat().st_mtime).parent
    makers = [file.stem for file in experiments.files() if name in experiments.named(file.stem).figures]
    commands = " or ".join(f"`albert-lab {maker}`" for maker in makers)
    raise MissingDataError(f"no report in {paths.reports()} has the figure {name}: {commands} makes one")


def _is_figure_of(name: str, file: Path) -> bool:
    return FIGURES[name].is_of_any or name in experiments.read(file).figures


def compare_layers(sources: Sequence[tuple[str, Sequence[Layer]]], folder: Path) -> list[Path]:
    """Layers of any encoders in one figure, with their table: layers.csv, PNG and SVG.

    Raises:
        ConfigError: two encoders have one name.
    """
    lines: dict[str, list[Sequence[Layer]]] = {}
    different = {(name, tuple(layers)): layers for name, layers in sources}
    for number, ((name, _), layers) in enumerate(different.items()):
        if name in [other for other, _ in [*different][:number]]:
            raise ConfigError(f"two sources have the name {name}: rename one of their folders")
        mean = next(layer for layer in layers if layer.token == TOKEN)
        lines[f"{name}: n = {mean.n:,} tokens of {mean.corpus}"] = [layers]
    folder.mkdir(parents=True, exist_ok=True)
    write_layers(folder / LAYERS_TABLE, [({"run": name}, layers) for (name, _), layers in different.items()])
    paper = experiments.named("layer-similarity").paper_figure
    return [
        folder / LAYERS_TABLE,
        *drawing.write(lambda: draw_layers(lines, paper, unit=None), folder, "layer-similarity"),
    ]
