"""Batches from numpy arrays to tensors on a device."""

import numpy as np
import torch

from albert_lab.data.batches import Batch


def inputs_of(batch: Batch, device: torch.device) -> dict[str, torch.Tensor]:
    """The model's inputs: input_ids, token_type_ids, attention_mask [batch, sequence], masked_positions [masked]."""
    return {
        "input_ids": _tensor(batch.input_ids, device),
        "token_type_ids": _tensor(batch.token_type_ids, device),
        "attention_mask": _tensor(batch.attention_mask, device),
        "masked_positions": _tensor(batch.masked_positions, device),
    }


def labels_of(batch: Batch, device: torch.device) -> dict[str, torch.Tensor]:
    """The model's targets: masked_labels [masked], pair_labels [batch]."""
    return {
        "masked_labels": _tensor(batch.masked_labels, device),
        "pair_labels": _tensor(batch.pair_labels, device),
    }


def _tensor(array: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(array).to(device, non_blocking=True)
