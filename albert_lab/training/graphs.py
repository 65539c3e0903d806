"""Optimizer steps as CUDA graphs.

A step of a small model is hundreds of kernels, each shorter than the time that Python takes to launch it. A graph
records them once and launches them together.

Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs (whole-network capture).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch

from albert_lab.config.section import BUILT_IN
from albert_lab.data.batches import Batch
from albert_lab.errors import ConfigError
from albert_lab.training.memory import peak_memory_bytes
from albert_lab.training.step import Forward, Step
from albert_lab.training.transfer import Tensors, copy_into, inputs_of, labels_of

Sums = dict[str, torch.Tensor]
# From the work of a step, which it records without doing it, a function that does it and returns the same tensors.
Capture = Callable[[Callable[[], Sums], torch.cuda.Stream | None], Callable[[], Sums]]

# Libraries choose their kernels and allocate their workspaces in the first steps.
WARM_UP = 3
_OPTIMIZERS = ("adamw", "muon")
# A graph keeps the memory of a step for itself, beside what an evaluation takes.
_LARGEST_SHARE = 1 / 3


class TakesSteps(Protocol):
    """What takes optimizer steps: see Step.take()."""

    def take(self, forward: Forward, batch: Batch, number: int = 0) -> Sums: ...


def with_graphs(step: Step) -> TakesSteps:
    """The step as graphs, where machine.cuda_graphs asks for them on a GPU; else the step itself.

    With a budget in seconds, auto takes none: rows with and without them would not have the same time.

    Raises:
        ConfigError: machine.cuda_graphs=true, and settings with which a step cannot be recorded.
    """
    asked = step.config.machine.cuda_graphs
    is_timed = asked == "auto" and step.config.budget.unit == "seconds"
    if asked is False or is_timed or step.device.type != "cuda":
        return step
    obstacles = _obstacles(step)
    if obstacles and asked is True:
        raise ConfigError(f"machine.cuda_graphs=true: a step cannot be recorded with {'; '.join(obstacles)}")
    return step if obstacles else GraphedStep(step)


def _obstacles(step: Step) -> list[str]:
    config, optimizer = step.config, step.config.optimizer.name
    own = [f"{key}={name}" for key, name in config.names if name not in BUILT_IN[key]]
    obstacles = {
        f"optimizer={optimizer} (allowed: {', '.join(_OPTIMIZERS)})": optimizer not in _OPTIMIZERS,
        # It may wait for the GPU, or draw random numbers.
        f"own code ({', '.join(own)})": bool(own),
        f"dropout={config.dropout:g} (allowed: 0)": config.dropout > 0,
        "machine.compile=true": config.machine.compile,
        "machine.precision=fp16": step.scaler.is_enabled(),
        "several processes": step.processes.size > 1,
        "micro-batches (allowed: machine.micro_batch_size=null)": step.micro_batch_size < step.share,
    }
    return [obstacle for obstacle, is_there in obstacles.items() if is_there]


def captured(work: Callable[[], Sums], stream: torch.cuda.Stream | None) -> Callable[[], Sums]:
    """Records the kernels of `work`, which must not wait for the GPU; the returned function launches them."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        results = work()

    def replay() -> Sums:
        graph.replay()
        return results

    return replay


class GraphedStep:
    """Takes the steps of `step`: the first of each shape as they are, and the later ones by a graph if there is memory.

    A graph reads its batch, its learning rate and its number of masked tokens from the same memory each time. Batches
    are not divided into micro-batches, and there is no dropout.
    """

    def __init__(self, step: Step, capture: Capture = captured) -> None:
        self._step = step
        self._capture = capture
        self._stream = torch.cuda.Stream(step.device) if step.device.type == "cuda" else None
        self._shape: tuple[int, ...] | None = None
        self._num_warm = 0
        self._inputs: Tensors = {}
        self._labels: dict[str, torch.Tensor] = {}
        self._num_masked = torch.zeros((), device=step.device)
        self._replay: Callable[[], Sums] | None = None
        for group in step.optimizer.param_groups:
            group["lr"] = torch.full((), float(group["lr"]), device=step.device)

    def take(self, forward: Forward, batch: Batch, number: int = 0) -> Sums:
        """See Step.take()."""
        if batch.input_ids.shape != self._shape:
            self._shape, self._num_warm, self._replay = batch.input_ids.shape, 0, None
        if self._num_warm < WARM_UP or not self._has_room:
            self._num_warm += 1
            with self._aside():
                return self._step.take(forward, batch, number)
        # The number of masked tokens differs from step to step; that of predictions must not.
        fixed = batch.with_masked(len(batch) * self._step.config.masking.most_predictions(batch.input_ids.shape[1]))
        self._num_masked.fill_(len(batch.masked_labels))
        if self._replay is None:
            self._inputs = inputs_of(fixed, self._step.device, needs_mask=True)
            self._labels = labels_of(fixed, self._step.device)
            self._replay = self._record(forward, len(batch))
        else:
            for name, tensor in (self._inputs | self._labels).items():
                assert tensor is not None
                copy_into(tensor, getattr(fixed, name))
        return {name: value.clone() for name, value in self._replay().items()}

    @property
    def _has_room(self) -> bool:
        device = self._step.device
        if self._replay is not None or device.type != "cuda":
            return True
        return peak_memory_bytes(device) < _LARGEST_SHARE * torch.cuda.get_device_properties(device).total_memory

    def _record(self, forward: Forward, num_pairs: int) -> Callable[[], Sums]:
        def work() -> Sums:
            sums = self._step.backward(forward, self._inputs, self._labels, self._num_masked, num_pairs)
            return sums | {"gradient_norm": self._step.update()}

        groups = self._step.optimizer.param_groups
        for group in groups:  # torch's AdamW asks for it while it is recorded, and warns of it otherwise
            group["capturable"] = True
        replay = self._capture(work, self._stream)
        for group in groups:
            group["capturable"] = False
        return replay

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """On the stream of the recording, as torch asks for the steps before it."""
        if self._stream is None:
            yield
            return
        current = torch.cuda.current_stream(self._step.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            yield
        current.wait_stream(self._stream)
