import re
from dataclasses import replace

import pytest
import torch

from albert_lab.config.compose import load
from albert_lab.errors import ConfigError
from albert_lab.model.encoder import PretrainingModel
from albert_lab.model.shape import EncoderShape, check_deepening, deepen


def shape(layers: int, attention: int, ffn: int, **changes) -> EncoderShape:
    base = EncoderShape.from_config(load(["scale=smoke"]))
    return replace(base, num_layers=layers, attention_groups=attention, ffn_groups=ffn, **changes)


def deepened(shallow: EncoderShape, deep: EncoderShape) -> tuple[PretrainingModel, PretrainingModel]:
    before, after = PretrainingModel(shallow, 2, seed=0), PretrainingModel(deep, 2, seed=1)
    after.load_state_dict(deepen(before.state_dict(), shallow, deep))  # strict: exactly the tensors of the model
    return before, after


def test_a_shared_block_is_used_by_more_layers():
    before, after = deepened(shape(1, 1, 1), shape(3, 1, 1))
    assert all(torch.equal(tensor, after.state_dict()[name]) for name, tensor in before.state_dict().items())
    assert len(after.encoder.layers) == 3


def test_separate_blocks_are_copied_to_consecutive_blocks():
    before, after = (model.state_dict() for model in deepened(shape(2, 2, 2), shape(6, 6, 6)))
    for name, tensor in after.items():
        if match := re.fullmatch(r"(encoder\.(?:attention|ffn)_blocks)\.(\d)\.(.+)", name):
            blocks, layer, rest = match.groups()
            assert torch.equal(tensor, before[f"{blocks}.{int(layer) // 3}.{rest}"])


def test_attention_and_ffn_are_copied_separately():
    before, after = (model.state_dict() for model in deepened(shape(2, 1, 2), shape(4, 1, 4)))
    query = "encoder.attention_blocks.0.query.weight"
    assert torch.equal(after[query], before[query])
    weights = [after[f"encoder.ffn_blocks.{block}.output.weight"] for block in range(4)]
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[2], weights[3])
    assert not torch.equal(weights[1], weights[2])


@pytest.mark.parametrize(
    ("shallow", "deep", "key"),
    [
        (shape(2, 1, 1), shape(1, 1, 1), "2 layers"),
        (shape(2, 2, 2), shape(3, 3, 3), "attention_groups"),
        (shape(2, 1, 2), shape(2, 1, 1), "ffn_groups"),
        (shape(1, 1, 1), shape(2, 1, 1, hidden_size=96), "hidden_size"),
    ],
)
def test_incompatible_shapes_are_refused(shallow, deep, key):
    with pytest.raises(ConfigError, match=key):
        check_deepening(shallow, deep)
