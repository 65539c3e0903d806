import dataclasses
import json

import pytest
import torch
from parity import ALBERT, BERT, make_albert, make_bert, transformers
from toy import silent
from toy_folders import toy_tokenizer_file
from toy_tasks import toy_task

from albert_lab.data.tokenizer import load as load_model
from albert_lab.errors import ConfigError
from albert_lab.interop.loading import import_folder, open_folder
from albert_lab.runs import finetunings
from albert_lab.runs import run as runs
from albert_lab.runs.states import state


@pytest.fixture
def published(spiece, tmp_path):
    """A folder in the form published for transformers, with the tokenizer's vocabulary."""

    def make(make_model, shape, base=False):
        shape = dataclasses.replace(shape, vocab_size=load_model(spiece).vocab_size)
        model = make_model(shape)
        folder = tmp_path / "published"
        (model.base_model if base else model).save_pretrained(folder)
        (folder / "spiece.model").write_bytes(spiece.read_bytes())
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"do_lower_case": False, "keep_accents": True})
        )
        return folder

    return make


@pytest.mark.parametrize(
    ("make_model", "shape", "inter_sentence", "sharing"),
    [(make_albert, ALBERT, "sop", "all-shared"), (make_bert, BERT, "nsp", "not-shared")],
)
def test_an_import_is_a_run_with_the_same_weights_shape_and_cleaning(
    published, own_home, make_model, shape, inter_sentence, sharing
):
    folder = import_folder(published(make_model, shape), [], None, silent)
    config = runs.read(folder).config
    assert state(folder) == "imported"
    assert (config.inter_sentence.name, config.sharing.name) == (inter_sentence, sharing)
    assert (config.model.name, config.max_sequence_length) == ("published", 16)
    assert not config.corpus.lower_case
    assert not config.corpus.strip_accents
    assert open_folder(folder.name).missing == ()
    assert not list(own_home.glob("runs/*/checkpoint/*.partial"))


def test_the_name_of_the_run_depends_on_the_weights(published, own_home):
    torch.manual_seed(0)
    source = published(make_albert, ALBERT)
    folder = import_folder(source, [], None, silent)
    written = (folder / runs.IMPORT).stat().st_mtime_ns
    assert import_folder(source, [], None, silent) == folder
    assert (folder / runs.IMPORT).stat().st_mtime_ns == written
    assert import_folder(published(make_albert, ALBERT), [], None, silent) != folder


def test_missing_parts_of_a_checkpoint_are_noted(published, own_home):
    said = []
    folder = import_folder(published(make_albert, ALBERT, base=True), [], None, said.append)
    noted = json.loads((folder / runs.IMPORT).read_text())
    assert noted["missing_parts"] == ["mlm_head", "pair_head"]
    assert runs.read(folder).config.inter_sentence.name == "none"
    assert any("mlm_head" in line for line in said)
    assert open_folder(str(folder)).missing == ("mlm_head", "pair_head")


def test_an_imported_run_can_be_fine_tuned(published, own_home, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(own_home / "data"))
    toy_task("sst2", own_home / "data")
    machine = ["machine.device=cpu", "machine.precision=fp32", "machine.threads=1"]
    folder = import_folder(published(make_bert, BERT), ["scale=smoke", *machine], None, silent)
    monkeypatch.setenv("ALBERT_LAB_HOME", str(own_home.rename(own_home.with_name("moved"))))
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(own_home.with_name("moved") / "data"))
    first, *others = finetunings.finetune_run(folder.name, ["sst2"], [0], silent)
    assert first.weights == "pre-trained"
    assert {record.weights for record in others} == {"random"}


def test_overrides_set_keys_that_the_folder_does_not_determine(published, own_home):
    source = published(make_albert, ALBERT)
    folder = import_folder(source, ["batch_size=7", "corpus.lower_case=true"], "my own!", silent)
    config = runs.read(folder).config
    assert (config.batch_size, config.corpus.lower_case, config.model.name) == (7, True, "my-own")
    for override in ("model=base", "embedding_size=8", "sharing=not-shared", "model.num_layers=1"):
        with pytest.raises(ConfigError, match=override.split("=")[0]):
            import_folder(source, [override], None, silent)


def test_added_tokens_keep_their_ids_by_a_tokenizer_json_and_are_refused_without_one(
    published, own_home
):
    source = published(make_albert, ALBERT)
    size = load_model(source / "spiece.model").vocab_size
    model = transformers.AlbertForPreTraining.from_pretrained(source)
    model.resize_token_embeddings(size + 2)
    model.save_pretrained(source)
    words = {"metformin": size, "q6h": size + 1}
    (source / "added_tokens.json").write_text(json.dumps(words))
    with pytest.raises(ConfigError, match=f"has {size} tokens") as raised:
        import_folder(source, [], None, silent)
    assert "resize" not in str(raised.value)

    tokenizer = transformers.AlbertTokenizer.from_pretrained(source)
    tokenizer.add_tokens([*words])
    tokenizer.save_pretrained(source)
    opened = open_folder(import_folder(source, [], None, silent).name)
    assert opened.tokenizer.encode(["metformin q6h"]) == [[*words.values()]]


def test_a_vocabulary_that_does_not_match_is_refused_and_nothing_is_written(
    published, own_home, tmp_path
):
    source = published(make_albert, ALBERT)
    other = toy_tokenizer_file(tmp_path / "other", 52)
    (source / "spiece.model").write_bytes(other.read_bytes())
    with pytest.raises(ConfigError, match="52"):
        import_folder(source, [], None, silent)
    assert not (own_home / "runs").exists()
