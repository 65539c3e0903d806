"""Multiple choice: a passage, a question and options of which one is right; the kind of RACE."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.examples import ChoiceExample
from albert_lab.tasks.features import Features, join
from albert_lab.tasks.model import PooledHead, Predictions, Scored, Scores, TaskKind
from albert_lab.tasks.task import NUM_SPECIAL_TOKENS

BLANK = "_"  # in a question of RACE


class Kind(TaskKind):
    """Multiple choice; an item is a question with one row per option."""

    def make_features(self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer, *, training: bool) -> Features:
        """One row per option: `[CLS] passage [SEP] question and option [SEP]`; all items have the same number of rows.

        Truncation keeps the last tokens of question and option, and the first tokens of the passage. A row without an
        option is empty, and its score is ignored.
        """
        longest = self.settings.question_length
        assert longest is not None
        passages = dict.fromkeys(example.passage for example in examples)
        tokens = dict(zip(passages, tokenizer.encode(list(passages)), strict=True))
        texts = [fill_in(example.question, option) for example in examples for option in example.options]
        asked = iter(tokenizer.encode(texts))
        numbers = np.array([len(example.options) for example in examples], dtype=np.int64)
        rows, most, length = [], int(numbers.max()), self.settings.max_sequence_length - NUM_SPECIAL_TOKENS
        for example in examples:
            for question in (next(asked)[-longest:] for _ in example.options):
                rows.append(join(tokenizer, tokens[example.passage][: length - len(question)], question))
            rows += [join(tokenizer, [])] * (most - len(example.options))
        targets = {"labels": self.targets(examples), "options": numbers}
        return Features(rows, targets, tokenizer.pad_id, most)

    def build_head(self, shape: EncoderShape) -> PooledHead:
        """A head that scores each option."""
        return PooledHead(shape.hidden_size, 1, self.settings.classifier_dropout)

    def chance_loss(self, features: Features) -> float:
        """The loss of equally probable options."""
        counts = Counter(features.targets["options"].tolist())
        return sum(math.log(count) * (number / counts.total()) for count, number in counts.items())

    def predict(self, examples: Sequence[ChoiceExample], scores: Scores) -> Predictions:
        """The index of the most probable option."""
        best = scores["values"].argmax(axis=1)
        return Predictions({example.id: int(index) for example, index in zip(examples, best, strict=True)})

    def constant(self, examples: Sequence[ChoiceExample]) -> Predictions:
        """The place that is right most often, or the last option of a question with fewer."""
        lasts = [len(example.options) - 1 for example in examples]

        def right(place: int) -> int:
            return sum(example.label == min(place, last) for example, last in zip(examples, lasts, strict=True))

        answer = max(range(max(lasts) + 1), key=right)
        return Predictions({example.id: min(answer, last) for example, last in zip(examples, lasts, strict=True)})

    def score(self, examples: Sequence[ChoiceExample], predictions: Predictions) -> Scored:
        """The accuracy of all questions, and of those of each of RACE's levels."""
        answers = predictions.answers
        right = {example.id: float(answers[example.id] == example.label) for example in examples}
        levels = sorted({level(id) for id in right})
        shares = {"accuracy": right} | {
            f"accuracy_{one}": {id: share for id, share in right.items() if level(id) == one}
            for one in levels
            if len(levels) > 1
        }
        return Scored(answers, {name: 100 * (sum(of.values()) / len(of)) for name, of in shares.items()}, shares)


def level(id: str) -> str:
    """The level of a question of RACE: the name of its sub-folder."""
    return id.rsplit("/", 2)[0] if id.count("/") > 1 else ""


def fill_in(question: str, option: str) -> str:
    """The question with the option in its blank, or after the question (race_utils.py of the release)."""
    if not question:
        return option
    return question.replace(BLANK, option) if BLANK in question else f"{question} {option}"
