"""The sequences of examples, how texts are joined and cut to them, and the batches that are made of
them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
import torch

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.tasks.alignment import AlignedText
from albert_lab.training.device import tensor_on

# Items are sorted by length within groups of this many batches: similar lengths in a batch, and
# still shuffled.
POOLED_BATCHES = 50


def join(
    tokenizer: Tokenizer, first: Sequence[int], second: Sequence[int] | None = None
) -> tuple[list[int], int]:
    """`[CLS] first [SEP] second [SEP]` (second is optional), and the number of tokens with token
    type 0.
    """
    ids = [tokenizer.cls_id, *first, tokenizer.sep_id]
    return ids + ([] if second is None else [*second, tokenizer.sep_id]), len(ids)


def cut_pair(
    first: Sequence[int], second: Sequence[int], room: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Truncates both parts at their ends to `room` tokens in total: always the longer one, the
    second if equal.

    Source: _truncate_seq_pair in classifier_utils.py of the release.
    """
    second = second[: max(room // 2, room - len(first))]
    return first[: room - len(second)], second


@dataclass(frozen=True)
class Features:
    """The sequences of examples. Batch sizes count items: an item is rows_per_item consecutive
    rows.
    """

    rows: list[tuple[list[int], int]]  # token ids, and how many have token type 0
    targets: dict[str, np.ndarray]  # [items, ...]
    pad_id: int
    rows_per_item: int = 1
    contexts: Sequence[AlignedText] = ()  # of examples whose answers are spans
    cut: int = 0  # examples of which some text was too long; a context in windows is whole

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
            targets={
                name: tensor_on(values[items], device) for name, values in self.targets.items()
            },
            is_masked=device.type == "cpu" or not attention_mask.all(),
        )


@dataclass(frozen=True)
class TaskBatch:
    """Rows padded to the right, and the targets of each item."""

    input_ids: torch.Tensor  # [rows, sequence] int64
    token_type_ids: torch.Tensor  # [rows, sequence] int64
    attention_mask: torch.Tensor  # [rows, sequence] bool: True at real tokens
    targets: Mapping[str, torch.Tensor]  # [items, ...]
    # False if no row is padded, and the device is not the CPU (see training/device.py)
    is_masked: bool


def training_items(lengths: np.ndarray, batch_size: int, seed: int) -> Iterator[np.ndarray]:
    """The items of each training batch, in endless epochs; an epoch depends only on (seed, epoch).

    Items of similar length share a batch, so that padding is small. The last batch of an epoch may
    be smaller.
    """
    for epoch in count():
        rng = np.random.Generator(np.random.Philox(key=[seed, epoch]))
        order = rng.permutation(len(lengths))
        # Differs from the release, which shuffles examples that are padded to the maximal length of
        # the settings.
        batches = []
        size = POOLED_BATCHES * batch_size
        for pool in np.split(order, range(size, len(order), size)):
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            batches += np.split(pool, range(batch_size, len(pool), batch_size))
        for index in rng.permutation(len(batches)):
            yield batches[index]
