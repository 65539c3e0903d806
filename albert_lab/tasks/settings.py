"""How a model is fine-tuned on a task: the settings of one scale."""

from typing import Literal

from pydantic import Field, model_validator

from albert_lab.config.schema import PositiveInt, Section

NUM_SPECIAL_TOKENS = 3  # [CLS] and both [SEP]


class TaskSettings(Section):
    """How a model is fine-tuned on the task; what has a default is left out where the kind of task has no such thing.

    optimizer is torch's AdamW, or the release's Adam, which has no bias correction. learning_rate is for a model of
    rate_hidden_size, and smaller for a wider one (see TaskConfig.fitted); where rate_hidden_size is null, it is used
    for every model. Lengths count tokens.
    checkpoint_steps is the distance of evaluations on the dev set; train_examples and dev_examples subsample.
    retries: how often a diverged fine-tuning is repeated, each time at half the learning rate.
    question_length bounds the question (span) or the question with its option (multiple choice). empty_windows is the
    share of the training windows without the answer that are kept (span).
    """

    optimizer: Literal["adamw", "adam-release"]
    learning_rate: float = Field(gt=0)
    rate_hidden_size: int | None = Field(gt=0)
    batch_size: int = PositiveInt
    steps: int = PositiveInt
    warmup_steps: int = Field(ge=0)
    checkpoint_steps: int = PositiveInt
    dropout: float = Field(ge=0, lt=1)
    classifier_dropout: float = Field(ge=0, lt=1)
    max_sequence_length: int = Field(ge=8)
    train_examples: int | None = Field(gt=0)
    dev_examples: int | None = Field(gt=0)
    seeds: tuple[int, ...] = Field(min_length=1)
    retries: int = Field(ge=0)
    question_length: int | None = Field(default=None, gt=0)
    stride: int | None = Field(default=None, gt=0)
    answer_length: int | None = Field(default=None, gt=0)
    n_best: int | None = Field(default=None, gt=0)
    beam_size: int | None = Field(default=None, gt=0)
    empty_windows: float = Field(default=1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskSettings":
        wrong = []
        if self.warmup_steps > self.steps:
            wrong.append(f"warmup_steps={self.warmup_steps} is more than steps={self.steps}")
        room = self.max_sequence_length - (self.question_length or 0) - NUM_SPECIAL_TOKENS
        if room < (self.stride or 1):
            wrong.append(
                f"max_sequence_length={self.max_sequence_length} leaves {room} tokens of text"
                f" next to question_length={self.question_length}, fewer than the stride of {self.stride or 1}"
            )
        if wrong:
            raise ValueError("; ".join(wrong))
        return self
