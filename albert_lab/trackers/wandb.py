"""Weights & Biases; $WANDB_MODE=offline keeps its files below the run. $WANDB_PROJECT names the project."""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from albert_lab.trackers.tracker import PROJECT

# Its files are logs in LevelDB's format: blocks of records, each with a checksum, its length and its kind. The package
# writes them but has no function that reads them.
_MAGIC_BYTES, _BLOCK_BYTES, _HEADER_BYTES = 7, 32_768, 7
_WHOLE, _LAST_PART = 1, 4


class Wandb:
    """A run of Weights & Biases."""

    def __init__(self, run: Any, last_step: int):
        self._run = run
        self.last_step = last_step

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step, commit=True)

    def close(self) -> None:
        self._run.finish()


def open_run(run: str, folder: Path, config: Mapping[str, Any]) -> Wandb:
    wandb: Any = import_module("wandb")
    folder.mkdir(parents=True, exist_ok=True)
    # The service knows an online run. An offline one is a new file in each process, without the end of a killed one.
    steps = [step for file in folder.glob("wandb/offline-run-*/*.wandb") for step in steps_of(file)]
    opened = wandb.init(
        project=os.environ.get("WANDB_PROJECT") or PROJECT,
        id=run,
        name=run,
        config=dict(config),
        dir=folder,
        resume="allow",
        settings=wandb.Settings(silent=True, console="off"),
    )
    return Wandb(opened, max(steps, default=-1) if opened.offline else opened.step - 1)


def steps_of(file: Path, name: str | None = None) -> list[int]:
    """The steps of the points in a file of an offline run; only those that have a number of this name, if given."""
    record: Any = import_module("wandb.proto.wandb_internal_pb2").Record
    steps = []
    for content in _records(file.read_bytes()):
        items = {item.key or "/".join(item.nested_key): item for item in record.FromString(content).history.item}
        if "_step" in items and (name is None or name in items):
            steps.append(int(items["_step"].value_json))
    return steps


def _records(content: bytes) -> Iterator[bytes]:
    place, kept = _MAGIC_BYTES, b""
    while place + _HEADER_BYTES <= len(content):
        if (left := _BLOCK_BYTES - place % _BLOCK_BYTES) < _HEADER_BYTES:
            place += left
            continue
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        place += _HEADER_BYTES
        kept += content[place : place + length]
        place += length
        if place > len(content):  # cut off by a kill
            return
        if kind in (_WHOLE, _LAST_PART):
            yield kept
            kept = b""
