"""How far a pre-training is: what its checkpoints keep besides tensors, and the means of its last steps."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from albert_lab.data.batches import Batch
from albert_lab.training.evaluate import DivergedError
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
        counts = np.bincount(batch.pair_labels[batch.pair_labels >= 0], minlength=len(self.labels)).tolist()
        self.labels = [before + count for before, count in zip(self.labels, counts, strict=True)]


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
        self.pairs += len(batch)

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
class Progress:
    """The position of a run, and what was seen on the way.

    Attributes:
        shown: what its batches had.
        seconds: of training by the leader's clock, at the last decision.
        wait_seconds: of training in which the loop waited for a batch.
        last_losses: of the last FINAL_STEPS steps.
        curve_points: the points of the learning curve so far.
    """

    shown: DataCounts
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    wait_seconds: float = 0.0
    last_losses: list[float] = field(default_factory=list)
    curve_points: int = 0

    def add(self, batch: Batch) -> None:
        self.steps += 1
        self.tokens += batch.num_tokens
        self.shown.add(batch)

    def means_of(self, interval: Interval) -> dict[str, float]:
        """Keep the losses of an interval that ends here; returns its means.

        Raises:
            DivergedError: a loss that is not finite.
        """
        means = interval.means()
        if not math.isfinite(means["loss"]):
            raise DivergedError(f"the loss is {means['loss']} at step {self.steps:,}; a lower learning rate may help")
        self.last_losses = [*self.last_losses, *torch.stack(interval.losses).tolist()][-FINAL_STEPS:]
        return means

    def state_dict(self) -> dict[str, Any]:
        state = asdict(self)
        del state["seconds"]  # a clock of its own keeps them
        return {"step": state.pop("steps"), **state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.shown, self.steps = DataCounts(**state["shown"]), state["step"]
        self.tokens, self.wait_seconds = state["tokens"], state["wait_seconds"]
        self.last_losses, self.curve_points = state["last_losses"], state["curve_points"]
        self.seconds = state["clock"]["training_seconds"]
