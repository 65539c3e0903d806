"""One optimizer step: forward, losses, backward, clipping, update; as it is, or recorded as a CUDA
graph.

A graph launches the hundreds of kernels of a small model's step together. Source of these:
https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs (whole-network capture).
"""

import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.optim import Optimizer

from albert_lab import machine
from albert_lab.config.schema import RunConfig
from albert_lab.config.section import BUILT_IN
from albert_lab.data.batches import Batch, micro_batches
from albert_lab.model.encoder import PretrainingModel
from albert_lab.training.device import (
    Targets,
    Tensors,
    autocast,
    inputs_of,
    labels_of,
    peak_memory_bytes,
    synchronize,
)
from albert_lab.training.optimizer import build_optimizer
from albert_lab.training.processes import Processes

Sums = dict[str, Tensor]  # of losses, by name
Work = Callable[[], Sums]

# steps before a graph: in the first, libraries choose their kernels and allocate their workspaces
WARM_UP = 3
_RECORDED = ("adamw", "muon")  # optimizers that a graph can have
TIMED_SECONDS = 2.0
# Of a run's part of the memory: a graph keeps that of a step for itself, beside what a plain step
# and an evaluation take.
_LARGEST_SHARE = 1 / 3


def seed_dropout(*numbers: int) -> None:
    """Seed torch's generator by numbers that identify a step."""
    torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))


def total(sums: Sums) -> Tensor:
    """The loss to minimise; its terms have equal weights, as released."""
    return sums["mlm_loss"] + sums.get("pair_loss", 0)


@dataclass(frozen=True)
class Step:
    """Everything that an optimizer step needs except its batch; several processes may take it
    together.
    """

    config: RunConfig
    model: PretrainingModel
    optimizer: Optimizer
    device: torch.device
    processes: Processes = field(default_factory=Processes)

    @cached_property
    def autocast(self) -> Callable[[], AbstractContextManager[object]]:
        """A function that returns the context of a forward pass."""
        return autocast(self.config.machine.precision, self.device)

    @property
    def micro_batch_size(self) -> int:
        """Sequences of a forward pass, by default all that a process computes of a batch."""
        share = self.config.batch_size // self.processes.total
        return min(self.config.machine.micro_batch_size or share, share)

    def take(self, batch: Batch, step_number: int = 0) -> Sums:
        """Update the weights by one batch, in micro-batches; returns its losses and gradient norm.

        Each process computes its share of the micro-batches, and returns the results of the whole
        batch. step_number seeds dropout.

        Raises:
            LostProcessError: another process ended.
        """
        sums: Sums = {}
        # In a stage of shorter sequences there are more of them.
        size = len(batch) // self.config.batch_size * self.micro_batch_size
        parts = list(enumerate(micro_batches(batch, size)))
        for index, part in parts[self.processes.number :: self.processes.total]:
            # Dropout depends only on (seed, step, micro-batch), so that a resumed run needs no
            # generator state, and any process can compute a micro-batch.
            seed_dropout(self.config.seed, step_number, index)
            inputs = inputs_of(part, self.device)
            labels = labels_of(part, self.device)
            own = self.backward(inputs, labels, max(1, len(batch.masked_labels)), len(batch))
            sums = {key: value + sums.get(key, 0) for key, value in own.items()}
        # All processes have the same parameters without a gradient.
        gradients = [
            parameter.grad for parameter in self.model.parameters() if parameter.grad is not None
        ]
        self.processes.add_up([*gradients, *sums.values()])
        return sums | {"gradient_norm": self.update()}

    def backward(
        self, inputs: Tensors, labels: Targets, num_masked: int | Tensor, num_pairs: int
    ) -> Sums:
        """Add the gradients of a micro-batch to those of the parameters; returns its losses.

        mlm_loss is the sum of the cross-entropy over the micro-batch's masked tokens, divided by
        the number of masked tokens in the whole batch; pair_loss likewise for pairs. So the losses
        of micro-batches add up to the loss of the batch (weights 1 : 1, as released).
        """
        sums: Sums = {}
        with self.autocast():
            output = self.model(**inputs)
            answers = {"mlm": (output.mlm_logits, labels["masked_labels"], num_masked)}
            if output.pair_logits is not None:
                answers["pair"] = (output.pair_logits, labels["pair_labels"], num_pairs)
            for name, (logits, targets, number) in answers.items():
                summed = F.cross_entropy(logits.float(), targets, reduction="sum")
                sums[f"{name}_loss"] = summed / number
        total(sums).backward()
        return {key: value.detach() for key, value in sums.items()}

    def update(self) -> Tensor:
        """Update the weights by their gradients, which end; returns the norm of the gradients."""
        norm = torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), self.config.optimizer.max_grad_norm
        ).detach()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm


def with_graphs(step: Step) -> "Step | GraphedStep":
    """The step as graphs, where a GPU can record it and machine.cuda_graphs allows it; else the
    step itself.

    With a budget in seconds there are none: rows with and without them would not have the same
    time.
    """
    config = step.config
    has_graphs = step.config.machine.cuda_graphs and step.device.type == "cuda"
    # Own code may wait, or draw random numbers.
    has_own_code = any(config.value(key) not in names for key, names in BUILT_IN.items())
    is_plain = config.dropout == 0 and config.optimizer.name in _RECORDED and not has_own_code
    is_whole = step.micro_batch_size == config.batch_size and config.budget.unit != "seconds"
    return GraphedStep(step) if has_graphs and is_plain and is_whole else step


def captured(work: Work, stream: torch.cuda.Stream | None) -> Work:
    """Records the kernels of `work`, which must not wait for the GPU; the returned function
    launches them.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        results = work()
    return lambda: graph.replay() or results


class GraphedStep:
    """Takes the steps of `step`: the first of each shape as they are, and the later ones by a graph
    if there is memory.

    A graph reads its batch, its learning rate and its number of masked tokens from the same memory
    each time.
    """

    def __init__(
        self, step: Step, capture: Callable[[Work, torch.cuda.Stream | None], Work] = captured
    ) -> None:
        self._step = step
        self._capture = capture
        self._device = step.device
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        self._shape: tuple[int, ...] | None = None
        self._num_warm = 0
        self._memory: list[Tensor] = []
        self._num_masked = torch.zeros((), device=self._device)
        self._replay: Work | None = None
        for group in step.optimizer.param_groups:
            group["lr"] = torch.full((), float(group["lr"]), device=self._device)

    def take(self, batch: Batch, step_number: int = 0) -> Sums:
        """See Step.take(); a recorded step needs no step_number, since it has no dropout."""
        if batch.input_ids.shape != self._shape:
            self._shape = batch.input_ids.shape
            self._num_warm = 0
            self._replay = None
        if self._num_warm < WARM_UP:
            self._num_warm += 1
            synchronize(self._device)
            # that of the recording, as torch asks for the steps before it
            with torch.cuda.stream(self._stream):
                sums = self._step.take(batch, step_number)
            synchronize(self._device)
            return sums
        if self._replay is None and self._stream and not has_room(self._device):
            return self._step.take(batch, step_number)
        # The number of masked tokens differs from step to step; that of predictions must not.
        fixed = batch.with_masked(
            len(batch) * self._step.config.masking.most_predictions(batch.input_ids.shape[1])
        )
        self._num_masked.fill_(max(1, len(batch.masked_labels)))
        inputs = inputs_of(fixed, self._device, needs_mask=True)
        labels = labels_of(fixed, self._device)
        coming = [tensor for tensor in (*inputs.values(), *labels.values()) if tensor is not None]
        if self._replay is None:

            def work() -> Sums:
                sums = self._step.backward(inputs, labels, self._num_masked, len(batch))
                return sums | {"gradient_norm": self._step.update()}

            self._memory = coming
            groups = self._step.optimizer.param_groups
            # torch's AdamW asks for it while it is recorded, and warns of it otherwise
            for group in groups:
                group["capturable"] = True
            self._replay = self._capture(work, self._stream)
            for group in groups:
                group["capturable"] = False
        for tensor, value in zip(self._memory, coming, strict=True):
            tensor.copy_(value)
        return {name: value.clone() for name, value in self._replay().items()}


def has_room(device: torch.device) -> bool:
    """Whether the runs on this GPU can have graphs beside what a step and an evaluation of each
    take.
    """
    free, memory = torch.cuda.mem_get_info(device)  # free of all processes
    peak = peak_memory_bytes(device)
    jobs = machine.whole_number(machine.JOBS_ON_GPU) or 1
    return peak < _LARGEST_SHARE * memory / jobs and peak < free


def time_token(config: RunConfig, device: torch.device) -> float:
    """Seconds of training on a token of a run, before it begins: of steps of random tokens for
    TIMED_SECONDS, one at least; the mean of the later half, since the first ones are slower.

    A step is of one micro-batch of the full length.
    """
    model = PretrainingModel.from_config(config).to(device).train()
    optimizer = build_optimizer(model, config.optimizer, config.learning_rate)
    step = Step(config, model, optimizer, device)
    config = config.model_copy(update={"batch_size": step.micro_batch_size})
    step = with_graphs(replace(step, config=config))
    batch = _random_batch(config)
    seconds: list[float] = []
    while sum(seconds) < TIMED_SECONDS:
        start = perf_counter()
        step.take(batch, len(seconds))
        synchronize(device)
        seconds.append(perf_counter() - start)
    return statistics.fmean(seconds[len(seconds) // 2 :]) / batch.num_tokens


def _random_batch(config: RunConfig) -> Batch:
    """A batch of random tokens without padding, of which as many as may be are masked, at the
    beginning of each sequence.
    """
    size = config.batch_size
    length = config.max_sequence_length
    random = np.random.default_rng(0)
    ids = random.integers(config.tokenizer.vocab_size, size=(size, length))
    is_masked = np.arange(length) < config.masking.most_predictions(length)
    positions = np.flatnonzero(np.tile(is_masked, size))
    return Batch(
        input_ids=ids,
        token_type_ids=np.zeros_like(ids),
        attention_mask=np.ones_like(ids, dtype=bool),
        masked_positions=positions,
        masked_labels=ids.reshape(-1)[positions],
        pair_labels=np.zeros(size, dtype=np.int64),
    )
