"""Change of the hidden states by each layer: L2 distance and cosine of its input and output (Figure 1)."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch

from albert_lab.data.batches import Batch, micro_batches
from albert_lab.errors import ConfigError
from albert_lab.model.heads import PretrainingModel
from albert_lab.training.layer_numbers import Layer
from albert_lab.training.transfer import inputs_of, tensor_on

# The input of layer 1 and each layer's output, every one [batch, sequence, hidden].
HiddenStates = Sequence[torch.Tensor | np.ndarray]


def measure_layers(batches: Iterable[tuple[HiddenStates, torch.Tensor | np.ndarray]], corpus: str) -> tuple[Layer, ...]:
    """The change by each layer of any encoder, for [CLS] and for the mean over tokens.

    Source: section 3.1 and Figure 1, which do not say which tokens the curves are for.

    Args:
        batches: hidden states of each batch (the input of layer 1 and each layer's output, [batch, sequence, hidden])
            and its attention mask ([batch, sequence], true at real tokens; the first token must be real).
        corpus: the name of their text.

    Raises:
        ConfigError: no batch, fewer than two hidden states, states of different shapes, or a state that is zero or not
            finite.
    """
    sums: dict[tuple[str, int], _Sums] = {}
    for hidden_states, attention_mask in batches:
        states = [torch.as_tensor(state) for state in hidden_states]
        if len(states) < 2 or len({state.shape for state in states}) > 1:
            shapes = ", ".join(str(list(state.shape)) for state in states)
            raise ConfigError(f"at least two hidden states of the same shape are required, not: {shapes}")
        mask = torch.as_tensor(attention_mask).to(states[0].device).bool()
        assert bool(mask[:, 0].all()), "the first token of every sequence is real"
        for layer, (before, after) in enumerate(pairwise(states), 1):
            for token, rows in (("cls", (before[:, 0], after[:, 0])), ("mean", (before[mask], after[mask]))):
                sums.setdefault((token, layer), _Sums()).add(_changes(*rows))
    if not sums:
        raise ConfigError("no text to measure layers on")
    for (_, layer), moments in sums.items():
        if not np.isfinite(moments.means).all():
            raise ConfigError(f"layer {layer}: a hidden state is zero or not finite, so that its angle is undefined")
    return tuple(moments.change(corpus, token, layer) for (token, layer), moments in sorted(sums.items()))


def _changes(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """L2 distance, cosine and angle in degrees of vectors [tokens, hidden], as [3, tokens]."""
    before, after = before.double(), after.double()
    start, end = (vectors / vectors.norm(dim=-1, keepdim=True) for vectors in (before, after))
    # Not the arc cosine, which turns the rounding error of the cosine of equal vectors into an angle.
    radians = 2 * torch.atan2((end - start).norm(dim=-1), (end + start).norm(dim=-1))
    return torch.stack([(after - before).norm(dim=-1), (start * end).sum(-1), radians * (180 / math.pi)])


class _Sums:
    """Running mean and spread of the three measures over tokens (Chan, Golub and LeVeque 1979)."""

    def __init__(self) -> None:
        self.n = 0
        self.means = np.zeros(3)
        self.squares = np.zeros(3)  # sums of squared differences from the mean

    def add(self, values: torch.Tensor) -> None:
        n = values.shape[1]
        means = values.mean(1)
        squares = ((values - means[:, None]) ** 2).sum(1).cpu().numpy()
        shift = means.cpu().numpy() - self.means
        self.squares += squares + shift**2 * (self.n * n / (self.n + n))
        self.means += shift * (n / (self.n + n))
        self.n += n

    def change(self, corpus: str, token: str, layer: int) -> Layer:
        distance, cosine, degrees = self.means.tolist()
        sds = np.sqrt(self.squares / max(self.n - 1, 1)).tolist()
        return Layer(
            corpus=corpus,
            layer=layer,
            token=token,
            l2_distance=distance,
            l2_distance_sd=sds[0],
            cosine_similarity=cosine,
            degrees=degrees,
            degrees_sd=sds[2],
            n=self.n,
        )


def hidden_states_of(
    model: PretrainingModel, batch: Batch, batch_size: int, device: torch.device
) -> Iterator[tuple[HiddenStates, torch.Tensor]]:
    """Hidden states and attention mask of a set of examples, in parts, for measure_layers().

    Masked tokens are restored, so that layers are measured on unmasked text. Dropout is off.
    """
    input_ids = batch.input_ids.copy()
    input_ids.flat[batch.masked_positions] = batch.masked_labels
    was_training = model.training
    model.eval()
    for part in micro_batches(batch, batch_size):
        rows, input_ids = input_ids[: len(part)], input_ids[len(part) :]
        inputs = inputs_of(part, device) | {"input_ids": torch.from_numpy(rows).to(device)}
        del inputs["masked_positions"]
        with torch.inference_mode():
            output = model.encoder(**inputs, output_hidden_states=True)
        assert output.hidden_states is not None
        yield output.hidden_states, tensor_on(part.attention_mask, device)
    model.train(was_training)
