"""The schema of a configuration: frozen pydantic models, strict and without defaults."""

import hashlib
import itertools
import json
import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from albert_lab import registry
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
from albert_lab.distinct import Distinct
from albert_lab.naming import Name

# Increment it with every change that affects scores: it is part of every run's name.
RESULTS_VERSION = 3

# The part of the state that a run inherits from the run it starts from. training: weights, optimizer, step, clock and
# curve, to continue the same schedule. weights: only the weights, with a new schedule.
Keep = Literal["training", "weights"]

PAPER_LEARNING_RATE = 0.00176
PAPER_BATCH_SIZE = 4096


class IncludedFile(Section):
    """A file of own code that a run was trained with: its name and its text."""

    file: Name
    text: str


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
    attention_block: str = default("standard")
    ffn_block: str = default("standard")
    position_encoding: str = default("learned")
    norm_placement: str = default("post")
    seed: int = Seed
    include: tuple[IncludedFile, ...] = default(())
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
        for key in ("attention_groups", "ffn_groups"):
            if getattr(self.sharing, key) > self.model.num_layers:
                raise ValueError(
                    f"sharing.{key}={getattr(self.sharing, key)} is more than model.num_layers={self.model.num_layers}"
                )
        micro = self.machine.micro_batch_size
        if isinstance(micro, int) and self.batch_size % min(micro, self.batch_size):
            raise ValueError(f"machine.micro_batch_size={micro} does not divide batch_size={self.batch_size}")
        if self.batch_size % self.machine.processes:
            raise ValueError(f"machine.processes={self.machine.processes} does not divide batch_size={self.batch_size}")
        for stage in self.length_schedule.stages:
            _check_stage(stage, self.max_sequence_length, self.batch_size)
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> "RunConfig":
        for kind, key, name in self.named if not self.include else ():  # a record is read without its own code
            if kind in BUILT_IN:
                registry.check_known(kind, name, BUILT_IN[kind], key)
        return self

    @property
    def named(self) -> list[tuple[registry.Kind, str, str]]:
        """What own code can add to: its kind, the key, and the name that this configuration has there."""
        return [
            *((part, part, getattr(self, part)) for part in PARTS),
            ("activation", "model.hidden_act", self.model.hidden_act),
            ("optimizer", "optimizer", self.optimizer.name),
            ("masking", "masking.method", self.masking.method),
            *(("pair_kind", "inter_sentence.labels", label.kind) for label in self.inter_sentence.labels),
        ]

    @property
    def own_parts(self) -> list[tuple[registry.Kind, str, str]]:
        """Those of `named` that are own code."""
        return [part for part in self.named if part[2] not in BUILT_IN.get(part[0], (part[2],))]

    def with_own_code(self) -> "RunConfig":
        """The configuration with the included files that it uses: those of its names, and those of all measures."""
        used = [registry.source_of(kind, name) for kind, _, name in self.named] + registry.measuring()
        files = {file.digest: IncludedFile(file=file.file, text=file.text) for file in used if file}
        return self.model_copy(update={"include": tuple(files[key] for key in sorted(files))}) if files else self

    @property
    def own_code(self) -> list[registry.Included]:
        """The files of own code that it was made with."""
        return [registry.Included(file.file, file.text) for file in self.include]

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
        machine.*, unless the budget is in seconds, since the machine then determines the number of steps. The size that
        machine.micro_batch_size=auto finds is never included: auto counts as null.
        """
        content = self.model_dump(mode="json")
        del content["scale"]
        if not self.length_schedule.stages:  # as in names from before there were stages
            del content["length_schedule"]
        if self.budget.unit != "seconds":
            del content["machine"]
        else:
            if self.machine.processes == 1:  # as in names from before several processes were possible
                del content["machine"]["processes"]
            if self.machine.micro_batch_size == "auto":
                content["machine"]["micro_batch_size"] = None
            del content["machine"]["report_to"]
            content["machine"]["tensorboard"] = False  # as in names from before there were other trackers
        if self.include:
            content["include"] = [file.digest for file in self.own_code]
        del content["corpus"]["path"], content["added_corpus"]["path"], content["tokenizer"]["model_file"]
        return content


def digest(content: Any) -> str:
    """Short stable hash (12 hex digits) of any JSON value."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
