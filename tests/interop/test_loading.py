import shutil
from dataclasses import replace

import pytest
import torch
from parity import ALBERT, make_albert
from toy import silent
from toy_folders import toy_run, trained_model

import albert_lab
from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.interop.export import export
from albert_lab.interop.loading import load, open_folder


@pytest.mark.parametrize("is_exported", [False, True])
def test_a_run_and_its_exports_give_the_same_model(spiece, own_home, is_exported):
    run = folder = toy_run(spiece, ALBERT)
    if is_exported:
        folder = own_home / "out"
        export(str(run), folder, silent)
    model, tokenizer = albert_lab.load(folder)
    torch.testing.assert_close(
        dict(model.state_dict()), dict(trained_model(run).state_dict()), rtol=0, atol=0
    )
    assert not model.training
    (ids,) = tokenizer.encode(["red cats"])
    assert "".join(tokenizer.tokens()[token] for token in ids) == "▁red▁cats"


def test_a_warning_names_a_missing_part(spiece, tmp_path):
    make_albert(replace(ALBERT, vocab_size=56)).base_model.save_pretrained(tmp_path)
    (tmp_path / "spiece.model").write_bytes(spiece.read_bytes())
    with pytest.warns(UserWarning, match="has no mlm_head: random weights"):
        model, _ = load(tmp_path)
    assert model.pair_head is None


def test_a_missing_folder_tokenizer_or_weights_file_is_reported(spiece, own_home, tmp_path):
    run = toy_run(spiece, ALBERT)
    with pytest.raises(ConfigError, match="is no folder, and fits 0 runs"):
        open_folder(run.name[:-3] + "xyz")
    for file in (run / "checkpoint").glob("*/model.safetensors"):
        file.unlink()
    with pytest.raises(DamagedFileError, match=r"is damaged: .*model\.safetensors"):
        load(run)
    shutil.rmtree(run / "checkpoint")
    with pytest.raises(MissingDataError, match="has no checkpoint"):
        load(run)
    make_albert(ALBERT).save_pretrained(tmp_path / "bare")
    with pytest.raises(MissingDataError, match="has no tokenizer"):
        load(tmp_path / "bare")
