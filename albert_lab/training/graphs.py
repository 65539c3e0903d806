"""Optimizer steps as CUDA graphs.

A step of a small model is hundreds of kernels, each shorter than the time that Python takes to launch it. A graph
records them once and launches them together.

Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs (whole-network capture).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch

from albert_lab.data.batches import Batch
from albert_lab.errors import ConfigError
from albert_lab.model.heads import PretrainingOutput
from albert_lab.training.step import Step
from albert_lab.training.transfer import Tensors, copy_into, inputs_of, labels_of

Forward = Callable[..., PretrainingOutput]
Sums = dict[str, torch.Tensor]
# From the work of a step, which it records without doing it, a function that does it and returns the same tensors.
Capture = Callable[[Callable[[], Sums], torch.cuda.Stream | None], Callable[[], Sums]]

# Libraries choose their kernels and allocate their workspaces in the first steps of a shape.
WARM_UP = 3
_OPTIMIZERS = ("adamw", "muon")


class TakesSteps(Protocol):
    """What takes optimizer steps: see Step.take()."""

    def take(self, forward: Forward, batch: Batch, number: int = 0) -> Sums: ...


def with_graphs(step: Step) -> TakesSteps:
    """The step itself, or its graphs, where machine.cuda_graphs asks for them on a GPU.

    Raises:
        ConfigError: settings with which a step cannot be recorded.
    """
    machine = step.config.machine
    if not machine.cuda_graphs or step.device.type != "cuda":
        return step
    name = step.config.optimizer.name
    obstacles = {
        f"optimizer={name} (allowed: {', '.join(_OPTIMIZERS)})": name not in _OPTIMIZERS,
        "machine.compile=true": machine.compile,
        "several processes": step.processes.size > 1,
        "micro-batches (allowed: machine.micro_batch_size=null)": step.micro_batch_size < step.share,
        "machine.precision=fp16": step.scaler.is_enabled(),
    }
    if found := [obstacle for obstacle, is_there in obstacles.items() if is_there]:
        raise ConfigError(f"machine.cuda_graphs=true cannot be combined with {'; '.join(found)}")
    return GraphedStep(step)


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
    """Takes the steps of `step`, whose batches must be one micro-batch each: the first of each shape as they are, and
    the later ones by a graph that reads its batch, its learning rate and its number of masked tokens from the same
    memory each time.
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
        (part,) = self._step.parts(batch)
        if part.input_ids.shape != self._shape:
            self._shape, self._num_warm, self._replay = part.input_ids.shape, 0, None
        if self._num_warm < WARM_UP:
            self._num_warm += 1
            with self._aside():
                return self._step.take(forward, batch, number)
        self._step.seed_dropout(number, 0)
        self._num_masked.fill_(len(batch.masked_labels))
        if self._replay is None:
            self._inputs = inputs_of(part, self._step.device, needs_mask=True)
            self._labels = labels_of(part, self._step.device)
            self._replay = self._record(forward, len(batch))
        else:
            for name, tensor in (self._inputs | self._labels).items():
                assert tensor is not None
                copy_into(tensor, getattr(part, name))
        return {name: value.clone() for name, value in self._replay().items()}

    def _record(self, forward: Forward, num_pairs: int) -> Callable[[], Sums]:
        def work() -> Sums:
            sums = self._step.backward(forward, self._inputs, self._labels, self._num_masked, num_pairs)
            return sums | {"gradient_norm": self._step.update()}

        groups = self._step.optimizer.param_groups
        for group in groups:  # what torch's AdamW asks for while it is recorded, and warns of otherwise
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
