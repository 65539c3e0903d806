"""Figures as files: drawn into a report's folder by their names, and shown in its text."""

import statistics
from collections.abc import Callable, Sequence
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
from albert_lab.figures.drawing import READ_OFF
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


def section(folder: Path, study: Analysis) -> str:
    """The text that shows a report's figures, which are redrawn into its folder; names those without data."""
    data = figure_data(study)
    experiment = data.experiment
    parts = []
    for name in experiment.figures:
        if drawing.write(partial(_function(name), data), folder, name):
            parts.append(f"![{name}]({name}.svg)\n\n*{name}.* {FIGURES[name].caption}")
        else:
            parts.append(f"*{name}.* Not drawn: it needs {FIGURES[name].needs}.")
    if experiment.paper_figure:
        parts.append(f"Values of the paper's {experiment.paper_figure.figure} are {READ_OFF}, so they are approximate.")
    parts += _errors(data)
    parts.append(
        "Bands are one standard deviation over pre-training seeds on either side; a single seed has none, nor have the"
        f" curves of a panel with more than {figures.MOST_BANDS}."
    )
    return "\n\n".join(parts)


def _errors(data: FigureData) -> list[str]:
    """The error of learning curves due to their few answers; empty if their number was not recorded."""
    errors = []
    for column in intrinsic_columns(data.experiment):
        points = [point for run in data.runs for point in run.curve]
        counts = [count for point in points if (count := point.value(f"{column.key}_n")) is not None]
        if counts and column.unit == "%":
            n = int(min(counts))
            all_n = min((run.scores[column.key].n for run in data.runs if column.key in run.scores), default=n)
            values = [value for point in points if (value := point.value(column.key)) is not None]
            low, high = wilson(statistics.fmean(values) / 100 * n, n)
            if n == all_n:
                continue
            errors.append(f"{column.heading} ± {(high - low) / 2:.1f} (n = {n:,}; in the table {all_n:,})")
    words = (
        "Learning curves are scored on the first pairs of each set alone, the same for all seeds. All seeds share the"
        " error of so few answers, and no band shows it; in points, at 95 %: "
    )
    return [words + ", ".join(errors) + "."] if errors else []


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
