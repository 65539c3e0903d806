import itertools
import json

import numpy as np
import pytest
from toy import silent
from toy_text import WORDS, toy_documents

from albert_lab import paths, storage
from albert_lab.config.compose import load
from albert_lab.data import corpus as texts
from albert_lab.data.corpus import sentences
from albert_lab.data.files import known_digests
from albert_lab.data.prepare import find_shards, prepare
from albert_lab.data.shards import open_shards, read_meta
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import train
from albert_lab.errors import ConfigError


@pytest.fixture
def run(run, model):
    return lambda *overrides: run(f"tokenizer.model_file={model}", *overrides)


def built():
    result = (paths.cache() / "shards").glob("*")
    return [folder for folder in result if not folder.name.endswith(storage.LOCK)]


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "meta.json"}


def test_the_shards_contain_every_sentence_of_every_document_of_their_split(run, model):
    config = run()
    folder, tokenizer = prepare(config, silent), load_model(model)
    for split in ("train", "dev"):
        result = open_shards(folder, split, tokenizer)
        expected = [
            tokenizer.encode(list(sentences(document, config.corpus)))
            for document in toy_documents()
            if texts.split_of(document, 0.2) == split
        ]
        assert result.num_documents == len(expected) > 3
        encoded = [ids.tolist() for ids in np.split(result.tokens, result.sentence_offsets[1:-1])]
        assert encoded == [*itertools.chain(*expected)]
        assert np.diff(result.document_offsets).tolist() == [*map(len, expected)]
        assert len(result.tokens) == result.meta[split]["tokens"]
        assert not result.tokens.flags.writeable


@pytest.mark.parametrize("most", [1, 12, 1000])
def test_a_document_is_cut_to_the_first_sentences_that_fit_but_at_least_two(run, most):
    def lengths_of(value):
        shards = open_shards(prepare(run(f"corpus.document_tokens={value}"), silent), "train")
        return np.split(np.diff(shards.sentence_offsets), shards.document_offsets[1:-1])

    for before, after in zip(lengths_of("null"), lengths_of(most), strict=True):
        fitting = np.count_nonzero(np.cumsum(before) <= most)
        assert after.tolist() == before[: max(2, fitting)].tolist()


def paragraphs_of(opened, model):
    """The texts of the documents of a split, by source document."""
    tokens = np.array(load_model(model).tokens())[opened.tokens]
    bounds = opened.sentence_offsets[opened.document_offsets]
    documents = [
        "".join(tokens[first:end]).replace("▁", " ").strip()
        for first, end in itertools.pairwise(bounds)
    ]
    return [documents[first:end] for first, end in itertools.pairwise(opened.source_offsets)]


def test_no_paragraph_of_a_held_out_source_document_is_trained_on(run, tmp_path, model):
    draw = np.random.Generator(np.random.Philox(key=3))
    sentence = lambda: f"{' '.join(draw.choice(WORDS, 5))} basal.".capitalize()  # noqa: E731
    shared = "Ban basal. Ban basal."
    sources = [
        [*(f"{sentence()} {sentence()}" for _ in range(6)), sentence(), shared] for _ in range(40)
    ]
    (tmp_path / "text" / "a.txt").write_text("\n\n".join(map("\n".join, sources)))
    prepared = prepare(run("corpus.documents=paragraph"), silent)
    shards = [open_shards(prepared, split) for split in ("train", "dev")]
    kept = sorted(tuple(source) for split in shards for source in paragraphs_of(split, model))
    # The shared one stands once, in the first that is read, and those of one sentence nowhere.
    expected = [tuple(text.lower() for text in source[:6]) for source in sources]
    assert sorted(source[:6] for source in kept) == sorted(expected)
    assert [source[6:] for source in kept if source[6:]] == [(shared.lower(),)]
    assert read_meta(prepared)["dropped"]["paragraphs of one sentence"] == 40


@pytest.mark.parametrize("documents", ["blank-line", "paragraph"])
def test_training_text_that_repeats_held_out_text_is_dropped_and_counted(run, tmp_path, documents):
    draw = np.random.Generator(np.random.Philox(key=2))

    def paragraph():
        return " ".join(f"{' '.join(draw.choice(WORDS, 10))} ban.".capitalize() for _ in range(2))

    sources = ["\n".join(paragraph() for _ in range(3)) for _ in range(30)]
    held_out = [source for source in sources if texts.split_of(source, 0.2) == "dev"]
    edited = [source.split(" ban.\n")[0].upper() + ", however." for source in held_out]
    copies = [f"{text}\n{paragraph()}" for text in edited]
    (tmp_path / "text" / "a.txt").write_text("\n\n".join([*copies, *sources]))
    meta = read_meta(prepare(run(f"corpus.documents={documents}"), silent))
    in_training = [copy for copy in copies if texts.split_of(copy, 0.2) == "train"]
    assert meta["dropped"] == {"paragraphs that repeat held-out text": len(in_training)}
    size = 3 if documents == "paragraph" else 1
    assert meta["train"]["documents"] == size * (30 - len(held_out)) + len(in_training)


def test_repeated_and_empty_documents_are_dropped_and_counted_and_other_files_named(run, tmp_path):
    folder, documents, said = tmp_path / "folder", toy_documents(), []
    folder.mkdir()
    (folder / "a.txt").write_text("\n\n".join([*documents, documents[0], "\u0301", documents[7]]))
    (folder / "notes.md").write_text("The cat sat.")
    meta = read_meta(prepare(run(f"corpus.path={folder}"), said.append))
    assert meta["dropped"] == {"duplicate documents": 2, "empty documents": 1}
    assert meta["train"]["documents"] + meta["dev"]["documents"] == 60
    assert meta["train"]["unknown_share"] == 0
    assert "notes.md" in said[-1]


def test_the_shards_do_not_depend_on_batches_and_threads(run, monkeypatch):
    folder = prepare(run("machine.workers=1"), silent)
    whole = contents(folder)
    folder.rename(folder.with_name("whole"))
    monkeypatch.setattr("albert_lab.data.prepare._BATCH", 3)
    assert contents(prepare(run("machine.workers=2"), silent)) == whole


def test_each_setting_that_changes_the_tokens_has_separate_shards(run, tmp_path):
    settings = [
        "dev_share=0.3",
        "lower_case=false",
        "sentences=line",
        "documents=file",
        "documents=paragraph",
        "document_tokens=9",
        "source_documents=file",
    ]
    folders = {find_shards(run(f"corpus.{setting}")) for setting in settings}
    assert find_shards(run("seed=3")) == find_shards(run("machine.workers=2"))
    folders.add(find_shards(run()))
    (tmp_path / "text" / "a.txt").write_text("Other text.")
    known_digests.clear()
    folders.add(find_shards(run()))
    assert len(folders) == 9


def test_an_empty_split_is_an_error_and_leaves_nothing(run, tmp_path):
    (tmp_path / "text" / "a.txt").write_text(toy_documents()[0])
    with pytest.raises(ConfigError, match=r"corpus\.dev_share"):
        prepare(run(), silent)
    assert not built()


def test_text_that_changes_while_it_is_read_is_an_error(run, tmp_path, monkeypatch):
    read = texts.iterate

    def read_and_write(*arguments):
        yield from read(*arguments)
        with open(tmp_path / "text" / "a.txt", "a") as file:
            file.write("\n\nOne more.")

    monkeypatch.setattr(texts, "iterate", read_and_write)
    with pytest.raises(ConfigError, match="corpus=files changed"):
        prepare(run(), silent)
    assert not built()


def test_shards_of_another_tokenizer_are_refused(run, tmp_path):
    folder = prepare(run(), silent)
    train(
        toy_documents(),
        load(["scale=smoke", "tokenizer.vocab_size=40"]).tokenizer,
        tmp_path / "other.model",
    )
    with pytest.raises(ConfigError, match=str(folder)):
        open_shards(folder, "dev", load_model(tmp_path / "other.model"))


def prepared(*overrides):
    """What is said while a toy text is prepared, and the content of meta.json."""
    said: list[str] = []
    config = load(
        [
            "scale=smoke",
            "corpus=files",
            "corpus.dev_share=0.3",
            "tokenizer.vocab_size=40",
            *overrides,
        ]
    )
    return said, read_meta(prepare(config, said.append))


def test_bad_records_stop_a_run_or_are_counted_and_named(tmp_path):
    records = [{"text": f"The {number} cat sat. It was red."} for number in range(200)]
    lines = [json.dumps(record) for record in records]
    lines[7:7] = ['{"text": null}', '{"text": "\\ud83d"}', '{"text": ']
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match=r"a\.jsonl:8: .*corpus\.on_error=skip"):
        prepared(f"corpus.path={file}")
    said, meta = prepared(f"corpus.path={file}", "corpus.on_error=skip")
    assert (meta["records_skipped"], meta["documents_found"]) == (3, 200)
    # Records of one length are no wrapped lines, which a warning would say.
    (line,) = [line for line in said if line.startswith("warning")]
    assert all(f"a.jsonl:{number}" in line for number in (8, 9, 10))


def test_skipping_every_record_is_an_error_that_names_one(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"body": "The cat sat."}\n' * 9)
    with pytest.raises(ConfigError, match=r"a\.jsonl:1: corpus\.text_field"):
        prepared(f"corpus.path={tmp_path}", "corpus.on_error=skip")


def test_shuffled_sentences_are_documents_which_is_said_without_advice_to_cut_them(tmp_path):
    file = tmp_path / "news.txt"
    file.write_text("\n".join(f"Here the {number} cat sat." for number in range(200)))
    said, meta = prepared(f"corpus.path={file}", "corpus.sentences=line")
    assert meta["train"]["sources"] + meta["dev"]["sources"] == 200
    assert any("each line is a document" in line for line in said)
    with pytest.raises(ConfigError, match="leaves the (dev|train) split") as raised:
        prepared(f"corpus.path={file}", "corpus.sentences=line", "corpus.dev_share=0.0001")
    assert "a blank line after each document" in str(raised.value)


def test_lines_that_were_broken_to_fit_a_width_are_joined(tmp_path):
    paragraphs = [f"Here the {number} cat\nsat. It was\nred." for number in range(200)]
    (tmp_path / "a.txt").write_text("\n\n".join(paragraphs))
    _, meta = prepared(f"corpus.path={tmp_path}", "corpus.lines=wrapped")
    assert meta["train"]["sentences"] + meta["dev"]["sentences"] == 400
