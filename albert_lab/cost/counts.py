"""The size of a configuration: parameters, FLOPs and memory, by formulas except for blocks of own code."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from albert_lab.config.compose import axes, expand, load
from albert_lab.config.schema import RunConfig
from albert_lab.cost.listing import Listing
from albert_lab.model.shape import EncoderShape
from albert_lab.units import Bytes

FLOAT32_BYTES = 4
HALF_BYTES = 2
# Measured, see DECISIONS.md.
MEMORY = (
    "Memory is that of tensors alone. A process that trains on a CPU takes about 500 MiB more, and more with more text:"
    " runs on 114 MB of it, with 80 MiB of tensors, came to 1.1 to 1.8 GiB."
)


@dataclass(frozen=True)
class ParameterCounts:
    """Numbers of parameters by part. Tied and shared weights count once; a projection belongs to the embeddings."""

    embeddings: int
    layers: int
    pooler: int
    mlm_head: int
    pair_head: int

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
        return self.with_pooler + self.mlm_head + self.pair_head


@dataclass(frozen=True)
class Flops:
    """FLOPs per token of a full-length sequence; a multiply-add is two."""

    training: float
    inference: float


@dataclass(frozen=True)
class Memory:
    """Bytes of tensors at the peak, without other memory of the process."""

    weights: int
    gradients: int
    moments: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.moments + self.activations


@dataclass(frozen=True)
class PaperRow:
    """A model of the paper: its overrides, its size as printed, and exact counts as in ParameterCounts."""

    label: str
    overrides: tuple[str, ...]
    paper: str
    encoder: int
    with_pooler: int
    total: int


def count_parameters(config: RunConfig) -> ParameterCounts:
    """Exact numbers of parameters of the model that a configuration describes.

    The layers include what own code adds outside of them, such as a LayerNorm on the output of the encoder.
    """
    shape = EncoderShape.from_config(config)
    hidden, embedding = shape.hidden_size, shape.embedding_size
    num_labels = len(config.inter_sentence.labels)
    return ParameterCounts(
        embeddings=_embeddings(shape),
        layers=_layers(shape),
        pooler=_linear(hidden, hidden),
        mlm_head=_linear(hidden, embedding) + _layer_norm(embedding) + shape.vocab_size,
        pair_head=_linear(hidden, num_labels) if num_labels else 0,
    )


def count_encoder(shape: EncoderShape) -> int:
    """Exact number of parameters of an encoder of this shape, with embeddings and without heads."""
    return _embeddings(shape) + _layers(shape)


def _embeddings(shape: EncoderShape) -> int:
    if shape.other_parts:
        return count_built(shape, 1).embeddings
    tables = (shape.vocab_size + shape.type_vocab_size + shape.max_position_embeddings) * shape.embedding_size
    projection = _linear(shape.embedding_size, shape.hidden_size) if shape.projection else 0
    return tables + _layer_norm(shape.embedding_size) + projection


def _layers(shape: EncoderShape) -> int:
    if shape.other_parts:
        return count_built(shape, 1).layers
    hidden = shape.hidden_size
    attention = 4 * _linear(hidden, hidden) + _layer_norm(hidden)
    ffn = _linear(hidden, shape.intermediate_size) + _linear(shape.intermediate_size, hidden) + _layer_norm(hidden)
    return len({*shape.attention_blocks}) * attention + len({*shape.ffn_blocks}) * ffn


def _parameters_of_muon(config: RunConfig) -> int:
    if config.optimizer.name != "muon":
        return 0
    shape = EncoderShape.from_config(config)
    if shape.other_parts:
        return count_built(shape, 1).block_matrices
    attention, ffn = 4 * shape.hidden_size**2, 2 * shape.hidden_size * shape.intermediate_size
    return len({*shape.attention_blocks}) * attention + len({*shape.ffn_blocks}) * ffn


def count_flops(config: RunConfig) -> Flops:
    """FLOPs of the matrix products; activations, softmax and LayerNorm are not counted, as is usual.

    Training is one forward and one backward pass. The latter counts twice: for each product, one with respect to each
    factor. Attention kernels that recompute the forward pass in the backward pass do more than is counted.
    Inference is the encoder with its pooler.
    """
    shape = EncoderShape.from_config(config)
    hidden, embedding, sequence = shape.hidden_size, shape.embedding_size, config.max_sequence_length
    projection = embedding * hidden if shape.projection else 0
    attention = 4 * hidden**2 + 2 * sequence * hidden
    ffn = 2 * hidden * shape.intermediate_size
    encoder = sequence * (projection + shape.num_layers * (attention + ffn))
    if shape.other_parts:
        encoder = count_built(shape, sequence).flops / 2
    pooler = hidden**2
    mlm_head = masked_per_sequence(config) * (hidden * embedding + embedding * shape.vocab_size)
    num_labels = len(config.inter_sentence.labels)
    # Without labels no gradient flows through the pooler.
    pair = 3 * (pooler + hidden * num_labels) if num_labels else pooler
    return Flops(
        training=2 * (3 * (encoder + mlm_head) + pair) / sequence,
        inference=2 * (encoder + pooler) / sequence,
    )


def count_training_flops(config: RunConfig) -> float:
    """FLOPs of training per token, over the whole budget: the mean over the stages of the length schedule."""
    return sum(
        share * count_flops(config.at_stage(number)).training for number, share in enumerate(config.stage_shares)
    )


def estimate_training_memory(config: RunConfig) -> Memory:
    """Peak bytes of a process in training, at the start of the backward pass, when all its inputs are in memory.

    Gradients count in full, as for accumulation over micro-batches. Weights, gradients and two moments (one for the
    matrices of Muon) are counted, and for each token and layer: the inputs of the linear maps (under autocast query,
    key and value have one copy each), query, key, value, the context, the FFN before and after its activation and, in
    float32, the inputs of both LayerNorms; for each masked position, over the vocabulary: logits, log-probabilities
    and the gradients of both.
    Fused attention is assumed to store no probabilities; with dropout and machine.device=cpu attention is not fused,
    and they are counted. Blocks of own code count as the paper's. machine.precision=auto counts as bf16 except with
    machine.device=cpu. The temporaries of the optimizer come later and are smaller. With
    machine.micro_batch_size=auto one sequence is counted, the minimum.
    """
    copies = _precision_bytes(config)[1]
    share = config.batch_size // config.machine.processes
    asked = config.machine.micro_batch_size
    batch = 1 if asked == "auto" else min(asked or share, share)
    parameters = count_parameters(config).total
    stages = [config.at_stage(number) for number, share in enumerate(config.stage_shares) if share > 0]
    # A stage of shorter sequences has more of them: as many tokens, but rounding may predict more of these.
    activations = max(stage.batch_size * _activations_per_sequence(stage) for stage in stages) // config.batch_size
    return Memory(
        weights=(FLOAT32_BYTES + copies) * parameters,
        gradients=FLOAT32_BYTES * parameters,
        moments=FLOAT32_BYTES * (2 * parameters - _parameters_of_muon(config)),
        activations=batch * activations,
    )


def largest_batch(config: RunConfig, memory_bytes: int) -> int:
    """The largest number of sequences per forward and backward pass with an estimate within memory; 0 if none fits."""
    memory = estimate_training_memory(config)
    return max(0, (memory_bytes - memory.total + memory.activations) // _activations_per_sequence(config))


def estimate_inference_memory(config: RunConfig) -> Memory:
    """Peak bytes of the encoder and pooler on one batch of evaluation, reached at the activation of an FFN."""
    shape = EncoderShape.from_config(config)
    counts = count_parameters(config)
    size, copies = _precision_bytes(config)
    token = FLOAT32_BYTES * shape.hidden_size + 2 * size * shape.intermediate_size
    return Memory(
        weights=FLOAT32_BYTES * counts.with_pooler + copies * (counts.layers + counts.pooler),
        gradients=0,
        moments=0,
        activations=config.evaluation.batch_size * config.max_sequence_length * token,
    )


def paper_rows() -> list[PaperRow]:
    content = _paper()
    return [PaperRow(**{**row, "overrides": (*content["common"], *row["overrides"])}) for row in content["rows"]]


def paper_footnote() -> str:
    """The paper's way of counting, as far as its numbers show it."""
    return _paper()["footnote"]


def _paper() -> dict[str, Any]:
    content = OmegaConf.to_container(OmegaConf.load(Path(__file__).with_name("parameter_counts.yaml")))
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


@dataclass(frozen=True)
class BuiltCounts:
    """Counts of an encoder with own code, whose blocks no formula knows.

    Parameters of the embeddings, of all else, and in matrices of blocks; FLOPs of a forward pass over one sequence.
    """

    embeddings: int
    layers: int
    block_matrices: int
    flops: int


@cache
def count_built(shape: EncoderShape, sequence: int) -> BuiltCounts:
    """The counts of the built module, without its memory, for sequences of a length."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from albert_lab.model.blocks import Block
    from albert_lab.model.encoder import Encoder

    with torch.device("meta"):
        encoder = Encoder(shape).eval()
        ids = torch.zeros(1, sequence, dtype=torch.int64)
        with torch.no_grad(), FlopCounterMode(display=False) as counted:
            encoder(ids, ids, None)
    embeddings = sum(parameter.numel() for parameter in encoder.embeddings.parameters())
    blocks = [module for module in encoder.modules() if isinstance(module, Block)]
    return BuiltCounts(
        embeddings=embeddings,
        layers=sum(parameter.numel() for parameter in encoder.parameters()) - embeddings,
        block_matrices=sum(p.numel() for block in blocks for p in block.parameters() if p.ndim == 2),
        flops=counted.get_total_flops(),
    )


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def _layer_norm(size: int) -> int:
    return 2 * size


def _precision_bytes(config: RunConfig) -> tuple[int, int]:
    """Bytes of an activation, and of the copy of a weight that autocast keeps for a step.

    A device that is left to the machine counts as a GPU, and a precision as bf16 unless the device is a CPU.
    """
    machine = config.machine
    is_half = machine.precision in ("bf16", "fp16") or (machine.precision == "auto" and machine.device != "cpu")
    return (HALF_BYTES, HALF_BYTES) if is_half else (FLOAT32_BYTES, 0)


def _activations_per_sequence(config: RunConfig) -> int:
    """Bytes that the backward pass needs for one sequence of full length."""
    shape = EncoderShape.from_config(config)
    hidden, embedding, sequence = shape.hidden_size, shape.embedding_size, config.max_sequence_length
    size, copies = _precision_bytes(config)
    inputs = (4 if copies else 2) * hidden
    layer = size * (inputs + 4 * hidden + 2 * shape.intermediate_size) + 2 * FLOAT32_BYTES * hidden
    if config.machine.device == "cpu":
        layer += 4 * (FLOAT32_BYTES - size) * hidden  # attention computes in float32
    if shape.dropout and config.machine.device == "cpu":
        # Attention with dropout is not fused on CPU: it keeps the probabilities, their mask and their product. The
        # masks after attention and FFN are numbers, not bytes.
        layer += 3 * FLOAT32_BYTES * shape.num_attention_heads * sequence + 2 * size * hidden
    elif shape.dropout:
        layer += 2 * hidden  # the masks after attention and FFN, one byte per element
    embeddings = (FLOAT32_BYTES + size) * embedding
    masked = size * (hidden + 3 * embedding) + (size + 3 * FLOAT32_BYTES) * shape.vocab_size
    layers = shape.num_layers * layer
    return sequence * (embeddings + layers) + masked_per_sequence(config) * masked


def masked_per_sequence(config: RunConfig) -> int:
    return config.masking.most_predictions(config.max_sequence_length)


def _size(config: RunConfig) -> dict[str, Any]:
    counts, flops = count_parameters(config), count_flops(config)
    return {
        "embeddings": counts.embeddings,
        "layers": counts.layers,
        "pooler": counts.pooler,
        "heads": counts.mlm_head + counts.pair_head,
        "total": counts.total,
        "train FLOPs/token": round(flops.training),
        "inference FLOPs/token": round(flops.inference),
        "training memory": Bytes(estimate_training_memory(config).total),
        "inference memory": Bytes(estimate_inference_memory(config).total),
    }


def configurations(overrides: Sequence[str]) -> dict[str, RunConfig]:
    """One configuration or a sweep, by a label of the differing settings.

    Raises:
        ConfigError: an invalid configuration.
    """
    values_of = axes(overrides)
    swept = [key for key, values in values_of.items() if len(values) > 1]
    configs = {}
    for point in expand(values_of):
        config = load([f"{key}={value}" for key, value in point.items()])
        label = " ".join(f"{key}={point[key]}" for key in swept)
        configs[label or f"{config.model.name} E={config.embedding_size} {config.sharing.name}"] = config
    return configs


def sizes(overrides: Sequence[str]) -> Listing:
    """Parameters, FLOPs and memory of one configuration or of a sweep.

    Raises:
        ConfigError: an invalid configuration.
    """
    configs = configurations(overrides)
    rows = [{"configuration": label} | _size(config) for label, config in configs.items()]
    own = dict.fromkeys(part for config in configs.values() for part in EncoderShape.from_config(config).other_parts)
    notes = [
        "layers counts each shared block once; heads are those of pre-training. FLOPs count matrix products, a"
        " multiply-add as two, at the full length of the configuration.",
        MEMORY,
    ]
    if own:
        notes.append(f"{', '.join(own)}: counted from the built module; memory as if its blocks were the paper's.")
    return Listing(rows, notes)


def paper_counts() -> Listing:
    rows = []
    for row in paper_rows():
        counts = count_parameters(load(row.overrides))
        rows.append(
            {
                "model": row.label,
                "paper": row.paper,
                "embeddings + layers": counts.encoder,
                "with pooler": counts.with_pooler,
                "with pooler and heads": counts.total,
            }
        )
    return Listing(rows, [paper_footnote()])
