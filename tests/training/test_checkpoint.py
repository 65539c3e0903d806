import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from albert_lab.config.training import OptimizerConfig
from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.storage import PARTIAL
from albert_lab.training.checkpoint import (
    last_weights,
    load_latest,
    load_weights,
    save,
    save_weights,
)
from albert_lab.training.optimizer import build_optimizer

RUN = "toy-run"
FILES = ["model.safetensors", "optimizer.safetensors", "state.json", "B2SUMS"]


class Toy(nn.Module):
    """A tied weight, a LayerNorm, a buffer, and a head without gradients."""

    def __init__(self, hidden_size: int = 4):
        super().__init__()
        self.embedding = nn.Embedding(7, hidden_size)
        self.norm = nn.LayerNorm(hidden_size)
        self.decoder = nn.Linear(hidden_size, 7)
        self.decoder.weight = self.embedding.weight
        self.unused = nn.Linear(hidden_size, 2)
        self.register_buffer("scale", torch.ones(3))


def make(hidden_size: int = 4) -> tuple[Toy, torch.optim.Optimizer]:
    config = OptimizerConfig(
        name="lamb",
        learning_rate=None,
        betas=(0.9, 0.999),
        eps=1e-6,
        weight_decay=0.01,
        warmup=0,
        max_grad_norm=1.0,
    )
    torch.manual_seed(0)
    model = Toy(hidden_size)
    return model, build_optimizer(model, config, learning_rate=0.05)


def train(model: Toy, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        for name, parameter in model.named_parameters():
            if not name.startswith("unused"):
                parameter.grad = torch.cos(parameter.detach() * (step + 1))
        optimizer.step()


def content(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Everything that a checkpoint must restore, as plain comparable data, including types."""
    named = dict(model.state_dict())
    for index, entry in optimizer.state_dict()["state"].items():
        named |= {f"{index}/{key}": value for key, value in entry.items()}
    return {name: (tensor.dtype, tensor.numpy().tobytes()) for name, tensor in named.items()}


def save_steps(folder: Path, *steps: int) -> dict[int, dict[str, Any]]:
    """Train and save at these steps; return the saved content by step."""
    model, optimizer = make()
    saved, done = {}, 0
    for step in steps:
        train(model, optimizer, range(done, step))
        save(folder, model, optimizer, {"run_name": RUN, "step": step})
        saved[step], done = content(model, optimizer), step
    return saved


def load(
    folder: Path, say: Callable[[str], None] = lambda text: pytest.fail(text)
) -> tuple[int, dict[str, Any]] | None:
    model, optimizer = make()
    state = load_latest(folder, model, optimizer, RUN, say)
    return None if state is None else (state["step"], content(model, optimizer))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def flip_a_byte(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def test_the_last_two_checkpoints_are_kept_and_leftovers_of_a_kill_are_removed(tmp_path: Path):
    assert load(tmp_path) is None
    save_steps(tmp_path, 1)
    partial = tmp_path / f".step-00000002{PARTIAL}7-ab"
    partial.mkdir()
    (partial / "model.safetensors").write_bytes(b"half")
    assert load(tmp_path) is not None
    save_steps(tmp_path, 2, 3, 10)
    assert names(tmp_path) == ["step-00000003", "step-00000010"]
    assert names(tmp_path / "step-00000010") == sorted(FILES)


def make_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("damage", [flip_a_byte, truncate, make_a_pipe, Path.unlink])
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_checkpoint_is_named_and_the_previous_one_is_used(
    tmp_path: Path, file: str, damage: Callable[[Path], None]
):
    saved = save_steps(tmp_path, 2, 4)
    damage(tmp_path / "step-00000004" / file)
    said: list[str] = []
    assert load(tmp_path, said.append) == (2, saved[2])
    assert len(said) == 1
    assert "step-00000004 is damaged" in said[0]
    assert load(tmp_path) == (2, saved[2])  # renamed, so that it is reported once
    damage(tmp_path / "step-00000002" / file)
    assert load(tmp_path, said.append) is None


@pytest.mark.parametrize("nth", range(len(FILES) + 1))
def test_a_disk_that_becomes_full_at_any_write_leaves_the_last_complete_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
):
    saved = save_steps(tmp_path, 2)
    model, optimizer = make()
    calls = iter(range(100))

    def fsync(descriptor: int) -> None:
        if next(calls) == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left on device: .*step-00000004"):
        save(tmp_path, model, optimizer, {"run_name": RUN, "step": 4})
    assert names(tmp_path) == ["step-00000002"]
    assert load(tmp_path) == (2, saved[2])


def test_the_weights_of_a_finished_run_are_only_those_of_its_last_step(tmp_path: Path):
    with pytest.raises(MissingDataError, match="has no checkpoint"):
        last_weights(tmp_path, RUN)
    model, optimizer = make()
    for step in (1, 2):
        path = save(tmp_path, model, optimizer, {"run_name": RUN, "step": step})
    assert last_weights(tmp_path, RUN) == path / "model.safetensors"
    with pytest.raises(ConfigError, match=RUN):
        last_weights(tmp_path, "other-run")
    truncate(path / "model.safetensors")
    with pytest.raises(
        DamagedFileError, match="step-00000002: the checkpoint is damaged.*remove the folder"
    ):
        last_weights(tmp_path, RUN)


@pytest.mark.parametrize(
    ("run", "hidden_size", "has_more"),
    [("other-run", 4, False), (RUN, 6, False), (RUN, 4, True)],
    ids=str,
)
def test_a_checkpoint_of_another_run_or_model_is_refused_and_changes_nothing(
    tmp_path, run, hidden_size, has_more
):
    save_steps(tmp_path, 2)
    model, optimizer = make(hidden_size=hidden_size)
    if has_more:
        model.add_module("extra", nn.Linear(1, 1))
    before = content(model, optimizer)
    with pytest.raises(ConfigError, match="step-00000002"):
        load_latest(tmp_path, model, optimizer, run, pytest.fail)
    assert content(model, optimizer) == before


def test_weights_are_restored_without_an_optimizer_and_refused_if_they_cannot_be_used(
    tmp_path: Path,
):
    file = tmp_path / "model.safetensors"
    model, optimizer = make()
    train(model, optimizer, range(3))
    with pytest.raises(MissingDataError, match=file.name):
        load_weights(file, model)
    save_weights(file, model)
    other, _ = make()
    load_weights(file, other)
    assert all(
        torch.equal(tensor, model.state_dict()[name]) for name, tensor in other.state_dict().items()
    )
    assert names(tmp_path) == [file.name]
    truncate(file)
    with pytest.raises(DamagedFileError, match=file.name):
        load_weights(file, model)
