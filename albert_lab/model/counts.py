"""The parameters and FLOPs of a configuration, counted on its model without memory for it: on
torch's meta device.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from albert_lab.config.schema import RunConfig
from albert_lab.model.shape import EncoderShape


@dataclass(frozen=True)
class Counts:
    """Parameters by part, and FLOPs per token of a full-length sequence.

    Tied and shared weights count once; a projection belongs to the embeddings. FLOPs are those of
    matrix products, a multiply-add is two; activations, softmax and LayerNorm are not counted, as
    is usual. Training is one forward and one backward pass, which counts twice: for each product,
    one with respect to each factor. Inference is the encoder with its pooler.
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


@dataclass(frozen=True)
class Products:
    """FLOPs of the products of one position with the matrices of each part of an encoder of this
    shape; a multiply-add is two.

    table is that with the word embeddings, which gives the logits of a masked position.
    """

    shape: EncoderShape
    projection: int
    layers: int
    mlm_head: int
    table: int
    pooler: int
    pair_head: int

    @classmethod
    def of_standard(cls, config: RunConfig) -> "Products":
        """FLOPs of one position by part, of a configuration with the blocks of ALBERT and BERT,
        without building its model; those of attention scores, which depend on the length, are not
        in it.
        """
        shape = EncoderShape.from_config(config)
        hidden = shape.hidden_size
        embedding = shape.embedding_size
        attention = 4 * hidden**2
        ffn = 2 * hidden * shape.intermediate_size
        return cls(
            shape=shape,
            projection=2 * embedding * hidden if shape.projection else 0,
            layers=2 * shape.num_layers * (attention + ffn),
            mlm_head=2 * hidden * embedding,
            table=2 * embedding * shape.vocab_size,
            pooler=2 * hidden**2,
            pair_head=2 * hidden * len(config.inter_sentence.labels),
        )

    def inference_flops(self, length: int) -> float:
        """FLOPs per token of the encoder with its pooler, for sequences of a length in tokens."""
        return (self._encoder(length) + self.pooler) / length

    def training_flops(self, length: int, masked: int) -> float:
        """FLOPs per token of a forward and a backward pass, with `masked` predictions a
        sequence.
        """
        heads = masked * (self.mlm_head + self.table) + self.pair_head
        pooler = (3 if self.pair_head else 1) * self.pooler  # without labels it has no gradient
        return (3 * (self._encoder(length) + heads) + pooler) / length

    def _encoder(self, length: int) -> int:
        """FLOPs of a sequence in the encoder."""
        attention_scores = self.shape.num_layers * 4 * length * self.shape.hidden_size
        return length * (self.projection + self.layers + attention_scores)


def count(config: RunConfig) -> Counts:
    """The counts of the model that a configuration describes."""
    length = config.max_sequence_length
    masked = config.masking.most_predictions(length)
    return _count(
        EncoderShape.from_config(config), len(config.inter_sentence.labels), length, masked
    )


def count_training_flops(config: RunConfig) -> float:
    """FLOPs of training per token, over the whole budget: the mean over the stages of the length
    schedule.
    """
    stages = enumerate(config.stage_shares)
    return sum(share * count(config.at_stage(number)).training_flops for number, share in stages)


@cache
def _count(shape: EncoderShape, num_labels: int, length: int, masked: int) -> Counts:
    import torch
    from torch.overrides import TorchFunctionMode

    from albert_lab.model.encoder import PretrainingModel

    # random numbers on the meta device load torch's compiler: seconds
    class Uninitialized(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func.__name__ in ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_"):
                return args[0] if args else kwargs["tensor"]
            return func(*args, **(kwargs or {}))

    with torch.device("meta"), Uninitialized():
        model = PretrainingModel(shape, num_labels, seed=0)
    encoder = model.encoder

    pair_head = model.pair_head or torch.nn.Identity()

    def size(module: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    # of each position with every matrix of a module
    def product(module: torch.nn.Module) -> int:
        return 2 * sum(matrix.numel() for matrix in module.parameters() if matrix.ndim > 1)

    products = Products(
        shape=shape,
        projection=product(encoder.embeddings.projection),
        layers=sum(
            product(encoder.attention_blocks[a]) + product(encoder.ffn_blocks[f])
            for a, f in encoder.layers
        ),
        mlm_head=product(model.mlm_head),
        table=2 * encoder.embeddings.word_embeddings.weight.numel(),
        pooler=product(model.pooler),
        pair_head=product(pair_head),
    )
    return Counts(
        embeddings=size(encoder.embeddings),
        layers=size(encoder) - size(encoder.embeddings),
        pooler=size(model.pooler),
        heads=size(model.mlm_head) + size(pair_head),
        training_flops=products.training_flops(length, masked),
        inference_flops=products.inference_flops(length),
    )
