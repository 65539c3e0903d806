"""The parts that ALBERT and BERT do not have."""

import dataclasses
from typing import Any

import pytest
import torch

from albert_lab.config.compose import load
from albert_lab.errors import ConfigError
from albert_lab.model.encoder import Encoder, initialize
from albert_lab.model.shape import EncoderShape

IDS = torch.arange(16).reshape(2, 8)


def encoder(*overrides, **changes):
    shape = EncoderShape.from_config(load(["scale=smoke", *overrides]))
    built = Encoder(dataclasses.replace(shape, **changes)).eval()
    initialize(built, 0.2, torch.Generator().manual_seed(0))
    return built


def output(built, ids=IDS, segments=None, mask=None):
    return built(
        ids, torch.zeros_like(ids) if segments is None else segments, mask
    ).last_hidden_state


def test_rotary_positions_depend_on_distances_alone():
    rope = encoder("position_encoding=rope").positions
    query, key = (torch.randn(1, 2, 1, 24).expand(1, 2, 8, 24) for _ in range(2))
    query, key = rope.rotate(query, key)
    scores = (query @ key.mT)[0, 0]
    torch.testing.assert_close(scores[:-1, :-1], scores[1:, 1:])  # equal along diagonals
    assert not torch.allclose(scores[0, 1], scores[0, 2])


def test_an_encoder_with_rotary_positions_has_no_table_and_tells_places_apart():
    rope = encoder("position_encoding=rope")
    assert rope.embeddings.position_embeddings is None
    swapped = IDS[:, [0, 2, 1, 3, 4, 5, 6, 7]]
    assert not torch.allclose(output(rope)[:, 7], output(rope, swapped)[:, 7], atol=1e-4)


def test_rotary_positions_need_heads_of_an_even_size():
    with pytest.raises(ConfigError, match="position_encoding=rope"):
        encoder("position_encoding=rope", "model.num_attention_heads=16")


def test_within_segments_a_segment_depends_neither_on_the_other_nor_on_padding():
    built = encoder("attention_scope=within-segments")
    segments = torch.tensor([0, 0, 0, 0, 1, 1, 0, 0]).expand(2, 8)
    mask = (torch.arange(8) < 6).expand(2, 8)
    changed = IDS + 50 * (torch.arange(8) >= 4)
    usual, other = (output(built, ids, segments, mask) for ids in (IDS, changed))
    torch.testing.assert_close(usual[:, :4], other[:, :4])
    assert not torch.allclose(usual[:, 4:6], other[:, 4:6])


def test_a_list_of_block_numbers_is_the_sharing_of_the_layers_and_repeats():
    built = encoder(
        "model.num_layers=6", "sharing.attention_groups=[0,1,2]", "sharing.ffn_groups=[0,1,1,0,0,1]"
    )
    assert built.layers == [(0, 0), (1, 1), (2, 1), (0, 0), (1, 0), (2, 1)]
    assert (len(built.attention_blocks), len(built.ffn_blocks)) == (3, 2)


@pytest.mark.parametrize("blocks", ["[0,2]", "[0,1,2,0]", "[]", "[-1,0]"])
def test_a_list_of_block_numbers_has_no_gaps_and_fits_the_layers(blocks):
    with pytest.raises(ConfigError, match="sharing.ffn_groups"):
        load(["scale=smoke", "model.num_layers=6", f"sharing.ffn_groups={blocks}"])


def test_options_of_sharing_have_their_meaning_at_any_number_of_layers():
    options = {
        "all-shared": (1, 1),
        "groups": (2, 2),
        "shared-attention": (1, 7),
        "shared-ffn": (7, 1),
        "not-shared": (7, 7),
        "sandwich": (3, 3),
    }
    for name, expected in options.items():
        built = encoder(f"sharing={name}", "model.num_layers=7")
        assert (len(built.attention_blocks), len(built.ffn_blocks)) == expected


def test_scales_of_layers_change_nothing_at_1_and_tell_layers_of_one_block_apart():
    plain, scaled = (encoder(f"layer_scales={kind}") for kind in ("none", "learned"))
    assert torch.equal(output(plain), output(scaled))
    scales = {name: scale for name, scale in scaled.named_parameters() if "_scales." in name}
    assert len(scales) == 2 * len(scaled.layers) == 4
    assert {scale.shape for scale in scales.values()} == {(48,)}
    torch.nn.init.zeros_(scales["ffn_scales.1.weight"])  # the FFN adds nothing in this layer alone
    _, first, last = scaled(IDS, torch.zeros_like(IDS), None, True).hidden_states
    torch.testing.assert_close(
        first, plain(IDS, torch.zeros_like(IDS), None, True).hidden_states[1]
    )
    block: Any = scaled.ffn_blocks[0]
    attended = scaled.attention_blocks[0](first, None, scaled.positions)
    torch.testing.assert_close(last, block.layer_norm(attended))
    last.square().sum().backward()
    assert all(scale.grad is not None for scale in scales.values())
