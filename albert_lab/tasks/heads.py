"""The heads of tasks: what reads the encoder's output, its loss, and its scores.

A head's loss(hidden_states, pooled, batch) is the mean loss of a batch, and its
scores(hidden_states, pooled, batch) a dict of arrays [items, ...], from hidden states [rows,
sequence, hidden] and pooled output [rows, hidden].
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.batches import TaskBatch

NO_SPAN = 0  # position of [CLS], the target of a window without the answer
_MASKED = -1e30


class PooledHead(nn.Module):
    """Dropout and one linear layer on the pooled output (run_classifier.py and race_utils.py of the
    release).

    Its logits are those of an item's labels, or its number, or one for each row of an item that has
    options.
    """

    def __init__(self, hidden_size: int, num_outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden_size, num_outputs)

    def loss(self, hidden_states: Tensor, pooled: Tensor, batch: TaskBatch) -> Tensor:
        """Cross-entropy of the labels; mean squared error if they are numbers."""
        logits = self._logits(pooled, batch)
        labels = batch.targets["labels"]
        if labels.is_floating_point():
            return F.mse_loss(logits[:, 0], labels)
        return F.cross_entropy(logits, labels)

    def scores(self, hidden_states: Tensor, pooled: Tensor, batch: TaskBatch) -> dict[str, Tensor]:
        """values: probabilities [items, labels], 0 for options that an item lacks; or the number
        [items, 1].
        """
        logits = self._logits(pooled, batch)
        if batch.targets["labels"].is_floating_point():
            return {"values": logits}
        return {"values": logits.softmax(-1)}

    def _logits(self, pooled: Tensor, batch: TaskBatch) -> Tensor:
        logits = self.output(self.dropout(pooled)).float()
        counts = batch.targets.get("options")
        if counts is None:
            return logits
        # One row an option: items with fewer options have empty rows, whose logits are ignored.
        logits = logits.view(len(counts), -1)
        is_none = torch.arange(logits.shape[1], device=logits.device) >= counts[:, None]
        return logits.masked_fill(is_none, -math.inf)


class SpanHead(nn.Module):
    """A linear layer for the start and the end of the span (run_squad_v1.py of the release)."""

    def __init__(self, shape: EncoderShape, settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self.output = nn.Linear(shape.hidden_size, 2)

    def loss(self, hidden_states: Tensor, pooled: Tensor, batch: TaskBatch) -> Tensor:
        """Mean cross-entropy of start and end among all tokens of the row."""
        start_logits, end_logits = self._logits(hidden_states, batch)
        starts = batch.targets["start"]
        ends = batch.targets["end"]
        return (F.cross_entropy(start_logits, starts) + F.cross_entropy(end_logits, ends)) / 2

    def scores(self, hidden_states: Tensor, pooled: Tensor, batch: TaskBatch) -> dict[str, Tensor]:
        """The best spans of each row, [rows, candidates]: start, end, score (the sum of their
        logits).
        """
        logits = self._logits(hidden_states, batch)
        count = min(self.settings.n_best, hidden_states.shape[1])
        elsewhere = ~_in_context(batch)
        starts, ends = (values.masked_fill(elsewhere, _MASKED).topk(count) for values in logits)
        # The same ends for every start.
        ends = [end[:, None] for end in ends]
        return _best_spans(starts, ends, batch, self.settings)

    def _logits(self, hidden_states: Tensor, batch: TaskBatch) -> list[Tensor]:
        # Differs from the release: padding cannot be chosen, since the loss would depend on its
        # length.
        logits = self.output(hidden_states).float()
        return [values.masked_fill(~batch.attention_mask, _MASKED) for values in logits.unbind(-1)]


class SpanOrNothingHead(nn.Module):
    """Start, end given the start, and answerability (XLNet's head, run_squad_v2.py)."""

    def __init__(self, shape: EncoderShape, settings: Any) -> None:
        super().__init__()
        size = shape.hidden_size
        self.settings = settings
        self.start = nn.Linear(size, 1)
        # One layer on [token, start token], stored as two halves: the first is computed once for
        # all starts.
        self.end_of_token = nn.Linear(size, size)
        self.end_of_start = nn.Linear(size, size, bias=False)
        self.end_layer_norm = nn.LayerNorm(size, eps=shape.layer_norm_eps)
        self.end = nn.Linear(size, 1)
        self.answerability = nn.Linear(2 * size, size)
        self.dropout = nn.Dropout(settings.classifier_dropout)
        self.no_answer = nn.Linear(size, 1, bias=False)

    def loss(self, hidden_states: Tensor, pooled: Tensor, batch: TaskBatch) -> Tensor:
        """Mean cross-entropy of start and end, the end given the true start, plus half that of
        answerability.
        """
        starts = batch.targets["start"]
        ends = batch.targets["end"]
        start_logits = self._start_logits(hidden_states, batch)
        end_logits = self.end_logits(hidden_states, starts[:, None], batch)[:, 0]
        no_answer = self._no_answer_logits(hidden_states, start_logits)
        span_loss = F.cross_entropy(start_logits, starts) + F.cross_entropy(end_logits, ends)
        is_impossible = batch.targets["is_impossible"]
        answer_loss = F.binary_cross_entropy_with_logits(no_answer, is_impossible)
        return span_loss / 2 + answer_loss / 2

    def scores(self, hidden_states: Tensor, pooled: Tensor, batch: TaskBatch) -> dict[str, Tensor]:
        """The best spans of each row, [rows, candidates]: start, end, score (the sum of their
        log-probabilities).

        no_answer [rows] is the logit of no answer.
        """
        start_logits = self._start_logits(hidden_states, batch)
        count = min(self.settings.beam_size, hidden_states.shape[1])
        starts = start_logits.log_softmax(-1).topk(count)
        ends = self.end_logits(hidden_states, starts.indices, batch).log_softmax(-1).topk(count)
        best = _best_spans(starts, ends, batch, self.settings)
        return best | {"no_answer": self._no_answer_logits(hidden_states, start_logits)}

    def _start_logits(self, hidden_states: Tensor, batch: TaskBatch) -> Tensor:
        logits = self.start(hidden_states)[..., 0].float()
        return logits.masked_fill(~_in_context(batch, or_none=True), _MASKED)

    def end_logits(self, hidden_states: Tensor, starts: Tensor, batch: TaskBatch) -> Tensor:
        """[rows, starts, sequence] for starts [rows, starts]."""
        at_start = hidden_states.gather(
            1, starts[:, :, None].expand(-1, -1, hidden_states.shape[-1])
        )
        joined = self.end_of_token(hidden_states)[:, None] + self.end_of_start(at_start)[:, :, None]
        logits = self.end(self.end_layer_norm(torch.tanh(joined)))[..., 0].float()
        return logits.masked_fill(~_in_context(batch, or_none=True)[:, None], _MASKED)

    def _no_answer_logits(self, hidden_states: Tensor, start_logits: Tensor) -> Tensor:
        summary = torch.einsum("rs,rsh->rh", start_logits.softmax(-1), hidden_states.float())
        features = torch.cat([summary, hidden_states[:, 0].float()], dim=-1)
        return self.no_answer(self.dropout(torch.tanh(self.answerability(features))))[:, 0].float()


def _in_context(batch: TaskBatch, *, or_none: bool = False) -> Tensor:
    """[rows, sequence] bool: True at tokens of the context, between the last two [SEP], and at
    NO_SPAN if allowed.
    """
    positions = torch.arange(batch.input_ids.shape[1], device=batch.input_ids.device)
    first = batch.targets["context_first"][:, None]
    end = batch.targets["context_end"][:, None]
    is_none = (positions == NO_SPAN) & or_none
    return (positions >= first) & (positions < end) | is_none


def _best_spans(
    of_starts: Sequence[Tensor],
    of_ends: Sequence[Tensor],
    batch: TaskBatch,
    settings: Any,
) -> dict[str, Tensor]:
    """The best spans; those that cannot be answers have a score of minus infinity.

    Args:
        of_starts: scores and positions of the starts, [rows, starts].
        of_ends: scores and positions of the ends, [rows, starts or 1, ends].
    """
    scores = of_starts[0][:, :, None] + of_ends[0]
    starts = of_starts[1][:, :, None].expand_as(scores)
    ends = of_ends[1].expand_as(scores)
    bounds = {name: values[:, None, None] for name, values in batch.targets.items()}
    # A token of two windows counts in the window where it has more context.
    possible = (starts >= bounds["best_first"]) & (starts < bounds["best_end"])
    possible &= ends < bounds["context_end"]
    lengths = ends - starts + 1
    possible &= (lengths > 0) & (lengths <= settings.answer_length)
    scores = scores.masked_fill(~possible, -math.inf).flatten(1)
    scores, places = scores.topk(min(settings.n_best, scores.shape[1]))
    # A short row has fewer spans; all batches have the same number of columns.
    lacking = (0, settings.n_best - scores.shape[1])
    return {
        "start": F.pad(starts.flatten(1).gather(1, places), lacking),
        "end": F.pad(ends.flatten(1).gather(1, places), lacking),
        "score": F.pad(scores, lacking, value=-math.inf),
    }
