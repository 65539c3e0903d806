from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from albert_lab.config.compose import load
from albert_lab.config.schema import ConversionConfig
from albert_lab.errors import ConfigError
from albert_lab.model.conversion import POSITIONS, Converted, Tokens, convert
from albert_lab.model.encoder import PretrainingModel
from albert_lab.model.shape import EncoderShape

TOKENS = 300
CONFIG = load(["scale=smoke", f"tokenizer.vocab_size={TOKENS}", "dropout=0"])
SHAPE = EncoderShape.from_config(CONFIG)
H = SHAPE.hidden_size
AVERAGE = ConversionConfig()


def shape(layers: int, attention: Any, ffn: Any, **changes: Any) -> EncoderShape:
    groups = {"num_layers": layers, "attention_groups": attention, "ffn_groups": ffn}
    changes = {
        "embedding_size": H,
        "projection": changes.get("embedding_size", H) != H,
        **groups,
        **changes,
    }
    return replace(SHAPE, **changes)


def model_of(encoder: EncoderShape) -> PretrainingModel:
    """A model whose biases, gains and tables are all different, as those of a trained one."""
    model, generator = PretrainingModel(encoder, 2, seed=0).eval(), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            around = 1.0 if name.endswith("layer_norm.weight") else 0.0
            parameter.copy_(around + 0.15 * torch.randn(parameter.shape, generator=generator))
    return model


def sample(count: int) -> np.ndarray:
    """Tokens of which some are more frequent than others."""
    return np.random.default_rng(0).zipf(1.5, 4 * count) % TOKENS


def converted(
    source: PretrainingModel,
    target: EncoderShape,
    rules: ConversionConfig = AVERAGE,
    tokens: Tokens = sample,
) -> tuple[PretrainingModel, Converted]:
    result = convert(dict(source.state_dict()), source.encoder.shape, target, rules, tokens)
    model = PretrainingModel(target, 2, seed=2).eval()
    model.load_state_dict(result.tensors)  # strict: exactly the tensors of the model
    return model, result


def states(model: PretrainingModel) -> torch.Tensor:
    """Hidden states [layers + 1, batch, sequence, hidden] of a random batch."""
    ids = torch.randint(TOKENS, (4, 12), generator=torch.Generator().manual_seed(3))
    types = (torch.arange(12) > 5).long().expand(4, 12)
    with torch.inference_mode():
        return torch.stack(model.encoder(ids, types, None, output_hidden_states=True).hidden_states)


def assert_same(one: PretrainingModel, other: PretrainingModel) -> None:
    torch.testing.assert_close(states(one), states(other), atol=1e-5, rtol=0)


def blocks(model: PretrainingModel, kind: str = "ffn") -> list[torch.Tensor]:
    """A matrix of each block."""
    return [block.output.weight for block in getattr(model.encoder, f"{kind}_blocks")]  # pyright: ignore


# What loses nothing


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (shape(3, 3, 3), shape(3, 3, 3)),
        (shape(3, 3, 3), shape(3, 3, 3, projection=True)),
        (shape(4, 1, 2), shape(4, 4, 4)),
        (shape(4, (0, 1), (0, 1, 1, 0)), shape(4, 4, 4)),
        (shape(4, 2, 1), shape(4, (0, 0, 1, 1), 2)),
        (shape(2, 2, 2), shape(2, 2, 2, embedding_size=H + 5)),
        (shape(2, 2, 2, embedding_size=6), shape(2, 2, 2, embedding_size=11)),
        (shape(2, 1, 1, embedding_size=6), shape(2, 2, 2, projection=True)),
        (shape(4, 1, 2, layer_scales="learned"), shape(4, 4, 4, layer_scales="learned")),
        (
            shape(2, 1, 1, embedding_size=6, position_encoding="rope"),
            shape(2, 2, 2, embedding_size=9, position_encoding="rope"),
        ),
    ],
)
def test_equal_sizes_growing_and_unsharing_leave_hidden_states_as_they_are(before, after):
    source = model_of(before)
    target, result = converted(source, after)
    assert_same(source, target)
    assert result.unexplained is None


@pytest.mark.parametrize("sharing", ["average", "lower", "stepwise"])
def test_equal_blocks_share_without_loss_and_a_round_trip_gives_the_first_model(sharing):
    source, rules = model_of(shape(6, 1, 3, embedding_size=6)), ConversionConfig(sharing=sharing)
    unshared, _ = converted(source, shape(6, 6, 6, embedding_size=9))
    assert len(blocks(unshared)) == 6
    back, result = converted(unshared, source.encoder.shape, rules)
    assert_same(source, back)
    assert result.unexplained is not None
    assert result.unexplained < 1e-6


def test_a_projection_learns_in_units_that_growing_adds():
    grown, _ = converted(
        model_of(shape(1, 1, 1, embedding_size=6)), shape(1, 1, 1, embedding_size=9)
    )
    model = grown.train()
    hidden = model.encoder(
        torch.arange(8)[None], torch.zeros(1, 8, dtype=torch.long), None
    ).last_hidden_state
    hidden[..., 0].sum().backward()
    weight = model.encoder.embeddings.word_embeddings.weight
    assert weight.grad is not None
    assert torch.linalg.matrix_rank(weight.detach()) == 5
    assert torch.linalg.matrix_rank(weight.grad) > 5


# What loses something


def test_less_of_the_input_is_explained_the_smaller_the_embeddings_are():
    source = model_of(shape(2, 2, 2))
    lost = [
        converted(source, shape(2, 2, 2, embedding_size=size))[1].unexplained or 0.0
        for size in (H - 1, 12, 6, 3)
    ]
    assert lost == sorted(lost)
    assert 0.0 < lost[0] < 0.2
    assert 0.5 < lost[-1] < 1.0


def test_embeddings_of_frequent_tokens_are_kept_better_than_those_of_rare_ones():
    source, smaller = model_of(shape(1, 1, 1)), shape(1, 1, 1, embedding_size=12)
    target, _ = converted(source, smaller, AVERAGE, lambda count: np.resize(np.arange(20), count))
    types = torch.zeros(1, 20, dtype=torch.long)

    def error(ids: torch.Tensor) -> float:
        before, after = (model.encoder.embeddings(ids, types) for model in (source, target))
        return F.mse_loss(after, before).item()

    assert error(torch.arange(20)[None]) < 0.8 * error(torch.arange(100, 120)[None])


@pytest.mark.parametrize(
    ("sharing", "of_layers"),
    [
        ("average", [[0, 1], [2, 3], [4, 5]]),
        ("lower", [[0], [2], [4]]),
        ("stepwise", [[0], [2], [5]]),
    ],
)
def test_blocks_of_groups_are_the_mean_the_first_or_those_at_equal_distances(sharing, of_layers):
    source = model_of(shape(6, 6, 6))
    target, _ = converted(source, shape(6, 6, 3), ConversionConfig(sharing=sharing))
    for block, layers in zip(blocks(target), of_layers, strict=True):
        torch.testing.assert_close(
            block, torch.stack([blocks(source)[layer] for layer in layers]).mean(0)
        )
    assert all(map(torch.equal, blocks(target, "attention"), blocks(source, "attention")))


@pytest.mark.parametrize(
    ("before", "after", "rule", "layers"),
    [
        (shape(2, 2, 2), shape(6, 6, 6), "spread", [0, 0, 0, 1, 1, 1]),
        (shape(12, 12, 12), shape(6, 6, 6), "spread", [0, 2, 4, 7, 9, 11]),
        (shape(6, 6, 6), shape(2, 2, 2), "first", [0, 1]),
        (shape(4, (0, 1), (0, 1)), shape(8, (0, 1), (0, 1)), "spread", [0, 1]),
    ],
)
def test_another_depth_repeats_or_leaves_out_layers(before, after, rule, layers):
    source = model_of(before)
    target, _ = converted(source, after, ConversionConfig(layers=rule))
    assert all(map(torch.equal, blocks(target), [blocks(source)[layer] for layer in layers]))


@pytest.mark.parametrize("depth", [1, 3, 9])
def test_layers_that_share_one_block_share_that_of_all_layers_at_any_depth(depth):
    source = model_of(shape(3, 3, 3))
    target, _ = converted(source, shape(depth, 1, 1))
    torch.testing.assert_close(blocks(target)[0], torch.stack(blocks(source)).mean(0))
    assert len(target.encoder.layers) == depth


def test_buffers_of_integers_in_own_blocks_pass_with_their_block():
    source, name = shape(2, 1, 1), "encoder.attention_blocks.0.index"
    tensors = dict(model_of(source).state_dict()) | {name: torch.arange(4)}
    result = convert(tensors, source, source, AVERAGE, sample).tensors
    assert torch.equal(result[name], tensors[name])


def test_more_positions_are_copies_of_the_last():
    places = SHAPE.max_position_embeddings
    source = model_of(shape(1, 1, 1))
    target, _ = converted(source, shape(1, 1, 1, max_position_embeddings=places + 2))
    before, after = (model.state_dict()[POSITIONS] for model in (source, target))
    assert torch.equal(after, torch.cat([before, before[-1:], before[-1:]]))


# Shapes


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"hidden_size": H * 2}, "hidden_size"),
        ({"vocab_size": 7}, "vocab_size"),
        ({"position_encoding": "rope"}, "position_encoding"),
        ({"max_position_embeddings": 8}, "max_position_embeddings"),
        ({"projection": False}, "projection=always"),
        ({"layer_scales": "none"}, "layer_scales=learned of the weights"),
        ({"num_layers": 4}, "num_layers=2 of the weights"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_its_name(changes, key):
    source = model_of(shape(2, 2, 2, projection=True, layer_scales="learned"))
    with pytest.raises(ConfigError, match=key):
        converted(source, replace(source.encoder.shape, **changes))
