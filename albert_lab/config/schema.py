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
from albert_lab.config.model import ModelConfig, SharingConfig
from albert_lab.config.section import BUILT_IN, MIN_SEQUENCE_LENGTH, PARTS, PositiveInt, Section, Seed, Share, default
from albert_lab.config.training import (
    BudgetConfig,
    EvaluationConfig,
    LengthScheduleConfig,
    LengthStage,
    MachineConfig,
    OptimizerConfig,
)
from albert_lab.record import Distinct, Name

# Increment it with every change that affects scores: it is part of every run's name.
RESULTS_VERSION = 4

# The part of the state that a run inherits from the run it starts from. training: weights, optimizer, step, clock and
# curve, to continue the same schedule. weights: only the weights, with a new schedule.
Keep = Literal["training", "weights"]

PAPER_LEARNING_RATE = 0.00176
PAPER_BATCH_SIZE = 4096


class ScaleBudget(Section):
    """The length of a run of the scale, in each unit of budget."""

    steps: float
    seconds: float
    tokens: float


class ScaleConfig(Section):
    """Name of the scale, its default seeds and its budgets. Other keys that the scale sets are in other sections.

    roles maps, by key, a value of the paper to the value of this scale; experiment files refer to it by
    `${scale.roles.KEY.VALUE}`.
    """

    name: Name
    seeds: Annotated[tuple[Annotated[int, Seed], ...], Distinct, Field(min_length=1)]
    budget: ScaleBudget
    roles: dict[str, dict[str, str | int]]


def _check_stage(stage: LengthStage, length: int, batch_size: int) -> None:
    """Refuse a stage whose sequences are no whole number of tokens, or of which no whole number fills a batch."""
    tokens, sequences = stage.fraction * length, batch_size / stage.fraction
    if abs(tokens - round(tokens)) > 1e-6 or tokens < MIN_SEQUENCE_LENGTH:
        raise ValueError(
            f"length_schedule: fraction={stage.fraction:g} of max_sequence_length={length} is {tokens:g} tokens;"
            f" a whole number from {MIN_SEQUENCE_LENGTH} is needed, or length_schedule=constant"
        )
    if abs(sequences - round(sequences)) > 1e-6:
        raise ValueError(
            f"length_schedule: batch_size={batch_size} over fraction={stage.fraction:g} is {sequences:g} sequences;"
            " a whole number is needed"
        )


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
    length_schedule: LengthScheduleConfig = LengthScheduleConfig(name="constant", stages=())  # of runs without the key
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
    norm_placement: Literal["post", "pre"] = default(PARTS["norm_placement"])
    seed: int = Seed
    evaluation: EvaluationConfig
    machine: MachineConfig

    def value(self, key: str) -> str | None:
        """The value of a key such as optimizer.decay, an option's name for a group; None if there is no such key."""
        value: object = self
        for part in key.split("."):
            if not hasattr(value, part):
                return None
            value = getattr(value, part)
        return str(getattr(value, "name", value))

    @model_validator(mode="after")
    def _parts_fit(self) -> "RunConfig":
        if self.max_sequence_length > self.model.max_position_embeddings:
            raise ValueError(
                f"max_sequence_length={self.max_sequence_length} is more than"
                f" model.max_position_embeddings={self.model.max_position_embeddings}"
            )
        self.sharing.check(self.model.num_layers)
        head_size = self.model.hidden_size // self.model.num_attention_heads
        if self.position_encoding == "rope" and head_size % 2:
            raise ValueError(f"position_encoding=rope needs heads of an even size, but they have {head_size} numbers")
        micro = self.machine.micro_batch_size
        if micro and self.batch_size % min(micro, self.batch_size):
            raise ValueError(f"machine.micro_batch_size={micro} does not divide batch_size={self.batch_size}")
        if self.batch_size % self.machine.processes:
            raise ValueError(f"machine.processes={self.machine.processes} does not divide batch_size={self.batch_size}")
        for stage in self.length_schedule.stages:
            _check_stage(stage, self.max_sequence_length, self.batch_size)
        return self

    @property
    def names(self) -> list[tuple[str, str]]:
        """The settings to which own code can add values: each key, with its value."""
        return [
            *((key, getattr(self, key)) for key in ("attention_block", "ffn_block", "position_encoding")),
            ("model.hidden_act", self.model.hidden_act),
            ("optimizer", self.optimizer.name),
            ("masking.method", self.masking.method),
        ]

    @property
    def other_parts(self) -> list[str]:
        """The settings of what neither the paper's models nor their training have, own code among them."""
        parts = {key: getattr(self, key) for key in PARTS}
        others = [f"{key}={value}" for key, value in parts.items() if value != PARTS[key]]
        others += [f"{key}={name}" for key, name in self.names if key not in PARTS and name not in BUILT_IN[key]]
        rate = self.masking.training_probability
        return others if rate is None else [*others, f"masking.training_probability={rate:g}"]

    def at_stage(self, number: int) -> "RunConfig":
        """The configuration of a stage of the length schedule: its length, and its number of sequences a batch.

        The last stage, number len(length_schedule.stages), has the full length.
        """
        if number == len(self.length_schedule.stages):
            return self
        length = round(self.length_schedule.stages[number].fraction * self.max_sequence_length)
        sequences = self.batch_size * self.max_sequence_length // length
        return self.model_copy(update={"max_sequence_length": length, "batch_size": sequences})

    @property
    def stage_starts(self) -> tuple[float, ...]:
        """The share of the budget at which each stage of the length schedule begins, the last one included."""
        starts = itertools.accumulate((stage.share for stage in self.length_schedule.stages), initial=0.0)
        return tuple(starts)

    @property
    def stage_shares(self) -> tuple[float, ...]:
        """The share of the budget of each stage of the length schedule, the last one included."""
        return tuple(end - start for start, end in itertools.pairwise((*self.stage_starts, 1.0)))

    @property
    def learning_rate(self) -> float:
        """Peak learning rate: the given one, or the paper's scaled by the square root of the batch size."""
        if self.optimizer.learning_rate is not None:
            return self.optimizer.learning_rate
        return PAPER_LEARNING_RATE * math.sqrt(self.batch_size / PAPER_BATCH_SIZE)

    def identity(self) -> dict[str, Any]:
        """The content that is hashed into a run's name: everything that determines its scores.

        It excludes the scale's name (the keys it sets are included), paths (replaced by fingerprints of the files), and
        machine.*, unless the budget is in seconds, since the machine then determines the number of steps.
        """
        content = self.model_dump(mode="json", exclude={"scale": True, "machine": {"report_to"}})
        if self.budget.unit != "seconds":
            del content["machine"]
        del content["corpus"]["path"], content["added_corpus"]["path"], content["tokenizer"]["model_file"]
        return content


def digest(content: Any) -> str:
    """Short stable hash (12 hex digits) of any JSON value."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
