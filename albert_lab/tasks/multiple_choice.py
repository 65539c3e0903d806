"""Multiple choice: a passage, a question and options of which one is right; the kind of RACE."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.examples import ChoiceExample
from albert_lab.tasks.features import Features, TextEncoder
from albert_lab.tasks.formats import BLANK
from albert_lab.tasks.model import PooledHead, Predictions, Scores, TaskKind, log_of_right
from albert_lab.tasks.settings import NUM_SPECIAL_TOKENS


class Kind(TaskKind):
    """Multiple choice; an item is a question with one row per option."""

    def make_features(self, examples: Sequence[ChoiceExample], encoder: TextEncoder, *, training: bool) -> Features:
        """One row per option: `[CLS] passage [SEP] question and option [SEP]`; all items have the same number of rows.

        Truncation keeps the last tokens of question and option, and the first tokens of the passage. A row without an
        option is empty, and its score is ignored.
        """
        length, longest = self.settings.max_sequence_length, self.settings.question_length
        assert longest is not None
        passages = dict.fromkeys(example.passage for example in examples)
        tokens = dict(zip(passages, encoder.encode(list(passages)), strict=True))
        asked = encoder.encode(
            [fill_in(example.question, option) for example in examples for option in example.options]
        )
        counts = np.array([len(example.options) for example in examples], dtype=np.int64)
        rows, cut_questions, cut_passages, most, at = [], 0, 0, int(counts.max()), 0
        for example in examples:
            questions = asked[at : at + len(example.options)]
            at += len(questions)
            kept = [question[-longest:] for question in questions]
            rooms = [length - NUM_SPECIAL_TOKENS - len(question) for question in kept]
            passage = tokens[example.passage]
            rows += [encoder.join(passage[:room], question) for room, question in zip(rooms, kept, strict=True)]
            rows += [encoder.join([], None)] * (most - len(questions))
            cut_questions += any(len(question) > longest for question in questions)
            cut_passages += len(passage) > min(rooms)
        return Features(
            input_ids=[ids for ids, _ in rows],
            first_lengths=[first for _, first in rows],
            targets={"labels": np.array([example.label for example in examples], dtype=np.int64), "options": counts},
            counts={"cut_questions": cut_questions, "cut_passages": cut_passages},
            pad_id=encoder.pad_id,
            rows_per_item=most,
        )

    def build_head(self, shape: EncoderShape) -> PooledHead:
        """A head that scores each option."""
        return PooledHead(shape.hidden_size, 1, self.settings.classifier_dropout)

    def chance_loss(self, features: Features) -> float:
        """The loss of equally probable options, in nats."""
        counts = Counter(features.targets["options"].tolist())
        return sum(math.log(count) * (number / counts.total()) for count, number in counts.items())

    def predict(self, examples: Sequence[ChoiceExample], scores: Scores) -> Predictions:
        """The index of the most probable option."""
        best = scores["values"].argmax(axis=1)
        return Predictions({example.id: int(index) for example, index in zip(examples, best, strict=True)})

    def log_likelihoods(self, examples: Sequence[ChoiceExample], scores: Scores) -> np.ndarray | None:
        """Log-probabilities of the right options [examples]."""
        return log_of_right(scores["values"], np.array([example.label for example in examples]))

    def constant(self, examples: Sequence[ChoiceExample]) -> Predictions:
        """The place that is right most often, or the last option of a question with fewer."""

        def right(place: int) -> int:
            return sum(example.label == min(place, len(example.options) - 1) for example in examples)

        answer = max(range(max(len(example.options) for example in examples)), key=right)
        return Predictions({example.id: min(answer, len(example.options) - 1) for example in examples})


def fill_in(question: str, option: str) -> str:
    """The question with the option in its blank, or after the question (race_utils.py of the release)."""
    if not question:
        return option
    return question.replace(BLANK, option) if BLANK in question else f"{question} {option}"
