"""Span extraction: a question is answered by a span of a context or has no answer; the kind of the SQuAD tasks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.examples import SpanExample
from albert_lab.tasks.features import AlignedText, Features, TextEncoder
from albert_lab.tasks.formats import SquadFormat
from albert_lab.tasks.model import Predictions, Scores, TaskKind
from albert_lab.tasks.settings import NUM_SPECIAL_TOKENS, TaskSettings
from albert_lab.tasks.span_heads import NO_SPAN, SpanHead, SpanOrNothingHead
from albert_lab.tasks.task import TaskConfig

_THINNING_SEED = 1606
# By row: its example, and positions of the window; see Window and SpanFeatures.
_TARGETS = ("example", "shift", "context_first", "context_end", "best_first", "best_end", "start", "end")


class Window(NamedTuple):
    """A range of the tokens of a context, and its part that has more context here than in other windows."""

    first: int
    end: int
    best_first: int
    best_end: int

    def contains(self, answer: tuple[int, int] | None) -> bool:
        """Whether the whole answer (first and last token) is in the window."""
        return answer is not None and self.first <= answer[0] and answer[1] < self.end


@cache
def windows(num_tokens: int, size: int, stride: int) -> list[Window]:
    """Windows over a context, one per stride; the last one ends with the context (run_squad_v1.py of the release)."""
    firsts = [0]
    while firsts[-1] + size < num_tokens:
        firsts.append(firsts[-1] + min(size, stride))
    spans = np.array([(first, min(first + size, num_tokens)) for first in firsts])
    most, best = np.full(num_tokens, -np.inf), np.zeros(num_tokens, dtype=np.int64)
    for number, (first, end) in enumerate(spans):
        tokens = np.arange(first, end)
        around = np.minimum(tokens - first, end - 1 - tokens) + 0.01 * (end - first)
        is_better = around > most[first:end]
        most[first:end][is_better], best[first:end][is_better] = around[is_better], number  # best ascends
    best_firsts = np.searchsorted(best, np.arange(len(firsts)))
    best_ends = np.searchsorted(best, np.arange(len(firsts)), side="right")
    return [Window(*map(int, row)) for row in np.column_stack([spans, best_firsts, best_ends])]


class Kind(TaskKind):
    """Span extraction; an item is a window of a context after the question."""

    def __init__(self, task: TaskConfig, settings: TaskSettings) -> None:
        super().__init__(task, settings)
        assert isinstance(task.format, SquadFormat)
        self.unanswerable = task.format.unanswerable

    def make_features(self, examples: Sequence[SpanExample], encoder: TextEncoder, *, training: bool) -> Features:
        """One row per window: `[CLS] question [SEP] context [SEP]`; truncation keeps the question's first tokens.

        For training, only the share empty_windows of the windows without the answer is kept, if set.
        """
        settings = self.settings
        assert settings.question_length and settings.stride  # noqa: PT018
        questions = encoder.encode([example.question for example in examples])
        rng = np.random.Generator(np.random.Philox(key=_THINNING_SEED))
        kept_share = settings.empty_windows if training else 1.0
        rows, targets, texts = [], [], []
        counts = {"cut_questions": 0, "windowed": 0, "unmapped": 0}
        for number, (example, question) in enumerate(zip(examples, questions, strict=True)):
            counts["cut_questions"] += len(question) > settings.question_length
            question = question[: settings.question_length]
            context = encoder.align(example.context)
            texts.append(context)
            answer = _answer_tokens(example, context)
            counts["unmapped"] += answer is None and any(answer.start is not None for answer in example.answers)
            room = settings.max_sequence_length - len(question) - NUM_SPECIAL_TOKENS
            places = windows(len(context.ids), room, settings.stride)
            counts["windowed"] += len(places) > 1
            for window in places:
                if not window.contains(answer) and rng.random() >= kept_share:
                    continue
                ids, offset = encoder.join(question, context.ids[window.first : window.end])
                rows.append((ids, offset))
                targets.append((number, *_row_targets(window, offset, answer)))
        columns: dict[str, np.ndarray] = dict(zip(_TARGETS, np.array(targets, dtype=np.int64).T, strict=True))
        columns["is_impossible"] = (columns["start"] == NO_SPAN).astype(np.float32)
        return SpanFeatures(
            input_ids=[ids for ids, _ in rows],
            first_lengths=[offset for _, offset in rows],
            targets=columns,
            counts=counts | {"windows": len(rows)},
            pad_id=encoder.pad_id,
            contexts=texts,
        )

    def build_head(self, shape: EncoderShape) -> SpanHead | SpanOrNothingHead:
        """The head of SQuAD 2.0 if questions may be unanswerable, else that of 1.1."""
        return (SpanOrNothingHead if self.unanswerable else SpanHead)(shape, self.settings)

    def chance_loss(self, features: Features) -> float:
        """The loss of a model that knows only how often a window contains the answer, not where, in nats."""
        targets = features.targets
        lengths = targets["context_end"] - targets["context_first"]
        is_span = targets["start"] != NO_SPAN
        share = float(is_span.mean())
        entropy = -sum(part * math.log(part) for part in (share, 1 - share) if part)
        position = share * float(np.log(lengths[is_span]).mean()) if share else 0.0
        return entropy + position + (entropy / 2 if self.unanswerable else 0.0)

    def collect(self, examples: Sequence[SpanExample], features: Features, outputs: Mapping[str, np.ndarray]) -> Scores:
        """The n best spans of each example, in characters of its context, and the logit of no answer.

        Rows offsets[i] to offsets[i + 1] of starts, ends and scores are the spans of example i, the best first.
        scores are log-probabilities; no_answer is the minimum over the windows. right has the log-probability of the
        right answer, the maximum over the windows.
        """
        assert isinstance(features, SpanFeatures)
        rows, count = features.targets["example"], len(examples)
        # One constant per example keeps the order of logits between its windows, which the release compares.
        norms = np.zeros((count, 2))
        if "norms" in outputs:
            norms.fill(-np.inf)
            np.logaddexp.at(norms, rows, outputs["norms"])
        spans: list[dict[tuple[int, int], float]] = [{} for _ in examples]
        for row, column in zip(*np.nonzero(np.isfinite(outputs["score"])), strict=True):
            context, of = features.contexts[int(rows[row])], spans[rows[row]]
            shift = features.targets["shift"][row]
            start = context.starts[outputs["start"][row, column] + shift]
            end = context.ends[outputs["end"][row, column] + shift]
            if start < end:
                score = float(outputs["score"][row, column] - norms[rows[row]].sum())
                of[start, end] = max(score, of.get((start, end), -math.inf))
        right = np.full(count, -np.inf)
        np.maximum.at(right, rows, outputs["right"])
        right -= norms.sum(axis=1)
        lowest = np.full(count, np.inf)
        if self.unanswerable:
            np.minimum.at(lowest, rows, outputs["no_answer"])
            no_answer = -np.logaddexp(0, -lowest)  # log-sigmoid of the logit
            right = np.where([example.is_impossible for example in examples], no_answer, right)
        ids = np.array([example.id for example in examples])
        packed = self.pack(ids, [_sorted(of)[: self.settings.n_best] for of in spans], lowest)
        return packed | {"right": np.where(np.isfinite(right), right, np.nan)}

    def pack(self, ids: np.ndarray, spans: list[list[tuple[tuple[int, int], float]]], no_answer: np.ndarray) -> Scores:
        offsets = np.concatenate([[0], np.cumsum([len(of) for of in spans])]).astype(np.int64)
        flat = [item for of in spans for item in of]
        places = np.array([place for place, _ in flat], dtype=np.int64).reshape(-1, 2)
        packed = {"ids": ids, "offsets": offsets, "starts": places[:, 0], "ends": places[:, 1]}
        packed["scores"] = np.array([score for _, score in flat], dtype=np.float64)
        return packed | ({"no_answer": no_answer} if self.unanswerable else {})

    def average(self, members: Sequence[Scores]) -> Scores:
        """The means of the spans' probabilities (0 for a member that does not list the span) and of no_answer.

        Members may differ in windows and tokenizer, since spans count characters.
        """
        merged: list[list[tuple[tuple[int, int], float]]] = []
        for listed in zip(*(_spans(member) for member in members), strict=True):
            sums: dict[tuple[int, int], float] = {}
            for of_member in listed:
                for span, score in of_member:
                    sums[span] = np.logaddexp(sums.get(span, -math.inf), score)
            means = {span: float(score - math.log(len(members))) for span, score in sums.items()}
            merged.append(_sorted(means))
        no_answer = np.mean([member["no_answer"] for member in members], axis=0) if self.unanswerable else np.zeros(0)
        return self.pack(members[0]["ids"], merged, no_answer)

    def predict(self, examples: Sequence[SpanExample], scores: Scores) -> Predictions:
        """The text of the most probable span (empty if there is none) and the probability of no answer."""
        places = [spans[0][0] if spans else (0, 0) for spans in _spans(scores)]
        answers = {e.id: e.context[start:end] for e, (start, end) in zip(examples, places, strict=True)}
        if not self.unanswerable:
            return Predictions(answers)
        probabilities = 1 / (1 + np.exp(-np.clip(scores["no_answer"], -500, 500)))
        return Predictions(answers, dict(zip(answers, probabilities.tolist(), strict=True)))

    def log_likelihoods(self, examples: Sequence[SpanExample], scores: Scores) -> np.ndarray | None:
        """Log-probabilities of the true spans, or of no answer for unanswerable questions [examples]."""
        return scores["right"]

    def constant(self, examples: Sequence[SpanExample]) -> Predictions:
        """The whole context, or no answer if some of the questions are unanswerable."""
        is_empty = any(example.is_impossible for example in examples)
        return Predictions({example.id: "" if is_empty else example.context for example in examples})


@dataclass(frozen=True)
class SpanFeatures(Features):
    """Windows of contexts. The token at a position of a row is the context's token at position + shift."""

    contexts: Sequence[AlignedText] = ()  # by example


def _answer_tokens(example: SpanExample, context: AlignedText) -> tuple[int, int] | None:
    """First and last token of the first gold answer whose start is correct."""
    for answer in example.answers:
        if answer.start is not None:
            return context.tokens_of(answer.start, answer.start + len(answer.text))
    return None


def _row_targets(window: Window, offset: int, answer: tuple[int, int] | None) -> tuple[int, ...]:
    shift = window.first - offset
    in_row = [place - shift for place in (window.first, window.end, window.best_first, window.best_end)]
    span = [place - shift for place in answer] if answer and window.contains(answer) else [NO_SPAN, NO_SPAN]
    return (shift, *in_row, *span)


def _sorted(spans: dict[tuple[int, int], float]) -> list[tuple[tuple[int, int], float]]:
    """The spans with their scores, the best first."""
    return sorted(spans.items(), key=lambda item: (-item[1], item[0]))


def _spans(scores: Scores) -> Iterator[list[tuple[tuple[int, int], float]]]:
    """The spans of each example, with scores."""
    starts, ends, values = (scores[name].tolist() for name in ("starts", "ends", "scores"))
    for first, end in zip(scores["offsets"][:-1], scores["offsets"][1:], strict=True):
        yield [((starts[i], ends[i]), values[i]) for i in range(first, end)]
