"""The figures by their names: drawn into a report's folder, or wherever the user says."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from albert_lab import paths
from albert_lab.analysis.analysis import Analysis, read
from albert_lab.analysis.frame import as_csv
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.figures import charts, drawing
from albert_lab.messages import Say
from albert_lab.runs import from_weights
from albert_lab.runs import run as runs
from albert_lab.storage import write_atomically
from albert_lab.studies import experiment as experiments
from albert_lab.studies import study as studies
from albert_lab.training.layers import Layer

LAYERS = "layer-similarity"
LAYERS_TABLE = "layers.csv"
MAKER = "`albert-lab layer-similarity` trains the rows of the paper's Figure 1"

# What draws each figure of a study, below a title.
FIGURES: dict[str, Callable[[Analysis, str], Figure | None]] = {
    "learning-curves": charts.learning_curves,
    "scores-by-setting": charts.scores_by_setting,
    "sharing-tradeoff": charts.sharing_tradeoff,
    LAYERS: charts.layer_similarity,
}


def draw_first(folder: Path, analysis: Analysis, title: str) -> str | None:
    """Draw the first figure of the experiment that has data into a report's folder; the name of its
    file.
    """
    for name in analysis.experiment.figures:
        files = drawing.write(partial(FIGURES[name], analysis, title), folder, name, ["png"])
        if files:
            return files[0].name
    return None


def draw(folder: Path, name: str, out: Path, title_of: Callable[[Analysis], str]) -> list[Path]:
    """Draw a figure of a report into a folder, as PNG and SVG; title_of says what stands above it.

    Raises:
        ConfigError: the folder is no report, or the report has no data for the figure.
    """
    analysis = read(folder)
    files = drawing.write(partial(FIGURES[name], analysis, title_of(analysis)), out, name)
    if not files:
        raise ConfigError(f"{folder} has no data for the figure {name}: name another report")
    return files


def _find(name: str, root: Path) -> Path | None:
    """The newest report below a folder whose experiment has a figure; None if there is none."""
    known = sorted(root.glob(f"*/*/{studies.EXPERIMENT}"), key=lambda file: -file.stat().st_mtime)
    found = next((file for file in known if name in experiments.read(file).figures), None)
    return found.parent if found else None


def newest(name: str) -> Path:
    """The newest report folder whose experiment has a figure, a published one if there is no other.

    Raises:
        MissingDataError: no report has it; names the command that makes one.
    """
    if found := _find(name, paths.reports()) or _find(name, paths.published()):
        return found
    known = map(experiments.named, (file.stem for file in experiments.files()))
    makers = [f"`albert-lab {maker.name}`" for maker in known if name in maker.figures]
    commands = " or ".join(makers)
    raise MissingDataError(
        f"no report in {paths.reports()} has the figure {name}: {commands} makes one"
    )


def is_report(folder: Path) -> bool:
    return (folder / studies.STUDY).is_file()


def layers_of(folder: Path, say: Say) -> Sequence[tuple[str, Sequence[Layer]]]:
    """The layers of a run, which may have to be measured, or of the runs of a report, by the names
    of runs.

    Raises:
        ConfigError: the folder is neither, or a report without layers.
    """
    if (folder / runs.RUN_FILE).is_file():
        return [(folder.name, from_weights.layers_of(folder, say))]
    reported = studies.read(folder).runs if is_report(folder) else ()
    measured = [(run.name, run.layers) for run in reported if run.layers]
    if not measured:
        raise ConfigError(
            f"{folder} is no run, nor a report with layers: `albert-lab import` makes runs of "
            "models"
        )
    return measured


def compare_layers(sources: Sequence[tuple[str, Sequence[Layer]]], out: Path) -> list[Path]:
    """Layers of any encoders by the names of their runs in one figure, with their table:
    layers.csv, PNG and SVG.

    Raises:
        ConfigError: two encoders have one name.
    """
    rows: dict[str, Sequence[Layer]] = {}
    for name, layers in sources:
        first = layers[0]
        known = rows.setdefault(f"{name} (n = {first.n:,} tokens of {first.corpus})", layers)
        # A run may be named twice, also in a report, which has ten digits of its numbers.
        if not math.isclose(known[0].degrees, first.degrees, rel_tol=1e-6):
            raise ConfigError(f"two sources have the name {name}: rename one of their folders")
    tables = {row: pd.DataFrame(map(dict, layers)) for row, layers in rows.items()}
    table = pd.concat(tables, names=["row"]).reset_index(level="row")
    write_atomically(out / LAYERS_TABLE, as_csv(table))
    looks = {row: (place, place) for place, row in enumerate(rows)}
    paper = experiments.named(LAYERS).paper_figure
    draw = partial(charts.draw_layers, table, "What each layer changes", looks, paper)
    return [out / LAYERS_TABLE, *drawing.write(draw, out, LAYERS)]
