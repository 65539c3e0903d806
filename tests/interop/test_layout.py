import dataclasses
import json
import pickle
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import ALBERT, BERT, assert_equal_outputs_and_gradients, make_albert, make_bert, shapes

from albert_lab.errors import ConfigError
from albert_lab.interop.layout import modules, read


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
@given(
    shape=shapes(), seed=st.integers(0, 100), sequence=st.integers(1, 16), is_pickle=st.booleans()
)
def test_an_albert_of_transformers_computes_the_same_here(
    tmp_path_factory, shape, seed, sequence, is_pickle
):
    torch.manual_seed(seed)
    shape = dataclasses.replace(shape, projection=True)
    theirs = make_albert(shape)
    folder = save(theirs, tmp_path_factory.mktemp("theirs"))
    if is_pickle:
        as_pickle(folder)
    model, labels, missing = read(folder)
    assert (model.encoder.shape, labels, missing) == (shape, ("consecutive", "swapped"), ())
    assert_equal_outputs_and_gradients(model, theirs, "albert", shape, sequence, seed)


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new"])
def test_a_bert_of_transformers_computes_the_same_here(tmp_path, hidden_act):
    shape = dataclasses.replace(BERT, hidden_act=hidden_act, layer_norm_eps=1e-3)
    theirs = make_bert(shape)
    # ALBERT's: BERT ignores them
    change_config(save(theirs, tmp_path), num_hidden_groups=1, embedding_size=8)
    model, labels, _ = read(tmp_path)
    assert (model.encoder.shape, labels) == (shape, ("consecutive", "other-document"))
    assert_equal_outputs_and_gradients(model, theirs, "bert", shape)


def test_groups_that_transformers_would_round_otherwise_are_refused():
    with pytest.raises(ConfigError, match="its own rounding"):
        modules(
            dataclasses.replace(ALBERT, num_layers=18, attention_groups=14, ffn_groups=14), "albert"
        )


def saved_tensors(folder):
    """The state of an ALBERT in a folder as it is read, and its tensors, whose file is removed."""
    file = save(make_albert(ALBERT), folder) / "model.safetensors"
    state = read(folder)[0].state_dict()
    tensors = safetensors.torch.load_file(file)
    file.unlink()
    return state, tensors


def assert_read(folder, expected):
    state = read(folder)[0].state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in state.items())


def test_weights_as_a_trainer_names_them_are_read(tmp_path):
    expected, tensors = saved_tensors(tmp_path)
    named = {f"_orig_mod.module.{name}": tensor for name, tensor in tensors.items()}
    torch.save(named, tmp_path / "pytorch_model.bin")
    assert_read(tmp_path, expected)


@pytest.mark.parametrize(
    ("whole", "save_file"),
    [("pytorch_model.bin", torch.save), ("model.safetensors", safetensors.torch.save_file)],
)
def test_shards_are_read_as_one_model_and_a_missing_one_is_named(tmp_path, whole, save_file):
    expected, tensors = saved_tensors(tmp_path)
    files = {name: f"{len(name) % 2}-{whole}" for name in tensors}
    for shard in set(files.values()):
        part = {name: tensor for name, tensor in tensors.items() if files[name] == shard}
        save_file(part, tmp_path / shard)
    (tmp_path / f"{whole}.index.json").write_text(json.dumps({"weight_map": files}))
    assert_read(tmp_path, expected)
    (tmp_path / f"1-{whole}").unlink()
    with pytest.raises(ConfigError, match=f"1-{whole} is missing"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        ({"all_results.json": "{}", "checkpoint-9/model.safetensors": ""}, "checkpoint-9"),
        ({"modules.json": "[]", "0_Transformer/pytorch_model.bin": ""}, "0_Transformer"),
        ({"refs/main": "", "snapshots/0af/model.safetensors.index.json": ""}, "snapshots/0af"),
        (
            {"adapter_config.json": '{"base_model_name_or_path": "a/b"}', "adapter_model.bin": ""},
            "a/b.*merge_and_unload",
        ),
        ({}, "save_pretrained"),
    ],
)
def test_a_folder_whose_weights_are_elsewhere_is_refused_with_what_helps_and_not_that_of_tensorflow(
    tmp_path, files, remedy
):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=remedy) as raised:
        read(tmp_path)
    assert "TensorFlow" not in str(raised.value)


def test_a_file_with_a_tensor_twice_is_refused_and_not_merged(tmp_path):
    folder = save(make_albert(ALBERT), tmp_path)
    as_pickle(folder, **{"module.albert.pooler.weight": torch.zeros(12, 12)})
    with pytest.raises(ConfigError, match="with and without a prefix"):
        read(folder)


@pytest.mark.parametrize("bad", [torch.eye(12).to_sparse(), torch.empty(2, device="meta"), 3])
def test_what_is_no_dense_tensor_is_named_with_its_file(tmp_path, bad):
    folder = save(make_albert(ALBERT), tmp_path)
    as_pickle(folder, **{"albert.pooler.weight": bad})
    with pytest.raises(
        ConfigError, match=r"pytorch_model\.bin: albert\.pooler\.weight is no dense"
    ):
        read(folder)


def test_a_checkpoint_of_tensorflow_is_refused_with_what_converts_it(tmp_path):
    (tmp_path / "bert_model.ckpt.index").touch()
    with pytest.raises(ConfigError, match="convert_bert_original_tf_checkpoint_to_pytorch"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"model_type": "roberta"}, "model_type"),
        ({"hidden_act": "silu"}, "hidden_act"),
        ({"is_decoder": True}, "is_decoder"),
        ({"inner_group_num": 2}, "inner_group_num"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings"),
        ({"num_attention_heads": 5}, ""),
        ({"num_attention_heads": -3}, "num_attention_heads"),
        ({"num_hidden_layers": 2**40}, "num_hidden_layers"),
        ({"num_hidden_groups": 0}, "albert_layer_groups"),
        ({"pair_labels": 5}, "pair_labels=5: the pair head has 2"),
        ({"pair_labels": ["consecutive"]}, "pair_labels"),
        ({"vocab_size": 38}, ""),
    ],
)
def test_a_variant_that_is_not_computed_here_is_refused_with_its_key(tmp_path, changes, key):
    change_config(save(make_albert(ALBERT), tmp_path), **changes)
    with pytest.raises(ConfigError, match=f"{tmp_path}.*{key}"):
        read(tmp_path)


def test_a_folder_that_names_code_is_refused_and_the_code_never_runs(tmp_path, monkeypatch):
    change_config(
        save(make_albert(ALBERT), tmp_path),
        model_type="mine",
        auto_map={"AutoConfig": "own.Config"},
    )
    (tmp_path / "own.py").write_text("raise SystemError('it ran')")
    monkeypatch.setattr("builtins.input", lambda _: "y")
    with pytest.raises(ConfigError, match="model_type=mine"):
        read(tmp_path)


NAME = "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.bias"


@pytest.mark.parametrize(
    "changed",
    [
        {NAME: None},
        {NAME.replace("groups.0", "groups.1"): torch.ones(20)},
        {NAME: torch.ones(20, dtype=torch.int64)},
        {NAME: torch.full((20,), torch.nan)},
        {f"module.{NAME}": torch.ones(20)},
        {7: torch.ones(20)},
    ],
    ids=["lacking", "more", "whole numbers", "nan", "twice", "no name"],
)
def test_tensors_that_are_not_those_of_the_encoder_are_refused(tmp_path, changed):
    _, tensors = saved_tensors(tmp_path)
    kept = {name: tensor for name, tensor in (tensors | changed).items() if tensor is not None}
    torch.save(kept, tmp_path / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=str(tmp_path)):
        read(tmp_path)


def without_config(file):
    file.with_name("config.json").unlink()


def truncated(file):
    file.write_bytes(file.read_bytes()[:-100])


def as_truncated_pickle(file):
    as_pickle(file.parent)
    truncated(file.with_name("pytorch_model.bin"))


def as_code(file):
    file.unlink()
    content = pickle.dumps({NAME: Touch(str(file.with_name("ran")))}, protocol=2)
    file.with_name("pytorch_model.bin").write_bytes(content)


@pytest.mark.parametrize(
    "damage", [without_config, Path.unlink, truncated, as_truncated_pickle, as_code]
)
def test_a_folder_without_whole_weights_is_refused_and_its_pickled_code_never_runs(
    tmp_path, damage
):
    damage(save(make_albert(ALBERT), tmp_path) / "model.safetensors")
    with pytest.raises(ConfigError, match=str(tmp_path)):
        read(tmp_path)
    assert not (tmp_path / "ran").exists()


class Touch:
    """Its pickle would create a file when read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (open, (self.file, "w"))
