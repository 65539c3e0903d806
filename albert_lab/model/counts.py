"""The parameters and FLOPs of a configuration, counted on its model without memory for it: on torch's meta device."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape

MOST_LAYERS = 1_000  # a mistyped number would take all memory, even on the meta device


@dataclass(frozen=True)
class Counts:
    """Parameters by part, and FLOPs per token of a full-length sequence.

    Tied and shared weights count once; a projection belongs to the embeddings. FLOPs are those of matrix products, a
    multiply-add is two; activations, softmax and LayerNorm are not counted, as is usual. Training is one forward and
    one backward pass, which counts twice: for each product, one with respect to each factor. Inference is the encoder
    with its pooler.
    """

    embeddings: int
    layers: int
    pooler: int
    heads: int
    training_flops: float
    inference_flops: float

    @property
    def encoder(self) -> int:
        """Embeddings and layers."""
        return self.embeddings + self.layers

    @property
    def with_pooler(self) -> int:
        """Embeddings, layers and pooler: the start of fine-tuning."""
        return self.encoder + self.pooler

    @property
    def total(self) -> int:
        """All parameters that pre-training trains."""
        return self.with_pooler + self.heads


def count(config: RunConfig) -> Counts:
    """The counts of the model that a configuration describes.

    Raises:
        ConfigError: it has more than MOST_LAYERS layers.
    """
    length = config.max_sequence_length
    masked = config.masking.most_predictions(length)
    return _count(EncoderShape.from_config(config), len(config.inter_sentence.labels), length, masked)


def count_training_flops(config: RunConfig) -> float:
    """FLOPs of training per token, over the whole budget: the mean over the stages of the length schedule."""
    stages = enumerate(config.stage_shares)
    return sum(share * count(config.at_stage(number)).training_flops for number, share in stages)


@cache
def _count(shape: EncoderShape, num_labels: int, length: int, masked: int) -> Counts:
    import torch
    from torch.overrides import TorchFunctionMode

    from albert_lab.model.encoder import PretrainingModel

    if shape.num_layers > MOST_LAYERS:
        raise ConfigError(f"model.num_layers={shape.num_layers}: at most {MOST_LAYERS:,}")

    class Uninitialized(TorchFunctionMode):  # random numbers on the meta device load torch's compiler: seconds
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.__name__ in ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_"):
                return args[0] if args else kwargs["tensor"]
            return func(*args, **(kwargs or {}))

    with torch.device("meta"), Uninitialized():
        model = PretrainingModel(shape, num_labels, seed=0)
    encoder = model.encoder

    def size(module: torch.nn.Module | None) -> int:
        return sum(parameter.numel() for parameter in module.parameters()) if module else 0

    def product(module: torch.nn.Module | None) -> int:  # of each position with every matrix of a module
        return 2 * sum(matrix.numel() for matrix in module.parameters() if matrix.ndim > 1) if module else 0

    layers = sum(product(encoder.attention_blocks[a]) + product(encoder.ffn_blocks[f]) for a, f in encoder.layers)
    scores = shape.num_layers * 4 * length * shape.hidden_size
    encoded = length * (product(encoder.embeddings.projection) + layers + scores)
    mlm = masked * (product(model.mlm_head) + 2 * encoder.embeddings.word_embeddings.weight.numel())
    pooler, pair = product(model.pooler), product(model.pair_head)
    training = 3 * (encoded + mlm + pair) + (3 if num_labels else 1) * pooler  # without labels it has no gradient
    return Counts(
        embeddings=size(encoder.embeddings),
        layers=size(encoder) - size(encoder.embeddings),
        pooler=size(model.pooler),
        heads=size(model.mlm_head) + size(model.pair_head),
        training_flops=training / length,
        inference_flops=(encoded + pooler) / length,
    )
