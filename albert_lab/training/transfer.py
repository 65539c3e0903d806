"""Batches from numpy arrays to tensors on a device, and results back."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from albert_lab.data.batches import Batch

Tensors = dict[str, torch.Tensor | None]


def inputs_of(batch: Batch, device: torch.device, *, needs_mask: bool = False) -> Tensors:
    """The model's inputs: input_ids, token_type_ids, attention_mask [batch, sequence], masked_positions [masked].

    Unless a mask is needed, it is None if no sequence is padded, since fused attention is faster without. On a CPU it
    is never None.
    """
    is_masked = needs_mask or device.type == "cpu" or not batch.attention_mask.all()
    return {
        "input_ids": tensor_on(batch.input_ids, device),
        "token_type_ids": tensor_on(batch.token_type_ids, device),
        "attention_mask": tensor_on(batch.attention_mask, device) if is_masked else None,
        "masked_positions": tensor_on(batch.masked_positions, device),
    }


def labels_of(batch: Batch, device: torch.device) -> dict[str, torch.Tensor]:
    """The model's targets: masked_labels [masked], pair_labels [batch]."""
    return {
        "masked_labels": tensor_on(batch.masked_labels, device),
        "pair_labels": tensor_on(batch.pair_labels, device),
    }


def ahead(
    parts: Iterable[Batch], device: torch.device, *, needs_mask: bool = False
) -> Iterator[tuple[Tensors, dict[str, torch.Tensor]]]:
    """Inputs and labels of each part; the copies of the next part begin before the current part is computed."""
    ready = None
    for part in parts:
        coming = inputs_of(part, device, needs_mask=needs_mask), labels_of(part, device)
        if ready is not None:
            yield ready
        ready = coming
    if ready is not None:
        yield ready


def tensor_on(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array as a tensor; a copy to a GPU is asynchronous, from pinned memory."""
    return _ready(array, device).to(device, non_blocking=True)


def copy_into(tensor: torch.Tensor, array: np.ndarray) -> None:
    """Overwrites a tensor with an array of its shape, as tensor_on() copies."""
    tensor.copy_(_ready(array, tensor.device), non_blocking=True)


def _ready(array: np.ndarray, device: torch.device) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    return tensor.pin_memory() if device.type == "cuda" else tensor


def fetch(parts: Sequence[torch.Tensor]) -> np.ndarray:
    """Concatenates the parts of a result on the CPU; this is where an evaluation waits for its device."""
    return torch.cat(list(parts)).cpu().numpy()
