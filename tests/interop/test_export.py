import dataclasses
import sys
from itertools import product
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import ALBERT, BERT, assert_equal_outputs_and_gradients, shapes, transformers
from toy import silent
from toy_folders import toy_run, trained_model

from albert_lab.config.schema import RunConfig
from albert_lab.config.section import BUILT_IN, PARTS
from albert_lab.data.tokenizer import Cleaning, as_json
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop import export as exporting
from albert_lab.interop.export import export
from albert_lab.interop.layout import modules
from albert_lab.interop.loading import import_folder

NOT_SHARED = dataclasses.replace(ALBERT, attention_groups=3, ffn_groups=3)
SQUARE = dataclasses.replace(ALBERT, embedding_size=12, projection=False)


def load_with_report(cls, folder):
    """A model of transformers in evaluation mode, and its report of missing and unexpected
    weights.
    """
    model, report = cls.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager"
    )
    return model.eval(), report


@settings(max_examples=8, deadline=None, derandomize=True)
@given(shape=shapes(), seed=st.integers(0, 100), sequence=st.integers(1, 16))
def test_an_exported_albert_computes_the_same_in_transformers(
    spiece, tmp_path_factory, shape, seed, sequence
):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALBERT_LAB_HOME", str(home))
        folder = toy_run(spiece, shape, seed=seed)
        assert export(str(folder), home / "out", silent) == "AlbertForPreTraining"
        theirs, report = load_with_report(transformers.AlbertForPreTraining, home / "out")
        assert not any(report.values()), report
        assert_equal_outputs_and_gradients(
            ours := trained_model(folder), theirs, "albert", ours.encoder.shape, sequence, seed
        )


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new"])
def test_an_exported_bert_computes_the_same_in_transformers(spiece, own_home, hidden_act):
    folder = toy_run(spiece, dataclasses.replace(BERT, hidden_act=hidden_act), "nsp")
    assert export(folder.name, own_home / "out", silent) == "BertForPreTraining"
    theirs, report = load_with_report(transformers.BertForPreTraining, own_home / "out")
    assert not any(report.values()), report
    assert_equal_outputs_and_gradients(
        ours := trained_model(folder), theirs, "bert", ours.encoder.shape
    )


# Each part of the encoder and its built-in values; only the first of each is that of transformers.
CONVERTED = {f"{part}={default}" for part, default in PARTS.items()}
REFUSED = {
    "position_encoding=rope",
    "attention_scope=within-segments",
    "layer_scales=learned",
}
SHARED = {  # blocks of attention and of FFN: the layout, None if it is refused
    (1, 1): "Albert",
    (2, 2): "Albert",
    (3, 3): "Bert",
    (1, 3): None,
    (3, 1): None,
    ((0, 1, 0), (0, 1, 0)): None,
    ((0, 1, 1), (0, 1, 1)): None,
    ((0, 0, 1), (0, 0, 1)): "Albert",
}


def test_every_built_in_part_is_converted_or_refused_by_name():
    allowed = {
        part: BUILT_IN.get(part) or get_args(RunConfig.model_fields[part].annotation)
        for part in PARTS
    }
    settings = {f"{part}={name}" for part, names in allowed.items() for name in names}
    assert settings == CONVERTED | REFUSED
    for setting, (family, base) in product(settings, [("albert", ALBERT), ("bert", BERT)]):
        part, name = setting.split("=")
        shape = dataclasses.replace(base, **{part: name})
        if setting in REFUSED:
            with pytest.raises(ConfigError, match=setting):
                modules(shape, family)
        else:
            assert modules(shape, family)


@pytest.mark.parametrize(("groups", "layout"), SHARED.items())
def test_every_sharing_is_converted_or_refused_by_name(spiece, own_home, groups, layout):
    square = dataclasses.replace(SQUARE, attention_groups=groups[0], ffn_groups=groups[1])
    folder = toy_run(spiece, square)
    if layout is None:
        with pytest.raises(ConfigError, match="sharing"):
            export(str(folder), own_home / "out", silent)
        assert not (own_home / "out").exists()
    else:
        assert export(str(folder), own_home / "out", silent) == f"{layout}ForPreTraining"


@pytest.mark.parametrize("part", ["ids", "prediction_logits", "sop_logits"])
def test_nothing_is_written_if_transformers_computes_something_else(
    spiece, own_home, monkeypatch, part
):
    write = exporting.layout.write

    def write_wrongly(model, *args):
        name = "pair_head.bias" if part == "sop_logits" else "encoder.embeddings.layer_norm.bias"
        model.state_dict()[name] += 0.5
        written = write(model, *args)
        model.state_dict()[name] -= 0.5
        return written

    if part == "ids":
        monkeypatch.setattr(
            exporting, "as_json", lambda model, _: as_json(model, Cleaning(lower_case=False))
        )
    else:
        monkeypatch.setattr(exporting.layout, "write", write_wrongly)
    with pytest.raises(ConfigError, match=part):
        export(str(toy_run(spiece, ALBERT)), own_home / "out", silent)
    assert not (own_home / "out").exists()


def test_a_text_that_can_be_cut_in_equally_likely_ways_is_exported_and_counted(
    spiece, own_home, monkeypatch
):
    monkeypatch.setattr(exporting, "_sentences", lambda *_: ["a cat", "0" * 10])
    said = []
    assert export(str(toy_run(spiece, ALBERT)), own_home / "out", said.append)
    assert "2 sentences (1 are cut otherwise there" in said[0]


def test_without_transformers_the_package_is_named_before_anything_is_read(own_home, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDataError, match=r"'\.\[transformers\]'"):
        export("no-such-run", own_home / "out", silent)


def test_a_run_without_a_pair_head_is_exported_as_a_masked_language_model(spiece, own_home):
    run = str(toy_run(spiece, ALBERT, "none"))
    assert export(run, own_home / "out", silent) == "AlbertForMaskedLM"
    _, report = load_with_report(transformers.AlbertForMaskedLM, own_home / "out")
    assert not report["missing_keys"]


@pytest.mark.parametrize("shape", [ALBERT, BERT])
def test_a_model_with_three_pair_labels_is_an_albert(spiece, own_home, shape):
    run = str(toy_run(spiece, shape, "three-way"))
    assert export(run, own_home / "out", silent) == "AlbertForPreTraining"
    model, report = load_with_report(transformers.AlbertForPreTraining, own_home / "out")
    assert not any(report.values())
    assert model.sop_classifier.classifier.out_features == 3


@pytest.mark.parametrize(
    ("shape", "inter_sentence"),
    [(ALBERT, "sop"), (BERT, "nsp"), (NOT_SHARED, "none"), (SQUARE, "sop")],
)
def test_export_import_export_changes_no_weight_and_no_token(
    spiece, own_home, shape, inter_sentence
):
    first, second = own_home / "first", own_home / "second"
    export(str(toy_run(spiece, shape, inter_sentence)), first, silent)
    imported = import_folder(first, [], None, silent)
    export(imported.name, second, silent)
    names = ["config.json", "tokenizer.json", "tokenizer_config.json", "spiece.model"]
    if inter_sentence != "none":  # a model for masked words alone has no pooler
        names.append("model.safetensors")
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_card_has_the_scores_and_how_to_load_the_model(spiece, own_home):
    export(str(toy_run(spiece, ALBERT)), own_home / "out", silent)
    card = (own_home / "out" / "README.md").read_text()
    assert "| sop_accuracy |   60.00 |" in card
    assert "AlbertForPreTraining.from_pretrained" in card


def test_an_unfinished_run_and_a_target_that_is_not_empty_are_refused(spiece, own_home):
    folder = toy_run(spiece, ALBERT)
    (own_home / "full").mkdir()
    (own_home / "full" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="full"):
        export(str(folder), own_home / "full", silent)
    assert [file.name for file in (own_home / "full").iterdir()] == ["mine.txt"]
    (own_home / "link").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="a link"):
        export(str(folder), own_home / "link", silent)
    (folder / "results.json").unlink()
    with pytest.raises(ConfigError, match="not finished"):
        export(str(folder), own_home / "out", silent)
