"""Examples as sequences of tokens, and batches of these with little padding."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.training.device import tensor_on

# Items are sorted by length within groups of this many batches: similar lengths in a batch, and still shuffled.
POOLED_BATCHES = 50


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
    starts: list[int] = []
    ends: list[int] = []
    reached = 0

    def is_dropped(place: int) -> bool:
        return not text[place].isspace() and text[place] != ","

    for first, end in [*offsets, (len(text), len(text))]:
        while first < end and text[first].isspace():
            first += 1
        while first < end and text[end - 1].isspace():
            end -= 1
        # The release splits the comma off a token such as "2006,"; here an answer ends before the comma.
        if end - first > 1 and text[end - 1] == "," and text[end - 2].isdigit():
            end -= 1
        start = max(reached, first)
        while ends and reached < start and is_dropped(reached):
            ends[-1] = reached = reached + 1
        while start > reached and is_dropped(start - 1):
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
    longest_second = max(room // 2, room - len(first))
    second = second[:longest_second]
    return first[: room - len(second)], second


@dataclass(frozen=True)
class Features:
    """The sequences of examples. Batch sizes count items: an item is rows_per_item consecutive rows."""

    rows: list[tuple[list[int], int]]  # token ids, and how many have token type 0
    targets: dict[str, np.ndarray]  # [items, ...]
    pad_id: int
    rows_per_item: int = 1
    contexts: Sequence[AlignedText] = ()  # of examples whose answers are spans

    def __len__(self) -> int:
        return len(self.rows) // self.rows_per_item

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
        # Differs from the release, which shuffles examples that are padded to the maximal length of the settings.
        batches = [
            batch
            for pool in _chunks(order, POOLED_BATCHES * batch_size)
            for batch in _chunks(pool[np.argsort(lengths[pool], kind="stable")], batch_size)
        ]
        for index in rng.permutation(len(batches)):
            yield batches[index]
        epoch += 1


def evaluation_items(lengths: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Batches with every item once, the shortest first."""
    return _chunks(np.argsort(lengths, kind="stable"), batch_size)


def _chunks(items: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return (items[at : at + size] for at in range(0, len(items), size))
