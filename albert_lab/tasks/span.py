"""Span extraction: a question is answered by a span of a context or has no answer; the kind of the
SQuAD tasks.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks import metrics
from albert_lab.tasks.alignment import AlignedText, align
from albert_lab.tasks.batches import Features, join
from albert_lab.tasks.examples import SpanExample
from albert_lab.tasks.heads import NO_SPAN, SpanHead, SpanOrNothingHead
from albert_lab.tasks.kind import NaProbs, Predictions, Scored, Scores, TaskKind
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
# The spans of an example, in characters of its context, with their log-probabilities.
Spans = dict[tuple[int, int], float]


@cache
def windows(num_tokens: int, size: int, stride: int) -> list[tuple[int, ...]]:
    """Windows over a context, one per stride; the last one ends with the context (run_squad_v1.py
    of the release).

    Each is the range of its tokens, and that of those which have more context here than in other
    windows.
    """
    firsts = [0]
    while firsts[-1] + size < num_tokens:
        firsts.append(firsts[-1] + min(size, stride))
    spans = np.array([(first, min(first + size, num_tokens)) for first in firsts])
    most = np.full(num_tokens, -np.inf)  # the context of each token in its best window
    best = np.zeros(num_tokens, dtype=np.int64)  # the number of this window, which ascends
    for number, (first, end) in enumerate(spans):
        tokens = np.arange(first, end)
        around = np.minimum(tokens - first, end - 1 - tokens) + 0.01 * (end - first)
        better = around > most[first:end]
        most[first:end][better] = around[better]
        best[first:end][better] = number
    numbers = np.arange(len(firsts))
    best_firsts = np.searchsorted(best, numbers, "left")
    best_ends = np.searchsorted(best, numbers, "right")
    return [tuple(row) for row in np.column_stack([spans, best_firsts, best_ends]).tolist()]


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
        rows, targets = [], []
        for number, (example, asked) in enumerate(zip(examples, questions, strict=True)):
            question = asked[: settings.question_length]
            context = aligned[example.context]
            answer = _first_answer(example, context)
            room = settings.max_sequence_length - len(question) - NUM_SPECIAL_TOKENS
            for window in windows(len(context.ids), room, settings.stride):
                first, end = window[:2]
                is_held = answer is not None and first <= answer[0] and answer[1] < end
                if not is_held and rng.random() >= kept_share:
                    continue
                ids, offset = join(tokenizer, question, context.ids[first:end])
                shift = first - offset
                span = (NO_SPAN, NO_SPAN)
                if answer is not None and is_held:
                    span = (answer[0] - shift, answer[1] - shift)
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
        share = float(is_span.mean())
        entropy = -sum(part * math.log(part) for part in (share, 1 - share) if part)
        position = share * float(np.log(lengths[is_span]).mean()) if share else 0.0
        return entropy + position + (entropy / 2 if self.form.unanswerable else 0.0)

    def collect(
        self, examples: Sequence[SpanExample], features: Features, outputs: Mapping[str, np.ndarray]
    ) -> Scores:
        """The n best spans of each example, and the logit of no answer, the minimum over the
        windows: see pack().
        """
        rows, count = features.targets["example"], len(examples)
        # One constant per example keeps the order of logits between its windows, which the release
        # compares.
        norms = np.zeros((count, 2))
        if "norms" in outputs:
            norms.fill(-np.inf)
            np.logaddexp.at(norms, rows, outputs["norms"])
        spans: list[Spans] = [{} for _ in examples]
        for row, column in zip(*np.nonzero(np.isfinite(outputs["score"])), strict=True):
            example = int(rows[row])
            context = features.contexts[example]
            shift = features.targets["shift"][row]
            start = context.starts[outputs["start"][row, column] + shift]
            end = context.ends[outputs["end"][row, column] + shift]
            if start < end:
                score = float(outputs["score"][row, column] - norms[example].sum())
                earlier = spans[example].get((start, end), -math.inf)
                spans[example][start, end] = max(score, earlier)
        lowest = np.full(count, np.inf)
        if self.form.unanswerable:
            np.minimum.at(lowest, rows, outputs["no_answer"])
        return self.pack(np.array([example.id for example in examples]), spans, lowest)

    def pack(self, ids: np.ndarray, spans: Iterable[Spans], no_answer: np.ndarray) -> Scores:
        """The n best spans: offsets[i] to offsets[i + 1] of starts, ends and scores are those of
        example i.
        """
        best = []
        for scored in spans:
            by_score = sorted(scored.items(), key=lambda item: (-item[1], item[0]))
            best.append(by_score[: self.settings.n_best])
        every = [item for of_example in best for item in of_example]
        places = np.array([place for place, _ in every], dtype=np.int64).reshape(-1, 2)
        packed = {
            "ids": ids,
            "offsets": np.cumsum([0, *map(len, best)]),
            "starts": places[:, 0],
            "ends": places[:, 1],
            "scores": np.array([score for _, score in every], dtype=np.float64),
        }
        return packed | ({"no_answer": no_answer} if self.form.unanswerable else {})

    def average(self, members: Sequence[Scores]) -> Scores:
        """The means of the spans' probabilities (0 for a member that does not list the span) and of
        no_answer.

        Members may differ in windows and tokenizer, since spans count characters.
        """
        merged: list[Spans] = []
        for of_members in zip(*map(_unpack, members), strict=True):
            sums: Spans = {}
            for spans in of_members:
                for span, score in spans.items():
                    sums[span] = np.logaddexp(sums.get(span, -math.inf), score)
            count = math.log(len(members))
            merged.append({span: float(score - count) for span, score in sums.items()})
        no_answers = [member.get("no_answer", np.zeros(0)) for member in members]
        return self.pack(members[0]["ids"], merged, np.mean(no_answers, axis=0))

    def predict(self, examples: Sequence[SpanExample], scores: Scores) -> Predictions:
        """The text of the most probable span (empty if there is none) and the probability of no
        answer.
        """
        places = [next(iter(spans), (0, 0)) for spans in _unpack(scores)]
        answers = [
            example.context[slice(*place)] for example, place in zip(examples, places, strict=True)
        ]
        if not self.form.unanswerable:
            return answers, None
        return answers, (1 / (1 + np.exp(-np.clip(scores["no_answer"], -500, 500)))).tolist()

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
        return Scored(answers, values, shares, threshold)


def _first_answer(example: SpanExample, context: AlignedText) -> tuple[int, int] | None:
    """The first and last token of the first answer that has a place; None without one."""
    for answer in example.answers:
        if answer.start is not None:
            return context.tokens_of(answer.start, answer.start + len(answer.text))
    return None


def _unpack(scores: Scores) -> Iterator[Spans]:
    """The spans of each example, the best first."""
    starts, ends, values = (scores[name].tolist() for name in ("starts", "ends", "scores"))
    for first, end in zip(scores["offsets"][:-1], scores["offsets"][1:], strict=True):
        yield {(starts[i], ends[i]): values[i] for i in range(first, end)}
