"""A question on a context, answered by a span of it or by nothing: SQuAD's kind of task."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.alignment import AlignedText
from albert_lab.tasks.examples import SpanExample
from albert_lab.tasks.features import Features, TaskBatch, TextEncoder
from albert_lab.tasks.formats.squad import SquadFormat
from albert_lab.tasks.kind import Predictions, Scores
from albert_lab.tasks.settings import NUM_SPECIAL_TOKENS, TaskSettings
from albert_lab.tasks.task import TaskConfig

NO_SPAN = 0  # position of [CLS], the target of a window without the answer
_MASKED = -1e30
_THINNING_SEED = 1606
# By row: its example, and the places in it of what the window shows; see Window and SpanFeatures.
_TARGETS = ("example", "shift", "context_first", "context_end", "best_first", "best_end", "start", "end")


class SpanHead(nn.Module):
    """A linear layer to the start and the end of the span (run_squad_v1.py of the release)."""

    def __init__(self, shape: EncoderShape, settings: TaskSettings) -> None:
        super().__init__()
        self.settings = settings
        self.output = nn.Linear(shape.hidden_size, 2)

    def loss(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        """Mean cross-entropy of start and end among all tokens of the row."""
        start_logits, end_logits = self._logits(hidden_states, batch)
        starts, ends = batch.targets["start"], batch.targets["end"]
        return (F.cross_entropy(start_logits, starts) + F.cross_entropy(end_logits, ends)) / 2

    def scores(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> dict[str, torch.Tensor]:
        """The best spans of each row, [rows, candidates]: start, end, score (the sum of their logits).

        right [rows] is that score of the true span, minus infinity where the row does not contain it. norms [rows, 2]:
        the logarithms of the sums that make probabilities of start and end logits.
        """
        logits = self._logits(hidden_states, batch)
        assert self.settings.n_best is not None
        count = min(self.settings.n_best, hidden_states.shape[1])
        (start_scores, starts), (end_scores, ends) = (
            values.masked_fill(~_in_context(batch), _MASKED).topk(count) for values in logits
        )
        found = _best_spans(
            starts[:, :, None].expand(-1, -1, count),
            ends[:, None, :].expand(-1, count, -1),
            start_scores[:, :, None] + end_scores[:, None, :],
            batch,
            self.settings,
        )
        right = _at(logits[0], batch.targets["start"]) + _at(logits[1], batch.targets["end"])
        norms = torch.stack([values.logsumexp(-1) for values in logits], dim=-1)
        return found | {"right": _where_held(right, batch), "norms": norms}

    def _logits(self, hidden_states: torch.Tensor, batch: TaskBatch) -> list[torch.Tensor]:
        # Differs from the release: padding cannot be chosen, or a loss would depend on how much of it there is.
        logits = self.output(hidden_states).float()
        return [values.masked_fill(~batch.attention_mask, _MASKED) for values in logits.unbind(-1)]


class SpanOrNothingHead(nn.Module):
    """The start, the end given the start, and whether there is an answer (XLNet's head, run_squad_v2.py)."""

    def __init__(self, shape: EncoderShape, settings: TaskSettings) -> None:
        super().__init__()
        size = shape.hidden_size
        self.settings = settings
        self.start = nn.Linear(size, 1)
        # One layer on [token, start token], kept as its halves: the first is computed once for all starts.
        self.end_of_token = nn.Linear(size, size)
        self.end_of_start = nn.Linear(size, size, bias=False)
        self.end_layer_norm = nn.LayerNorm(size, eps=shape.layer_norm_eps)
        self.end = nn.Linear(size, 1)
        self.answerability = nn.Linear(2 * size, size)
        self.dropout = nn.Dropout(settings.classifier_dropout)
        self.no_answer = nn.Linear(size, 1, bias=False)

    def loss(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        """Mean cross-entropy of start and end, the end given the true start, plus half that of answerability."""
        starts, ends = batch.targets["start"], batch.targets["end"]
        start_logits = self._start_logits(hidden_states, batch)
        end_logits = self._end_logits(hidden_states, starts[:, None], batch)[:, 0]
        no_answer = self._no_answer_logits(hidden_states, start_logits)
        span_loss = (F.cross_entropy(start_logits, starts) + F.cross_entropy(end_logits, ends)) / 2
        return span_loss + F.binary_cross_entropy_with_logits(no_answer, batch.targets["is_impossible"]) / 2

    def scores(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> dict[str, torch.Tensor]:
        """The best spans of each row, [rows, candidates]: start, end, score (the sum of their log-probabilities).

        right [rows] is the log-probability of the true span and of there being an answer, minus infinity where the row
        does not contain it; no_answer [rows] is the logit that there is none.
        """
        start_logits = self._start_logits(hidden_states, batch)
        assert self.settings.beam_size is not None
        count = min(self.settings.beam_size, hidden_states.shape[1])
        start_scores, starts = start_logits.log_softmax(-1).topk(count)
        end_scores, ends = self._end_logits(hidden_states, starts, batch).log_softmax(-1).topk(count)
        found = _best_spans(
            starts[:, :, None].expand(-1, -1, count), ends, start_scores[:, :, None] + end_scores, batch, self.settings
        )
        no_answer = self._no_answer_logits(hidden_states, start_logits)
        true_start, true_end = batch.targets["start"], batch.targets["end"]
        end_of_true = self._end_logits(hidden_states, true_start[:, None], batch)[:, 0]
        right = _at(start_logits.log_softmax(-1), true_start) + _at(end_of_true.log_softmax(-1), true_end)
        return found | {"right": _where_held(right + F.logsigmoid(-no_answer), batch), "no_answer": no_answer}

    def _start_logits(self, hidden_states: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        return self.start(hidden_states)[..., 0].float().masked_fill(~_allowed(batch), _MASKED)

    def _end_logits(self, hidden_states: torch.Tensor, starts: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        """[rows, starts, sequence] for starts [rows, starts]."""
        at_start = hidden_states.gather(1, starts[:, :, None].expand(-1, -1, hidden_states.shape[-1]))
        joined = self.end_of_token(hidden_states)[:, None] + self.end_of_start(at_start)[:, :, None]
        logits = self.end(self.end_layer_norm(torch.tanh(joined)))[..., 0].float()
        return logits.masked_fill(~_allowed(batch)[:, None], _MASKED)

    def _no_answer_logits(self, hidden_states: torch.Tensor, start_logits: torch.Tensor) -> torch.Tensor:
        summary = torch.einsum("rs,rsh->rh", start_logits.softmax(-1), hidden_states.float())
        features = torch.cat([summary, hidden_states[:, 0].float()], dim=-1)
        return self.no_answer(self.dropout(torch.tanh(self.answerability(features))))[:, 0].float()


def _in_context(batch: TaskBatch) -> torch.Tensor:
    """[rows, sequence]: the tokens of the context, which are between the two last [SEP]."""
    positions = torch.arange(batch.input_ids.shape[1], device=batch.input_ids.device)
    first, end = (batch.targets[name][:, None] for name in ("context_first", "context_end"))
    return (positions >= first) & (positions < end)


def _allowed(batch: TaskBatch) -> torch.Tensor:
    allowed = _in_context(batch)
    allowed[:, NO_SPAN] = True
    return allowed


def _at(values: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Values [rows, sequence] at positions [rows]."""
    return values.gather(1, positions[:, None])[:, 0]


def _where_held(values: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
    """Values [rows], minus infinity where the row does not contain the answer."""
    return values.masked_fill(batch.targets["start"] == NO_SPAN, -math.inf)


def _best_spans(
    starts: torch.Tensor, ends: torch.Tensor, scores: torch.Tensor, batch: TaskBatch, settings: TaskSettings
) -> dict[str, torch.Tensor]:
    """The highest of the spans [rows, starts, ends] that can be answers; what cannot has a score of minus infinity."""
    assert settings.answer_length is not None
    assert settings.n_best is not None
    # A token that two windows show counts where more of the context is around it.
    first, end = (batch.targets[name][:, None, None] for name in ("best_first", "best_end"))
    context_end = batch.targets["context_end"][:, None, None]
    lengths = ends - starts + 1
    possible = (starts >= first) & (starts < end) & (ends < context_end)
    possible &= (lengths > 0) & (lengths <= settings.answer_length)
    scores = scores.masked_fill(~possible, -math.inf).flatten(1)
    best, places = scores.topk(min(settings.n_best, scores.shape[1]))
    return {"start": starts.flatten(1).gather(1, places), "end": ends.flatten(1).gather(1, places), "score": best}


class Window(NamedTuple):
    """A stretch of the tokens of a context, and that part of it which has more context around it than elsewhere."""

    first: int
    end: int
    best_first: int
    best_end: int

    def contains(self, answer: tuple[int, int] | None) -> bool:
        """Whether all of an answer, from its first to its last token, is in the window."""
        return answer is not None and self.first <= answer[0] and answer[1] < self.end


@cache
def windows(num_tokens: int, size: int, stride: int) -> list[Window]:
    """Windows over a context: each a stride on, the last one up to its end (run_squad_v1.py of the release)."""
    firsts = [0]
    while firsts[-1] + size < num_tokens:
        firsts.append(firsts[-1] + min(size, stride))
    spans = np.array([(first, min(first + size, num_tokens)) for first in firsts])
    first, end, tokens = spans[:, :1], spans[:, 1:], np.arange(num_tokens)
    around = np.minimum(tokens - first, end - 1 - tokens) + 0.01 * (end - first)
    inside = (tokens >= first) & (tokens < end)
    best = np.where(inside, around, -np.inf).argmax(axis=0)  # ascends
    best_firsts = np.searchsorted(best, np.arange(len(firsts)))
    best_ends = np.searchsorted(best, np.arange(len(firsts)), side="right")
    return [Window(*map(int, row)) for row in np.column_stack([spans, best_firsts, best_ends])]


class Kind:
    """Span extraction; an item is a window of a context with the question before it."""

    def __init__(self, task: TaskConfig, settings: TaskSettings) -> None:
        if not isinstance(task.format, SquadFormat):
            raise ConfigError(f"{task.name}: kind=span reads format.name=squad, not {task.format.name}")
        if task.format.unanswerable and settings.beam_size is None:
            raise ConfigError(f"{task.name}: settings beam_size must be given where format.unanswerable is true")
        self.unanswerable = task.format.unanswerable
        self.settings = settings

    def make_features(self, examples: Sequence[SpanExample], encoder: TextEncoder, *, training: bool) -> Features:
        """A row a window: `[CLS] question [SEP] context [SEP]`; the question keeps its first tokens.

        To train on, windows without the answer are thinned out where the settings say so.
        """
        settings = self.settings
        assert settings.question_length is not None
        assert settings.stride is not None
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
            found = windows(len(context.ids), room, settings.stride)
            counts["windowed"] += len(found) > 1
            for window in found:
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
        """The head of SQuAD 2.0 where questions may be unanswerable, else that of 1.1."""
        return (SpanOrNothingHead if self.unanswerable else SpanHead)(shape, self.settings)

    def chance_loss(self, features: Features) -> float:
        """That of a model that knows how often a window contains the answer, and nothing of where, in nats."""
        targets = features.targets
        lengths = targets["context_end"] - targets["context_first"]
        found = targets["start"] != NO_SPAN
        share = float(found.mean())
        entropy = -sum(part * math.log(part) for part in (share, 1 - share) if part)
        position = share * float(np.log(lengths[found]).mean()) if share else 0.0
        return entropy + position + (entropy / 2 if self.unanswerable else 0.0)

    def collect(self, examples: Sequence[SpanExample], features: Features, found: Mapping[str, np.ndarray]) -> Scores:
        """The n best spans of each example in characters of its context, and the logit that there is none.

        Those of example i are in rows offsets[i] to offsets[i + 1] of starts, ends and scores, the best first.
        scores are log-probabilities; no_answer is the lowest over the windows. right has the log-probability of the
        right answer, in the window that gives it the highest.
        """
        assert isinstance(features, SpanFeatures)
        assert self.settings.n_best is not None
        targets = features.targets
        # One constant an example keeps the order of logits between its windows, which the release compares.
        norms = np.zeros((len(examples), 2))
        if "norms" in found:
            norms.fill(-np.inf)
            np.logaddexp.at(norms, targets["example"], found["norms"])
        spans: list[dict[tuple[int, int], float]] = [{} for _ in examples]
        for row, column in zip(*np.nonzero(np.isfinite(found["score"])), strict=True):
            example = int(targets["example"][row])
            context = features.contexts[example]
            shift = targets["shift"][row]
            start = context.starts[found["start"][row, column] + shift]
            end = context.ends[found["end"][row, column] + shift]
            score = float(found["score"][row, column] - norms[example].sum())
            if start < end:
                spans[example][start, end] = max(score, spans[example].get((start, end), -math.inf))
        return self._pack(
            np.array([example.id for example in examples]),
            [sorted(of.items(), key=lambda item: (-item[1], item[0]))[: self.settings.n_best] for of in spans],
            self._lowest(len(examples), targets["example"], found),
        ) | {"right": self._right(examples, targets["example"], found, norms.sum(axis=1))}

    def _right(
        self, examples: Sequence[SpanExample], rows: np.ndarray, found: Mapping[str, np.ndarray], norms: np.ndarray
    ) -> np.ndarray:
        right = np.full(len(examples), -np.inf)
        np.maximum.at(right, rows, found["right"])
        right -= norms
        if self.unanswerable:  # log-sigmoid of the logit
            no_answer = -np.logaddexp(0, -self._lowest(len(examples), rows, found))
            right = np.where([example.is_impossible for example in examples], no_answer, right)
        return np.where(np.isfinite(right), right, np.nan)

    def _lowest(self, count: int, rows: np.ndarray, found: Mapping[str, np.ndarray]) -> np.ndarray:
        lowest = np.full(count, np.inf)
        if "no_answer" in found:
            np.minimum.at(lowest, rows, found["no_answer"])
        return lowest

    def _pack(self, ids: np.ndarray, spans: list[list[tuple[tuple[int, int], float]]], no_answer: np.ndarray) -> Scores:
        offsets = np.concatenate([[0], np.cumsum([len(of) for of in spans])]).astype(np.int64)
        flat = [(start, end, score) for of in spans for (start, end), score in of]
        starts, ends, scores = zip(*flat, strict=True) if flat else ((), (), ())
        packed = {
            "ids": ids,
            "offsets": offsets,
            "starts": np.array(starts, dtype=np.int64),
            "ends": np.array(ends, dtype=np.int64),
            "scores": np.array(scores, dtype=np.float64),
        }
        return packed | ({"no_answer": no_answer} if self.unanswerable else {})

    def average(self, members: Sequence[Scores]) -> Scores:
        """The mean of the spans' probabilities, where one that a member does not list has none; of no_answer, the mean.

        Members may differ in windows and tokenizer: spans are those of characters.
        """
        merged: list[list[tuple[tuple[int, int], float]]] = []
        for listed in zip(*(_spans(member) for member in members), strict=True):
            sums: dict[tuple[int, int], float] = {}
            for of_member in listed:
                for span, score in of_member:
                    sums[span] = np.logaddexp(sums.get(span, -math.inf), score)
            means = {span: float(score - math.log(len(members))) for span, score in sums.items()}
            merged.append(sorted(means.items(), key=lambda item: (-item[1], item[0])))
        no_answer = np.mean([member["no_answer"] for member in members], axis=0) if self.unanswerable else np.zeros(0)
        return self._pack(members[0]["ids"], merged, no_answer)

    def predict(self, examples: Sequence[SpanExample], scores: Scores) -> Predictions:
        """The text of the most probable span, empty where there is none, and how probable it is that none answers."""
        answers = {}
        for example, spans in zip(examples, _spans(scores), strict=True):
            start, end = spans[0][0] if spans else (0, 0)
            answers[example.id] = example.context[start:end]
        if not self.unanswerable:
            return Predictions(answers)
        probabilities = 1 / (1 + np.exp(-np.clip(scores["no_answer"], -500, 500)))
        return Predictions(answers, {e.id: float(p) for e, p in zip(examples, probabilities, strict=True)})

    def log_likelihoods(self, examples: Sequence[SpanExample], scores: Scores) -> np.ndarray | None:
        """Log-probabilities of the true spans [examples], or of there being no answer where none is true."""
        return scores["right"]

    def constant(self, train: Sequence[SpanExample], examples: Sequence[SpanExample]) -> Predictions:
        """The whole context; where questions may be unanswerable, no answer."""
        return Predictions({example.id: "" if self.unanswerable else example.context for example in examples})


@dataclass(frozen=True)
class SpanFeatures(Features):
    """Windows of contexts. A token at a position of a row is that of its context at position + shift."""

    contexts: Sequence[AlignedText] = ()  # by example


def _answer_tokens(example: SpanExample, context: AlignedText) -> tuple[int, int] | None:
    """First and last token of the first gold answer that is where it says."""
    for answer in example.answers:
        if answer.start is not None:
            return context.tokens_of(answer.start, answer.start + len(answer.text))
    return None


def _row_targets(window: Window, offset: int, answer: tuple[int, int] | None) -> tuple[int, ...]:
    shift = window.first - offset
    in_row = [place - shift for place in (window.first, window.end, window.best_first, window.best_end)]
    span = [place - shift for place in answer] if answer and window.contains(answer) else [NO_SPAN, NO_SPAN]
    return (shift, *in_row, *span)


def _spans(scores: Scores) -> Iterator[list[tuple[tuple[int, int], float]]]:
    """The spans of each example with their scores."""
    starts, ends, values = (scores[name].tolist() for name in ("starts", "ends", "scores"))
    for first, end in zip(scores["offsets"][:-1], scores["offsets"][1:], strict=True):
        yield [((starts[i], ends[i]), values[i]) for i in range(first, end)]
