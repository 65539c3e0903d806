"""The change of the hidden states by each layer (Figure 1), and single numbers of it: roughness,
and the last value.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from albert_lab.errors import ConfigError
from albert_lab.files import Record

if TYPE_CHECKING:  # it loads torch, which reading and showing layers must not
    import torch

    from albert_lab.data.batches import Batch
    from albert_lab.model.encoder import PretrainingModel

LAYER_NUMBERS = (
    "l2_roughness",
    "degrees_roughness",
    "last_rms_change",
    "last_degrees",
    "mean_rms_change",
    "mean_degrees",
)


class Layer(Record, extra="ignore"):  # records from before have standard deviations
    """The change of n tokens of a corpus by one layer (the first is 1): means over the tokens.

    token is `mean`: of all real ones, which varies less than the first. degrees is the mean of the
    angles, which is not the angle of the mean cosine.
    """

    corpus: str
    layer: int
    token: Literal["mean"]
    l2_distance: float
    cosine_similarity: float
    degrees: float
    n: int


def layer_numbers(layers: Sequence[Layer], hidden_size: int) -> dict[str, float]:
    """Summaries of the layers of a run (LAYER_NUMBERS); empty if not
    measured.

    Roughness is the mean change between consecutive layers (of the L2 distance, or of the angle)
    over the mean of all layers: 0 if all layers change their input equally, independent of the
    unit; a single layer has none. last_rms_change is the L2 distance of the last layer over the
    root of the hidden size, which makes widths comparable: outputs of a LayerNorm are about as long
    as that root, so a rotation by one degree is about 0.0175. mean_rms_change and mean_degrees are
    the means of all layers.
    """
    if not layers:
        return {}
    ours = sorted(layers, key=lambda layer: layer.layer)
    distances = [layer.l2_distance for layer in ours]
    degrees = [layer.degrees for layer in ours]
    changes = [distance / math.sqrt(hidden_size) for distance in distances]
    numbers = {
        "l2_roughness": _roughness(distances),
        "degrees_roughness": _roughness(degrees),
        "last_rms_change": changes[-1],
        "last_degrees": degrees[-1],
        "mean_rms_change": fmean(changes),
        "mean_degrees": fmean(degrees),
    }
    return {name: value for name, value in numbers.items() if value is not None}


def _roughness(values: Sequence[float]) -> float | None:
    changes = [abs(after - before) for before, after in pairwise(values)]
    return fmean(changes) / fmean(values) if changes else None


def measure_layers(
    batches: "Iterable[tuple[Sequence[torch.Tensor], torch.Tensor]]", corpus: str
) -> tuple[Layer, ...]:
    """The change by each layer of an encoder.

    Source: section 3.1 and Figure 1, which do not say which tokens the curves are for.

    Args:
        batches: hidden states of each batch (the input of layer 1 and each layer's output, [batch,
            sequence, hidden]) and its attention mask ([batch, sequence], true at real tokens).
        corpus: the name of their text.

    Raises:
        ConfigError: a state that is zero or not finite.
    """
    n = 0
    sums: dict[int, torch.Tensor] = {}  # over tokens, in double precision
    for states, mask in batches:
        n += int(mask.sum())
        for layer, (before, after) in enumerate(pairwise(states), 1):
            sums[layer] = _changes(before[mask], after[mask]).sum(1).cpu() + sums.get(layer, 0)
    layers = []
    for layer, summed in sums.items():
        if not summed.isfinite().all():
            raise ConfigError(
                f"layer {layer}: a hidden state is zero or not finite, so that its angle is "
                "undefined"
            )
        distance, cosine, degrees = (summed / n).tolist()
        layers.append(
            Layer(
                corpus=corpus,
                layer=layer,
                token="mean",
                l2_distance=distance,
                cosine_similarity=cosine,
                degrees=degrees,
                n=n,
            )
        )
    return tuple(layers)


def _changes(before: "torch.Tensor", after: "torch.Tensor") -> "torch.Tensor":
    """L2 distance, cosine and angle in degrees of vectors [tokens, hidden], as [3, tokens]."""
    import torch

    before = before.double()
    after = after.double()
    start, end = (vectors / vectors.norm(dim=-1, keepdim=True) for vectors in (before, after))
    # Not the arc cosine, which turns the rounding error of the cosine of equal vectors into an
    # angle.
    radians = 2 * torch.atan2((end - start).norm(dim=-1), (end + start).norm(dim=-1))
    cosine = (start * end).sum(-1)
    return torch.stack([(after - before).norm(dim=-1), cosine, radians.rad2deg()])


def hidden_states_of(
    model: "PretrainingModel", batch: "Batch", batch_size: int, device: "torch.device"
) -> "Iterator[tuple[Sequence[torch.Tensor], torch.Tensor]]":
    """Hidden states and attention mask of a set of examples, in parts, by a model in evaluation
    mode.

    Masked tokens are restored, so that layers are measured on unmasked text.
    """
    import torch

    from albert_lab.data.batches import micro_batches
    from albert_lab.training.device import inputs_of, tensor_on

    input_ids = batch.input_ids.copy()
    input_ids.flat[batch.masked_positions] = batch.masked_labels
    for part in micro_batches(replace(batch, input_ids=input_ids), batch_size):
        inputs = inputs_of(part, device)
        del inputs["masked_positions"]
        with torch.inference_mode():
            states = model.encoder(**inputs, output_hidden_states=True).hidden_states
        yield states, tensor_on(part.attention_mask, device)
