"""Optimizer steps as CUDA graphs, which launch the hundreds of kernels of a small model's step together.

Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs (whole-network capture).
"""

from collections.abc import Callable

import torch

from albert_lab.config.section import BUILT_IN
from albert_lab.data.batches import Batch
from albert_lab.errors import ConfigError
from albert_lab.training.device import Targets, Tensors, inputs_of, labels_of, peak_memory_bytes, synchronize
from albert_lab.training.step import Forward, Step, Sums

Work = Callable[[], Sums]

WARM_UP = 3  # in the first steps, libraries choose their kernels and allocate their workspaces
_OPTIMIZERS = ("adamw", "muon")
_LARGEST_SHARE = 1 / 3  # of the memory: a graph keeps that of a step for itself, beside what an evaluation takes


def with_graphs(step: Step) -> "Step | GraphedStep":
    """The step as graphs, where machine.cuda_graphs asks for them on a GPU; else the step itself.

    With a budget in seconds, auto takes none: rows with and without them would not have the same time.

    Raises:
        ConfigError: machine.cuda_graphs=true, and settings with which a step cannot be recorded.
    """
    config, asked, optimizer = step.config, step.config.machine.cuda_graphs, step.config.optimizer.name
    if asked is False or (asked == "auto" and config.budget.unit == "seconds") or step.device.type != "cuda":
        return step
    own = [f"{key}={name}" for key, name in config.names if name not in BUILT_IN[key]]
    obstacles = {
        f"optimizer={optimizer} (allowed: {', '.join(_OPTIMIZERS)})": optimizer not in _OPTIMIZERS,
        f"own code ({', '.join(own)})": bool(own),  # it may wait for the GPU, or draw random numbers
        f"dropout={config.dropout:g} (allowed: 0)": config.dropout > 0,
        "machine.compile=true": config.machine.compile,
        "several processes": step.processes.size > 1,
        "micro-batches (allowed: machine.micro_batch_size=null)": step.micro_batch_size < step.share,
    }
    found = "; ".join(obstacle for obstacle, is_there in obstacles.items() if is_there)
    if found and asked is True:
        raise ConfigError(f"machine.cuda_graphs=true: a step cannot be recorded with {found}")
    return step if found else GraphedStep(step)


def captured(work: Work, stream: torch.cuda.Stream | None) -> Work:
    """Records the kernels of `work`, which must not wait for the GPU; the returned function launches them."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        results = work()
    return lambda: graph.replay() or results


class GraphedStep:
    """Takes the steps of `step`: the first of each shape as they are, and the later ones by a graph if there is memory.

    A graph reads its batch, its learning rate and its number of masked tokens from the same memory each time. Batches
    are not divided into micro-batches, and there is no dropout.
    """

    def __init__(self, step: Step, capture: Callable[[Work, torch.cuda.Stream | None], Work] = captured) -> None:
        self._step, self._capture, self._device = step, capture, step.device
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        self._shape: tuple[int, ...] | None = None
        self._num_warm = 0
        self._memory: list[torch.Tensor] = []
        self._num_masked = torch.zeros((), device=self._device)
        self._replay: Work | None = None
        for group in step.optimizer.param_groups:
            group["lr"] = torch.full((), float(group["lr"]), device=self._device)

    def take(self, forward: Forward, batch: Batch, number: int = 0) -> Sums:
        """See Step.take()."""
        if batch.input_ids.shape != self._shape:
            self._shape, self._num_warm, self._replay = batch.input_ids.shape, 0, None
        if self._num_warm < WARM_UP:
            self._num_warm += 1
            synchronize(self._device)
            with torch.cuda.stream(self._stream):  # that of the recording, as torch asks for the steps before it
                sums = self._step.take(forward, batch, number)
            synchronize(self._device)
            return sums
        if self._replay is None and not self._has_room():
            return self._step.take(forward, batch, number)
        # The number of masked tokens differs from step to step; that of predictions must not.
        fixed = batch.with_masked(len(batch) * self._step.config.masking.most_predictions(batch.input_ids.shape[1]))
        self._num_masked.fill_(len(batch.masked_labels))
        inputs, labels = inputs_of(fixed, self._device, needs_mask=True), labels_of(fixed, self._device)
        coming = [tensor for tensor in (*inputs.values(), *labels.values()) if tensor is not None]
        if self._replay is None:
            self._memory, self._replay = coming, self._record(forward, inputs, labels, len(batch))
        for tensor, value in zip(self._memory, coming, strict=True):
            tensor.copy_(value)
        return {name: value.clone() for name, value in self._replay().items()}

    def _has_room(self) -> bool:
        if self._stream is None:
            return True
        memory = torch.cuda.get_device_properties(self._device).total_memory
        return peak_memory_bytes(self._device) < _LARGEST_SHARE * memory

    def _record(self, forward: Forward, inputs: Tensors, labels: Targets, num_pairs: int) -> Work:
        def work() -> Sums:
            sums = self._step.backward(forward, inputs, labels, self._num_masked, num_pairs)
            return sums | {"gradient_norm": self._step.update()}

        groups = self._step.optimizer.param_groups
        for group in groups:  # torch's AdamW asks for it while it is recorded, and warns of it otherwise
            group["capturable"] = True
        replay = self._capture(work, self._stream)
        for group in groups:
            group["capturable"] = False
        return replay
