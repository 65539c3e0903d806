import dataclasses

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from parity import ALBERT

from albert_lab.model.encoder import Encoder, PretrainingModel, initialize, likeliest

SHAPE = dataclasses.replace(
    ALBERT, vocab_size=31, embedding_size=6, num_layers=4, initializer_range=0.02
)
# Larger than in training, so that every term is significant.
LOUD = dataclasses.replace(SHAPE, initializer_range=0.4)


INPUT_IDS = torch.randint(0, 31, (3, 10), generator=torch.Generator().manual_seed(0))
TOKEN_TYPE_IDS = (torch.arange(10) >= 5).long().expand(3, 10)
ATTENTION_MASK = torch.arange(10) < torch.tensor([10, 7, 7])[:, None]
INPUTS = INPUT_IDS, TOKEN_TYPE_IDS, ATTENTION_MASK
BATCH = *INPUTS, torch.tensor([1, 4, 12, 20])  # with the masked positions


def loss_of(output):
    labels = torch.arange(len(output.mlm_logits))
    pair_labels = torch.zeros(3, dtype=torch.long)
    return F.cross_entropy(output.mlm_logits.float(), labels) + F.cross_entropy(
        output.pair_logits.float(), pair_labels
    )


def gradient_of(parameter):
    assert parameter.grad is not None
    return parameter.grad


def test_blocks_of_layers_are_exact_where_the_released_float_formula_is_wrong():
    shape = dataclasses.replace(SHAPE, num_layers=22, attention_groups=22, ffn_groups=2)
    assert shape.attention_blocks == list(range(22))
    assert int(15 / 22 * 22) == 14  # the released formula
    for num_layers in range(1, 25):
        for groups in range(1, num_layers + 1):
            blocks = dataclasses.replace(SHAPE, num_layers=num_layers, ffn_groups=groups).ffn_blocks
            assert blocks == sorted(blocks)
            assert set(blocks) == set(range(groups))


def test_the_decoder_is_tied_and_saved_once():
    model = PretrainingModel(SHAPE, 2, seed=0)
    tables = [
        name for name, tensor in model.state_dict().items() if SHAPE.vocab_size in tensor.shape
    ]
    assert tables == ["encoder.embeddings.word_embeddings.weight", "mlm_head.bias"]
    storages = [tensor.data_ptr() for tensor in model.state_dict().values()]
    assert len(set(storages)) == len(storages)
    loss_of(model(*BATCH)).backward()
    gradient = gradient_of(model.encoder.embeddings.word_embeddings.weight)
    never_seen = [token for token in range(31) if token not in INPUT_IDS]
    assert never_seen
    assert (gradient[never_seen] != 0).any(dim=1).all()


def test_matrices_are_drawn_within_two_sigma_and_biases_are_zero():
    shape = dataclasses.replace(SHAPE, vocab_size=5000, hidden_size=96, intermediate_size=384)
    for name, parameter in PretrainingModel(shape, 2, seed=1).named_parameters():
        if parameter.ndim > 1:
            assert parameter.abs().max() <= 2 * shape.initializer_range, name
            assert parameter.abs().max() > 0
        else:
            expected = 1.0 if name.endswith("layer_norm.weight") else 0.0
            assert (parameter == expected).all(), name
        if parameter.numel() > 20_000:
            # The standard deviation of a normal distribution truncated at two standard deviations.
            assert parameter.std().item() == pytest.approx(
                0.8796 * shape.initializer_range, rel=0.02
            ), name
            assert parameter.abs().max() > 1.95 * shape.initializer_range


def test_weights_depend_only_on_the_seed_and_not_on_optional_heads():
    torch.manual_seed(1)
    first = PretrainingModel(SHAPE, 2, seed=7).state_dict()
    torch.manual_seed(2)
    second = PretrainingModel(SHAPE, 0, seed=7).state_dict()
    other = PretrainingModel(SHAPE, 0, seed=8).state_dict()
    assert all(torch.equal(first[name], tensor) for name, tensor in second.items())
    assert not torch.equal(first["pooler.dense.weight"], other["pooler.dense.weight"])


def test_evaluation_is_deterministic_and_training_applies_dropout_in_every_place():
    model = PretrainingModel(dataclasses.replace(LOUD, dropout=0.5), 2, seed=0)
    model.eval()

    def is_deterministic():
        return torch.equal(model(*BATCH).mlm_logits, model(*BATCH).mlm_logits)

    assert is_deterministic()
    places = [module for module in model.modules() if isinstance(module, torch.nn.Dropout)]
    assert len(places) == 3  # embeddings, attention block, FFN block
    for place in places:
        place.train()
        assert not is_deterministic()
        place.eval()
    # The attention block, not its nn.Dropout, enables the dropout of attention probabilities.
    model.encoder.attention_blocks[0].training = True
    assert not is_deterministic()


@pytest.mark.parametrize("embedding_size", [6, 12])
def test_with_autocast_the_residual_stream_is_float32_and_logits_agree(embedding_size):
    shape = dataclasses.replace(
        SHAPE, embedding_size=embedding_size, projection=embedding_size != 12
    )
    model = PretrainingModel(shape, 2, seed=0)
    exact = model(*BATCH)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(*BATCH)
        states = model.encoder(*INPUTS, output_hidden_states=True).hidden_states
    assert {state.dtype for state in states} == {torch.float32}
    assert rough.mlm_logits.dtype == torch.bfloat16
    torch.testing.assert_close(rough.mlm_logits.float(), exact.mlm_logits, rtol=0.05, atol=0.01)
    loss_of(rough).backward()
    assert all(gradient_of(parameter).isfinite().all() for parameter in model.parameters())


def test_with_autocast_cpu_attention_is_float32_within_the_rounding_of_bf16():
    shape = dataclasses.replace(LOUD, num_layers=1)
    encoder, seen = Encoder(shape), []
    initialize(encoder, shape.initializer_range, torch.Generator().manual_seed(0))
    reference = encoder(*INPUTS).last_hidden_state
    with pytest.MonkeyPatch.context() as patch:
        attention = F.scaled_dot_product_attention
        patch.setattr(
            F,
            "scaled_dot_product_attention",
            lambda q, *rest, **named: seen.append(q.dtype) or attention(q, *rest, **named),
        )
        with torch.autocast("cpu", torch.bfloat16):
            rounded = encoder(*INPUTS).last_hidden_state
    assert seen == [torch.float32]
    torch.testing.assert_close(rounded, reference, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_likeliest_label_is_the_first_of_equal_ones_as_with_argmax(dtype):
    logits = (
        torch.randint(3, (200, 50), generator=torch.Generator().manual_seed(0))
        .to(dtype)
        .requires_grad_()
    )
    assert torch.equal(likeliest(logits), logits.argmax(-1))
    assert not likeliest(logits).requires_grad
