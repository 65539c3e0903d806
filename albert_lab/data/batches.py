"""Masked batches through the stages of a length schedule, prefetched by a thread; and fixed sets
for evaluation.
"""

import bisect
import math
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from albert_lab.config.data import InterSentenceConfig, MaskingConfig
from albert_lab.config.schema import RESULTS_VERSION, RunConfig, digest
from albert_lab.data.chunks import Stream, generator
from albert_lab.data.masking import METHODS, Mask, mask
from albert_lab.data.pairs import Pairs, make_pairs
from albert_lab.data.shards import Shards
from albert_lab.data.tokenizer import Tokenizer

IGNORED_LABEL = -100  # the default of torch's losses
# A fixed set is sampled from at most this many blocks of documents (see chunks.py): four million
# sentences.
SAMPLED_BLOCKS = 16
# Epochs of a stage of the length schedule are numbered from a multiple of this, so that no two
# stages share draws.
_EPOCHS_OF_A_STAGE = 1 << 32
# A share of the budget is a quotient of floats: a stage begins at the step that is this close to
# its start.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Batch:
    """Masked examples `[CLS] A [SEP] B [SEP]`, padded to the right."""

    input_ids: np.ndarray  # [batch, sequence] int64
    # [batch, sequence] int64: 0 up to the first [SEP], 1 up to the second, 0 on padding
    token_type_ids: np.ndarray
    attention_mask: np.ndarray  # [batch, sequence] bool: True at real tokens
    masked_positions: np.ndarray  # [masked] int64: into the flattened batch, ascending
    masked_labels: np.ndarray  # [masked] int64: the original ids
    pair_labels: np.ndarray  # [batch] int64: -1 where the objective has no labels

    def __len__(self) -> int:
        return len(self.pair_labels)

    @property
    def num_tokens(self) -> int:
        return int(np.count_nonzero(self.attention_mask))

    def with_masked(self, count: int) -> "Batch":
        """The batch padded to `count` masked positions (at least as many as it has), so that all
        have one shape: position 0 is added, with a label that losses ignore.
        """
        padding = (0, count - len(self.masked_labels))
        positions = np.pad(self.masked_positions, padding)
        labels = np.pad(self.masked_labels, padding, constant_values=IGNORED_LABEL)
        return replace(self, masked_positions=positions, masked_labels=labels)


@dataclass
class Batches:
    """The batches of one length. The examples are those of epoch 0 in their order, then those of
    epoch 1, and so on.
    """

    shards: Shards
    vocabulary: Tokenizer
    config: RunConfig  # at its stage
    first_step: int = 0
    first_epoch: int = 0  # of its stage of the length schedule: stages share no draws

    def __post_init__(self) -> None:
        self._planned: dict[int, Pairs] = {}  # the last epoch that was planned, by its number
        # Number of examples before each epoch planned so far and before the next one; statistics of
        # the first epoch.
        self._epoch_starts = [0]
        self._first_stats: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def batch(self, step: int) -> Batch:
        """The batch of an optimizer step: a function of the configuration, the text and (seed,
        step) only.

        Raises:
            ConfigError: segment pairs that cannot be made of this text (see pairs.make_pairs).
        """
        config = self.config
        first = (step - self.first_step) * config.batch_size
        pairs = self._examples(first, first + config.batch_size)
        rng = generator(Stream.MASKING, config.seed, step)
        choose = METHODS[config.masking.method]
        length = config.max_sequence_length
        return collate(self.shards, pairs, self.vocabulary, config.masking, length, rng, choose)

    def stats(self) -> dict[str, Any]:
        """Statistics of the first epoch: see pairs.make_pairs."""
        with self._lock:
            return self._first_stats or self._plan(0).stats

    def state_dict(self) -> dict[str, Any]:
        """The first example of each epoch planned so far, for a checkpoint: a resumed run need not
        plan them again.
        """
        starts = list(self._epoch_starts)  # the thread that makes batches may add to them
        return {"of": self._identity(), "starts": starts, "stats": self._first_stats}

    def load_state_dict(self, state: Mapping[str, Any]) -> bool:
        """Restores the epochs planned so far; False, and nothing is restored, if the state is of
        other text, pairs, seed or stage.
        """
        if state["of"] != self._identity():
            return False
        self._epoch_starts = list(state["starts"])
        self._first_stats = state["stats"]
        return True

    def _identity(self) -> str:
        """Hash of what the pairs of an epoch depend on; a checkpoint's epochs are used again only
        if it is the same.

        Its form must not change, since checkpoints keep it: first_epoch is left out where it is 0.
        """
        config = self.config
        content = {
            "shards": [len(self.shards.tokens), self.shards.num_documents, self.shards.meta],
            "inter_sentence": config.inter_sentence.model_dump(),
            "lengths": [config.max_sequence_length, config.short_sequence_probability],
            "seed": config.seed,
            "version": RESULTS_VERSION,
        }
        return digest(content | ({"first_epoch": self.first_epoch} if self.first_epoch else {}))

    def _examples(self, first: int, end: int) -> Pairs:
        """The run's pairs number first to end - 1 [end - first]."""
        parts = []
        with self._lock:  # stats() may plan in another thread
            while first < end:
                # How many pairs an epoch has is known once it is planned.
                while self._epoch_starts[-1] <= first:
                    self._plan(len(self._epoch_starts) - 1)
                epoch = bisect.bisect_right(self._epoch_starts, first) - 1
                start = first - self._epoch_starts[epoch]
                parts.append(self._plan(epoch).take(slice(start, start + end - first)))
                first += len(parts[-1])
        return Pairs.join(parts)

    def _plan(self, epoch: int) -> Pairs:
        if epoch not in self._planned:
            self._planned.clear()  # before the next one is made, to hold one at a time
            config = self.config
            number = self.first_epoch + epoch
            pairs = make_pairs(
                self.shards, config.inter_sentence, config, seed=config.seed, epoch=number
            )
            self._planned[epoch] = pairs
            if epoch == 0:
                self._first_stats = pairs.stats
            if epoch == len(self._epoch_starts) - 1:
                self._epoch_starts.append(self._epoch_starts[-1] + len(pairs))
        return self._planned[epoch]


@dataclass(frozen=True)
class StageData:
    """The training data of one stage: sequence length and sequences a batch, steps, and statistics
    of its first epoch.

    stats are those of pairs.make_pairs: of the text cut to this length.
    """

    max_sequence_length: int
    batch_size: int
    first_step: int
    steps: int
    stats: Mapping[str, Any]

    @property
    def epochs(self) -> float:
        return self.steps * self.batch_size / self.stats["pairs"]


@dataclass
class StagedBatches:
    """The batches of one run: each stage has the pairs of its own length, from its first step on.

    A batch is a function of the configuration, the text, (seed, step) and, where the budget is not
    in steps, the step at which its stage began, which checkpoints keep.
    """

    shards: Shards
    vocabulary: Tokenizer
    config: RunConfig

    def __post_init__(self) -> None:
        self._passed: list[StageData] = []
        self._enter(0, 0)

    def prefetch(self, step: int, share: Callable[[], float]) -> Generator[Batch, None, None]:
        """The batches from a step on, each made by a thread while the one before it is used; it
        ends when the generator is closed.

        Args:
            share: returns the used share of the budget before each step.

        Raises:
            ConfigError: segment pairs that cannot be made of this text (see pairs.make_pairs); at
                the first batch that needs them, like any other error in the thread.
        """
        while True:
            batches = self._enter_stage(step, share())
            with ThreadPoolExecutor(1, thread_name_prefix="batches") as pool:
                ahead = pool.submit(batches.batch, step)
                while self._enter_stage(step, share()) is batches:
                    batch = ahead.result()
                    step += 1
                    ahead = pool.submit(batches.batch, step)
                    yield batch

    def first_tokens(self, count: int) -> np.ndarray:
        """The tokens of the first batches, special ones and those of masked positions too; at least
        `count`.
        """
        tokens: list[np.ndarray] = []
        while sum(map(len, tokens)) < count:
            batch = self._batches.batch(len(tokens))
            tokens.append(batch.input_ids[batch.attention_mask])
        return np.concatenate(tokens)

    def stages(self, steps: int) -> tuple[StageData, ...]:
        """The data of each stage that began before this number of steps, in order; of no step, that
        of the first.
        """
        return (*self._passed, self._data(steps))

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint: the number of the current stage, its first step, the step from which
        its data are counted (later than the first if the text changed), what was read before, and
        the plans of its epochs.
        """
        return {
            "number": self._number,
            "first_step": self._batches.first_step,
            "counted_from": self._same_text_from,
            "passed": [asdict(stage) for stage in self._passed],
            "current": self._batches.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any], step: int) -> None:
        """Restores the state before a step, of the same schedule.

        If it is of other text or other pairs, the stage goes on at the same number of example, in
        epochs that are planned anew; its steps so far become a StageData of their own.
        """
        self._passed = [StageData(**stage) for stage in state["passed"]]
        self._enter(state["number"], state["first_step"])
        self._same_text_from = state["counted_from"]
        is_restored = self._batches.load_state_dict(state["current"])
        if not is_restored and state["current"]["stats"] and step > self._same_text_from:
            self._passed.append(self._data(step, state["current"]["stats"]))
            self._same_text_from = step

    def _enter_stage(self, step: int, share: float) -> Batches:
        """The batches at a step; if it is the first of a stage, notes the one before and enters
        this one.
        """
        number = bisect.bisect_right(self.config.stage_starts, share + _TOLERANCE) - 1
        if number != self._number:
            self._passed.append(self._data(step))
            budget = self.config.budget
            # In steps, the schedule says where a stage begins, also if it is read from its middle.
            if budget.unit == "steps":
                step = math.ceil((self.config.stage_starts[number] - _TOLERANCE) * budget.value)
            self._enter(number, step)
        return self._batches

    def _enter(self, number: int, first_step: int) -> None:
        self._number = number
        # What the stage read before this step, of another text, is counted already.
        self._same_text_from = first_step
        self._batches = Batches(
            self.shards,
            self.vocabulary,
            self.config.at_stage(number),
            first_step,
            number * _EPOCHS_OF_A_STAGE,
        )

    def _data(self, end: int, stats: Mapping[str, Any] | None = None) -> StageData:
        config = self.config.at_stage(self._number)
        return StageData(
            max_sequence_length=config.max_sequence_length,
            batch_size=config.batch_size,
            first_step=self._same_text_from,
            steps=end - self._same_text_from,
            stats=stats or self._batches.stats(),
        )


def fixed_pairs(
    shards: Shards, spec: InterSentenceConfig, config: RunConfig, num_pairs: int, seed: int
) -> Pairs:
    """Pairs for evaluation: the same for the same arguments; fewer than num_pairs if the text
    yields fewer.

    The labels have the same shares as in a whole epoch, up to rounding, in the set and in any first
    part of it. For a large text only a sample is planned: blocks of documents at equal distances.

    Raises:
        ConfigError: segment pairs that cannot be made of this text (see pairs.make_pairs).
    """
    pairs = make_pairs(shards, spec, config, seed=seed, epoch=0, most_blocks=SAMPLED_BLOCKS)
    place = np.empty(len(pairs))  # position of a pair among the pairs with its label, from 0 to 1
    for label in np.unique(pairs.label):
        rows = np.flatnonzero(pairs.label == label)
        place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    return pairs.take(np.argsort(place, kind="stable")[:num_pairs])


def micro_batches(batch: Batch, size: int) -> Iterator[Batch]:
    """Splits the batch into parts of `size` examples; the last part may be smaller."""
    sequence = batch.input_ids.shape[1]
    for first in range(0, len(batch), size):
        rows = slice(first, first + size)
        low, high = np.searchsorted(
            batch.masked_positions, [first * sequence, (first + size) * sequence]
        )
        yield Batch(
            input_ids=batch.input_ids[rows],
            token_type_ids=batch.token_type_ids[rows],
            attention_mask=batch.attention_mask[rows],
            masked_positions=batch.masked_positions[low:high] - first * sequence,
            masked_labels=batch.masked_labels[low:high],
            pair_labels=batch.pair_labels[rows],
        )


def collate(
    shards: Shards,
    pairs: Pairs,
    vocabulary: Tokenizer,
    masking: MaskingConfig,
    max_sequence_length: int,
    rng: np.random.Generator,
    choose: Mask = mask,
) -> Batch:
    """The pairs as masked examples; always the same for the same arguments."""
    column = np.arange(max_sequence_length)
    a_end = 1 + pairs.a_length[:, None]  # column of the first [SEP]
    b_end = a_end + 1 + pairs.b_length[:, None]  # column of the second
    attention_mask = column <= b_end
    is_separator = (column == a_end) | (column == b_end)
    is_text = attention_mask & ~is_separator & (column > 0)
    is_second = attention_mask & (column > a_end)

    # Where each column's token is among those of the split: segment A begins in column 1, B after
    # the first [SEP].
    source = column + np.where(
        is_second, pairs.b_start[:, None] - a_end - 1, pairs.a_start[:, None] - 1
    )
    input_ids = np.where(is_separator, vocabulary.sep_id, vocabulary.pad_id)
    input_ids[:, 0] = vocabulary.cls_id
    input_ids[is_text] = shards.tokens[source[is_text]]

    masked_ids, positions, labels = choose(
        input_ids, attention_mask, is_text, vocabulary.word_starts, masking, vocabulary.mask_id, rng
    )
    return Batch(
        input_ids=masked_ids,
        token_type_ids=is_second.astype(np.int64),
        attention_mask=attention_mask,
        masked_positions=positions,
        masked_labels=labels,
        pair_labels=pairs.label.astype(np.int64),
    )
