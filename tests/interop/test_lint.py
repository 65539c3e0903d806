import dataclasses
import json

import pytest
from parity import ALBERT, BERT, make_albert, make_bert
from toy_folders import toy_run

from albert_lab.interop.export import export
from albert_lab.interop.lint import lint


@pytest.fixture
def exported(spiece, own_home):
    export(str(toy_run(spiece, ALBERT)), own_home / "out", "auto")
    return own_home / "out"


def findings(folder, severity):
    return [finding.text for finding in lint(folder) if finding.severity == severity]


def change(folder, name, **changes):
    file = folder / name
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_our_own_export_has_neither_errors_nor_warnings(exported):
    assert findings(exported, "error") == findings(exported, "warning") == []


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("config.json", {"hidden_act": "gelu"}, "tanh form"),
        ("config.json", {"hidden_dropout_prob": 0.1}, "never applies it"),
        ("config.json", {"attention_probs_dropout_prob": 0.3}, "one dropout"),
        ("config.json", {"pad_token_id": 5}, "pad_token_id=5"),
        ("config.json", {"bos_token_id": 1}, "bos_token_id=1"),
        ("tokenizer_config.json", {"do_lower_case": False}, "every capital becomes unknown"),
        ("tokenizer_config.json", {"model_max_length": 512}, "more than max_position_embeddings=16"),
        ("tokenizer.json", {"truncation": {"max_length": 128}}, "cuts at 128"),
    ],
)
def test_a_pitfall_is_a_warning(exported, name, changes, said):
    change(exported, name, **changes)
    assert any(said in text for text in findings(exported, "warning"))


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("config.json", {"layer_norm_eps": 1e-5}, "layer_norm_eps=1e-05"),
        ("config.json", {"pair_labels": ["consecutive", "other-document"]}, "consecutive, other-document"),
        ("tokenizer_config.json", {"model_max_length": 10**30}, "model_max_length is not set"),
        ("tokenizer_config.json", {"digit_commas": None}, "2006,"),
        ("tokenizer.json", {"padding": {"pad_id": 0}}, "pads every text"),
    ],
)
def test_information_is_a_note(exported, name, changes, said):
    change(exported, name, **changes)
    assert any(said in text for text in findings(exported, "note"))


@pytest.mark.parametrize("value", [None, "0.1"])
def test_settings_that_are_no_numbers_are_told_and_end_nothing(exported, value):
    change(exported, "config.json", attention_probs_dropout_prob=value, classifier_dropout_prob=value)
    assert any("attention_probs_dropout_prob=0.1" in text for text in findings(exported, "warning")) == bool(value)


def test_a_sentencepiece_model_without_a_json_file_is_a_warning(exported):
    (exported / "tokenizer.json").unlink()
    assert any("added tokens" in text for text in findings(exported, "warning"))


def test_missing_heads_are_reported(spiece, tmp_path):
    make_bert(dataclasses.replace(BERT, vocab_size=56)).base_model.save_pretrained(tmp_path)
    (tmp_path / "spiece.model").write_bytes(spiece.read_bytes())
    assert any("no MLM head" in text for text in findings(tmp_path, "warning"))
    assert any("no pair head" in text for text in findings(tmp_path, "note"))


def test_a_folder_that_every_command_refuses_is_an_error(exported, tmp_path):
    make_albert(ALBERT).save_pretrained(tmp_path / "bare")
    assert any("no tokenizer" in text for text in findings(tmp_path / "bare", "error"))
    change(exported, "config.json", vocab_size=57)
    assert any("does not fit its config.json" in text for text in findings(exported, "error"))
    (exported / "config.json").unlink()
    assert any("no config.json" in text for text in findings(exported, "error"))
