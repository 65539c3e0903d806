"""What the layers of each run come to in single numbers: how rough their course is, and where it ends."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from albert_lab.report.markdown import MISSING, as_table
from albert_lab.runs.results import LAYER_NUMBERS, LAYERS
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Row, axis_labels, axis_names, read_csv

TOKEN = "mean"  # over all real tokens, which is steadier than [CLS] alone
_HEADINGS = {
    "l2_roughness": "roughness of L2",
    "degrees_roughness": "roughness of the angle",
    "last_rms_change": "last layer: L2 / √H",
    "last_degrees": "last layer: degrees",
}


def summarise(layers: pd.DataFrame, hidden_sizes: Mapping[str, int]) -> pd.DataFrame:
    """One row a run with its LAYER_NUMBERS, of the mean over tokens; a single layer has no roughness.

    Roughness is the mean change from a layer to the next (of its L2 distance, or of its angle) over the mean of all
    layers: 0 where all layers change their input alike, and the same in any unit. last_rms_change is the L2 distance of
    the last layer over the root of the hidden size, which lets widths be compared: vectors that left a LayerNorm are
    about as long as that root, so a turn by one degree makes about 0.0175.

    Args:
        layers: one row a run, token choice and layer, as in layers.csv.
        hidden_sizes: of each run.
    """
    found = []
    ours = layers.loc[layers["token"] == TOKEN, :].sort_values("layer")
    for run, part in ours.groupby("run", sort=False):
        distances, degrees = part["l2_distance"], part["degrees"]
        numbers = (
            _roughness(distances),
            _roughness(degrees),
            distances.iloc[-1] / math.sqrt(hidden_sizes[str(run)]),
            degrees.iloc[-1],
        )
        found.append({"run": run} | dict(zip(LAYER_NUMBERS, numbers, strict=True)))
    return pd.DataFrame(found, columns=["run", *LAYER_NUMBERS])


def _roughness(values: pd.Series) -> float:
    return float(values.diff().abs().mean() / values.mean())


def joined(results: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The table of runs of a report folder with the numbers of their layers, where layers.csv has them.

    Raises:
        ConfigError: a layers.csv that is no table.
    """
    if "run" not in results or not (folder / LAYERS).is_file():
        return results
    layers = read_csv(folder / LAYERS)
    if layers.empty:
        return results
    known = layers.loc[layers["run"].isin(results["run"]), :]
    sizes = dict(zip(results["run"], results["hidden_size"], strict=True))
    return results.merge(summarise(known, sizes), on="run", how="left")


def section(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> str:
    """The numbers of each row's layers as Markdown, mean and spread over seeds; empty where none were measured."""
    if not any(row.spread(LAYER_NUMBERS[-1]) for row in table):
        return ""
    header = [*axis_names(axes), "seeds", *(_HEADINGS[number] for number in LAYER_NUMBERS)]
    body = [
        [*axis_labels(experiment, row, axes), str(len(row.runs)), *(_cell(row, number) for number in LAYER_NUMBERS)]
        for row in table
    ]
    words = (
        "Over all real tokens of the held-out set. Roughness: the mean change from a layer to the next, over the mean"
        " of all layers."
    )
    return as_table(header, body) + "\n\n" + words


def _cell(row: Row, number: str) -> str:
    spread = row.spread(number)
    if spread is None:
        return MISSING
    return f"{spread.mean:.3g}" + ("" if spread.sd is None else f" ± {spread.sd:.2g}")
