"""What happens between the steps of a pre-training: log lines, points of the learning curve, timed checkpoints.

Each is a part with its own state, which is saved in checkpoints.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from albert_lab.data.batches import Batch
from albert_lab.model.heads import PretrainingModel
from albert_lab.score import loss_name
from albert_lab.training.evaluate import DivergedError, Evaluator
from albert_lab.training.step import total

# The recorded final loss is the mean over this many last steps.
FINAL_STEPS = 100


@dataclass
class DataCounts:
    """Counts over all training batches: predicted tokens, pairs, and pairs by label."""

    masked: int
    pairs: int
    labels: list[int]

    def add(self, batch: Batch) -> None:
        self.masked += len(batch.masked_labels)
        self.pairs += len(batch)
        for label, count in enumerate(
            np.bincount(batch.pair_labels[batch.pair_labels >= 0], minlength=len(self.labels))
        ):
            self.labels[label] += int(count)


@dataclass
class Position:
    """How far a run is: its steps, tokens and training seconds, and what its batches had."""

    steps: int
    tokens: int
    shown: DataCounts
    seconds: float = 0.0  # by the leader's clock, at the last decision
    wait_seconds: float = 0.0

    def add(self, batch: Batch) -> None:
        self.steps += 1
        self.tokens += batch.num_tokens
        self.shown.add(batch)

    def state_dict(self) -> dict[str, Any]:
        return {
            "step": self.steps,
            "tokens": self.tokens,
            "shown": asdict(self.shown),
            "wait_seconds": self.wait_seconds,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.steps, self.tokens = state["step"], state["tokens"]
        self.shown, self.wait_seconds = DataCounts(**state["shown"]), state["wait_seconds"]
        self.seconds = state["clock"]["training_seconds"]


@dataclass
class Interval:
    """Sums over the steps since the last line of the log, kept on the device."""

    sums: dict[str, torch.Tensor] = field(default_factory=dict)
    losses: list[torch.Tensor] = field(default_factory=list)
    masked: int = 0
    pairs: int = 0

    def add(self, batch: Batch, sums: dict[str, torch.Tensor]) -> None:
        """Add a step: its batch, and what Step.take() returned."""
        for key, value in sums.items():
            self.sums[key] = self.sums[key] + value if key in self.sums else value
        self.losses.append(total(sums))
        self.masked += len(batch.masked_labels)
        self.pairs += len(batch.pair_labels)

    def means(self) -> dict[str, float]:
        """Means over the steps; accuracies in percent."""
        sums, steps = {key: float(value) for key, value in self.sums.items()}, len(self.losses)
        means = {"loss": (sums["mlm_loss"] + sums.get("pair_loss", 0.0)) / steps, "mlm_loss": sums["mlm_loss"] / steps}
        means["mlm_accuracy"] = 100 * sums["mlm_correct"] / self.masked
        if "pair_loss" in sums:
            means["pair_loss"] = sums["pair_loss"] / steps
            means["pair_accuracy"] = 100 * sums["pair_correct"] / self.pairs
        means["gradient_norm"] = sums["gradient_norm"] / steps
        return means


@dataclass
class LastLosses:
    """The losses of the last FINAL_STEPS steps."""

    values: list[float] = field(default_factory=list)

    def add(self, interval: Interval, step: int) -> dict[str, float]:
        """Add the losses of an interval that ended at a step; returns its means.

        Raises:
            DivergedError: a loss that is not finite.
        """
        means = interval.means()
        if not math.isfinite(means["loss"]):
            raise DivergedError(f"the loss is {means['loss']} at step {step:,}; a lower learning rate may help")
        self.values = [*self.values, *torch.stack(interval.losses).tolist()][-FINAL_STEPS:]
        return means

    def state_dict(self) -> dict[str, Any]:
        assert all(map(math.isfinite, self.values)), "a loss that is not finite ends the run before it is saved"
        return {"last_losses": self.values}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.values = state["last_losses"]


@dataclass
class LearningCurve:
    """The learning curve: held-out scores at equal shares of the budget.

    Attributes:
        num_points: over the whole budget.
        num_pairs: of each held-out set that a point reads.
        reached: the points so far.
    """

    num_points: int
    num_pairs: int
    reached: int = 0

    def is_due(self, share: float) -> bool:
        return math.floor(min(share, 1.0) * self.num_points + 1e-9) > self.reached

    def take_point(self, evaluator: Evaluator, model: PretrainingModel) -> dict[str, float | None]:
        """The scores of the next point, their numbers of examples, and losses, as columns of the log."""
        scores = evaluator.along_the_way(model, self.num_pairs)
        self.reached += 1
        return {
            **{name: score.value for name, score in scores.items()},
            **{f"{name}_n": score.n for name, score in scores.items()},
            **{loss_name(name): score.loss for name, score in scores.items() if score.loss is not None},
        }

    def state_dict(self) -> dict[str, Any]:
        return {"curve_points": self.reached}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.reached = state["curve_points"]


@dataclass
class SaveTimer:
    """The time of the next checkpoint, which is written after so many seconds, and the step of the last one."""

    seconds: float
    saved_at: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._next = time.perf_counter() + self.seconds

    @property
    def is_due(self) -> bool:
        return time.perf_counter() >= self._next
