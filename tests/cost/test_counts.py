import subprocess
import sys
import weakref

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from albert_lab import paths
from albert_lab.config import compose as config
from albert_lab.cost import counts
from albert_lab.model.heads import PretrainingModel

ROWS = counts.paper_rows()
SHARINGS = sorted(file.stem for file in paths.CONF.glob("sharing/*.yaml"))
SMALL = ["scale=smoke", "model.num_layers=4", "batch_size=4", "machine.precision=fp32"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_a_row_of_the_paper_is_counted_exactly(row):
    result = counts.count_parameters(config.load(row.overrides))
    assert (result.encoder, result.with_pooler, result.total) == (row.encoder, row.with_pooler, row.total)


def test_the_footnote_explains_how_the_paper_counted():
    def millions(count):
        return f"{count / 1e6:.0f}M"

    unexplained = []
    for row in ROWS:
        own = "sharing=not-shared" in row.overrides
        if row.paper != millions(row.encoder if own else row.with_pooler):
            unexplained.append(row.paper)
            if row.paper in ("60M", "225M", "499M"):
                hidden_size = config.load(row.overrides).model.hidden_size
                assert row.paper == millions(row.with_pooler + 512 * hidden_size)
    assert sorted(unexplained) == ["1270M", "225M", "235M", "499M", "60M", "60M"]
    assert all(size in counts.paper_footnote() for size in ("60M", "225M", "235M", "499M"))


@pytest.mark.parametrize("overrides", [["inter_sentence=none"], ["inter_sentence=three-way"]], ids=" ".join)
def test_the_formula_counts_the_heads_that_are_built(overrides):
    assert_counts_what_is_built(config.load([*SMALL, *overrides]))


@pytest.mark.parametrize("embedding_size", [16, 48])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_the_formula_counts_the_encoder_that_is_built(sharing, embedding_size):
    assert_counts_what_is_built(config.load([*SMALL, f"sharing={sharing}", f"embedding_size={embedding_size}"]))


def assert_counts_what_is_built(run):
    model = PretrainingModel.from_config(run)
    result = counts.count_parameters(run)

    def count(module):
        return sum(parameter.numel() for parameter in module.parameters()) if module is not None else 0

    assert result.embeddings == count(model.encoder.embeddings)
    assert result.encoder == count(model.encoder)
    assert result.pooler == count(model.pooler)
    assert result.mlm_head == count(model.mlm_head)
    assert result.pair_head == count(model.pair_head)
    assert result.total == count(model)


def test_sharing_saves_parameters_but_no_flops():
    shared, own = (config.load([*SMALL, f"sharing={sharing}"]) for sharing in ("all-shared", "not-shared"))
    assert counts.count_parameters(shared).total < counts.count_parameters(own).total
    assert counts.count_flops(shared) == counts.count_flops(own)


def run_step(model, run):
    """One forward and backward pass with every token real and the expected number of masked positions."""
    batch, sequence = run.batch_size, run.max_sequence_length
    num_masked = min(round(run.masking.probability * sequence), run.masking.max_predictions or sequence)
    input_ids = torch.arange(batch * sequence).view(batch, sequence) % run.tokenizer.vocab_size
    positions = torch.cat([row * sequence + torch.arange(num_masked) for row in range(batch)])
    with torch.autocast("cpu", torch.bfloat16, enabled=run.machine.precision == "bf16"):
        output = model(input_ids, torch.zeros_like(input_ids), torch.ones_like(input_ids, dtype=torch.bool), positions)
    loss = F.cross_entropy(output.mlm_logits.float(), torch.zeros_like(positions))
    if output.pair_logits is not None:
        loss = loss + F.cross_entropy(output.pair_logits.float(), torch.zeros(batch, dtype=torch.long))
    loss.backward()


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["embedding_size=48", "sharing=not-shared", "max_sequence_length=40"],
        ["inter_sentence=none", "masking=official"],
        ["inter_sentence=three-way", "sharing=groups"],
    ],
    ids=" ".join,
)
def test_flops_agree_with_the_counter_of_torch(overrides):
    run = config.load([*SMALL, *overrides])
    model = PretrainingModel.from_config(run)
    tokens = run.batch_size * run.max_sequence_length
    # Plain attention: fused kernels compute it anew in the backward pass, which is not counted.
    with sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as training:
            run_step(model, run)
        input_ids = torch.zeros(run.batch_size, run.max_sequence_length, dtype=torch.long)
        with FlopCounterMode(display=False) as inference, torch.no_grad():
            model.pooler(model.encoder(input_ids, input_ids, input_ids == 0).last_hidden_state)
    flops = counts.count_flops(run)
    assert flops.training * tokens == pytest.approx(training.get_total_flops(), rel=1e-12)
    assert flops.inference * tokens == pytest.approx(inference.get_total_flops(), rel=1e-12)


def test_masked_positions_are_capped_as_released():
    as_described = config.load(["scale=paper", "masking=as-described"])
    official = config.load(["scale=paper"])
    head = 768 * 128 + 128 * 30000
    difference = counts.count_flops(as_described).training - counts.count_flops(official).training
    assert difference == pytest.approx(6 * head * (77 - 20) / 512)


class PeakMemory(TorchDispatchMode):
    """Bytes of the tensors alive at once at the peak, model excluded."""

    def __init__(self, model):
        super().__init__()
        self.alive = {}
        self.peak = 0
        self.known = {parameter.untyped_storage()._cdata for parameter in model.parameters()}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            storage = tensor.untyped_storage() if isinstance(tensor, torch.Tensor) else None
            if storage is not None and storage._cdata not in self.known and storage._cdata not in self.alive:
                self.alive[storage._cdata] = storage.nbytes()
                weakref.finalize(storage, self.alive.pop, storage._cdata, None)
                self.peak = max(self.peak, sum(self.alive.values()))
        return result


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["sharing=not-shared", "embedding_size=48"],
        ["model.num_layers=1", "model.hidden_size=96", "max_sequence_length=64"],
        ["machine.device=cpu", "max_sequence_length=64"],
        ["dropout=0.1", "machine.device=cpu", "max_sequence_length=64"],
    ],
    ids=" ".join,
)
def test_memory_is_within_a_quarter_of_what_tensors_take(overrides, precision):
    run = config.load(
        [*SMALL, *overrides, "batch_size=16", "evaluation.batch_size=4", f"machine.precision={precision}"]
    )
    model = PretrainingModel.from_config(run)
    weights = sum(parameter.nbytes for parameter in model.parameters())
    estimated = counts.estimate_training_memory(run)
    with PeakMemory(model) as training:
        run_step(model, run)
    # The moments are two more copies of the weights, which no step here makes.
    assert estimated.total - estimated.moments == pytest.approx(weights + training.peak, rel=0.25)
    assert estimated.moments == 2 * weights
    model.eval()
    input_ids = torch.zeros(4, run.max_sequence_length, dtype=torch.long)
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
    with torch.no_grad(), autocast, PeakMemory(model) as inference:
        model.pooler(model.encoder(input_ids, input_ids, input_ids == 0).last_hidden_state)
    backbone = sum(parameter.nbytes for part in (model.encoder, model.pooler) for parameter in part.parameters())
    assert counts.estimate_inference_memory(run).total == pytest.approx(backbone + inference.peak, rel=0.25)


def test_micro_batches_bound_only_the_activations():
    whole, parts = (config.load([*SMALL, *micro]) for micro in ([], ["machine.micro_batch_size=1"]))
    one, four = counts.estimate_training_memory(parts), counts.estimate_training_memory(whole)
    assert one.activations * 4 == four.activations
    assert (one.weights, one.gradients, one.moments) == (four.weights, four.gradients, four.moments)


@pytest.mark.parametrize(("device", "precision"), [("auto", "bf16"), ("cuda", "bf16"), ("cpu", "fp32")])
def test_an_automatic_precision_counts_as_bf16_except_on_a_cpu(device, precision):
    left, fixed = (
        config.load([*SMALL, f"machine.device={device}", f"machine.precision={p}"]) for p in ("auto", precision)
    )
    for estimate in (counts.estimate_training_memory, counts.estimate_inference_memory):
        assert estimate(left) == estimate(fixed)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_dropout_keeps_the_probabilities_of_attention_only_on_a_cpu(precision):
    long = [*SMALL, "max_sequence_length=256", f"machine.precision={precision}"]

    def activations(*overrides):
        return counts.estimate_training_memory(config.load([*long, *overrides])).activations

    cpu, cuda = activations("machine.device=cpu"), activations("machine.device=cuda")
    probabilities = 4 * 4 * 2 * 256 * 256 * 4  # sequences, layers, heads, positions, positions, bytes
    assert activations("machine.device=cpu", "dropout=0.1") - cpu > 3 * probabilities
    assert activations("machine.device=cuda", "dropout=0.1") - cuda < probabilities / 4


@pytest.mark.parametrize("overrides", [["machine.precision=bf16"], ["dropout=0.1", "machine.device=cpu"]], ids=" ".join)
def test_the_largest_batch_fits_and_one_more_does_not(overrides):
    run = config.load([*SMALL, *overrides])

    def estimate(batch):
        return counts.estimate_training_memory(run.model_copy(update={"batch_size": batch})).total

    @given(memory=st.integers(0, 1 << 32))
    def holds(memory):
        largest = counts.largest_batch(run, memory)
        assert largest == 0 or estimate(largest) <= memory
        assert estimate(largest + 1) > memory

    holds()


def test_a_micro_batch_does_not_change_the_largest_batch():
    result = {
        counts.largest_batch(config.load([*SMALL, f"machine.micro_batch_size={size}"]), 1 << 26) for size in (1, 4)
    }
    assert len(result) == 1


def test_counting_does_not_import_torch():
    code = (
        "import sys; from albert_lab.config import compose as config; from albert_lab.cost import counts as p;"
        "p.count_flops(config.load()); p.paper_rows(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
