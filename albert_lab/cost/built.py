"""Counts of an encoder with own code, whose blocks no formula knows: from the built module, without its memory."""

from dataclasses import dataclass
from functools import cache

from albert_lab.model.shape import EncoderShape


@dataclass(frozen=True)
class BuiltCounts:
    """Parameters of the embeddings, and of the layers with what else is outside of the embeddings.

    Also those in matrices of blocks, and the FLOPs of a forward pass over one sequence (matrix products only).
    """

    embeddings: int
    layers: int
    block_matrices: int
    flops: int


@cache
def counts(shape: EncoderShape, sequence: int) -> BuiltCounts:
    """The counts of an encoder for sequences of a length, without padding."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from albert_lab.model.blocks import Block
    from albert_lab.model.encoder import Encoder

    with torch.device("meta"):
        encoder = Encoder(shape).eval()
        ids = torch.zeros(1, sequence, dtype=torch.int64)
        with torch.no_grad(), FlopCounterMode(display=False) as counted:
            encoder(ids, ids, None)
    embeddings = sum(parameter.numel() for parameter in encoder.embeddings.parameters())
    blocks = [module for module in encoder.modules() if isinstance(module, Block)]
    return BuiltCounts(
        embeddings=embeddings,
        layers=sum(parameter.numel() for parameter in encoder.parameters()) - embeddings,
        block_matrices=sum(p.numel() for block in blocks for p in block.parameters() if p.ndim == 2),
        flops=counted.get_total_flops(),
    )
