import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toy import toy_config

from albert_lab.data.batches import Batch
from albert_lab.errors import ConfigError
from albert_lab.model.encoder import PretrainingModel
from albert_lab.training.layers import hidden_states_of, measure_layers

CPU = torch.device("cpu")


def measure(batches):
    return measure_layers(
        ((list(map(torch.as_tensor, states)), torch.as_tensor(mask)) for states, mask in batches),
        "files",
    )


def drawn(seed=0, shape=(3, 5, 8)) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def toy_mask(lengths=(5, 2, 4)) -> np.ndarray:
    return np.arange(5) < np.array(lengths)[:, None]


def test_equal_and_opposite_vectors_have_their_angles():
    states = drawn()
    same, opposite = measure([([states, states, -states], toy_mask())])
    assert same.degrees == pytest.approx(0, abs=1e-6), "the arc cosine has a rounding error here"
    assert opposite.degrees == pytest.approx(180, abs=1e-6)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(2, 4), st.integers(1, 4))
def test_it_matches_numpy_for_all_batch_sizes(lengths, num_states, batch_size):
    mask = toy_mask(lengths)
    states = [drawn(seed, (*mask.shape, 8)) for seed in range(num_states)]
    parts = [slice(first, first + batch_size) for first in range(0, len(lengths), batch_size)]
    result = measure(([state[part] for state in states], mask[part]) for part in parts)
    assert len(result) == num_states - 1
    for change in result:
        before, after = states[change.layer - 1][mask], states[change.layer][mask]
        distance = np.linalg.norm(after - before, axis=-1)
        cosine = (
            (before * after).sum(-1)
            / np.linalg.norm(before, axis=-1)
            / np.linalg.norm(after, axis=-1)
        )
        degrees = np.degrees(np.arccos(cosine))
        assert change.n == mask.sum()
        measured = (change.l2_distance, change.cosine_similarity, change.degrees)
        assert measured == pytest.approx((distance.mean(), cosine.mean(), degrees.mean()), abs=1e-9)


def test_a_hidden_state_of_zeros_is_refused():
    with pytest.raises(ConfigError, match="layer 1"):
        measure([([drawn(), np.zeros((3, 5, 8))], toy_mask())])


def toy_batch(masked=()) -> Batch:
    input_ids = np.arange(6, 21, dtype=np.int64).reshape(3, 5)
    positions = np.array(masked, dtype=np.int64)
    labels = input_ids.ravel()[positions]
    input_ids.flat[positions] = 4
    nothing = np.zeros((3, 5), dtype=np.int64)
    return Batch(input_ids, nothing, toy_mask(), positions, labels, np.full(3, -1))


def test_layers_of_a_run_are_measured_on_unmasked_text(corpus):
    model = PretrainingModel.from_config(toy_config(corpus, "dropout=0.5")).eval()
    plain = measure(hidden_states_of(model, toy_batch(), 3, CPU))
    assert measure(hidden_states_of(model, toy_batch(masked=(1, 6, 10)), 3, CPU)) == plain
    in_parts = measure(hidden_states_of(model, toy_batch(masked=(3, 11)), 2, CPU))
    assert [change.degrees for change in in_parts] == pytest.approx(
        [change.degrees for change in plain], abs=1e-4
    )
    assert [change.layer for change in plain] == [1, 2]
