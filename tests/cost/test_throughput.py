import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from albert_lab.config.compose import load
from albert_lab.cost import throughput
from albert_lab.cost.counts import count_flops
from albert_lab.cost.throughput import Bench, synthetic_batch

TOY = ["scale=smoke", "batch_size=4", "evaluation.batch_size=6", "machine.device=cpu", "machine.precision=fp32"]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(throughput, "MATRIX_SIZES", {"cpu": (16, 32)})
    return Bench(load(TOY), seconds=0.001)


@pytest.mark.parametrize("objective", ["none", "three-way"])
def test_a_synthetic_batch_is_full_and_masked_as_configured(objective):
    config = load([*TOY, f"inter_sentence={objective}", "masking.probability=0.25"])
    batch = synthetic_batch(config, 5)
    assert batch.num_tokens == batch.input_ids.size == 5 * 32
    rows, _ = np.divmod(batch.masked_positions, 32)
    assert np.bincount(rows).tolist() == [8] * 5
    assert np.all(np.diff(batch.masked_positions) > 0)
    assert batch.masked_labels.shape == batch.masked_positions.shape
    assert batch.input_ids.max() < config.tokenizer.vocab_size
    assert set(batch.pair_labels) <= ({-1} if objective == "none" else {0, 1, 2})


def test_a_step_has_the_counted_flops(bench):
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counted:
        bench.train_once()
    expected = count_flops(load(TOY)).training * 4 * 32
    assert counted.get_total_flops() == pytest.approx(expected, rel=1e-12)


def test_measuring_does_not_change_the_weights(bench):
    before = {name: tensor.clone() for name, tensor in bench.model.state_dict().items()}
    assert bench.training() > 0
    assert bench.inference() > 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in bench.model.state_dict().items())
