import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from toy import toy_config
from transformers import AlbertConfig, AlbertModel, BertConfig, BertModel, BertTokenizer

from albert_lab.data import corpus as texts
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop import encoders
from albert_lab.training.layers import measure_layers

SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
LETTERS = "abcdefghijklmnopqrstuvwxyz."


def save(folder, model):
    folder.mkdir()
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    (folder / "vocab.txt").write_text("\n".join(tokens))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def bert(tmp_path):
    torch.manual_seed(0)
    return save(tmp_path / "bert", BertModel(BertConfig(vocab_size=59, max_position_embeddings=24, **SIZES)))


@pytest.fixture
def albert(tmp_path):
    torch.manual_seed(0)
    sizes = AlbertConfig(vocab_size=59, embedding_size=8, max_position_embeddings=24, **SIZES)
    return save(tmp_path / "albert", AlbertModel(sizes))


def test_every_layer_of_bert_and_albert_is_measured(bert, albert, corpus):
    config = toy_config(corpus, "evaluation.num_pairs=10", "evaluation.batch_size=4")
    for folder in (bert, albert):
        name, result = encoders.layers(folder, config, print)
        assert [layer.layer for layer in result] == [1, 2, 3, 1, 2, 3]
        assert all(layer.degrees > 0 for layer in result)
        assert [layer.n for layer in result][:3] == [10] * 3
        assert {layer.corpus for layer in result} == {"files"}
    assert name == f"{albert.parent.name}/albert (albert, 3 layers, H = 16)"


def test_it_matches_separate_passes_over_each_sequence(bert, corpus):
    """Neither the batches nor their padding change the result."""
    config = toy_config(corpus, "evaluation.num_pairs=7", "evaluation.batch_size=3", "max_sequence_length=20")
    _, result = encoders.layers(bert, config, print)
    encoder, tokenizer = BertModel.from_pretrained(bert).eval(), BertTokenizer.from_pretrained(bert)
    windows = encoders.cut_windows(tokenizer, config, 20)
    alone = []
    for window in windows:
        ids = torch.tensor([window])
        with torch.inference_mode():
            alone.append((encoder(input_ids=ids, output_hidden_states=True).hidden_states, torch.ones_like(ids)))
    expected = measure_layers(alone, "files")
    assert [layer.degrees for layer in result] == pytest.approx([change.degrees for change in expected], abs=1e-3)
    assert [layer.l2_distance for layer in result] == pytest.approx(
        [change.l2_distance for change in expected], abs=1e-5
    )


def test_windows_cover_all_held_out_documents_and_no_others(bert, corpus):
    config = toy_config(corpus, "evaluation.num_pairs=100000")
    tokenizer = BertTokenizer.from_pretrained(bert)
    windows = encoders.cut_windows(tokenizer, config, 24)
    assert max(map(len, windows)) == 24
    held_out = [
        "".join(document.text.split())
        for document in texts.iterate(config.corpus)
        if texts.split_of(document.text, config.corpus.dev_share) == "dev"
    ]
    read = "".join(tokenizer.decode(window, skip_special_tokens=True) for window in windows)
    read = read.replace(" ", "").replace("#", "")  # the mark of a token within a word
    assert sorted(read) == sorted("".join(held_out))
    few = encoders.cut_windows(tokenizer, toy_config(corpus, "evaluation.num_pairs=5"), 24)
    assert len(few) == 5


def test_windows_are_not_longer_than_the_positions_of_the_encoder(bert, corpus):
    _, result = encoders.layers(bert, toy_config(corpus, "max_sequence_length=64", "evaluation.num_pairs=4"), print)
    assert max(layer.n for layer in result) <= 4 * 24


def test_without_transformers_the_package_is_named(bert, corpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDataError, match=r"albert-lab\[transformers\]"):
        encoders.layers(bert, toy_config(corpus), print)


@pytest.mark.parametrize(
    ("file", "content"),
    [("config.json", None), ("config.json", "{}"), ("model.safetensors", "no tensors"), ("config.json", "no JSON")],
)
def test_a_folder_without_an_encoder_is_refused_and_named(bert, corpus, file, content):
    (bert / file).unlink()
    if content is not None:
        (bert / file).write_text(content)
    with pytest.raises(ConfigError, match=str(bert)):
        encoders.layers(bert, toy_config(corpus), print)


def test_missing_weights_are_refused_and_not_random(bert, corpus):
    tensors = load_file(bert / "model.safetensors")
    save_file({name: tensor for name, tensor in tensors.items() if "layer.2." not in name}, bert / "model.safetensors")
    with pytest.raises(ConfigError, match=r"lacks weights of its encoder: .*layer\.2\."):
        encoders.layers(bert, toy_config(corpus), print)


def test_an_encoder_without_a_pooler_is_measured(bert, corpus):
    tensors = load_file(bert / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("pooler")}
    assert len(kept) < len(tensors)
    save_file(kept, bert / "model.safetensors")
    _, result = encoders.layers(bert, toy_config(corpus, "evaluation.num_pairs=2"), print)
    assert len(result) == 6


@pytest.mark.parametrize(
    ("positions", "length"), [({"max_position_embeddings": 24}, 24), ({"max_position_embeddings": -1}, 32), ({}, 32)]
)
def test_an_encoder_without_a_limit_of_positions_gets_windows_of_the_length_of_the_run(positions, length):
    assert encoders._length(SimpleNamespace(model_type="xlnet", **positions), 32) == length
