"""A toy test of each part of the encoder that own code can register: copy one to test yours."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

from albert_lab import paths, registry
from albert_lab.config.compose import load
from albert_lab.cost.counts import count_built, count_flops, count_parameters
from albert_lab.extend import EncoderShape
from albert_lab.model.encoder import Encoder, initialize

EXAMPLES = paths.PACKAGE.parent / "examples"
IDS = torch.arange(16).reshape(2, 8)


@pytest.fixture(autouse=True)
def nothing_included():
    with registry.separate():
        yield


def encoder(*overrides, **changes):
    shape = EncoderShape.from_config(load(["scale=smoke", *overrides]))
    built = Encoder(dataclasses.replace(shape, **changes)).eval()
    initialize(built, 0.2, torch.Generator().manual_seed(0))
    return built


def block_of(blocks) -> Any:
    return blocks[0]


def output(built, ids=IDS, mask=None):
    return built(ids, torch.zeros_like(ids), mask).last_hidden_state


def test_an_activation_is_used_by_the_ffn(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from albert_lab.extend import activation\n\n"
        "@activation('squared-relu')\n"
        "def squared_relu(states):\n"
        "    return states.relu().square()\n"
    )
    registry.include(file)
    ffn = block_of(encoder("model.hidden_act=squared-relu").ffn_blocks)
    states = torch.randn(2, 8, 48)
    torch.testing.assert_close(ffn.compute(states), ffn.output(ffn.intermediate(states).relu().square()))


def test_a_norm_before_the_blocks_leaves_the_residual_stream_unnormalised():
    registry.include(EXAMPLES / "pre_norm.py")
    pre = encoder("norm_placement=pre")
    block = block_of(pre.ffn_blocks)
    states = torch.randn(2, 8, 48)
    torch.testing.assert_close(block(states), states + block.compute(block.layer_norm(states)))
    torch.testing.assert_close(output(pre).mean(-1), torch.zeros(2, 8), atol=1e-5, rtol=0)


def test_rotary_positions_depend_on_distances_alone():
    registry.include(EXAMPLES / "rope.py")
    rope = encoder("position_encoding=rope").positions
    query, key = torch.randn(1, 2, 1, 24), torch.randn(1, 2, 1, 24)
    turned = [part.expand(1, 2, 8, 24) for part in (query, key)]
    query, key = rope.rotate(*turned)
    scores = (query @ key.mT)[0, 0]
    torch.testing.assert_close(scores[:-1, :-1], scores[1:, 1:])  # equal along diagonals
    assert not torch.allclose(scores[0, 1], scores[0, 2])


def test_an_encoder_with_rotary_positions_has_no_table_and_tells_places_apart():
    registry.include(EXAMPLES / "rope.py")
    rope = encoder("position_encoding=rope")
    assert rope.embeddings.position_embeddings is None
    swapped = IDS[:, [0, 2, 1, 3, 4, 5, 6, 7]]
    assert not torch.allclose(output(rope)[:, 7], output(rope, swapped)[:, 7], atol=1e-4)


def test_a_gated_ffn_has_as_many_parameters_and_flops_as_the_usual_one():
    registry.include(EXAMPLES / "glu.py")
    usual, glu = (load(["scale=paper", f"ffn_block={name}"]) for name in ("standard", "glu"))
    assert count_parameters(glu).total == pytest.approx(count_parameters(usual).total, rel=1e-3)
    assert count_flops(glu).training == pytest.approx(count_flops(usual).training, rel=1e-3)


def test_an_attention_block_replaces_what_is_computed(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from albert_lab.extend import AttentionBlock, attention_block\n\n"
        "@attention_block('mean')\n"
        "class Mean(AttentionBlock):\n"
        "    def compute(self, hidden_states, attention_mask, positions):\n"
        "        return self.output(self.value(hidden_states).mean(1, keepdim=True).expand_as(hidden_states))\n"
    )
    registry.include(file)
    attention = block_of(encoder("attention_block=mean").attention_blocks)
    states = torch.randn(2, 8, 48)
    result = attention.compute(states, None, encoder().positions)
    torch.testing.assert_close(result[:, 0], result[:, 5])


def test_a_bias_of_the_scores_is_added_and_padding_stays_hidden(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "import torch\n"
        "from albert_lab.extend import PositionEncoding, position_encoding\n\n"
        "@position_encoding('near')\n"
        "class Near(PositionEncoding):\n"
        "    has_table = False\n\n"
        "    def bias(self, token_type_ids):\n"
        "        place = torch.arange(token_type_ids.shape[1], device=token_type_ids.device)\n"
        "        return -(place[:, None] - place).abs()[None, None].float()\n"
    )
    registry.include(file)
    near = encoder("position_encoding=near")
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[:, 6:] = False
    changed = IDS.clone()
    changed[:, 6:] = 1
    torch.testing.assert_close(output(near, IDS, mask)[:, :6], output(near, changed, mask)[:, :6])
    without = dataclasses.replace(near.shape, position_encoding="learned")
    assert isinstance(Encoder(without).embeddings.position_embeddings, nn.Embedding)


def test_within_segments_a_segment_does_not_depend_on_the_other():
    registry.include(EXAMPLES / "within_segments.py")
    built = encoder("position_encoding=within-segments")
    segments = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1]] * 2)
    mask = torch.ones(2, 8, dtype=torch.bool)
    changed = torch.where(segments == 1, IDS + 50, IDS)
    usual, other = (built(ids, segments, mask).last_hidden_state for ids in (IDS, changed))
    torch.testing.assert_close(usual[:, :5], other[:, :5])
    assert not torch.allclose(usual[:, 5:], other[:, 5:])


@pytest.mark.parametrize("overrides", [["sharing=not-shared"], ["embedding_size=48"], ["sharing=groups"]])
def test_counts_of_a_built_encoder_are_those_of_the_formulas(overrides):
    config = load(["scale=smoke", *overrides])
    result = count_built(EncoderShape.from_config(config), config.max_sequence_length)
    expected = count_parameters(config)
    pooler = 2 * config.model.hidden_size**2
    assert (result.embeddings, result.layers) == (expected.embeddings, expected.layers)
    assert result.flops + pooler == count_flops(config).inference * config.max_sequence_length
