"""What each layer of an encoder changes, as a record, and single numbers of it: roughness, and the last value."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from albert_lab.record import Record

LAYER_CURVES = ("l2_distance", "degrees")
LAYER_NUMBERS = ("l2_roughness", "degrees_roughness", "last_rms_change", "last_degrees")
TOKEN = "mean"  # the choice of tokens: the mean over all real ones, which varies less than [CLS]


class Layer(Record):
    """The change of n tokens of a corpus by one layer (the first is 1): means and standard deviations over the tokens.

    token is `cls` (the first token of each sequence) or `mean` (all real tokens, including the first). degrees is the
    mean of the angles, which is not the angle of the mean cosine.
    """

    corpus: str
    layer: int
    token: str
    l2_distance: float
    l2_distance_sd: float
    cosine_similarity: float
    degrees: float
    degrees_sd: float
    n: int


def layer_numbers(layers: Sequence[Layer], hidden_size: int) -> dict[str, float]:
    """Summaries of the layers of a run (LAYER_NUMBERS), for the mean over tokens; empty if not measured.

    Roughness is the mean change between consecutive layers (of the L2 distance, or of the angle) over the mean of all
    layers: 0 if all layers change their input equally, independent of the unit; a single layer has none.
    last_rms_change is the L2 distance of the last layer over the root of the hidden size, which makes widths
    comparable: outputs of a LayerNorm are about as long as that root, so a rotation by one degree is about 0.0175.
    """
    ours = sorted((layer for layer in layers if layer.token == TOKEN), key=lambda layer: layer.layer)
    if not ours:
        return {}
    distances, degrees = [layer.l2_distance for layer in ours], [layer.degrees for layer in ours]
    numbers = (_roughness(distances), _roughness(degrees), distances[-1] / math.sqrt(hidden_size), degrees[-1])
    return {name: value for name, value in zip(LAYER_NUMBERS, numbers, strict=True) if value is not None}


def _roughness(values: Sequence[float]) -> float | None:
    changes = [abs(after - before) for before, after in pairwise(values)]
    return fmean(changes) / fmean(values) if changes else None
