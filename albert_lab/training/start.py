"""Start of a pre-training from another one: with all of its training state, or only with its weights."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.optim import Optimizer

from albert_lab.config.schema import Keep
from albert_lab.model.deepen import deepen
from albert_lab.model.heads import PretrainingModel
from albert_lab.model.shape import EncoderShape
from albert_lab.training import checkpoint
from albert_lab.training.log import METRICS, MetricsLog


@dataclass(frozen=True)
class Inherited:
    """A finished run to start from: its name, folder and shape, and the kept part of its state."""

    run_name: str
    folder: Path
    shape: EncoderShape
    keep: Keep

    def begin(
        self, model: PretrainingModel, optimizer: Optimizer, log: MetricsLog, say: Callable[[str], None]
    ) -> dict[str, Any] | None:
        """Set model, optimizer and log to the other run's state, and return the state; None if only weights are kept.

        Raises:
            MissingDataError: the run has no checkpoint.
            DamagedFileError: its last checkpoint is damaged.
            ConfigError: its weights do not fit the model.
        """
        checkpoints = self.folder / "checkpoint"
        if self.keep == "training":
            state = checkpoint.load_last(checkpoints, model, optimizer, self.run_name)
            log.take_over(self.folder / METRICS, state["log_bytes"])
            say(f"continues where {self.run_name} ended")
            return state
        tensors = deepen(checkpoint.read_last_weights(checkpoints, self.run_name), self.shape, model.encoder.shape)
        checkpoint.set_weights(model, tensors, f"the state of {self.run_name}")
        say(f"starts from the weights of {self.run_name}")
        return None
