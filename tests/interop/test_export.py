import dataclasses
import json
import shutil
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import ALBERT, BERT, assert_equal_outputs_and_gradients, shapes, transformers
from toy_folders import toy_run, trained_model

from albert_lab.errors import ConfigError
from albert_lab.interop.export import choose_layout, export
from albert_lab.interop.folder import read_model
from albert_lab.interop.importing import import_folder
from albert_lab.interop.loading import open_run
from albert_lab.model.huggingface import to_albert, to_bert
from albert_lab.runs import run as runs

NOT_SHARED = dataclasses.replace(ALBERT, attention_groups=3, ffn_groups=3)


def load_with_report(cls, folder):
    """A model of transformers in evaluation mode, and its report of missing and unexpected weights."""
    model, report = cls.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    return model.eval(), report


@settings(max_examples=8, deadline=None, derandomize=True)
@given(shape=shapes(), seed=st.integers(0, 100), sequence=st.integers(1, 16))
def test_an_exported_albert_computes_the_same_in_transformers(spiece, tmp_path_factory, shape, seed, sequence):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALBERT_LAB_HOME", str(home))
        folder = toy_run(spiece, dataclasses.replace(shape, inner_group_num=1), seed=seed)
        assert export(str(folder), home / "out", "albert") == "albert"
        theirs, report = load_with_report(transformers.AlbertForPreTraining, home / "out")
        assert not any(report.values()), report
        assert_equal_outputs_and_gradients(
            ours := trained_model(folder), theirs, to_albert, ours.encoder.shape, sequence, seed
        )


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new"])
def test_an_exported_bert_computes_the_same_in_transformers(spiece, own_home, hidden_act):
    folder = toy_run(spiece, dataclasses.replace(BERT, hidden_act=hidden_act), "nsp")
    assert export(folder.name, own_home / "out", "auto") == "bert"
    theirs, report = load_with_report(transformers.BertForPreTraining, own_home / "out")
    assert not any(report.values()), report
    assert_equal_outputs_and_gradients(ours := trained_model(folder), theirs, to_bert, ours.encoder.shape)


def test_other_classes_of_transformers_miss_only_their_heads(spiece, own_home):
    export(str(toy_run(spiece, ALBERT)), own_home / "out", "auto")
    heads = {
        "AlbertModel": set(),
        "AlbertForMaskedLM": set(),
        "AlbertForSequenceClassification": {"classifier.weight", "classifier.bias"},
    }
    for name, own in heads.items():
        _, report = load_with_report(getattr(transformers, name), own_home / "out")
        assert set(report["missing_keys"]) == own
        # transformers reports this for every checkpoint of ForPreTraining, including its own.
        unexpected = {key.split(".")[0] for key in report["unexpected_keys"] if "pooler" not in key}
        assert unexpected <= {"predictions", "sop_classifier"}
        assert not report["mismatched_keys"]
        assert not report["error_msgs"]


def test_a_folder_that_cannot_be_made_is_refused(spiece, own_home):
    (own_home / "file").write_text("")
    with pytest.raises(ConfigError, match="^DIR .*file/out: .*file is a file; a folder is needed$"):
        export(str(toy_run(spiece, ALBERT)), own_home / "file" / "out", "auto")


def test_a_run_without_a_pair_head_is_exported_as_a_masked_language_model(spiece, own_home):
    export(str(toy_run(spiece, ALBERT, "none")), own_home / "out", "auto")
    content = json.loads((own_home / "out" / "config.json").read_text())
    assert content["architectures"] == ["AlbertForMaskedLM"]
    assert "AlbertForMaskedLM.from_pretrained(folder)" in (own_home / "out" / "README.md").read_text()
    _, report = load_with_report(transformers.AlbertForMaskedLM, own_home / "out")
    assert not report["missing_keys"]


def test_three_pair_labels_are_possible_in_albert_but_not_in_bert(spiece, own_home):
    export(str(toy_run(spiece, ALBERT, "three-way")), own_home / "out", "auto")
    model, report = load_with_report(transformers.AlbertForPreTraining, own_home / "out")
    assert not any(report.values())
    assert model.sop_classifier.classifier.out_features == 3
    with pytest.raises(ConfigError, match="3 labels.*albert-lab"):
        export(str(toy_run(spiece, BERT, "three-way")), own_home / "other", "auto")
    assert not (own_home / "other").exists()


@pytest.mark.parametrize(("shape", "inter_sentence"), [(ALBERT, "sop"), (BERT, "nsp"), (NOT_SHARED, "none")])
def test_export_import_export_changes_no_byte(spiece, own_home, shape, inter_sentence):
    layout = "albert" if shape is NOT_SHARED else "auto"
    first, second = own_home / "first", own_home / "second"
    export(str(toy_run(spiece, shape, inter_sentence)), first, layout)
    imported = import_folder(first, [], None, lambda _line: None)
    export(imported.name, second, layout)
    for name in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "spiece.model"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_an_albert_with_equal_sizes_is_read_back_without_the_projection_of_transformers(spiece, own_home):
    square = dataclasses.replace(ALBERT, embedding_size=12, projection=False)
    export(str(toy_run(spiece, square)), own_home / "out", "auto")
    assert not read_model(own_home / "out").architecture.shape.projection


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (dataclasses.replace(ALBERT, ffn_groups=3), "whole layers"),
        (dataclasses.replace(ALBERT, num_layers=4, attention_groups=2), "whole layers"),
        (NOT_SHARED, "BERT has no projection.*--layout albert writes"),
    ],
)
def test_unsupported_models_are_refused_but_exported_in_our_own_layout(spiece, own_home, shape, reason):
    folder = toy_run(spiece, shape)
    with pytest.raises(ConfigError, match=reason):
        export(str(folder), own_home / "out", "auto")
    assert not (own_home / "out").exists()
    assert export(str(folder), own_home / "out", "albert-lab") == "albert-lab"
    assert runs.read(own_home / "out") == runs.read(folder)


def test_our_own_layout_is_self_contained_for_every_name_of_the_tokenizer(spiece, own_home, tmp_path):
    other = tmp_path / "30k-clean.model"
    shutil.copyfile(spiece, other)
    export(str(toy_run(other, ALBERT)), own_home / "out", "albert-lab")
    other.unlink()
    assert open_run(own_home / "out").tokenizer_file == own_home / "out" / "spiece.model"


def test_one_layer_is_exported_as_albert_since_sharing_is_undefined():
    assert choose_layout(dataclasses.replace(ALBERT, num_layers=1)) == "albert"


def test_the_card_has_scores_provenance_and_the_reports_with_the_run(spiece, own_home):
    folder = toy_run(spiece, ALBERT)
    for name, run in (("mine", folder.name), ("other", "another")):
        report = own_home / "reports" / "smoke-toy" / name
        (report / "runs").mkdir(parents=True)
        (report / "runs" / f"{run}.json").write_text("{}")
        (report / "report.md").write_text("")
    export(str(folder), own_home / "out", "auto")
    card = (own_home / "out" / "README.md").read_text()
    assert "| sop_accuracy | 60.0" in card
    assert "57.0 to 63.0" in card
    assert "fingerprint c0ffee" in card
    assert "smoke-toy/mine/report.md" in card
    assert "smoke-toy/other" not in card
    data: Any = ModelCard(card).data
    assert (data.license, data.pipeline_tag, data.language, data.datasets) == ("unknown", "fill-mask", "en", ["sotu"])
    (sop,) = [entry for entry in data.eval_results if entry.metric_type == "sop_accuracy"]
    assert (sop.metric_value, sop.dataset_name) == (60.0, "held-out documents of sotu")


def test_an_unfinished_run_and_a_target_that_is_not_empty_are_refused(spiece, own_home):
    folder = toy_run(spiece, ALBERT)
    (own_home / "full").mkdir()
    (own_home / "full" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not empty"):
        export(str(folder), own_home / "full", "auto")
    assert [file.name for file in (own_home / "full").iterdir()] == ["mine.txt"]
    (folder / "results.json").unlink()
    with pytest.raises(ConfigError, match="is not finished \\(it is missing\\)"):
        export(str(folder), own_home / "out", "auto")
    with pytest.raises(ConfigError, match="--layout onnx is unknown"):
        export(str(folder), own_home / "out", "onnx")


def test_tensors_are_float32_with_the_metadata_that_transformers_requires(spiece, own_home):
    from safetensors import safe_open

    export(str(toy_run(spiece, ALBERT)), own_home / "out", "auto")
    with safe_open(own_home / "out" / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.float32}  # noqa: SIM118
