import dataclasses
import json
import pickle

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import ALBERT, BERT, assert_equal_outputs_and_gradients, make_albert, make_bert, shapes

from albert_lab.errors import ConfigError
from albert_lab.interop.folder import read_model, read_tensors
from albert_lab.model.huggingface import to_albert, to_bert


def save(model, folder):
    """A folder written by transformers."""
    model.save_pretrained(folder)
    return folder


def change_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def as_pickle(folder, **more):
    """Converts the weights of a folder to the older pytorch_model.bin."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    torch.save(tensors | more, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


@settings(max_examples=8, deadline=None, derandomize=True)
@given(shape=shapes(), seed=st.integers(0, 100), sequence=st.integers(1, 16), is_pickle=st.booleans())
def test_an_albert_of_transformers_computes_the_same_here(tmp_path_factory, shape, seed, sequence, is_pickle):
    torch.manual_seed(seed)
    shape = dataclasses.replace(shape, projection=True)
    theirs = make_albert(shape)
    folder = save(theirs, tmp_path_factory.mktemp("theirs"))
    if is_pickle:
        as_pickle(folder)
    result = read_model(folder)
    assert result.architecture.shape == shape
    assert (result.missing, result.unused) == ((), ())
    assert result.architecture.pair_labels == ("consecutive", "swapped")
    assert_equal_outputs_and_gradients(result.model, theirs, to_albert, shape, sequence, seed)


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new"])
@pytest.mark.parametrize("layer_norm_eps", [1e-12, 1e-3])
def test_a_bert_of_transformers_computes_the_same_here(tmp_path, hidden_act, layer_norm_eps):
    shape = dataclasses.replace(BERT, hidden_act=hidden_act, layer_norm_eps=layer_norm_eps)
    theirs = make_bert(shape)
    result = read_model(save(theirs, tmp_path))
    assert result.architecture.shape == shape
    assert result.architecture.pair_labels == ("consecutive", "other-document")
    assert_equal_outputs_and_gradients(result.model, theirs, to_bert, shape)


def test_the_missing_heads_of_a_bare_encoder_are_reported(tmp_path):
    result = read_model(save(make_albert(ALBERT).base_model, tmp_path))
    assert result.missing == ("mlm_head", "pair_head")
    assert result.architecture.pair_labels == ()
    assert result.model.pair_head is None


def test_old_names_half_precision_and_position_ids_are_read_and_named(tmp_path):
    theirs = make_bert(BERT)
    folder = save(theirs, tmp_path)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor.half()
        for name, tensor in safetensors.torch.load_file(folder / "model.safetensors").items()
    }
    old["bert.embeddings.position_ids"] = torch.arange(16)[None]
    safetensors.torch.save_file(old, folder / "model.safetensors")
    result = read_model(folder)
    assert result.unused == ()
    assert [next(word for word in ("gamma", "float16", "position_ids") if word in note) for note in result.notes] == [
        "gamma",
        "float16",
        "position_ids",
    ]
    expected = theirs.bert.embeddings.LayerNorm.weight.detach().half().float()
    assert torch.equal(result.model.encoder.embeddings.layer_norm.weight, expected)


@pytest.mark.parametrize("index", [False, True])
def test_weights_in_several_files_are_read_by_their_index(tmp_path, index):
    folder = save(make_albert(ALBERT), tmp_path)
    whole = read_model(folder).model.state_dict()
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(sorted(tensors))}
    for part in set(places.values()):
        safetensors.torch.save_file({n: t for n, t in tensors.items() if places[n] == part}, folder / part)
    if not index:
        places = {name: f"../{folder.name}/{part}" for name, part in places.items()}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    if index:
        read = read_model(folder).model.state_dict()
        assert all(torch.equal(read[name], tensor) for name, tensor in whole.items())
    else:
        with pytest.raises(ConfigError, match="a file in the same folder"):
            read_model(folder)


def test_a_folder_without_a_config_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        read_model(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="invalid or truncated JSON"):
        read_model(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "roberta"}, "model_type=roberta: .*'albert' or 'bert'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type=relative_key"),
        ({"hidden_act": "silu"}, "hidden_act=silu"),
        ({"hidden_size": "12"}, "hidden_size=12: .*integer"),
        ({"num_attention_heads": 5}, "does not divide"),
        ({"num_hidden_groups": 9}, "more than num_hidden_layers"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings"),
        ({"vocab_size": 38}, r"word_embeddings.*\[37, 8\] there, \[38, 8\]"),
        ({"intermediate_size": 21}, "does not fit its config.json"),
        ({"layer_norm_eps": -1}, "layer_norm_eps=-1"),
        ({"initializer_range": 0}, "initializer_range=0: .*greater than 0"),
    ],
)
def test_an_invalid_config_is_refused_with_its_key(tmp_path, changes, said):
    change_config(save(make_albert(ALBERT), tmp_path), **changes)
    with pytest.raises(ConfigError, match=said):
        read_model(tmp_path)


def test_a_missing_tensor_is_named(tmp_path):
    folder = save(make_albert(ALBERT), tmp_path)
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    del tensors["predictions.dense.bias"]
    safetensors.torch.save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ConfigError, match=r"lacks a tensor: mlm_head\.dense\.bias"):
        read_model(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: tensor.fill_(torch.nan),
        lambda tensor: tensor.fill_(torch.inf),
        lambda tensor: tensor > 0,
        lambda tensor: tensor.to(torch.complex64),
        lambda tensor: tensor.to(torch.int64),
    ],
    ids=["nan", "inf", "boolean", "complex", "integer"],
)
def test_weights_that_are_no_finite_real_numbers_are_refused(tmp_path, change):
    folder = save(make_albert(ALBERT), tmp_path)
    bias = safetensors.torch.load_file(folder / "model.safetensors")["predictions.dense.bias"]
    as_pickle(folder, **{"predictions.dense.bias": change(bias)})
    with pytest.raises(ConfigError, match=r"mlm_head\.dense\.bias .* no finite real numbers"):
        read_model(folder)


def test_an_untied_decoder_is_refused(tmp_path):
    folder = save(make_albert(ALBERT), tmp_path)
    as_pickle(folder, **{"predictions.decoder.weight": torch.zeros(37, 8)})
    with pytest.raises(ConfigError, match=r"predictions\.decoder\.weight differs"):
        read_model(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_truncated_weights_are_refused(tmp_path, name, share):
    folder = save(make_albert(ALBERT), tmp_path)
    if name == "pytorch_model.bin":
        as_pickle(folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))])
    with pytest.raises(ConfigError, match=name):
        read_model(folder)


class Touch:
    """Its pickle would create a file when read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (open, (self.file, "w"))


@pytest.mark.parametrize("writer", ["torch", "pickle"])
def test_pickled_code_is_refused_and_never_executed(tmp_path, writer):
    folder = save(make_albert(ALBERT), tmp_path)
    (folder / "model.safetensors").unlink()
    content = {"albert.pooler.bias": Touch(str(tmp_path / "ran"))}
    if writer == "torch":
        torch.save(content, folder / "pytorch_model.bin")
    else:
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(ConfigError, match="contains more than tensors"):
        read_tensors(folder)
    assert not (tmp_path / "ran").exists()


def test_a_pickle_of_something_else_is_refused(tmp_path):
    torch.save([1, 2], tmp_path / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="not a state dict"):
        read_tensors(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(ConfigError, match="has no weights"):
        read_tensors(tmp_path)
