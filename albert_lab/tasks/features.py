"""Examples as sequences of tokens, and batches of these with little padding."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch

from albert_lab.data.tokenizer.base import Tokenizer
from albert_lab.tasks.alignment import AlignedText, align
from albert_lab.training.device import tensor_on

# Items are sorted by length within groups of this many batches: similar lengths in a batch, and still shuffled.
POOLED_BATCHES = 50


class TextEncoder:
    """Text to tokens as in pre-training, by the run's tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.pad_id = tokenizer.pad_id
        self.align = lru_cache(maxsize=None)(self._align)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""
        return self._tokenizer.encode(texts)

    def _align(self, text: str) -> AlignedText:
        return align(text, self._tokenizer)

    def join(self, first: Sequence[int], second: Sequence[int] | None) -> tuple[list[int], int]:
        """`[CLS] first [SEP] second [SEP]` (second is optional), and the number of tokens with token type 0."""
        ids = [self._tokenizer.cls_id, *first, self._tokenizer.sep_id]
        if second is None:
            return ids, len(ids)
        return [*ids, *second, self._tokenizer.sep_id], len(ids)


def cut_pair(first: Sequence[int], second: Sequence[int], room: int) -> tuple[Sequence[int], Sequence[int]]:
    """Truncates both parts at their ends to `room` tokens in total: always the longer one, the second if equal.

    Source: _truncate_seq_pair in classifier_utils.py of the release.
    """
    longest_second = max(room // 2, room - len(first))
    second = second[:longest_second]
    return first[: room - len(second)], second


@dataclass(frozen=True)
class Features:
    """The sequences (rows) of examples. Batch sizes count items: an item is rows_per_item consecutive rows.

    counts: numbers of examples that were truncated, windowed or unusable.
    """

    input_ids: list[list[int]]
    first_lengths: list[int]  # tokens with token type 0, by row
    targets: dict[str, np.ndarray]  # [items, ...]
    counts: dict[str, int]
    pad_id: int
    rows_per_item: int = 1

    def __len__(self) -> int:
        return len(self.input_ids) // self.rows_per_item

    @cached_property
    def lengths(self) -> np.ndarray:
        """Length of the longest row of each item, [items]."""
        lengths = np.array([len(row) for row in self.input_ids], dtype=np.int64)
        return lengths.reshape(-1, self.rows_per_item).max(axis=1)

    def batch(self, items: np.ndarray, device: torch.device) -> "TaskBatch":
        """The items as one batch, padded to the longest row among them."""
        rows = (items[:, None] * self.rows_per_item + np.arange(self.rows_per_item)).ravel()
        width = int(self.lengths[items].max())
        input_ids = np.full((len(rows), width), self.pad_id, dtype=np.int64)
        for place, row in enumerate(rows):
            input_ids[place, : len(self.input_ids[row])] = self.input_ids[row]
        positions = np.arange(width)
        lengths = np.array([len(self.input_ids[row]) for row in rows])[:, None]
        is_second = positions >= np.array([self.first_lengths[row] for row in rows])[:, None]
        attention_mask = positions < lengths
        return TaskBatch(
            input_ids=tensor_on(input_ids, device),
            token_type_ids=tensor_on((is_second & attention_mask).astype(np.int64), device),
            attention_mask=tensor_on(attention_mask, device),
            targets={name: tensor_on(values[items], device) for name, values in self.targets.items()},
            num_tokens=int(lengths.sum()),
        )


@dataclass(frozen=True)
class TaskBatch:
    """Rows padded to the right, and the targets of each item."""

    input_ids: torch.Tensor  # [rows, sequence] int64
    token_type_ids: torch.Tensor  # [rows, sequence] int64
    attention_mask: torch.Tensor  # [rows, sequence] bool: True at real tokens
    targets: Mapping[str, torch.Tensor]  # [items, ...]
    num_tokens: int  # real tokens

    @property
    def mask_of_padding(self) -> torch.Tensor | None:
        """The attention mask; None if no row is padded and the device is not the CPU (see training/device.py)."""
        is_full = self.num_tokens == self.input_ids.numel() and self.input_ids.device.type != "cpu"
        return None if is_full else self.attention_mask


def training_items(lengths: np.ndarray, batch_size: int, seed: int) -> Iterator[np.ndarray]:
    """The items of each training batch, in endless epochs; an epoch depends only on (seed, epoch).

    Items of similar length share a batch, so that padding is small. The last batch of an epoch may be smaller.
    """
    epoch = 0
    while True:
        rng = np.random.Generator(np.random.Philox(key=[seed, epoch]))
        order = rng.permutation(len(lengths))
        pools = [
            order[at : at + POOLED_BATCHES * batch_size] for at in range(0, len(order), POOLED_BATCHES * batch_size)
        ]
        # Differs from the release, which shuffles examples that are padded to the maximal length of the settings.
        by_length = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
        batches = [pool[at : at + batch_size] for pool in by_length for at in range(0, len(pool), batch_size)]
        for index in rng.permutation(len(batches)):
            yield batches[index]
        epoch += 1


def evaluation_items(lengths: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Batches with every item once, the shortest first."""
    order = np.argsort(lengths, kind="stable")
    for at in range(0, len(order), batch_size):
        yield order[at : at + batch_size]
