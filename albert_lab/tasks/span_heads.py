"""The heads of span extraction: start and end of an answer in the tokens of a row, and answerability."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.features import TaskBatch
from albert_lab.tasks.settings import TaskSettings

NO_SPAN = 0  # position of [CLS], the target of a window without the answer
_MASKED = -1e30


class SpanHead(nn.Module):
    """A linear layer for the start and the end of the span (run_squad_v1.py of the release)."""

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

        right [rows] is the score of the true span, minus infinity if the row does not contain it. norms [rows, 2] are
        the logarithms of the normalizers of start and end probabilities.
        """
        logits = self._logits(hidden_states, batch)
        assert self.settings.n_best is not None
        count = min(self.settings.n_best, hidden_states.shape[1])
        (start_scores, starts), (end_scores, ends) = (
            values.masked_fill(~_in_context(batch), _MASKED).topk(count) for values in logits
        )
        best = _best_spans(
            starts[:, :, None].expand(-1, -1, count),
            ends[:, None, :].expand(-1, count, -1),
            start_scores[:, :, None] + end_scores[:, None, :],
            batch,
            self.settings,
        )
        right = _at(logits[0], batch.targets["start"]) + _at(logits[1], batch.targets["end"])
        norms = torch.stack([values.logsumexp(-1) for values in logits], dim=-1)
        return best | {"right": _where_held(right, batch), "norms": norms}

    def _logits(self, hidden_states: torch.Tensor, batch: TaskBatch) -> list[torch.Tensor]:
        # Differs from the release: padding cannot be chosen, since the loss would depend on its length.
        logits = self.output(hidden_states).float()
        return [values.masked_fill(~batch.attention_mask, _MASKED) for values in logits.unbind(-1)]


class SpanOrNothingHead(nn.Module):
    """Start, end given the start, and answerability (XLNet's head, run_squad_v2.py)."""

    def __init__(self, shape: EncoderShape, settings: TaskSettings) -> None:
        super().__init__()
        size = shape.hidden_size
        self.settings = settings
        self.start = nn.Linear(size, 1)
        # One layer on [token, start token], stored as two halves: the first is computed once for all starts.
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
        end_logits = self.end_logits(hidden_states, starts[:, None], batch)[:, 0]
        no_answer = self._no_answer_logits(hidden_states, start_logits)
        span_loss = (F.cross_entropy(start_logits, starts) + F.cross_entropy(end_logits, ends)) / 2
        return span_loss + F.binary_cross_entropy_with_logits(no_answer, batch.targets["is_impossible"]) / 2

    def scores(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> dict[str, torch.Tensor]:
        """The best spans of each row, [rows, candidates]: start, end, score (the sum of their log-probabilities).

        right [rows] is the log-probability of the true span and of answerability, minus infinity if the row does not
        contain the span; no_answer [rows] is the logit of no answer.
        """
        start_logits = self._start_logits(hidden_states, batch)
        assert self.settings.beam_size is not None
        count = min(self.settings.beam_size, hidden_states.shape[1])
        start_scores, starts = start_logits.log_softmax(-1).topk(count)
        end_scores, ends = self.end_logits(hidden_states, starts, batch).log_softmax(-1).topk(count)
        best = _best_spans(
            starts[:, :, None].expand(-1, -1, count), ends, start_scores[:, :, None] + end_scores, batch, self.settings
        )
        no_answer = self._no_answer_logits(hidden_states, start_logits)
        true_start, true_end = batch.targets["start"], batch.targets["end"]
        end_of_true = self.end_logits(hidden_states, true_start[:, None], batch)[:, 0]
        right = _at(start_logits.log_softmax(-1), true_start) + _at(end_of_true.log_softmax(-1), true_end)
        return best | {"right": _where_held(right + F.logsigmoid(-no_answer), batch), "no_answer": no_answer}

    def _start_logits(self, hidden_states: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        return self.start(hidden_states)[..., 0].float().masked_fill(~_allowed(batch), _MASKED)

    def end_logits(self, hidden_states: torch.Tensor, starts: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
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
    """[rows, sequence] bool: True at tokens of the context, which are between the last two [SEP]."""
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
    """Values [rows], or minus infinity for rows without the answer."""
    return values.masked_fill(batch.targets["start"] == NO_SPAN, -math.inf)


def _best_spans(
    starts: torch.Tensor, ends: torch.Tensor, scores: torch.Tensor, batch: TaskBatch, settings: TaskSettings
) -> dict[str, torch.Tensor]:
    """The best spans of [rows, starts, ends]; spans that cannot be answers have a score of minus infinity."""
    assert settings.answer_length is not None
    assert settings.n_best is not None
    # A token of two windows counts in the window where it has more context.
    first, end = (batch.targets[name][:, None, None] for name in ("best_first", "best_end"))
    context_end = batch.targets["context_end"][:, None, None]
    lengths = ends - starts + 1
    possible = (starts >= first) & (starts < end) & (ends < context_end)
    possible &= (lengths > 0) & (lengths <= settings.answer_length)
    scores = scores.masked_fill(~possible, -math.inf).flatten(1)
    best, places = scores.topk(min(settings.n_best, scores.shape[1]))
    return {"start": starts.flatten(1).gather(1, places), "end": ends.flatten(1).gather(1, places), "score": best}
