"""Figures as files: drawn into a report's folder, shown in its text, found by name."""

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from albert_lab import paths
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.figures import charts as figures
from albert_lab.figures import drawing
from albert_lab.figures.charts import draw_layers
from albert_lab.figures.data import FigureData, figure_data, where
from albert_lab.figures.drawing import READ_OFF
from albert_lab.files import csv_text
from albert_lab.runs.results import LAYERS
from albert_lab.score import wilson
from albert_lab.storage import write_atomically
from albert_lab.studies import experiment as experiments
from albert_lab.studies import study as studies
from albert_lab.studies.figure import FIGURES
from albert_lab.studies.study import Study
from albert_lab.studies.table import fitting, intrinsic_columns


def draw(folder: Path, name: str, out: Path | None = None) -> list[Path]:
    """Draw a figure of a report; the PNG and the SVG, or none if the report has no data for it.

    Args:
        folder: the report.
        name: the figure.
        out: the folder to draw into; None: the report's.

    Raises:
        ConfigError: the folder is not a report.
    """
    with fitting(folder):
        return drawing.write(partial(_function(name), figure_data(studies.read(folder))), out or folder, name)


def _function(name: str) -> Callable[[FigureData], Figure | None]:
    return getattr(figures, name.replace("-", "_"))


def section(folder: Path, study: Study) -> str:
    """The text that shows a report's figures, which are redrawn into its folder; names those without data."""
    found = figure_data(study)
    experiment = found.experiment
    parts = []
    for name in experiment.figures:
        if drawing.write(partial(_function(name), found), folder, name):
            parts.append(f"![{name}]({name}.svg)\n\n*{name}.* {FIGURES[name].caption}")
        else:
            parts.append(f"*{name}.* Nothing was recorded that it could show.")
    if experiment.paper_figure:
        parts.append(f"Values of the paper's {experiment.paper_figure.figure} are {READ_OFF}, so they are approximate.")
    parts += _errors(found)
    parts.append(
        "Bands are one standard deviation over pre-training seeds on either side; a single seed has none, nor have the"
        f" curves of a panel with more than {figures.MOST_BANDS}."
    )
    return "\n\n".join(parts)


def _errors(found: FigureData) -> list[str]:
    """The error of learning curves due to their few answers; empty if their number was not recorded."""
    errors = []
    for column in intrinsic_columns(found.experiment):
        if (count := f"{column.key}_n") in found.curves:
            n, all_n = (int(min(table[count].tolist())) for table in (found.curves, found.results))
            low, high = wilson(statistics.fmean(found.curves[column.key].tolist()) / 100 * n, n)
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


def newest_with_layers(place: str = "*") -> Path | None:
    """The newest report folder with measured layers; a published one if there is no other.

    Args:
        place: `<scale>-<corpus>`; any unless given.
    """
    for root in (paths.reports(), paths.published()):
        if files := sorted(root.glob(f"{place}/*/{LAYERS}")):
            return max(files, key=lambda file: file.stat().st_mtime).parent
    return None


def compare_layers(tables: Sequence[pd.DataFrame], folder: Path) -> list[Path]:
    """Layers of any encoders in one figure, with their table: layers.csv, PNG and SVG.

    Args:
        tables: one row per encoder (`run`, `corpus`), choice of tokens and layer.
        folder: the folder to write to.

    Raises:
        ConfigError: two encoders have one name.
    """
    together = pd.concat(tables).drop_duplicates()
    twice = together[together.duplicated(["run", "corpus", "token", "layer"])]
    if len(twice):
        raise ConfigError(f"two sources have the name {twice['run'].iloc[0]}: rename one of their folders")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / LAYERS, csv_text(together))
    lines = {}
    for run in together["run"].unique():
        part = where(together, "run", run)
        corpus, tokens = part["corpus"].iloc[0], where(part, "token", "mean")["n"].iloc[0]
        lines[f"{run}: n = {tokens:,} tokens of {corpus}"] = [part]
    paper = experiments.named("layer-similarity").paper_figure
    return [folder / LAYERS, *drawing.write(lambda: draw_layers(lines, paper, unit=None), folder, "layer-similarity")]
