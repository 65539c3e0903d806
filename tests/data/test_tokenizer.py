import re
import signal
from collections import Counter
from typing import Any

import pytest
import sentencepiece
from command import own_signals
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from sentencepiece import sentencepiece_model_pb2
from toy import silent
from toy_text import toy_documents

from albert_lab import paths
from albert_lab.config.compose import load
from albert_lab.data import corpus as texts
from albert_lab.data import tokenizer as base
from albert_lab.data import vocabulary as training
from albert_lab.data.files import known_digests
from albert_lab.data.tokenizer import Cleaning
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import (
    cut_to_lines,
    find_or_train,
    sample,
    tokenizer_fingerprint,
    train,
)
from albert_lab.errors import ConfigError


def settings(**changes):
    smoke = load(["scale=smoke", "tokenizer.vocab_size=50"]).tokenizer
    return smoke.model_copy(update=changes)


@pytest.fixture(scope="module")
def toy(model):
    return load_model(model)


def test_the_released_model_gives_its_known_ids(shared_data):
    released = load_model(shared_data / "sentencepiece" / "30k-clean.model")
    assert released.vocab_size == 30000
    ids = (released.pad_id, released.unk_id, released.cls_id, released.sep_id, released.mask_id)
    assert ids == (0, 1, 2, 3, 4)
    assert released.encode(["this is a test", "the"]) == [[48, 25, 21, 1289], [14]]
    assert released.tokens()[-1] == "▁eloquent"
    assert 0.7 < released.word_starts.mean() < 0.95


@given(
    st.lists(st.sampled_from(["[CLS]", "[MASK]", "[SEP]", "<pad>", "<unk>", " ", "ban", "日"])).map(
        "".join
    )
)
def test_special_tokens_never_come_from_text(toy, text):
    assert not {toy.pad_id, toy.cls_id, toy.sep_id, toy.mask_id} & set(toy.encode([text])[0])


def test_the_same_sentences_give_the_same_model(model, tmp_path):
    train(iter(toy_documents()), settings(), tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == model.read_bytes()


def test_a_model_file_must_exist_and_match_the_settings(model, tmp_path, run):
    for content in (b"", b"garbage"):
        (tmp_path / "bad.model").write_bytes(content)
        with pytest.raises(ConfigError, match="bad.model"):
            load_model(tmp_path / "bad.model")

    def found(file, size=50):
        asked = run(f"tokenizer.model_file={file}", f"tokenizer.vocab_size={size}")
        return find_or_train(asked, silent)

    with pytest.raises(ConfigError, match="none.model"):
        found(tmp_path / "none.model")
    with pytest.raises(ConfigError, match=r"tokenizer\.vocab_size=100"):
        found(model, 100)
    assert found(model) == model


@pytest.mark.parametrize(("asked", "bound"), [(5000, "value <= (\\d+)"), (18, "vs (\\d+)")])
def test_the_vocabulary_size_that_the_error_names_works(tmp_path, asked, bound):
    file = tmp_path / "toy.model"
    with pytest.raises(ConfigError, match=rf"tokenizer\.vocab_size.*{bound}") as told:
        train(toy_documents(), settings(vocab_size=asked), file)
    assert not file.exists()
    named = int(re.findall(bound, str(told.value))[0])
    train(toy_documents(), settings(vocab_size=named), file)
    assert load_model(file).vocab_size == named


@pytest.mark.parametrize(
    ("control", "user_defined"), [(["[CLS]", "[SEP]"], []), (["[CLS]", "[SEP]"], ["[MASK]"])]
)
def test_a_model_without_a_special_token_or_with_one_that_comes_from_text_is_refused(
    tmp_path, control, user_defined
):
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(toy_documents()),
        model_prefix=str(tmp_path / "odd"),
        vocab_size=40,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=control,
        user_defined_symbols=user_defined,
        minloglevel=2,
    )
    with pytest.raises(ConfigError, match=r"odd\.model.*\[MASK\]"):
        load_model(tmp_path / "odd.model")


@pytest.mark.parametrize(
    ("key", "value"),
    [("model_type", 2), ("split_by_whitespace", False), ("treat_whitespace_as_suffix", True)],
)
def test_a_sentencepiece_model_with_other_rules_is_refused(model, tmp_path, key, value):
    proto: Any = sentencepiece_model_pb2
    proto = proto.ModelProto.FromString(model.read_bytes())
    setattr(proto.trainer_spec, key, value)
    (tmp_path / "odd.model").write_bytes(proto.SerializeToString())
    with pytest.raises(ConfigError, match="odd.model is a SentencePiece model of another kind"):
        load_model(tmp_path / "odd.model")


def test_spaces_punctuation_and_other_scripts_start_a_word_and_letters_join_it(toy):
    starts = ["▁the", "▁", "<pad>", ",", "[", "9", "'s", "é", "日", "s9", "–", "£", "=", "▁9"]
    assert all(map(base.starts_word, starts))
    assert not any(map(base.starts_word, ["s", "ing", "ING", "Ing", "s.", ").", "[CLS]"]))
    assert toy.word_starts.tolist() == [base.starts_word(token) for token in toy.tokens()]


def test_a_tokenizer_is_trained_once(run, monkeypatch):
    file = find_or_train(run(), silent)
    assert file.is_relative_to(paths.cache() / "tokenizers")
    monkeypatch.setattr(training, "train", None)
    assert find_or_train(run(), silent) == file


def test_a_ctrl_c_ends_a_training_and_leaves_nothing(run, tmp_path, monkeypatch):
    clean = Cleaning.__call__

    def interrupted(cleaning, text):
        signal.raise_signal(signal.SIGINT)
        return clean(cleaning, text)

    monkeypatch.setattr(Cleaning, "__call__", interrupted)
    with own_signals():
        # a process in the background ignores it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            find_or_train(run(), silent)
    assert not list((tmp_path / "cache" / "tokenizers").glob("*/"))


def test_training_needs_text_and_its_settings(run, tmp_path):
    with pytest.raises(ConfigError, match=r"tokenizer\.training_sentences"):
        find_or_train(run("tokenizer.training_sentences=null"), silent)
    (tmp_path / "text" / "a.txt").write_text("Two.")  # held out
    with pytest.raises(ConfigError, match=r"corpus\.dev_share"):
        find_or_train(run("corpus.dev_share=0.99"), silent)
    assert not list((tmp_path / "cache" / "tokenizers").glob("*/"))


def test_a_sample_is_uniform(monkeypatch):
    items = [str(number) for number in range(50)]
    chosen = Counter()
    for seed in range(400):
        monkeypatch.setattr(training, "_SEED", seed)
        chosen.update({*sample(iter(items), 10)})
    assert chosen.total() == 400 * 10
    assert chisquare([chosen[item] for item in items]).pvalue > 0.001
    assert sample(iter("abc"), 10) == ["a", "b", "c"]


def test_a_tokenizer_is_trained_without_held_out_documents(run, tmp_path):
    documents = [f"{'zyx' * number}." for number in range(1, 40)]
    held_out = [text for text in documents if texts.split_of(text, 0.2) == "dev"]
    (tmp_path / "text" / "b.txt").write_text("\n\n".join(held_out))
    assert held_out
    file = find_or_train(run("corpus.dev_share=0.2"), silent)
    assert not any(set("zyx") & set(token) for token in load_model(file).tokens())


def test_the_fingerprint_follows_text_and_settings_and_needs_no_training(run, tmp_path, model):
    first = tokenizer_fingerprint(run())
    others = [
        "tokenizer.vocab_size=49",
        "tokenizer.training_sentences=999",
        "corpus.lower_case=false",
        "corpus.dev_share=0.3",
    ]
    fingerprints = [tokenizer_fingerprint(run(change)) for change in others]
    (tmp_path / "text" / "b.txt").write_text("More.")
    known_digests.clear()
    fingerprints.append(tokenizer_fingerprint(run()))
    assert len({first, *fingerprints}) == 6
    assert not (tmp_path / "cache").exists()
    of_splits = {
        tokenizer_fingerprint(run(f"corpus.{how}"))
        for how in ("documents=paragraph", "document_tokens=30")
    }
    assert of_splits == {fingerprints[-1]}, "how source documents are split changes nothing"
    from_file = run(f"tokenizer.model_file={model}")
    assert tokenizer_fingerprint(from_file) == load_model(model).fingerprint


@pytest.mark.parametrize("unit", ["so many words ", "ภาษาไทย", "字"])
def test_a_line_that_is_too_long_for_the_trainer_is_cut_and_nothing_is_lost(unit):
    text = (unit * (20_000 // len(unit))).strip()
    lines = list(cut_to_lines(text))
    assert max(len(line.encode()) for line in lines) <= 4192
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert not any(line.endswith("man") for line in lines), "words stay whole"
