"""Multiple choice: a passage, a question and options of which one is right; the kind of RACE."""

import re
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.batches import Features, join
from albert_lab.tasks.examples import ChoiceExample
from albert_lab.tasks.heads import PooledHead
from albert_lab.tasks.kind import NaProbs, Outputs, Predictions, Scored, TaskKind
from albert_lab.tasks.task import NUM_SPECIAL_TOKENS


class Kind(TaskKind):
    """Multiple choice; an item is a question with one row per option."""

    def make_features(
        self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer, *, training: bool
    ) -> Features:
        """One row per option: `[CLS] passage [SEP] question and option [SEP]`; all items have the
        same number of rows.

        Truncation keeps the last tokens of question and option, as many as question_length or as a
        short passage leaves room for, and the first tokens of the passage. A row without an option
        is empty, and its score ignored.
        """
        passages = dict.fromkeys(example.passage for example in examples)
        tokens = dict(zip(passages, tokenizer.encode(list(passages)), strict=True))
        filled = [
            fill_in(example.question, option) for example in examples for option in example.options
        ]
        asked = iter(tokenizer.encode(filled))
        numbers = np.array([len(example.options) for example in examples], dtype=np.int64)
        most = int(numbers.max())
        length = self.settings.max_sequence_length - NUM_SPECIAL_TOKENS
        rows = []
        cut = 0
        for example in examples:
            passage = tokens[example.passage]
            longest = max(self.settings.question_length, length - len(passage))
            questions = [next(asked) for _ in example.options]
            for question in questions:
                kept = question[-longest:]
                rows.append(join(tokenizer, passage[: length - len(kept)], kept))
            rows += [join(tokenizer, [])] * (most - len(questions))
            cut += len(passage) + max(map(len, questions)) > length
        targets = {
            "labels": np.array([example.label for example in examples], dtype=np.int64),
            "options": numbers,
        }
        return Features(rows, targets, tokenizer.pad_id, most, cut=cut)

    def build_head(self, shape: EncoderShape) -> PooledHead:
        return PooledHead(shape.hidden_size, 1, self.settings.classifier_dropout)

    def chance_loss(self, features: Features) -> float:
        """The loss of equally probable options."""
        return float(np.log(features.targets["options"]).mean())

    def predict(
        self, examples: Sequence[ChoiceExample], features: Features, outputs: Outputs
    ) -> Predictions:
        """The place of the most probable option."""
        return outputs["values"].argmax(axis=1).tolist(), None

    def constant(self, examples: Sequence[ChoiceExample]) -> Sequence[Any]:
        """The place that is right most often, or the last option of a question with fewer."""
        labels, lasts = np.array(
            [(example.label, len(example.options) - 1) for example in examples]
        ).T
        answers = [np.minimum(place, lasts) for place in range(lasts.max() + 1)]
        return max(answers, key=lambda answer: (answer == labels).sum()).tolist()

    def score(
        self, examples: Sequence[ChoiceExample], answers: Sequence[Any], na_probs: NaProbs = None
    ) -> Scored:
        """The accuracy of all questions, and of those of each of RACE's levels."""
        shares = {
            "accuracy": [
                float(answer == one.label) for one, answer in zip(examples, answers, strict=True)
            ]
        }
        # RACE's sub-folders
        levels = sorted({one.id.rsplit("/", 2)[0] for one in examples if one.id.count("/") > 1})
        for level in levels if len(levels) > 1 else ():
            is_in = [one.id.startswith(f"{level}/") for one in examples]
            shares[f"accuracy_{level}"] = [*compress(shares["accuracy"], is_in)]
        values = {name: 100 * (sum(credits) / len(credits)) for name, credits in shares.items()}
        return Scored(values, shares)


def fill_in(question: str, option: str) -> str:
    """The question with the option in its blank, or after the question (race_utils.py of the
    release).
    """
    filled, blanks = re.subn("_+", lambda _: option, question)
    return filled if blanks else " ".join(filter(None, (question, option)))
