from itertools import islice

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from albert_lab.tasks.batches import Features, cut_pair, training_items

CPU = torch.device("cpu")


def features(lengths, rows_per_item=1):
    rows = [list(range(10, 10 + length)) for length in lengths]
    targets = {"labels": np.arange(len(rows) // rows_per_item)}
    return Features([(row, 1) for row in rows], targets, 0, rows_per_item)


def released_cut(first, second, room):
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_a_pair_is_cut_as_in_the_release(first, second, room):
    kept = cut_pair(range(first), range(second), room)
    assert tuple(map(list, kept)) == released_cut(range(first), range(second), room)


def test_a_batch_is_exactly_as_wide_as_its_longest_row():
    batch = features([3, 5, 2]).batch(np.array([0, 2]), CPU)
    assert batch.input_ids.tolist() == [[10, 11, 12], [10, 11, 0]]
    assert batch.attention_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.token_type_ids.tolist() == [[0, 1, 1], [0, 1, 0]]
    assert batch.targets["labels"].tolist() == [0, 2]


def test_the_order_depends_only_on_seed_and_epoch():
    first, again, other = (
        np.stack([*islice(training_items(np.arange(40), 8, seed), 10)]) for seed in (0, 0, 1)
    )
    assert (first == again).all()
    assert (first != other).any()
    assert (first[:5] != first[5:]).any(), "the next epoch"
