"""Tokens of examples in batches; what a kind of task is, a module with a class `Kind`; the model; ensembles."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.errors import ConfigError
from albert_lab.files import read_arrays
from albert_lab.model.encoder import Encoder, Pooler, PretrainingModel, initialize
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.formats import subsample
from albert_lab.tasks.records import REMEDY
from albert_lab.tasks.task import KINDS, TaskConfig, TaskSettings
from albert_lab.training import checkpoint
from albert_lab.training.device import tensor_on

# Items are sorted by length within groups of this many batches: similar lengths in a batch, and still shuffled.
POOLED_BATCHES = 50
Scores = dict[str, np.ndarray]
NaProbs = Sequence[float] | None  # no-answer probabilities, if there may be no answer
Predictions = tuple[Sequence[Any], NaProbs]  # with the answer to each example: label, text or index


@dataclass(frozen=True)
class AlignedText:
    """The tokens of a raw text; token i covers text[starts[i]:ends[i]], without surrounding spaces.

    starts and ends ascend. A token that consists of spaces covers an empty range; a comma after a digit has no token.
    """

    ids: list[int]
    starts: list[int]
    ends: list[int]

    def tokens_of(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last of the fewest consecutive tokens that cover text[start:end]; None if no tokens cover it."""
        first = bisect_right(self.ends, start)
        last = bisect_left(self.starts, end) - 1
        while last > first and self.starts[last] == self.ends[last]:
            last -= 1
        return (first, last) if first <= last else None


def align(text: str, tokenizer: Tokenizer) -> AlignedText:
    """The tokens of a text, with the characters that they cover.

    A character that cleaning drops (an accent) belongs to the token before it, or to the next one at the start of a
    word.
    """
    ids, offsets = tokenizer.encode_with_offsets(text)
    starts, ends, reached = list[int](), list[int](), 0
    can_be_dropped = [not char.isspace() and char != "," for char in text]
    for first, end in [*offsets, (len(text), len(text))]:
        first = end - len(text[first:end].lstrip())
        end = first + len(text[first:end].rstrip())
        # The release splits the comma off a token such as "2006,"; here an answer ends before the comma.
        if end - first > 1 and text[end - 1] == "," and text[end - 2].isdigit():
            end -= 1
        start = max(reached, first)
        while ends and reached < start and can_be_dropped[reached]:
            ends[-1] = reached = reached + 1
        while start > reached and can_be_dropped[start - 1]:
            start -= 1
        reached = max(start, end)
        starts.append(start)
        ends.append(reached)
    return AlignedText(ids, starts[:-1], ends[:-1])


def join(tokenizer: Tokenizer, first: Sequence[int], second: Sequence[int] | None = None) -> tuple[list[int], int]:
    """`[CLS] first [SEP] second [SEP]` (second is optional), and the number of tokens with token type 0."""
    ids = [tokenizer.cls_id, *first, tokenizer.sep_id]
    return ids + ([] if second is None else [*second, tokenizer.sep_id]), len(ids)


def cut_pair(first: Sequence[int], second: Sequence[int], room: int) -> tuple[Sequence[int], Sequence[int]]:
    """Truncates both parts at their ends to `room` tokens in total: always the longer one, the second if equal.

    Source: _truncate_seq_pair in classifier_utils.py of the release.
    """
    second = second[: max(room // 2, room - len(first))]
    return first[: room - len(second)], second


@dataclass(frozen=True)
class Features:
    """The sequences of examples. Batch sizes count items: an item is rows_per_item consecutive rows."""

    rows: list[tuple[list[int], int]]  # token ids, and how many have token type 0
    targets: dict[str, np.ndarray]  # [items, ...]
    pad_id: int
    rows_per_item: int = 1
    contexts: Sequence[AlignedText] = ()  # of examples whose answers are spans

    @cached_property
    def lengths(self) -> np.ndarray:
        """Length of the longest row of each item, [items]."""
        lengths = np.array([len(ids) for ids, _ in self.rows], dtype=np.int64)
        return lengths.reshape(-1, self.rows_per_item).max(axis=1)

    def batch(self, items: np.ndarray, device: torch.device) -> "TaskBatch":
        """The items as one batch, padded to the longest row among them."""
        chosen = (items[:, None] * self.rows_per_item + np.arange(self.rows_per_item)).ravel()
        ids, firsts = zip(*(self.rows[row] for row in chosen), strict=True)
        lengths = np.array([*map(len, ids)])[:, None]
        positions = np.arange(lengths.max())
        attention_mask = positions < lengths
        input_ids = np.full(attention_mask.shape, self.pad_id, dtype=np.int64)
        input_ids[attention_mask] = np.concatenate(ids)
        is_second = (positions >= np.array(firsts)[:, None]) & attention_mask
        return TaskBatch(
            input_ids=tensor_on(input_ids, device),
            token_type_ids=tensor_on(is_second.astype(np.int64), device),
            attention_mask=tensor_on(attention_mask, device),
            targets={name: tensor_on(values[items], device) for name, values in self.targets.items()},
            is_masked=device.type == "cpu" or not attention_mask.all(),
        )


@dataclass(frozen=True)
class TaskBatch:
    """Rows padded to the right, and the targets of each item."""

    input_ids: torch.Tensor  # [rows, sequence] int64
    token_type_ids: torch.Tensor  # [rows, sequence] int64
    attention_mask: torch.Tensor  # [rows, sequence] bool: True at real tokens
    targets: Mapping[str, torch.Tensor]  # [items, ...]
    is_masked: bool  # False if no row is padded, and the device is not the CPU (see training/device.py)


def training_items(lengths: np.ndarray, batch_size: int, seed: int) -> Iterator[np.ndarray]:
    """The items of each training batch, in endless epochs; an epoch depends only on (seed, epoch).

    Items of similar length share a batch, so that padding is small. The last batch of an epoch may be smaller.
    """
    for epoch in count():
        rng = np.random.Generator(np.random.Philox(key=[seed, epoch]))
        order = rng.permutation(len(lengths))
        # Differs from the release, which shuffles examples that are padded to the maximal length of the settings.
        batches, size = [], POOLED_BATCHES * batch_size
        for pool in np.split(order, range(size, len(order), size)):
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            batches += np.split(pool, range(batch_size, len(pool), batch_size))
        for index in rng.permutation(len(batches)):
            yield batches[index]


class Scored(NamedTuple):
    """The final answer to each example, and the official scores in percent by name, the main ones first.

    shares has the score of each answer, from 0 to 1, by name of the score, of scores that are means over examples: not
    of correlations or GLUE's F1. threshold is that of no answer, if there is one.
    """

    answers: Sequence[Any]
    values: dict[str, float]
    shares: dict[str, list[float]]
    threshold: float | None = None


class TaskKind(ABC):
    """One kind of task for one task: features, head, and the way from scores to answers and their official scores.

    collect() and average() are those of heads whose scores are `values`: one probability per answer [items, answers],
    or a number.
    """

    def __init__(self, task: TaskConfig, settings: TaskSettings) -> None:
        self.task, self.form = task, cast(Any, task.format)  # its format is one of those that the kind reads,
        self.settings = cast(Any, settings)  # and what the kind reads of its settings is not None

    @abstractmethod
    def make_features(self, examples: Sequence[Any], tokenizer: Tokenizer, *, training: bool) -> Features:
        """The sequences of examples for training or prediction."""

    @abstractmethod
    def build_head(self, shape: EncoderShape) -> nn.Module:
        """A head whose weights are not initialised yet.

        Its loss(hidden_states, pooled, batch) is the mean loss of a batch, and its scores(hidden_states, pooled, batch)
        a dict of arrays [items, ...], from hidden states [rows, sequence, hidden] and pooled output [rows, hidden].
        """

    @abstractmethod
    def chance_loss(self, features: Features) -> float:
        """The lowest possible loss of a model that ignores the example, in nats (for numbers, their variance)."""

    @abstractmethod
    def predict(self, examples: Sequence[Any], scores: Scores) -> Predictions:
        """The answer to each example."""

    @abstractmethod
    def constant(self, examples: Sequence[Any]) -> Sequence[Any]:
        """The best answers that ignore the example, by the labels of the scored examples; their score is the floor."""

    @abstractmethod
    def score(self, examples: Sequence[Any], answers: Sequence[Any], na_probs: NaProbs = None) -> Scored:
        """The official scores of the answers to all examples."""

    def collect(self, examples: Sequence[Any], features: Features, outputs: Mapping[str, np.ndarray]) -> Scores:
        """Scores of each example, in the form that is saved and averaged, from the scores of each item."""
        return {"ids": np.array([example.id for example in examples]), "values": outputs["values"]}

    def average(self, members: Sequence[Scores]) -> Scores:
        """Scores of an ensemble from the scores of its members on the same examples."""
        return members[0] | {"values": np.mean([member["values"] for member in members], axis=0)}


class PooledHead(nn.Module):
    """Dropout and one linear layer on the pooled output (run_classifier.py and race_utils.py of the release).

    Its logits are those of an item's labels, or its number, or one for each row of an item that has options.
    """

    def __init__(self, hidden_size: int, num_outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden_size, num_outputs)

    def loss(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        """Cross-entropy of the labels; mean squared error if they are numbers."""
        logits, labels = self._logits(pooled, batch), batch.targets["labels"]
        return F.mse_loss(logits[:, 0], labels) if labels.is_floating_point() else F.cross_entropy(logits, labels)

    def scores(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> dict[str, torch.Tensor]:
        """values: probabilities [items, labels], 0 for options that an item lacks; or the number [items, 1]."""
        logits = self._logits(pooled, batch)
        return {"values": logits if batch.targets["labels"].is_floating_point() else logits.softmax(-1)}

    def _logits(self, pooled: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        logits = self.output(self.dropout(pooled)).float()
        if (counts := batch.targets.get("options")) is None:
            return logits
        logits = logits.view(len(counts), -1)
        is_none = torch.arange(logits.shape[1], device=logits.device) >= counts[:, None]
        return logits.masked_fill(is_none, -math.inf)


def load_kind(task: TaskConfig, settings: TaskSettings) -> TaskKind:
    """The kind of a task with these settings."""
    return import_module(KINDS[task.kind].module).Kind(task, settings)


class InitialModel(NamedTuple):
    """The start of a fine-tuning: a run's configuration and tokenizer, its weights (None: random), and the folder.

    Records are written below the folder. name identifies the start: records with another name are ignored.
    """

    name: str
    config: RunConfig
    tokenizer: Tokenizer
    weights: Path | None
    folder: Path


class TaskModel(nn.Module):
    """The encoder and pooler of pre-training with the head of a task."""

    def __init__(self, encoder: Encoder, pooler: Pooler, head: Any) -> None:
        super().__init__()
        self.encoder, self.pooler, self.head = encoder, pooler, head

    def forward(self, batch: TaskBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """What the head reads: hidden states [rows, sequence, hidden] and pooled output [rows, hidden]."""
        mask = batch.attention_mask if batch.is_masked else None
        hidden_states = self.encoder(batch.input_ids, batch.token_type_ids, mask).last_hidden_state
        return hidden_states, self.pooler(hidden_states)


def build_model(start: InitialModel, kind: TaskKind, seed: int) -> TaskModel:
    """Builds a model to fine-tune: the encoder and pooler of a run (or random ones) and a random head.

    By the settings of the kind, the pooler is a new one, with random weights.

    Raises:
        MissingDataError, ConfigError: see checkpoint.load_weights.
    """
    shape = replace(EncoderShape.from_config(start.config), dropout=kind.settings.dropout)
    pretrained = PretrainingModel(shape, len(start.config.inter_sentence.labels), seed)
    if start.weights is not None:
        checkpoint.load_weights(start.weights, pretrained)
    head = kind.build_head(shape)
    generator = torch.Generator().manual_seed(seed)
    initialize(head, shape.initializer_range, generator)
    if kind.settings.pooler == "new":
        # Differs from the paper, which says nothing of the pooler, and the release, which keeps that of pre-training.
        initialize(pretrained.pooler, shape.initializer_range, generator)
    return TaskModel(pretrained.encoder, pretrained.pooler, head)


def ensemble(
    task: TaskConfig, files: Sequence[Path], data: Path, *, scale: str, best: int | None = None
) -> tuple[Scored, list[float]]:
    """Answers to the dev examples by averaged probabilities, or averaged span and no-answer scores.

    Beside them are the main scores of the members, the best first. Members may have different runs, seeds and
    checkpoints, and for spans even different tokenizers.

    Args:
        files: Scores of the members, as written by fine-tunings (best.npz).
        best: Number of members to use, those with the highest main score; None: all.

    Raises:
        MissingDataError: the task's data does not exist. DamagedFileError: a file does not, or has no scores.
        ConfigError: members with scores of different examples, or examples that are not in the data.
    """
    kind, members = load_kind(task, task.at(scale)), [read_arrays(file, REMEDY) for file in files]
    examples = subsample(task.read(data, "dev")[0], kind.settings.dev_examples)
    if any(scores["ids"].tolist() != [example.id for example in examples] for scores in members):
        raise ConfigError(f"{', '.join(map(str, files))}: scores of other examples than those of {task.name} today")

    def scored(scores: Scores) -> Scored:
        return kind.score(examples, *kind.predict(examples, scores))

    singles = [task.main_score(scored(scores).values) for scores in members]
    used = sorted(range(len(files)), key=lambda place: -singles[place])[:best]
    return scored(kind.average([members[place] for place in used])), [singles[place] for place in used]
