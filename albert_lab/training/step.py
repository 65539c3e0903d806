"""One optimizer step: forward, losses, backward, clipping, update."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch.optim import Optimizer

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch, micro_batches
from albert_lab.model.heads import PretrainingModel, PretrainingOutput
from albert_lab.training.transfer import inputs_of, labels_of


def losses(
    model: Callable[..., PretrainingOutput],
    inputs: dict[str, torch.Tensor],
    labels: dict[str, torch.Tensor],
    whole: Batch,
) -> dict[str, torch.Tensor]:
    """Losses of a micro-batch, as its share of the loss of the whole batch, and counts of right answers.

    mlm_loss is the cross-entropy summed over the micro-batch's masked tokens and divided by those of the whole batch,
    pair_loss likewise by its pairs, so that micro-batches add up to the loss of the batch (weights 1 : 1, as released).
    """
    output = model(**inputs)
    mlm_logits = output.mlm_logits.float()
    found = {
        "mlm_loss": F.cross_entropy(mlm_logits, labels["masked_labels"], reduction="sum") / len(whole.masked_labels),
        "mlm_correct": (mlm_logits.argmax(-1) == labels["masked_labels"]).sum(),
    }
    if output.pair_logits is not None:
        pair_logits = output.pair_logits.float()
        pair_loss = F.cross_entropy(pair_logits, labels["pair_labels"], reduction="sum") / len(whole.pair_labels)
        found["pair_loss"] = pair_loss
        found["pair_correct"] = (pair_logits.argmax(-1) == labels["pair_labels"]).sum()
    return found


def total(found: dict[str, torch.Tensor]) -> torch.Tensor:
    """The loss to minimise; its terms have equal weights, as released."""
    return found["mlm_loss"] + found["pair_loss"] if "pair_loss" in found else found["mlm_loss"]


@dataclass(frozen=True)
class Step:
    """All that an optimizer step needs except its batch; autocast makes the context of a forward pass."""

    config: RunConfig
    model: PretrainingModel
    optimizer: Optimizer
    device: torch.device
    autocast: Callable[[], AbstractContextManager[object]]

    def take(self, forward: Callable[..., PretrainingOutput], batch: Batch) -> dict[str, torch.Tensor]:
        """Update the weights by one batch, in micro-batches; returns its losses, counts and gradient norm.

        forward is the model, or its compiled form.
        """
        sums: dict[str, torch.Tensor] = {}
        for part in micro_batches(batch, self._micro_batch_size):
            found = self._backward(forward, part, batch)
            for key, value in found.items():
                sums[key] = sums[key] + value.detach() if key in sums else value.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimizer.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return sums | {"gradient_norm": norm.detach()}

    def compiled(self, batch: Batch) -> Callable[..., PretrainingOutput]:
        """The compiled model; one pass over a batch triggers the compilation and changes no weight."""
        forward = torch.compile(self.model, dynamic=True)
        self._backward(forward, next(micro_batches(batch, self._micro_batch_size)), batch)
        self.optimizer.zero_grad(set_to_none=True)
        return forward

    @property
    def _micro_batch_size(self) -> int:
        return self.config.machine.micro_batch_size or self.config.batch_size

    def _backward(
        self, forward: Callable[..., PretrainingOutput], part: Batch, whole: Batch
    ) -> dict[str, torch.Tensor]:
        with self.autocast():
            found = losses(forward, inputs_of(part, self.device), labels_of(part, self.device), whole)
        total(found).backward()
        return found
