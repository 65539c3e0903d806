"""Settings of the fine-tuning on a task at one scale."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from albert_lab.config.section import PositiveInt, Section, Seed
from albert_lab.record import Distinct

NUM_SPECIAL_TOKENS = 3  # [CLS] and both [SEP]
MAX_STEPS = 10**9  # years of training; the paper's longest fine-tuning has 33,112
PoolerStart = Literal["pretrained", "new"]


class TaskSettings(Section):
    """Settings of the fine-tuning on a task; those with a default are read by some kinds of task only.

    optimizer is torch's AdamW, or the release's Adam, which has no bias correction. learning_rate is for a model of
    rate_hidden_size, and is reduced for a wider one (see TaskConfig.fitted); if rate_hidden_size is null, it is used
    for every model. Lengths are in tokens.
    checkpoint_steps is the number of steps between evaluations on the dev set. train_examples and dev_examples are the
    sizes of subsamples. retries is the maximal number of repetitions of a fine-tuning that learnt nothing, each at half
    the learning rate. pooler says whether a fine-tuning starts from the pre-trained pooler or from new weights in it
    (classification, multiple choice; never new if the task starts from another one). question_length limits the
    question (span) or the question with its option (multiple choice). empty_windows is the share of the training
    windows without the answer that are kept (span).
    """

    optimizer: Literal["adamw", "adam-release"]
    learning_rate: float = Field(gt=0)
    rate_hidden_size: int | None = Field(gt=0)
    batch_size: int = PositiveInt
    steps: int = Field(gt=0, le=MAX_STEPS)
    warmup_steps: int = Field(ge=0)
    checkpoint_steps: int = PositiveInt
    dropout: float = Field(ge=0, lt=1)
    classifier_dropout: float = Field(ge=0, lt=1)
    max_sequence_length: int = Field(ge=8)
    train_examples: int | None = Field(gt=0)
    dev_examples: int | None = Field(gt=0)
    seeds: Annotated[tuple[Annotated[int, Seed], ...], Distinct] = Field(min_length=1)
    retries: int = Field(ge=0)
    pooler: PoolerStart = "pretrained"
    question_length: int | None = Field(default=None, gt=0)
    stride: int | None = Field(default=None, gt=0)
    answer_length: int | None = Field(default=None, gt=0)
    n_best: int | None = Field(default=None, gt=0)
    beam_size: int | None = Field(default=None, gt=0)
    empty_windows: float = Field(default=1.0, gt=0, le=1)

    def identity(self) -> dict[str, Any]:
        """What tells fine-tunings apart; a pre-trained pooler is left out, as before there was a choice."""
        return self.model_dump(exclude={"pooler"} if self.pooler == "pretrained" else None)

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskSettings":
        if self.warmup_steps > self.steps:
            raise ValueError(f"warmup_steps={self.warmup_steps} is more than steps={self.steps}")
        room = self.max_sequence_length - (self.question_length or 0) - NUM_SPECIAL_TOKENS
        if room < (self.stride or 1):
            raise ValueError(
                f"max_sequence_length={self.max_sequence_length} leaves {room} tokens of text"
                f" next to question_length={self.question_length}, fewer than the stride of {self.stride or 1}"
            )
        return self
