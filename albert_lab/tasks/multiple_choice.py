"""A passage, a question and four options of which one is right: RACE's kind of task."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.examples import ChoiceExample
from albert_lab.tasks.features import Features, TaskBatch, TextEncoder
from albert_lab.tasks.formats.race import BLANK, LETTERS, RaceFormat
from albert_lab.tasks.kind import UNLABELLED, Predictions, Scores, log_of_right
from albert_lab.tasks.task import NUM_SPECIAL_TOKENS, TaskConfig, TaskSettings


class ChoiceHead(nn.Module):
    """Dropout and one linear layer to one score an option (race_utils.py of the release)."""

    def __init__(self, hidden_size: int, num_options: int, dropout: float) -> None:
        super().__init__()
        self.num_options = num_options
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden_size, 1)

    def loss(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        """Cross-entropy of the right option among all."""
        return F.cross_entropy(self._logits(pooled), batch.targets["labels"])

    def scores(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> dict[str, torch.Tensor]:
        """values [items, options]: probabilities of the options."""
        return {"values": self._logits(pooled).softmax(-1)}

    def _logits(self, pooled: torch.Tensor) -> torch.Tensor:
        return self.output(self.dropout(pooled)).float().view(-1, self.num_options)


class Kind:
    """Multiple choice; an item is a question with its options, a row each."""

    def __init__(self, task: TaskConfig, settings: TaskSettings) -> None:
        if not isinstance(task.format, RaceFormat):
            raise ConfigError(f"{task.name}: kind=multiple_choice reads format.name=race, not {task.format.name}")
        self.settings = settings

    def make_features(self, examples: Sequence[ChoiceExample], encoder: TextEncoder, *, training: bool) -> Features:
        """A row an option: `[CLS] passage [SEP] question and option [SEP]`.

        The question with its option keeps its last tokens, the passage its first.
        """
        length, longest = self.settings.max_sequence_length, self.settings.question_length
        assert longest is not None
        passages = dict.fromkeys(example.passage for example in examples)
        tokens = dict(zip(passages, encoder.encode(list(passages)), strict=True))
        asked = encoder.encode(
            [fill_in(example.question, option) for example in examples for option in example.options]
        )
        rows, cut_questions, cut_passages = [], 0, 0
        for number, example in enumerate(examples):
            questions = asked[number * len(LETTERS) : (number + 1) * len(LETTERS)]
            kept = [question[-longest:] for question in questions]
            rooms = [length - NUM_SPECIAL_TOKENS - len(question) for question in kept]
            passage = tokens[example.passage]
            rows += [encoder.join(passage[:room], question) for room, question in zip(rooms, kept, strict=True)]
            cut_questions += any(len(question) > longest for question in questions)
            cut_passages += len(passage) > min(rooms)
        return Features(
            input_ids=[ids for ids, _ in rows],
            first_lengths=[first for _, first in rows],
            targets={"labels": _labels(examples)},
            counts={"cut_questions": cut_questions, "cut_passages": cut_passages},
            pad_id=encoder.pad_id,
            rows_per_item=len(LETTERS),
        )

    def build_head(self, shape: EncoderShape) -> ChoiceHead:
        """A head that scores each option."""
        return ChoiceHead(shape.hidden_size, len(LETTERS), self.settings.classifier_dropout)

    def chance_loss(self, features: Features) -> float:
        """That of options that all look alike, in nats."""
        return math.log(len(LETTERS))

    def collect(self, examples: Sequence[ChoiceExample], features: Features, found: Mapping[str, np.ndarray]) -> Scores:
        """values [examples, options], as the head gives them."""
        return {"ids": np.array([example.id for example in examples]), "values": found["values"]}

    def average(self, members: Sequence[Scores]) -> Scores:
        """The mean of the probabilities."""
        return members[0] | {"values": np.mean([member["values"] for member in members], axis=0)}

    def predict(self, examples: Sequence[ChoiceExample], scores: Scores) -> Predictions:
        """The index of the most probable option."""
        best = scores["values"].argmax(axis=1)
        return Predictions({example.id: int(index) for example, index in zip(examples, best, strict=True)})

    def log_likelihoods(self, examples: Sequence[ChoiceExample], scores: Scores) -> np.ndarray | None:
        """Log-probabilities of the right options [examples]."""
        return log_of_right(scores["values"], _labels(examples))

    def constant(self, train: Sequence[ChoiceExample], examples: Sequence[ChoiceExample]) -> Predictions:
        """The option that is right most often in training."""
        answer = Counter(example.label for example in train if example.label is not None).most_common(1)[0][0]
        return Predictions({example.id: answer for example in examples})


def fill_in(question: str, option: str) -> str:
    """The question with its option: in its blank, or after it (race_utils.py of the release)."""
    return question.replace(BLANK, option) if BLANK in question else f"{question} {option}"


def _labels(examples: Sequence[ChoiceExample]) -> np.ndarray:
    labels = [UNLABELLED if example.label is None else example.label for example in examples]
    return np.array(labels, dtype=np.int64)
