"""Toy models here and in transformers, and their comparison, including gradients."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import strategies as st

from albert_lab.config.section import PARTS
from albert_lab.interop.layout import to_transformers
from albert_lab.model.encoder import PretrainingModel
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
    # Larger than in training, so that differences are significant.
    initializer_range=0.1,
    dropout=0.0,
    type_vocab_size=2,
    **PARTS,
)
BERT = dataclasses.replace(
    ALBERT, embedding_size=12, projection=False, attention_groups=3, ffn_groups=3
)


def random_model(shape, num_pair_labels=2, seed=0):
    """A model with random biases and LayerNorms, since equal initial values would hide swapped
    tensors.
    """
    model = PretrainingModel(shape, num_pair_labels, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def common_config(shape):
    names = ("vocab_size", "hidden_size", "num_attention_heads", "intermediate_size", "hidden_act")
    names += ("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "initializer_range")
    dropout = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    layers = {"num_hidden_layers": shape.num_layers}
    return {name: getattr(shape, name) for name in names} | layers | dropout


def make_albert(shape):
    config = transformers.AlbertConfig(
        **common_config(shape),
        embedding_size=shape.embedding_size,
        num_hidden_groups=shape.ffn_groups,
        classifier_dropout_prob=0.0,
    )
    return transformers.AlbertForPreTraining(config).eval()


def make_bert(shape):
    return transformers.BertForPreTraining(transformers.BertConfig(**common_config(shape))).eval()


def assert_equal_outputs_and_gradients(ours, theirs, family, shape, sequence=11, seed=0):
    generator = torch.Generator().manual_seed(seed)
    # Only padding has the id 0, as in real text, since transformers gives its row no gradient.
    input_ids = torch.randint(1, shape.vocab_size, (3, sequence), generator=generator)
    token_type_ids = torch.randint(0, shape.type_vocab_size, (3, sequence), generator=generator)
    lengths = torch.tensor([sequence, max(1, sequence - 4), max(1, sequence // 2)])
    attention_mask = torch.arange(sequence) < lengths[:, None]
    input_ids = input_ids * attention_mask
    positions = attention_mask.flatten().nonzero().flatten()[::2]
    labels = torch.randint(0, shape.vocab_size, (len(positions),), generator=generator)

    hidden_states = ours.encoder(
        input_ids, token_type_ids, attention_mask, output_hidden_states=True
    ).hidden_states
    output = ours(input_ids, token_type_ids, attention_mask, positions)
    inputs = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
    expected = theirs(input_ids, **inputs, output_hidden_states=True)
    pair_logits, logits = expected[1], expected[0].flatten(0, 1)[positions]
    base = theirs.base_model(input_ids, **inputs)

    def close(actual, wanted, tolerance=1e-5):
        torch.testing.assert_close(actual, wanted, rtol=tolerance, atol=tolerance)

    for mine, their in zip(hidden_states, expected.hidden_states, strict=True):
        close(mine, their)
    close(output.pooled, base.pooler_output)
    close(output.mlm_logits, logits)
    close(output.pair_logits, pair_logits)

    pair_labels = torch.tensor([0, 1, 0])
    for mlm, pairs in ((output.mlm_logits, output.pair_logits), (logits, pair_logits)):
        (F.cross_entropy(mlm, labels) + F.cross_entropy(pairs, pair_labels)).backward()
    their_gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    gradients = {name: parameter.grad for name, parameter in ours.named_parameters()}
    for name, gradient in to_transformers(gradients, shape, family).items():
        if shape.projection or "embedding_hidden_mapping_in" not in name:
            close(gradient, their_gradients[name], 1e-4)  # sums of many products in another order


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
        hidden_act=draw(st.sampled_from(["gelu_new", "gelu", "relu"])),
        layer_norm_eps=draw(st.sampled_from([1e-12, 1e-5])),
    )
