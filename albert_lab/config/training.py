"""The sections of training: optimizer, budget, lengths of sequences, evaluation, and the
machine.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from albert_lab.config.section import PositiveInt, Section, Seed, Share, default
from albert_lab.files import Name

_MAX_THREADS = 2**16
_Decay = Annotated[float, Field(ge=0, lt=1)]
# An option that not every optimizer has. Without it, a run keeps the name that it had before the
# option existed.
_Optional = default(None)


class OptimizerConfig(Section):
    """Optimizer and schedule. warmup is the share of the budget in which the rate rises.

    decay is the share at its end in which the rate falls to zero; without it, it falls from the
    warm-up on.

    Rates of groups of parameters, over the learning rate: muon_ratio, of the attention and FFN
    matrices; embedding_ratio, of the embeddings and other matrices outside of the blocks.
    """

    name: Name
    learning_rate: float | None = Field(gt=0)
    betas: tuple[_Decay, _Decay]
    eps: float = Field(gt=0)
    weight_decay: float = Field(ge=0)
    warmup: float = Share
    max_grad_norm: float = Field(gt=0)
    muon_ratio: Annotated[float, Field(gt=0)] | None = _Optional
    momentum: _Decay | None = _Optional
    newton_schulz_steps: Annotated[int, Field(gt=0, lt=100)] | None = _Optional
    embedding_ratio: Annotated[float, Field(gt=0)] | None = _Optional
    decay: Annotated[float, Field(gt=0, le=1)] | None = _Optional

    @model_validator(mode="after")
    def _options_of_muon(self) -> "OptimizerConfig":
        for key in ("muon_ratio", "momentum", "newton_schulz_steps"):
            if self.name == "muon" and getattr(self, key) is None:
                raise ValueError(f"optimizer=muon needs {key}")
        return self


class BudgetConfig(Section):
    """The length of the training: value counts optimizer steps, seconds of the training clock, or
    non-padding tokens.

    A value of 0 trains nothing: the run has the weights that it starts from, converted to its
    shape.

    The schedule is always that of the whole budget. stop_at is the share of the budget at which the
    run ends: below 1 for a trunk, which other runs continue.
    """

    name: Name
    unit: Literal["steps", "seconds", "tokens"]
    value: float = Field(ge=0, le=1e15)
    stop_at: float = Field(gt=0, le=1)

    @model_validator(mode="after")
    def _whole_steps(self) -> "BudgetConfig":
        if self.unit != "seconds" and self.value != int(self.value):
            raise ValueError(f"value={self.value} is not a whole number of {self.unit}")
        return self


class LengthStage(Section):
    """A part of the budget in sequences of a fraction of max_sequence_length, and as many more of
    them in a batch.
    """

    share: float = Field(gt=0, le=1)
    fraction: float = Field(gt=0, lt=1)


class LengthScheduleConfig(Section):
    """The stages of shorter sequences at the start of a run; the rest of its budget has the full
    length.
    """

    name: Name
    stages: tuple[LengthStage, ...]

    @model_validator(mode="after")
    def _shares_fit(self) -> "LengthScheduleConfig":
        total = sum(stage.share for stage in self.stages)
        if total > 1 + 1e-9:
            raise ValueError(f"the shares of the stages sum to {total:g}, more than 1")
        return self


class EvaluationConfig(Section):
    """Intrinsic evaluation on held-out documents; sizes count segment pairs."""

    num_pairs: int = PositiveInt
    num_probe_pairs: int = Field(gt=1)
    num_curve_points: int = Field(ge=0)
    num_curve_pairs: int = PositiveInt
    batch_size: int = PositiveInt
    seed: int = Seed


class MachineConfig(Section):
    """Technical settings of a run; they must not change its results beyond rounding and the draws
    of dropout.
    """

    device: Literal["auto", "cpu", "cuda"]
    precision: Literal["auto", "bf16", "fp32"]
    compile: Literal[False] = Field(default=False, exclude=True)  # of older records
    cuda_graphs: bool = default(True)
    processes: int = PositiveInt
    threads: int | None = Field(gt=0, le=_MAX_THREADS)
    workers: int | None = Field(gt=0, le=_MAX_THREADS)
    micro_batch_size: Annotated[int, Field(gt=0)] | None
    checkpoint_seconds: float = Field(ge=0)
    log_every_steps: int = PositiveInt
