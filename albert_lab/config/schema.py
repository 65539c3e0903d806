"""The schema of a configuration: frozen pydantic models, strict and without defaults."""

import hashlib
import itertools
import json
import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from albert_lab.config.data import (
    AddedCorpusConfig,
    CorpusConfig,
    InterSentenceConfig,
    MaskingConfig,
    TokenizerConfig,
)
from albert_lab.config.section import (
    MIN_SEQUENCE_LENGTH,
    PARTS,
    DistinctSeeds,
    PositiveInt,
    Section,
    Seed,
    Share,
    default,
)
from albert_lab.config.training import (
    BudgetConfig,
    EvaluationConfig,
    LengthScheduleConfig,
    MachineConfig,
    OptimizerConfig,
)
from albert_lab.files import Name

# Increment it with every change that affects scores: it is part of every run's name.
RESULTS_VERSION = 4

# The part of the state that a run inherits from the run it starts from. training: weights,
# optimizer, step, clock and curve, to continue the same schedule. weights: only the weights, with a
# new schedule.
Keep = Literal["training", "weights"]

PAPER_LEARNING_RATE = 0.00176
PAPER_BATCH_SIZE = 4096

MAX_LAYERS = 1_000  # a mistyped number would take all memory, even to count the parameters


class ModelConfig(Section):
    """Shape of the encoder: layers L, hidden size H, attention heads, and intermediate_size of the
    FFN, all counts.
    """

    name: Name
    num_layers: int = Field(gt=0, le=MAX_LAYERS)
    hidden_size: int = PositiveInt
    num_attention_heads: int = PositiveInt
    intermediate_size: int = PositiveInt
    max_position_embeddings: int = PositiveInt
    hidden_act: str
    layer_norm_eps: float = Field(gt=0)
    initializer_range: float = Field(gt=0)

    @model_validator(mode="after")
    def _heads_divide(self) -> "ModelConfig":
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"num_attention_heads={self.num_attention_heads} does not divide "
                f"hidden_size={self.hidden_size}"
            )
        return self


# A number of groups of consecutive layers: layer i of L has block i * groups // L. Or the number of
# the block of each layer, from 0; a list that is shorter than the encoder is repeated.
Groups = Annotated[int, PositiveInt] | tuple[int, ...]


class SharingConfig(Section):
    """The layers that share an attention block, and those that share an FFN block."""

    name: Name
    attention_groups: Groups
    ffn_groups: Groups


class ConversionConfig(Section):
    """How the weights of start_from=RUN become those of another shape (model/conversion.py).

    sharing: what layers that share a block make of theirs; layers: which of them a shallower
    encoder keeps.
    """

    sharing: Literal["average", "lower", "stepwise"] = default("average")
    layers: Literal["spread", "first"] = default("spread")


class ScaleConfig(Section):
    """Name of the scale, its default seeds and its budgets. Other keys that the scale sets are in
    other sections.

    roles maps, by key, a value of the paper to the value of this scale; experiment files refer to
    it by `${scale.roles.KEY.VALUE}`.
    """

    name: Name
    seeds: DistinctSeeds
    budget: dict[Literal["steps", "seconds", "tokens"], float]
    roles: dict[str, dict[str, str | int]]


class RunConfig(Section):
    """One run, resolved."""

    scale: ScaleConfig
    model: ModelConfig
    sharing: SharingConfig
    inter_sentence: InterSentenceConfig
    corpus: CorpusConfig
    added_corpus: AddedCorpusConfig
    tokenizer: TokenizerConfig
    masking: MaskingConfig
    optimizer: OptimizerConfig
    budget: BudgetConfig
    # of runs without the key
    length_schedule: LengthScheduleConfig = LengthScheduleConfig(name="constant", stages=())
    embedding_size: int = PositiveInt
    projection: Literal["auto", "always"]
    max_sequence_length: int = Field(ge=MIN_SEQUENCE_LENGTH)
    short_sequence_probability: float = Share
    batch_size: int = PositiveInt
    dropout: float = Field(ge=0, lt=1)
    attention_block: str = default(PARTS["attention_block"])
    ffn_block: str = default(PARTS["ffn_block"])
    position_encoding: str = default(PARTS["position_encoding"])
    attention_scope: Literal["all", "within-segments"] = default(PARTS["attention_scope"])
    layer_scales: Literal["none", "learned"] = default(PARTS["layer_scales"])
    conversion: ConversionConfig = default(ConversionConfig())
    seed: int = Seed
    evaluation: EvaluationConfig
    machine: MachineConfig

    def value(self, key: str) -> str | None:
        """The value of a key such as optimizer.decay, an option's name for a group; None if there
        is no such key.
        """
        value: object = self
        for part in key.split("."):
            if part not in getattr(type(value), "model_fields", ()):
                return None
            value = getattr(value, part)
        return str(getattr(value, "name", value))

    @model_validator(mode="after")
    def _parts_fit(self) -> "RunConfig":
        if self.max_sequence_length > self.model.max_position_embeddings:
            raise ValueError(
                f"max_sequence_length={self.max_sequence_length} is more than "
                f"model.max_position_embeddings={self.model.max_position_embeddings}: give "
                f"model.max_position_embeddings={self.max_sequence_length} too, or fewer tokens"
            )
        layers = self.model.num_layers
        for key, groups in self.sharing.model_dump(mode="json", exclude={"name"}).items():
            if isinstance(groups, int):
                fits = groups <= layers
            else:
                fits = (
                    groups and layers % len(groups) == 0 and {*groups} == {*range(len({*groups}))}
                )
            if not fits:
                raise ValueError(
                    f"sharing.{key}={groups} at model.num_layers={layers}: at most as many groups "
                    "as layers, or one number of a block a layer, from 0 without gaps (a shorter "
                    "list that fits a whole number of times)"
                )
        head_size = self.model.hidden_size // self.model.num_attention_heads
        if self.position_encoding == "rope" and head_size % 2:
            raise ValueError(
                f"position_encoding=rope needs heads of an even size, but they have {head_size} "
                "numbers"
            )
        processes = self.machine.processes
        micro_batch = min(self.machine.micro_batch_size or self.batch_size, self.batch_size)
        if self.batch_size % micro_batch or self.batch_size % processes:
            raise ValueError(
                f"machine.micro_batch_size={micro_batch} or machine.processes={processes} does not "
                f"divide batch_size={self.batch_size}"
            )
        for stage in self.length_schedule.stages:
            tokens = round(stage.fraction * self.max_sequence_length, 6)
            sequences = round(self.batch_size / stage.fraction, 6)
            if tokens % 1 or sequences % 1 or tokens < MIN_SEQUENCE_LENGTH:
                raise ValueError(
                    f"length_schedule: fraction={stage.fraction:g} gives {sequences:g} sequences "
                    f"of {tokens:g} tokens; whole numbers, and {MIN_SEQUENCE_LENGTH} tokens or "
                    "more, are needed, or length_schedule=constant"
                )
        return self

    def at_stage(self, number: int) -> "RunConfig":
        """The configuration of a stage of the length schedule: its length, and its number of
        sequences a batch.

        The last stage, number len(length_schedule.stages), has the full length.
        """
        if number == len(self.length_schedule.stages):
            return self
        length = round(self.length_schedule.stages[number].fraction * self.max_sequence_length)
        sequences = self.batch_size * self.max_sequence_length // length
        return self.model_copy(update={"max_sequence_length": length, "batch_size": sequences})

    @property
    def stage_starts(self) -> tuple[float, ...]:
        """The share of the budget at which each stage begins [stages + 1]; the last stage, of full
        length, is not listed in length_schedule.stages.
        """
        return tuple(
            itertools.accumulate(
                (stage.share for stage in self.length_schedule.stages), initial=0.0
            )
        )

    @property
    def stage_shares(self) -> tuple[float, ...]:
        """The share of the budget of each stage of the length schedule, the last one included."""
        return tuple(end - start for start, end in itertools.pairwise((*self.stage_starts, 1.0)))

    @property
    def learning_rate(self) -> float:
        """Peak learning rate: the given one, or the paper's scaled by the square root of the batch
        size.
        """
        if self.optimizer.learning_rate is not None:
            return self.optimizer.learning_rate
        return PAPER_LEARNING_RATE * math.sqrt(self.batch_size / PAPER_BATCH_SIZE)

    def identity(self) -> dict[str, Any]:
        """The content that is hashed into a run's name: everything that determines its scores.

        It excludes the scale's name (the keys it sets are included), paths (replaced by
        fingerprints of the files), and machine.*, unless the budget is in seconds, since the
        machine then determines the number of steps.
        """
        excluded: dict[str, Any] = {
            "scale": True,
            "corpus": {"path"},
            "added_corpus": {"path"},
            "tokenizer": {"model_file"},
        }
        if self.budget.unit != "seconds":
            excluded["machine"] = True
        return self.model_dump(mode="json", exclude=excluded)


def digest(content: Any) -> str:
    """Short stable hash (12 hex digits) of any JSON value."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
