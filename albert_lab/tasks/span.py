"""Span extraction: a question is answered by a span of a context or has no answer; the kind of the
SQuAD tasks.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.stats import entropy

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks import metrics
from albert_lab.tasks.alignment import AlignedText, align
from albert_lab.tasks.batches import Features, join
from albert_lab.tasks.examples import SpanExample
from albert_lab.tasks.heads import NO_SPAN, SpanHead, SpanOrNothingHead
from albert_lab.tasks.kind import NaProbs, Outputs, Predictions, Scored, TaskKind
from albert_lab.tasks.task import NUM_SPECIAL_TOKENS

_THINNING_SEED = 1606
# By row: its example, and positions of the window (see windows()); plus shift, they are those in
# the context.
_TARGETS = (
    "example",
    "shift",
    "context_first",
    "context_end",
    "best_first",
    "best_end",
    "start",
    "end",
)


@cache
def windows(num_tokens: int, size: int, stride: int) -> list[list[int]]:
    """Windows over a context, one per stride; the last one ends with the context (run_squad_v1.py
    of the release).

    Each is the range of its tokens, and that of those which have more context here than in other
    windows.
    """
    firsts = [0]
    while firsts[-1] + size < num_tokens:
        firsts.append(firsts[-1] + min(size, stride))
    first = np.array(firsts)[:, None]
    end = np.minimum(first + size, num_tokens)
    tokens = np.arange(num_tokens)
    # [windows, tokens]; negative for a token outside of the window
    around = np.minimum(tokens - first, end - 1 - tokens)
    context = np.where(around < 0, -np.inf, around + 0.01 * (end - first))
    best = context.argmax(axis=0)  # the number of the best window of each token, which ascends
    numbers = np.arange(len(firsts))
    best_firsts = np.searchsorted(best, numbers, "left")
    best_ends = np.searchsorted(best, numbers, "right")
    return np.column_stack([first, end, best_firsts, best_ends]).tolist()


class Kind(TaskKind):
    """Span extraction; an item is a window of a context after the question."""

    def make_features(
        self, examples: Sequence[SpanExample], tokenizer: Tokenizer, *, training: bool
    ) -> Features:
        """One row per window: `[CLS] question [SEP] context [SEP]`; truncation keeps the question's
        first tokens.

        For training, only the share empty_windows of the windows without the answer is kept, if
        set.
        """
        settings = self.settings
        contexts = {example.context for example in examples}
        aligned = {context: align(context, tokenizer) for context in contexts}
        questions = tokenizer.encode([example.question for example in examples])
        rng = np.random.Generator(np.random.Philox(key=_THINNING_SEED))
        kept_share = settings.empty_windows if training else 1.0
        rows = []
        targets = []
        for number, (example, asked) in enumerate(zip(examples, questions, strict=True)):
            question = asked[: settings.question_length]
            context = aligned[example.context]
            answer_first, answer_last = _first_answer(example, context)
            room = settings.max_sequence_length - len(question) - NUM_SPECIAL_TOKENS
            for window in windows(len(context.ids), room, settings.stride):
                first, end = window[:2]
                is_held = first <= answer_first and answer_last < end
                if not is_held and rng.random() >= kept_share:
                    continue
                ids, offset = join(tokenizer, question, context.ids[first:end])
                shift = first - offset
                span = (NO_SPAN, NO_SPAN)
                if is_held:
                    span = (answer_first - shift, answer_last - shift)
                rows.append((ids, offset))
                targets.append((number, shift, *(place - shift for place in window), *span))
        columns = np.array(targets, dtype=np.int64).T
        named: dict[str, np.ndarray] = dict(zip(_TARGETS, columns, strict=True))
        named["is_impossible"] = (named["start"] == NO_SPAN).astype(np.float32)
        of_examples = [aligned[example.context] for example in examples]
        cut = sum(len(question) > settings.question_length for question in questions)
        return Features(rows, named, tokenizer.pad_id, contexts=of_examples, cut=cut)

    def build_head(self, shape: EncoderShape) -> SpanHead | SpanOrNothingHead:
        """The head of SQuAD 2.0 if questions may be unanswerable, else that of 1.1."""
        return (SpanOrNothingHead if self.form.unanswerable else SpanHead)(shape, self.settings)

    def chance_loss(self, features: Features) -> float:
        """The lowest loss of a model that ignores the example: it knows only how often a window
        contains the answer, not where.
        """
        targets = features.targets
        lengths = targets["context_end"] - targets["context_first"]
        is_span = targets["start"] != NO_SPAN
        whether = float(entropy(np.bincount(is_span)))
        where = float(np.log(lengths[is_span]).sum()) / len(is_span)
        return whether + where + (whether / 2 if self.form.unanswerable else 0.0)

    def predict(
        self, examples: Sequence[SpanExample], features: Features, outputs: Outputs
    ) -> Predictions:
        """The text of the best span over all windows of an example (empty if there is none), and
        the probability of no answer, the lowest among them.
        """
        rows = features.targets["example"]
        # The negative score, and the span in characters of the context, so that of equal scores
        # the first span is the smallest.
        best = [(math.inf, 0, 0)] * len(examples)
        for row, column in zip(*np.nonzero(np.isfinite(outputs["score"])), strict=True):
            example = int(rows[row])
            context = features.contexts[example]
            shift = features.targets["shift"][row]
            start = context.starts[outputs["start"][row, column] + shift]
            end = context.ends[outputs["end"][row, column] + shift]
            score = float(outputs["score"][row, column])
            if start < end:
                best[example] = min(best[example], (-score, start, end))
        answers = [
            example.context[start:end]
            for example, (_, start, end) in zip(examples, best, strict=True)
        ]
        if not self.form.unanswerable:
            return answers, None
        lowest = np.full(len(examples), np.inf)
        np.minimum.at(lowest, rows, outputs["no_answer"])
        return answers, (1 / (1 + np.exp(-np.clip(lowest, -500, 500)))).tolist()

    def constant(self, examples: Sequence[SpanExample]) -> Sequence[str]:
        """The whole context, or no answer if some of the questions are unanswerable."""
        is_empty = not all(example.answers for example in examples)
        return ["" if is_empty else example.context for example in examples]

    def score(
        self, examples: Sequence[SpanExample], answers: Sequence[str], na_probs: NaProbs = None
    ) -> Scored:
        """SQuAD's scores. A question whose no-answer probability is above the threshold gets no
        answer.

        The threshold is that with the best F1 on these examples, as the release chooses it on dev.
        """
        threshold = None
        gold = [[answer.text for answer in example.answers] for example in examples]
        if na_probs is not None:
            threshold = metrics.best_threshold(gold, answers, na_probs)
            answers = [
                "" if of > threshold else text for of, text in zip(na_probs, answers, strict=True)
            ]
        shares = metrics.match_squad(gold, answers, self.form.unanswerable)
        # Added one by one as in SQuAD's scripts; the built-in sum rounds differently since Python
        # 3.12.
        values = {name: 100.0 * float(np.cumsum(of)[-1]) / len(of) for name, of in shares.items()}
        return Scored(values, shares, threshold)


def _first_answer(example: SpanExample, context: AlignedText) -> tuple[int, int]:
    """The first and last token of the first answer that has a place; without one, -1, which no
    window holds.
    """
    for answer in example.answers:
        if answer.start is not None:
            return context.tokens_of(answer.start, answer.start + len(answer.text)) or (-1, -1)
    return -1, -1
