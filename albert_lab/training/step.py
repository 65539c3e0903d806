"""One optimizer step: forward, losses, backward, clipping, update."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch.optim import Optimizer

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch, micro_batches
from albert_lab.model.encoder import PretrainingModel, PretrainingOutput, likeliest
from albert_lab.training.device import Targets, Tensors, ahead, inputs_of, labels_of
from albert_lab.training.processes import Processes

Forward = Callable[..., PretrainingOutput]  # the model, or its compiled form
Sums = dict[str, torch.Tensor]  # of losses and of right answers, by name


def losses(model: Forward, inputs: Tensors, labels: Targets, num_masked: int | torch.Tensor, num_pairs: int) -> Sums:
    """Losses of a micro-batch, as its part of the loss of the whole batch, and counts of right answers.

    mlm_loss is the sum of the cross-entropy over the micro-batch's masked tokens, divided by the number of masked
    tokens in the whole batch; pair_loss likewise for pairs. So the losses of micro-batches add up to the loss of the
    batch (weights 1 : 1, as released).
    """
    output = model(**inputs)
    mlm_logits = output.mlm_logits.float()
    sums = {
        "mlm_loss": F.cross_entropy(mlm_logits, labels["masked_labels"], reduction="sum") / num_masked,
        "mlm_correct": (likeliest(mlm_logits) == labels["masked_labels"]).sum(),
    }
    if output.pair_logits is not None:
        pair_logits = output.pair_logits.float()
        sums["pair_loss"] = F.cross_entropy(pair_logits, labels["pair_labels"], reduction="sum") / num_pairs
        sums["pair_correct"] = (likeliest(pair_logits) == labels["pair_labels"]).sum()
    return sums


def total(sums: Sums) -> torch.Tensor:
    """The loss to minimise; its terms have equal weights, as released."""
    return sums["mlm_loss"] + sums["pair_loss"] if "pair_loss" in sums else sums["mlm_loss"]


@dataclass(frozen=True)
class Step:
    """Everything that an optimizer step needs except its batch.

    Attributes:
        autocast: returns the context of a forward pass.
        processes: the processes that take the step together.
    """

    config: RunConfig
    model: PretrainingModel
    optimizer: Optimizer
    device: torch.device
    autocast: Callable[[], AbstractContextManager[object]]
    processes: Processes = field(default_factory=Processes)

    @property
    def share(self) -> int:
        return self.config.batch_size // self.processes.size

    @property
    def micro_batch_size(self) -> int:
        return min(self.config.machine.micro_batch_size or self.share, self.share)

    def take(self, forward: Forward, batch: Batch, number: int = 0) -> Sums:
        """Update the weights by one batch, in micro-batches; returns its losses, counts and gradient norm.

        Each process computes its share of the micro-batches, and returns the results of the whole batch.

        Raises:
            LostProcessError: another process ended.
        """
        sums: Sums = {}
        parts = list(enumerate(self._parts(batch)))[self.processes.rank.number :: self.processes.size]
        tensors = ahead((part for _, part in parts), self.device, needs_mask=self.config.machine.compile)
        for (index, _), (inputs, labels) in zip(parts, tensors, strict=True):
            # Dropout depends only on (seed, step, micro-batch), so that a resumed run needs no generator state, and
            # any process can compute a micro-batch.
            entropy = np.random.SeedSequence([self.config.seed, number, index])
            torch.manual_seed(int(entropy.generate_state(1)[0]))
            part = self.backward(forward, inputs, labels, len(batch.masked_labels), len(batch))
            for key, value in part.items():
                sums[key] = sums[key] + value if key in sums else value
        if self.processes.size > 1:
            sums = self._add_up(sums)
        return sums | {"gradient_norm": self.update()}

    def update(self) -> torch.Tensor:
        """Update the weights by their gradients, which end; returns the norm of the gradients."""
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimizer.max_grad_norm).detach()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def compiled(self, batches: Sequence[Batch]) -> Forward:
        """The model, compiled for the shapes of the parts of each batch; passes over them change no weights."""
        forward = torch.compile(self.model, dynamic=False)
        shapes = {part.input_ids.shape: part for batch in batches for part in self._parts(batch)}
        for part in shapes.values():
            inputs, labels = inputs_of(part, self.device, needs_mask=True), labels_of(part, self.device)
            self.backward(forward, inputs, labels, len(part.masked_labels), len(part))
        self.optimizer.zero_grad(set_to_none=True)
        return forward

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """Micro-batches of a batch; for a compiled model their shapes do not depend on the number of masked tokens."""
        times = len(batch) // self.config.batch_size  # in a stage of shorter sequences there are more of them
        parts = micro_batches(batch, times * self.micro_batch_size)
        if not self.config.machine.compile:
            return parts
        most = self.config.masking.most_predictions(batch.input_ids.shape[1])
        return (part.with_masked(len(part) * most) for part in parts)

    def _add_up(self, sums: Sums) -> Sums:
        """Sum gradients, losses and counts over the processes; a count is exact in float32 up to 2**24."""
        # All processes have the same parameters without a gradient.
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        values = torch.stack([value.float() for value in sums.values()])
        self.processes.add_up([*gradients, values])
        return {key: value.to(sums[key].dtype) for key, value in zip(sums, values.unbind(), strict=True)}

    def backward(
        self, forward: Forward, inputs: Tensors, labels: Targets, num_masked: int | torch.Tensor, num_pairs: int
    ) -> Sums:
        """Add the gradients of a micro-batch to those of the parameters; see losses() for arguments and results."""
        with self.autocast():
            sums = losses(forward, inputs, labels, num_masked, num_pairs)
        total(sums).backward()
        return {key: value.detach() for key, value in sums.items()}
