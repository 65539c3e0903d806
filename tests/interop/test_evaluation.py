import dataclasses

import pytest
import torch
from parity import ALBERT, make_albert
from toy import silent, toy_config, toy_overrides, write_corpus

from albert_lab.data.vocabulary import find_or_train, find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.interop.evaluation import evaluate
from albert_lab.interop.export import export
from albert_lab.runs import results, worker
from albert_lab.runs import run as runs


@pytest.fixture
def finished(corpus, own_home):
    """A run that takes a second, and its record."""
    folder = runs.create(runs.plan(toy_config(corpus, "budget.value=2")))
    assert worker.main(folder) == 0
    record = results.read(folder)
    assert record is not None
    return folder, record


def test_a_run_and_its_exports_get_the_scores_of_its_record(finished, own_home, corpus):
    folder, record = finished
    export(folder.name, own_home / "albert", silent)
    here = ["machine.device=cpu", "machine.precision=fp32", "machine.threads=1"]
    text = [
        override for override in toy_overrides(corpus) if override.startswith(("scale", "corpus"))
    ]
    for place, overrides in ((folder.name, here), (own_home / "albert", [*here, *text])):
        scored = evaluate(str(place), overrides, silent)
        assert scored.scores == record.scores


def test_another_corpus_is_read_with_the_tokens_and_cleaning_of_the_model(finished, tmp_path):
    folder, record = finished
    other = write_corpus(tmp_path / "other", documents=60)
    overrides = [
        "corpus=files",
        f"corpus.path={other}",
        "corpus.sentences=line",
        "corpus.dev_share=0.3",
    ]
    scored = evaluate(folder.name, [*overrides, "corpus.lower_case=false"], silent)
    assert scored.dev_documents != record.data.dev_documents
    assert str(other) in scored.corpus
    assert "Not scored" not in scored.as_text()
    with pytest.raises(
        ConfigError, match=r"corpus.dev_share cannot be set: .* was trained on a part of this text"
    ):
        evaluate(folder.name, ["corpus.dev_share=0.5"], silent)
    for key in ("model=base", "tokenizer.vocab_size=60", "embedding_size=8"):
        with pytest.raises(ConfigError, match="cannot be set: the model determines it"):
            evaluate(folder.name, [key], silent)


def test_an_unavailable_score_is_named_with_what_it_lacks(corpus, own_home):
    config = toy_config(corpus)
    find_or_train(config, silent)
    shape = dataclasses.replace(ALBERT, vocab_size=56, max_position_embeddings=32)
    torch.manual_seed(0)
    make_albert(shape).base_model.save_pretrained(own_home / "bare")
    (own_home / "bare" / "spiece.model").write_bytes(find_tokenizer(config).read_bytes())
    text = [override for override in toy_overrides(corpus) if not override.startswith("tokenizer")]
    scored = evaluate(str(own_home / "bare"), text, silent)
    assert scored.scores["nsp_accuracy"].by == scored.scores["sop_accuracy"].by == "linear probe"
    assert "Not scored, without mlm_head, pair_head: mlm_accuracy." in scored.as_text()
