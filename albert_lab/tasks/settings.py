"""Settings of the fine-tuning on a task at one scale."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from albert_lab.config.section import PositiveInt, Section, Seed
from albert_lab.distinct import Distinct

NUM_SPECIAL_TOKENS = 3  # [CLS] and both [SEP]
MAX_STEPS = 10**9  # years of training; the paper's longest fine-tuning has 33,112


# Settings that only some kinds of task read; own kinds read what they like.
_OF_POOLED = ("pooler",)
_OF_QUESTIONS = ("question_length",)
_OF_SPANS = (*_OF_QUESTIONS, "stride", "answer_length", "n_best", "beam_size", "empty_windows")
READ_BY: dict[str, tuple[str, ...]] = {
    "classification": _OF_POOLED,
    "multiple_choice": (*_OF_POOLED, *_OF_QUESTIONS),
    "span": _OF_SPANS,
}
_OF_SOME_KINDS = (*_OF_POOLED, *_OF_SPANS)

PoolerStart = Literal["pretrained", "new"]


class TaskSettings(Section):
    """Settings of the fine-tuning on a task; a key with a default is left out if it does not apply to the kind of task.

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

    def unread(self, kind: str) -> list[str]:
        """The keys that are set and that this kind of task does not read."""
        read = READ_BY.get(kind, _OF_SOME_KINDS)
        return [key for key in _OF_SOME_KINDS if key in self.model_fields_set and key not in read]

    def identity(self) -> dict[str, Any]:
        """What tells fine-tunings apart, as values of JSON.

        A pre-trained pooler is left out: there was no other before the key, and those fine-tunings keep their names.
        """
        return self.model_dump(exclude={"pooler"} if self.pooler == "pretrained" else None)

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
