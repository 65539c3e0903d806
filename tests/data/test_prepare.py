import itertools
import json
import os
import signal
import subprocess
import sys
from collections import namedtuple

import numpy as np
import psutil
import pytest
from toy import silent

from albert_lab import locks, paths, storage
from albert_lab.config.compose import load
from albert_lab.data import corpus as texts
from albert_lab.data import lengths
from albert_lab.data.build import DiskFullError
from albert_lab.data.prepare import describe, find_shards, prepare
from albert_lab.data.sentences import raw_sentences, sentences
from albert_lab.data.shards import open_shards, read_meta
from albert_lab.data.tokenizer.cache import find_tokenizer
from albert_lab.data.tokenizer.cache import load as load_model
from albert_lab.data.tokenizer.train import train
from albert_lab.errors import ConfigError

WORDS = ["".join(letters) for letters in itertools.product("bdgkmt", "aeiou", ["n", "r", "sal"])]


def toy_documents(count=60):
    random = np.random.Generator(np.random.Philox(key=1))

    def sentence():
        return " ".join(random.choice(WORDS, random.integers(2, 12))) + "."

    return ["\n".join(sentence() for _ in range(random.integers(1, 6))) for _ in range(count)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tokenizer of the toy text, trained once."""
    file = tmp_path_factory.mktemp("tokenizer") / "toy.model"
    settings = load(["scale=smoke", "tokenizer.vocab_size=50"])
    train(toy_documents(), settings.tokenizer, file)
    return file


@pytest.fixture
def run(tmp_path, monkeypatch, model):
    """A function that returns the configuration of a run on the toy text, with a separate cache."""
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "text.txt"
    file.write_text("\n\n".join(toy_documents()))
    base = ["scale=smoke", "corpus=files", f"corpus.path={file}", "corpus.dev_share=0.2"]
    base += [f"tokenizer.model_file={model}", "tokenizer.vocab_size=50"]
    return lambda *overrides: load([*base, *overrides])


def built():
    result = (paths.cache() / "shards").glob("*")
    return [folder for folder in result if not locks.is_lock(folder)]


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
        assert len(result.sentence_offsets) - 1 == sum(map(len, expected))
        encoded = np.split(result.tokens, result.sentence_offsets[1:-1])
        for document, first, end in zip(expected, result.document_offsets, result.document_offsets[1:], strict=False):
            assert [sentence.tolist() for sentence in encoded[first:end]] == document
        assert result.tokens.dtype == np.uint16
        assert result.sentence_offsets.dtype == result.document_offsets.dtype == np.int64
        assert len(result.tokens) == result.num_tokens == result.sentence_offsets[-1] == result.meta[split]["tokens"]
        assert not result.tokens.flags.writeable


def paragraphs_of(opened, model):
    """The texts of the documents of a split, by source document."""
    tokenizer = load_model(model)
    bounds = opened.sentence_offsets[opened.document_offsets]
    documents = [tokenizer.decode(opened.tokens[first:end].tolist()) for first, end in itertools.pairwise(bounds)]
    return [documents[first:end] for first, end in itertools.pairwise(opened.source_offsets)]


@pytest.mark.parametrize("form", ["blank-line", "files", "records", "hub"])
def test_no_paragraph_of_a_held_out_source_document_is_trained_on(run, tmp_path, model, form):
    draw = np.random.Generator(np.random.Philox(key=3))
    shared = "Ban bar. Ban bar."
    sources = [
        [
            " ".join(f"{' '.join(draw.choice(WORDS, 5))}.".capitalize() for _ in range(draw.integers(1, 4)))
            for _ in range(6)
        ]
        + [shared]
        for _ in range(40)
    ]
    folder = tmp_path / "sources"
    folder.mkdir()
    overrides = ["corpus.documents=paragraph", "corpus.sentences=split", f"corpus.path={folder}"]
    if form == "blank-line":
        (folder / "a.txt").write_text("\n\n".join("\n".join(source) for source in sources))
    elif form == "files":
        for number, source in enumerate(sources):
            (folder / f"{number:02}.txt").write_text("\n\n".join(source))
    else:
        (folder / "a.jsonl").write_text("\n".join(json.dumps({"text": "\n".join(source)}) for source in sources))
    if form == "hub":
        overrides += ["corpus.source=hub", "corpus.path=null"]
        overrides.append(f"corpus.datasets=[{{path:'{folder}',name:null,split:train}}]")
    config = run(*overrides)
    prepared = prepare(config, silent)
    train, dev = (paragraphs_of(open_shards(prepared, split), model) for split in ("train", "dev"))

    place = {text.lower(): number for number, source in enumerate(sources) for text in source}
    sides = [{place[text] for source in split for text in source} - {place[shared.lower()]} for split in (train, dev)]
    assert not sides[0] & sides[1]
    assert min(map(len, sides)) > 1
    for source in [*train, *dev]:
        assert len({place[text] for text in source if text != shared.lower()}) <= 1, (
            "a source document's stand together"
        )
    kept = [text for source in [*train, *dev] for text in source]
    assert kept.count(shared.lower()) == 1, "a paragraph of several source documents stands in one of them"
    short = {text for text in place if len(list(raw_sentences(text.title(), config.corpus))) == 1}
    assert set(kept) == place.keys() - short
    assert read_meta(prepared)["short_paragraphs_dropped"] == len(short) > 10


def sentence_lengths(shards, document):
    first, end = shards.document_offsets[document : document + 2]
    return np.diff(shards.sentence_offsets[first : end + 1]).tolist()


@pytest.mark.parametrize("most", [1, 12, 1000])
def test_a_document_is_cut_to_the_first_sentences_that_fit_but_at_least_two(run, most):
    whole, cut = (
        open_shards(prepare(run(*overrides), silent), "train") for overrides in ([], [f"corpus.document_tokens={most}"])
    )
    assert cut.num_documents == whole.num_documents
    for document in range(whole.num_documents):
        sentences = [sentence_lengths(shards, document) for shards in (whole, cut)]
        fitting = int(np.searchsorted(np.cumsum(sentences[0]), most, side="right"))
        assert sentences[1] == sentences[0][: max(2, fitting)]


def test_the_shards_do_not_depend_on_the_number_of_workers(run, monkeypatch):
    monkeypatch.setattr("albert_lab.data.prepare._BATCH_CHARACTERS", 500)
    folder = prepare(run("machine.workers=1"), silent)
    alone = contents(folder)
    folder.rename(folder.with_name("alone"))
    assert prepare(run("machine.workers=2"), silent) == folder
    assert contents(folder) == alone


def test_repeated_and_empty_documents_are_dropped_and_counted(run, tmp_path):
    documents = toy_documents()
    (tmp_path / "text.txt").write_text("\n\n".join([*documents, documents[0], "\u0301", documents[7]]))
    meta = read_meta(prepare(run(), silent))
    assert meta["documents_found"] == 63
    assert meta["duplicates_dropped"] == 2
    assert meta["empty_documents_dropped"] == 1
    assert meta["train"]["documents"] + meta["dev"]["documents"] == 60
    assert meta["train"]["unknown_share"] == 0


def test_each_setting_that_changes_the_tokens_has_separate_shards(run, tmp_path):
    settings = ["corpus.dev_share=0.3", "corpus.lower_case=false", "corpus.sentences=line", "corpus.documents=file"]
    settings += ["corpus.documents=paragraph", "corpus.document_tokens=9", "corpus.source_documents=file"]
    folders = [find_shards(run(setting)) for setting in (*settings, "seed=3", "machine.workers=2")]
    (tmp_path / "text.txt").write_text("Other text.")
    folders.append(find_shards(run()))
    assert len(set(folders)) == 9
    assert folders[7] == folders[8]


def test_an_empty_split_is_an_error_and_leaves_nothing(run, tmp_path):
    (tmp_path / "text.txt").write_text(toy_documents()[0])
    with pytest.raises(
        ConfigError, match=r"has 1 different documents with text, but none in the \w+ split at corpus.dev"
    ):
        prepare(run(), silent)
    assert not built()


def test_text_that_changes_while_it_is_read_is_an_error(run, tmp_path, monkeypatch):
    read = texts.iterate

    def read_and_write(corpus):
        yield from read(corpus)
        with open(tmp_path / "text.txt", "a") as file:
            file.write("\n\nOne more.")

    monkeypatch.setattr(texts, "iterate", read_and_write)
    with pytest.raises(ConfigError, match="changed while it was read"):
        prepare(run(), silent)
    assert not built()


def test_shards_of_another_tokenizer_are_refused(run, tmp_path):
    folder = prepare(run(), silent)
    other = load(["scale=smoke", "tokenizer.vocab_size=40"]).tokenizer
    train(toy_documents(), other, tmp_path / "other.model")
    with pytest.raises(ConfigError, match="made by another tokenizer .* vocab_size 50.* vocab_size 40"):
        open_shards(folder, "dev", load_model(tmp_path / "other.model"))


def test_a_too_small_disk_is_reported_before_writing(run, monkeypatch):
    usage = namedtuple("Usage", "total used free")
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: usage(0, 0, 1000))
        with pytest.raises(DiskFullError, match="the token shards take about .*; .* has 1.0 KiB left"):
            prepare(run(), silent)
    assert not built()
    prepare(run(), silent)
    assert len(built()) == 1


def test_describing_writes_nothing_and_becomes_exact(run, tmp_path):
    guess = describe(run())
    assert not (tmp_path / "cache").exists()
    assert guess["raw_bytes"] == (tmp_path / "text.txt").stat().st_size
    assert not guess["is_prepared"]
    meta = read_meta(prepare(run(), silent))
    known = describe(run())
    assert known["is_prepared"]
    assert known["has_tokenizer"]
    assert known["num_tokens"] == meta["train"]["tokens"] + meta["dev"]["tokens"]
    assert 0.1 < guess["disk_bytes"] / known["disk_bytes"] < 10


def test_describing_names_missing_data(run, tmp_path):
    (tmp_path / "text.txt").unlink()
    result = describe(run())
    assert "there is no" in result["missing"]
    assert result["raw_bytes"] is None
    assert not result["is_prepared"]
    far = describe(load(["corpus=wikipedia-books"]))
    assert "cannot be reached" in far["missing"]


def test_the_embedded_corpus_is_described_within_a_fifth_of_the_truth():
    config = load(["scale=laptop"])
    assert 2_000_000 < describe(config)["num_tokens"] < 2_900_000


SLOW = """
import sys, time
from albert_lab.config.compose import load
from albert_lab.data import prepare, shards

if __name__ == "__main__":
    append = shards.ShardWriter.append
    def append_slowly(writer, *arrays):
        append(writer, *arrays)
        print("written", flush=True)
        time.sleep(0.2)
    shards.ShardWriter.append = append_slowly
    prepare._BATCH_CHARACTERS = 500
    prepare.prepare(load(sys.argv[1:]), print)
"""


def test_a_killed_build_leaves_nothing_that_looks_finished(run, tmp_path, monkeypatch):
    whole = contents(prepare(run(), silent))
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "second"))
    (tmp_path / "slow.py").write_text(SLOW)
    overrides = ["scale=smoke", "corpus=files", f"corpus.path={tmp_path / 'text.txt'}", "corpus.dev_share=0.2"]
    overrides += [f"tokenizer.model_file={find_tokenizer(run())}", "tokenizer.vocab_size=50", "machine.workers=2"]
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "slow.py"), *overrides], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while "written" not in process.stdout.readline():
        assert process.poll() is None
    workers = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert [storage.completed(folder) for folder in built()] == [find_shards(run())]
    assert len(workers) >= 2
    assert not psutil.wait_procs(workers, timeout=10)[1]
    assert contents(prepare(run(), silent)) == whole
    assert built() == [find_shards(run())]


def books(folder, number, paragraphs=60):
    folder.mkdir()
    for book in range(number):
        lines = [f"The {book} cat sat on mat {line}. It was red." for line in range(paragraphs)]
        (folder / f"{book}.txt").write_text("\n\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("documents", "number", "expected"),
    [
        ("blank-line", 3, ["half of the documents have at most 2 sentences", "3 files are held out in part"]),
        ("blank-line", 10, ["half of the documents have at most 2 sentences"]),
        ("paragraph", 10, []),
        ("file", 10, []),
    ],
)
def test_lengths_are_printed_with_warnings_about_probably_unintended_settings(documents, number, expected, tmp_path):
    text = [f"corpus.path={books(tmp_path / 'books', number)}", f"corpus.documents={documents}", "corpus.dev_share=0.3"]
    said = []
    config = load(["scale=smoke", "corpus=files", *text, "tokenizer.vocab_size=40"])
    meta = read_meta(prepare(config, said.append))
    assert meta["median_document_sentences"] == (120 if documents == "file" else 2)
    (summary,) = [line for line in said if line.startswith("prepared")]
    assert f"the median one has {meta['median_document_tokens']:,} tokens" in summary
    warned = [line for line in said if line.startswith("warning: ")]
    assert len(warned) == len(expected)
    assert all(words in line for words, line in zip(expected, warned, strict=True))


def test_files_that_are_not_read_are_named(tmp_path):
    folder = books(tmp_path / "books", 4)
    for name in ("MPL-2.0", "notes.md", "COPYING"):
        (folder / name).write_text("The cat sat.\n")
    config = load(["corpus=files", f"corpus.path={folder}"])
    (line,) = [line for line in lengths.warnings(config.corpus, lengths.Lengths()) if "not read" in line]
    assert line.startswith("warning: 2 files are not read")
    assert ": MPL-2.0, notes.md. A glob reads any name: 'corpus.path=" in line


def test_linked_folders_are_named_since_they_are_not_read(tmp_path):
    folder, more = books(tmp_path / "books", 4), books(tmp_path / "more", 2)
    for name in ("more", ".hidden"):
        (folder / name).symlink_to(more)
    config = load(["corpus=files", f"corpus.path={folder}"])
    (line,) = [line for line in lengths.warnings(config.corpus, lengths.Lengths()) if "not read" in line]
    assert line == "warning: 1 linked folder is not read, since links to folders are not followed: more"


def test_the_advised_share_of_files_holds_out_whole_files(tmp_path, monkeypatch):
    settings = ["corpus.documents=paragraph", f"corpus.path={tmp_path}", "corpus.dev_share=0.0001"]
    corpus = load(["scale=smoke", "corpus=files", *settings]).corpus
    monkeypatch.setattr(texts, "plain_files", lambda _: 2)
    (warning,) = lengths.warnings(corpus.model_copy(update={"dev_share": 0.1}), lengths.Lengths())
    assert warning.endswith("is less than two: corpus.source_documents=file holds out whole files")
    for number in (3, 10, 61, 70, 1000, 19_999):
        monkeypatch.setattr(texts, "plain_files", lambda _, number=number: number)
        (warning,) = lengths.warnings(corpus, lengths.Lengths())
        share = float(warning.partition("or corpus.dev_share=")[2].split()[0])
        advised = corpus.model_copy(update={"dev_share": share})
        assert not lengths.warnings(advised, lengths.Lengths()), warning
