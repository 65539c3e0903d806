"""BLiMP (Warstadt et al. 2020): how often is the good sentence of a minimal pair of English grammar
the likelier one?

A held-out measure on own text. The likelihood of a sentence is its pseudo-log-likelihood (Salazar
et al. 2020): the sum of the log-probabilities of its tokens, each masked by itself.
ALBERT_LAB_BLIMP names the file of pairs: JSON Lines with `uid` (the paradigm), `good` and `bad`,
also compressed. The first PAIRS of each paradigm count; None: all.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.errors import MissingDataError
from albert_lab.measures.catalog import MEASURES
from albert_lab.measures.measure import OwnTextMeasure
from albert_lab.model.encoder import PretrainingModel
from albert_lab.score import Documents, Score, by_document

PAIRS = 100
COPIES = 2048  # masked sequences of a forward pass
FILE = Path(os.environ.get("ALBERT_LAB_BLIMP", "blimp.jsonl"))
if not FILE.is_file():
    raise MissingDataError(
        f"there is no file {FILE}: set ALBERT_LAB_BLIMP to that of BLiMP's minimal pairs"
    )


def blimp(
    model: PretrainingModel, tokenizer: Tokenizer, device: torch.device
) -> tuple[Score, Documents]:
    """The share of pairs whose good sentence is likelier, a tie counting a half; its documents are
    the paradigms.
    """
    pairs = pd.read_json(FILE, lines=True)
    if PAIRS is not None:
        pairs = pairs.groupby("uid", sort=False).head(PAIRS)
    good, bad = (
        [tuple(ids) for ids in tokenizer.encode(pairs[side].to_list())] for side in ("good", "bad")
    )
    longest = model.encoder.shape.max_position_embeddings - 2
    fits = [
        min(map(len, pair)) > 0 and max(map(len, pair)) <= longest
        for pair in zip(good, bad, strict=True)
    ]
    likelihood = dict(log_likelihoods(model, tokenizer, device, [*good, *bad], longest))
    more = [
        likelihood[a] - likelihood[b] for a, b, whole in zip(good, bad, fits, strict=True) if whole
    ]
    credit = (np.sign(more) + 1) / 2
    score = Score(
        value=100 * credit.mean(),
        n=len(credit),
        floor=50,
        by="pseudo-log-likelihood",
    )
    paradigm, _ = pd.factorize(pairs["uid"][fits])
    return score, by_document(paradigm, credit)


def log_likelihoods(
    model: PretrainingModel,
    tokenizer: Tokenizer,
    device: torch.device,
    sentences: Sequence[tuple[int, ...]],
    longest: int,
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Each sentence of 1 to `longest` tokens once, with its pseudo-log-likelihood in nats.

    Sentences of one length are read together, so that there is no padding.
    """
    for length, group in groupby(sorted(set(sentences), key=lambda ids: (len(ids), ids)), key=len):
        while 0 < length <= longest and (part := list(islice(group, max(1, COPIES // length)))):
            ids = torch.tensor(part, device=device)
            ends = torch.full((len(part), 1), tokenizer.cls_id, device=device)
            copies = torch.cat(
                [ends, ids, torch.full_like(ends, tokenizer.sep_id)], 1
            ).repeat_interleave(length, 0)
            place = torch.arange(len(copies), device=device)
            place = place * (length + 2) + 1 + place % length
            copies.view(-1)[place] = tokenizer.mask_id
            logits = model(copies, torch.zeros_like(copies), None, place).mlm_logits.float()
            token = logits.gather(-1, ids.view(-1, 1))[:, 0] - logits.logsumexp(-1)
            yield from zip(part, token.view(-1, length).double().sum(1).tolist(), strict=True)


MEASURES["blimp"] = OwnTextMeasure("blimp", "BLiMP", take=blimp)
