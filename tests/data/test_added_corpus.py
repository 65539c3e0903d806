import re

import numpy as np
import pytest
from toy import toy_config, write_corpus

from albert_lab.data.corpus import iterate, split_of
from albert_lab.data.prepare import find_shards, prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.runs import run as runs


@pytest.fixture(scope="module")
def base_and_both(corpus, tmp_path_factory):
    """Configurations without and with added text, which also contains a copy of the whole
    corpus.
    """
    added = write_corpus(tmp_path_factory.mktemp("added"), documents=40, seed=1)
    (added / "copy.txt").write_text((corpus / "toy.txt").read_text())
    base = toy_config(corpus)
    more = ["added_corpus=files", f"added_corpus.path={added}", "added_corpus.sentences=line"]
    return base, toy_config(corpus, *more), added


def test_tokenizer_and_held_out_text_stay_those_of_the_corpus(base_and_both):
    base, both, _ = base_and_both
    assert find_tokenizer(base) == find_tokenizer(both)
    assert find_shards(base) != find_shards(both)
    one, other = (open_shards(prepare(config, print), "dev") for config in (base, both))
    assert np.array_equal(one.tokens, other.tokens)
    assert runs.plan(base).evaluation_set == runs.plan(both).evaluation_set
    assert runs.plan(base).name != runs.plan(both).name


def test_training_reads_the_corpus_and_what_is_new_in_the_added_text(base_and_both):
    base, both, added = base_and_both
    one, other = (open_shards(prepare(config, print), "train") for config in (base, both))
    assert np.array_equal(other.tokens[: len(one.tokens)], one.tokens)
    more = base.corpus.model_copy(update={"path": str(added / "toy.txt")})
    own, others = ([*map("\n".join, iterate(text, []))] for text in (base.corpus, more))
    new = [text for text in others if text not in own]
    trained = [text for text in new if split_of(text, base.corpus.dev_share) == "train"]
    assert 0 < len(trained) < len(new), "the hash holds some of the added text out too"
    assert other.num_documents == one.num_documents + len(trained)


def test_added_text_has_no_held_out_document_in_other_white_space_or_as_a_part_of_a_longer_one(
    corpus, tmp_path
):
    base = toy_config(corpus)
    texts = map("\n".join, iterate(base.corpus, []))
    held_out = [text for text in texts if split_of(text, base.corpus.dev_share) == "dev"]
    new = "this is a line of a text that nobody has seen before today"
    respaced = [re.sub(r"\s+", "  ", text) for text in held_out]
    (tmp_path / "a.txt").write_text("\n\n".join([*respaced, *held_out, new]))
    one = open_shards(prepare(base, print), "train")
    more = [
        "added_corpus=files",
        f"added_corpus.path={tmp_path}/a.txt",
        "added_corpus.sentences=line",
    ]
    # A document that is mostly known is dropped whole, the new line too.
    for form, kept in (("blank-line", 1), ("file", 0)):
        whole = [f"added_corpus.source_documents={form}", f"added_corpus.documents={form}"]
        other = open_shards(prepare(toy_config(corpus, *more, *whole), print), "train")
        assert other.num_documents - one.num_documents == kept
        assert len(other.sentence_offsets) - len(one.sentence_offsets) == kept
