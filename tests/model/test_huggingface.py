import dataclasses

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_lab.errors import ConfigError
from albert_lab.model.heads import PretrainingModel
from albert_lab.model.huggingface import from_albert, from_bert, to_albert, to_bert
from albert_lab.model.shape import EncoderShape

transformers = pytest.importorskip("transformers", reason="transformers is an extra of development")

ALBERT = EncoderShape(
    vocab_size=37,
    embedding_size=8,
    projection=True,
    hidden_size=12,
    num_layers=3,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=16,
    attention_groups=1,
    ffn_groups=1,
    hidden_act="gelu_new",
    layer_norm_eps=1e-12,
    # Larger than in training, so that differences do not drown.
    initializer_range=0.1,
    dropout=0.0,
)
BERT = dataclasses.replace(ALBERT, embedding_size=12, projection=False, attention_groups=3, ffn_groups=3)


def random_model(shape, num_pair_labels=2, seed=0):
    """A model in which biases and LayerNorms are drawn as well: at their first values they would hide a mix-up."""
    model = PretrainingModel(shape, num_pair_labels, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def common_config(shape):
    return {
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_attention_heads,
        "intermediate_size": shape.intermediate_size,
        "max_position_embeddings": shape.max_position_embeddings,
        "type_vocab_size": shape.type_vocab_size,
        "hidden_act": shape.hidden_act,
        "layer_norm_eps": shape.layer_norm_eps,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def make_albert(shape, num_labels=2):
    return transformers.AlbertForPreTraining(
        transformers.AlbertConfig(
            **common_config(shape),
            embedding_size=shape.embedding_size,
            num_hidden_groups=shape.ffn_groups,
            inner_group_num=shape.inner_group_num,
            classifier_dropout_prob=0.0,
            num_labels=num_labels,
        )
    ).eval()


def make_bert(shape):
    return transformers.BertForPreTraining(transformers.BertConfig(**common_config(shape))).eval()


def load(theirs, tensors):
    """Loads tensors; only the second names of tied weights may be missing."""
    result = theirs.load_state_dict(tensors, strict=False)
    assert result.unexpected_keys == []
    assert all(name.endswith(("decoder.weight", "decoder.bias")) for name in result.missing_keys)


def assert_equal_outputs_and_gradients(ours, theirs, rename, shape, sequence=11, seed=0):
    generator = torch.Generator().manual_seed(seed)
    # Padding has the id 0 and, as in real text, nothing else has: transformers gives its row no gradient.
    input_ids = torch.randint(1, shape.vocab_size, (3, sequence), generator=generator)
    token_type_ids = torch.randint(0, shape.type_vocab_size, (3, sequence), generator=generator)
    lengths = torch.tensor([sequence, max(1, sequence - 4), max(1, sequence // 2)])
    attention_mask = torch.arange(sequence) < lengths[:, None]
    input_ids = input_ids * attention_mask
    positions = attention_mask.flatten().nonzero().flatten()[::2]
    labels = torch.randint(0, shape.vocab_size, (len(positions),), generator=generator)

    hidden_states = ours.encoder(input_ids, token_type_ids, attention_mask, output_hidden_states=True).hidden_states
    output = ours(input_ids, token_type_ids, attention_mask, positions)
    expected = theirs(
        input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids, output_hidden_states=True
    )
    pair_logits, logits = expected[1], expected[0].flatten(0, 1)[positions]
    base = theirs.base_model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)

    def close(actual, wanted):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-5)

    for mine, their in zip(hidden_states, expected.hidden_states, strict=True):
        close(mine, their)
    close(output.pooled, base.pooler_output)
    close(output.mlm_logits, logits)
    close(output.pair_logits, pair_logits)

    pair_labels = torch.tensor([0, 1, 0])
    (F.cross_entropy(output.mlm_logits, labels) + F.cross_entropy(output.pair_logits, pair_labels)).backward()
    (F.cross_entropy(logits, labels) + F.cross_entropy(pair_logits, pair_labels)).backward()
    their_gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, gradient in rename({name: parameter.grad for name, parameter in ours.named_parameters()}, shape).items():
        if shape.projection or "embedding_hidden_mapping_in" not in name:
            close(gradient, their_gradients[name])


@st.composite
def shapes(draw):
    heads = draw(st.integers(1, 3))
    hidden_size = heads * draw(st.sampled_from([2, 4, 5]))
    embedding_size = draw(st.sampled_from([3, 8, hidden_size]))
    num_layers = draw(st.integers(1, 5))
    groups = draw(st.integers(1, num_layers))
    return dataclasses.replace(
        ALBERT,
        vocab_size=draw(st.integers(5, 40)),
        embedding_size=embedding_size,
        projection=embedding_size != hidden_size or draw(st.booleans()),
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_attention_heads=heads,
        intermediate_size=draw(st.integers(1, 30)),
        attention_groups=groups,
        ffn_groups=groups,
        inner_group_num=draw(st.integers(1, 2)),
        hidden_act=draw(st.sampled_from(["gelu_new", "gelu", "relu"])),
        layer_norm_eps=draw(st.sampled_from([1e-12, 1e-5])),
    )


@settings(max_examples=15, deadline=None, derandomize=True)
@given(shape=shapes(), sequence=st.integers(1, 16), seed=st.integers(0, 1000))
def test_states_logits_and_gradients_equal_those_of_albert_in_transformers(shape, sequence, seed):
    ours, theirs = random_model(shape, seed=seed), make_albert(shape)
    load(theirs, to_albert(ours.state_dict(), shape))
    assert_equal_outputs_and_gradients(ours, theirs, to_albert, shape, sequence, seed)


@pytest.mark.parametrize("hidden_act", ["gelu_new", "gelu"])
@pytest.mark.parametrize("layer_norm_eps", [1e-12, 1e-3])
def test_states_logits_and_gradients_equal_those_of_bert_in_transformers(hidden_act, layer_norm_eps):
    shape = dataclasses.replace(BERT, hidden_act=hidden_act, layer_norm_eps=layer_norm_eps)
    ours, theirs = random_model(shape), make_bert(shape)
    load(theirs, to_bert(ours.state_dict(), shape))
    assert_equal_outputs_and_gradients(ours, theirs, to_bert, shape)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(shape=shapes(), num_pair_labels=st.sampled_from([0, 2, 3]))
def test_albert_there_and_back_changes_no_bit(shape, num_pair_labels):
    state = random_model(shape, num_pair_labels).state_dict()
    back, no_place = from_albert(to_albert(state, shape), shape)
    assert no_place == []
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], tensor) for name, tensor in state.items())


def test_bert_there_and_back_changes_no_bit():
    state = random_model(BERT).state_dict()
    back, no_place = from_bert(to_bert(state, BERT), BERT)
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
def test_a_state_dict_of_transformers_is_read_whole_but_for_its_tied_copies(make, read, shape, tied):
    state, no_place = read(make(shape).state_dict(), shape)
    assert sorted(no_place) == sorted(tied)
    random_model(shape).load_state_dict(state)


@pytest.mark.parametrize(("make", "read", "shape"), [(make_albert, from_albert, ALBERT), (make_bert, from_bert, BERT)])
def test_a_bare_encoder_is_read_without_heads(make, read, shape):
    theirs = make(shape).base_model
    state, no_place = read({**theirs.state_dict(), "embeddings.position_ids": torch.arange(16)[None]}, shape)
    assert [name for name in no_place if not name.endswith("position_ids")] == []
    result = random_model(shape).load_state_dict(state, strict=False)
    assert result.unexpected_keys == []
    assert {name.split(".")[0] for name in result.missing_keys} == {"mlm_head", "pair_head"}


def test_a_projection_between_equal_sizes_is_kept_and_never_dropped_unseen():
    square = dataclasses.replace(ALBERT, embedding_size=12)
    tensors = make_albert(square).state_dict()
    assert "encoder.embeddings.projection.weight" in from_albert(tensors, square)[0]
    with pytest.raises(ConfigError, match="not the identity"):
        from_albert(tensors, dataclasses.replace(square, projection=False))


@pytest.mark.parametrize(
    ("write", "shape", "reason"),
    [
        (to_albert, dataclasses.replace(ALBERT, ffn_groups=3), "whole layers only"),
        (to_albert, dataclasses.replace(ALBERT, num_layers=18, attention_groups=14, ffn_groups=14), "rounds layer"),
        (to_bert, ALBERT, "sharing=not-shared"),
        (to_bert, dataclasses.replace(BERT, embedding_size=8, projection=True), "embedding_size=8"),
    ],
)
def test_what_has_no_equal_in_transformers_is_refused_with_the_reason(write, shape, reason):
    with pytest.raises(ConfigError, match=reason):
        write(random_model(shape).state_dict(), shape)


def test_bert_has_no_room_for_a_third_pair_label():
    with pytest.raises(ConfigError, match="3 labels"):
        to_bert(random_model(BERT, num_pair_labels=3).state_dict(), BERT)
    assert "cls.seq_relationship.weight" not in to_bert(random_model(BERT, num_pair_labels=0).state_dict(), BERT)


@pytest.mark.parametrize(("make", "read", "shape"), [(make_albert, from_albert, ALBERT), (make_bert, from_bert, BERT)])
def test_a_missing_tensor_of_the_encoder_is_named(make, read, shape):
    tensors = {name: tensor for name, tensor in make(shape).state_dict().items() if "token_type" not in name}
    with pytest.raises(ConfigError, match=r"embeddings\.token_type_embeddings"):
        read(tensors, shape)
