"""The batches of a run through the stages of its length schedule: short sequences first, then longer ones."""

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch, Batches
from albert_lab.data.shards import Shards
from albert_lab.data.tokenizer.base import Tokenizer

# A share of the budget is a quotient of floats: a stage begins at the step that is this close to its start.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class StageData:
    """The training data of one stage: sequence length and sequences a batch, steps, and statistics of its first epoch.

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


class StagedBatches:
    """The batches of one run: each stage has the pairs of its own length, from its first step on.

    A batch is a function of the configuration, the text, (seed, step) and, where the budget is not in steps, the step
    at which its stage began, which checkpoints keep.
    """

    def __init__(self, shards: Shards, vocabulary: Tokenizer, config: RunConfig) -> None:
        self._shards, self._vocabulary, self._config = shards, vocabulary, config
        self._passed: list[StageData] = []
        self._number = -1  # no stage has begun
        self._first_step = 0
        self._counted_from = 0  # what the stage read before this step, of another text, is counted already

    def batch(self, step: int, share: float = 0.0) -> Batch:
        """The batch of the optimizer step that begins at this used share of the budget.

        Raises:
            ConfigError: segment pairs that cannot be made of this text (see pairs.make_pairs).
        """
        return self._at(step, share).batch(step)

    def later(self, share: float) -> list[Batch]:
        """A batch of each stage after the one at this share, for what must be tried before training."""
        numbers = range(self._number_at(share) + 1, len(self._config.stage_starts))
        return [self._make(number, 0).batch(0) for number in numbers]

    def prefetch(self, step: int, share: Callable[[], float]) -> Generator[Batch, None, None]:
        """The batches from a step on, prefetched by a thread that ends when the generator is closed.

        Args:
            share: returns the used share of the budget before each step.
        """
        while True:
            number = self._number_at(share())
            with closing(self._at(step, share()).prefetch(step)) as stream:
                while self._number_at(share()) == number:
                    yield next(stream)
                    step += 1

    def stages(self, steps: int) -> tuple[StageData, ...]:
        """The data of each stage that began before this number of steps, in order."""
        return (*self._passed, self._data(steps))

    def state_dict(self) -> dict[str, Any]:
        return {
            "schedule": self._schedule(),
            "number": self._number,
            "first_step": self._first_step,
            "counted_from": self._counted_from,
            "passed": [asdict(stage) for stage in self._passed],
            "current": self._batches.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any], step: int) -> None:
        """Restores the state before a step; ignores that of another schedule, and plans of other text or other pairs.

        What the stage has read of another text is counted as that.
        """
        if state["schedule"] == self._schedule():
            self._passed = [StageData(**stage) for stage in state["passed"]]
            self._enter(state["number"], state["first_step"])
            self._counted_from = state.get("counted_from", self._first_step)
            is_restored = self._batches.load_state_dict(state["current"])
            if not is_restored and state["current"]["stats"] and step > self._counted_from:
                self._passed.append(self._data(step, state["current"]["stats"]))
                self._counted_from = step

    def _number_at(self, share: float) -> int:
        starts = self._config.stage_starts
        return max(number for number, start in enumerate(starts) if start <= share + _TOLERANCE)

    def _schedule(self) -> list[dict[str, float]]:
        return [stage.model_dump() for stage in self._config.length_schedule.stages]

    def _at(self, step: int, share: float) -> Batches:
        number = self._number_at(share)
        if number != self._number:
            if self._number >= 0:
                self._passed.append(self._data(step))
            budget, first = self._config.budget, step if number else 0
            if budget.unit == "steps":
                first = math.ceil((self._config.stage_starts[number] - _TOLERANCE) * budget.value)
            self._enter(number, first)
        return self._batches

    def _enter(self, number: int, first_step: int) -> None:
        self._number, self._first_step, self._counted_from = number, first_step, first_step
        self._batches = self._make(number, first_step)

    def _make(self, number: int, first_step: int) -> Batches:
        config = self._config.at_stage(number)
        return Batches(self._shards, self._vocabulary, config, first_step=first_step, stage=number)

    def _data(self, end: int, stats: Mapping[str, Any] | None = None) -> StageData:
        config = self._config.at_stage(self._number)
        steps, stats = end - self._counted_from, stats or self._batches.stats()
        return StageData(config.max_sequence_length, config.batch_size, self._counted_from, steps, stats)
