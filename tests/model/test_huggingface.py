import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import (
    ALBERT,
    BERT,
    assert_equal_outputs_and_gradients,
    load,
    make_albert,
    make_bert,
    random_model,
    shapes,
)

from albert_lab.errors import ConfigError
from albert_lab.model.huggingface import from_albert, from_bert, to_albert, to_bert


@settings(max_examples=15, deadline=None, derandomize=True)
@given(shape=shapes(), sequence=st.integers(1, 16), seed=st.integers(0, 1000))
def test_states_logits_and_gradients_equal_those_of_albert_in_transformers(shape, sequence, seed):
    ours, theirs = random_model(shape, seed=seed), make_albert(shape)
    load(theirs, to_albert(ours.state_dict(), shape))
    assert_equal_outputs_and_gradients(ours, theirs, to_albert, shape, sequence, seed)


def test_states_logits_and_gradients_equal_those_of_bert_in_transformers():
    shape = dataclasses.replace(BERT, hidden_act="gelu", layer_norm_eps=1e-3)
    ours, theirs = random_model(shape), make_bert(shape)
    load(theirs, to_bert(ours.state_dict(), shape))
    assert_equal_outputs_and_gradients(ours, theirs, to_bert, shape)


@pytest.mark.parametrize(
    ("write", "read", "shape", "labels"), [(to_albert, from_albert, ALBERT, 3), (to_bert, from_bert, BERT, 2)]
)
def test_converting_there_and_back_changes_no_bit(write, read, shape, labels):
    for num_pair_labels in (0, labels):
        state = random_model(shape, num_pair_labels).state_dict()
        back, no_place = read(write(state, shape), shape)
        assert no_place == []
        assert back.keys() == state.keys()
        assert all(torch.equal(back[name], tensor) for name, tensor in state.items())


@pytest.mark.parametrize(
    ("make", "read", "shape", "tied"),
    [
        (make_albert, from_albert, ALBERT, ["predictions.decoder.weight", "predictions.decoder.bias"]),
        (make_bert, from_bert, BERT, ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"]),
    ],
)
def test_a_state_dict_of_transformers_is_read_completely_except_its_tied_copies(make, read, shape, tied):
    state, no_place = read(make(shape).state_dict(), shape)
    assert sorted(no_place) == sorted(tied)
    random_model(shape).load_state_dict(state)


@pytest.mark.parametrize(("make", "read", "shape"), [(make_albert, from_albert, ALBERT), (make_bert, from_bert, BERT)])
def test_an_encoder_without_heads_is_read(make, read, shape):
    theirs = make(shape).base_model
    state, no_place = read({**theirs.state_dict(), "embeddings.position_ids": torch.arange(16)[None]}, shape)
    assert [name for name in no_place if not name.endswith("position_ids")] == []
    result = random_model(shape).load_state_dict(state, strict=False)
    assert result.unexpected_keys == []
    assert {name.split(".")[0] for name in result.missing_keys} == {"mlm_head", "pair_head"}


def test_a_projection_between_equal_sizes_is_kept_and_never_dropped_silently():
    square = dataclasses.replace(ALBERT, embedding_size=12)
    tensors = make_albert(square).state_dict()
    assert "encoder.embeddings.projection.weight" in from_albert(tensors, square)[0]
    with pytest.raises(ConfigError, match="not the identity"):
        from_albert(tensors, dataclasses.replace(square, projection=False))


@pytest.mark.parametrize(
    ("write", "shape", "labels", "reason"),
    [
        (to_albert, dataclasses.replace(ALBERT, ffn_groups=3), 2, "layers"),
        (to_albert, dataclasses.replace(ALBERT, num_layers=18, attention_groups=14, ffn_groups=14), 2, "layer 9"),
        (to_bert, ALBERT, 2, "sharing=not-shared"),
        (to_bert, dataclasses.replace(BERT, embedding_size=8, projection=True), 2, "embedding_size=8"),
        (to_bert, BERT, 3, "3 labels"),
    ],
)
def test_shapes_that_transformers_does_not_support_are_refused_with_the_reason(write, shape, labels, reason):
    with pytest.raises(ConfigError, match=reason):
        write(random_model(shape, labels).state_dict(), shape)
