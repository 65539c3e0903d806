"""TensorBoard: event files in the folder `tensorboard` of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Tensorboard:
    """A run of TensorBoard."""

    def __init__(self, folder: Path):
        from torch.utils.tensorboard import SummaryWriter

        self.last_step = last_step(folder)
        self._writer = SummaryWriter(str(folder))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def last_step(folder: Path) -> int:
    """The last step in the event files of a folder; -1 without any."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    files = map(str, folder.glob("events.out.tfevents.*"))
    steps = (event.step for file in files for event in EventFileLoader(file).Load() if event.HasField("summary"))
    return max(steps, default=-1)


def open_run(run: str, folder: Path, config: Mapping[str, Any]) -> Tensorboard:
    return Tensorboard(folder / "tensorboard")
