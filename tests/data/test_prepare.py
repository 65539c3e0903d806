import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import psutil
import pytest
from toy import silent

from albert_lab import locks, paths, storage
from albert_lab.config.compose import load
from albert_lab.data import corpus as texts
from albert_lab.data.files import left_out
from albert_lab.data.prepare import find_shards, prepare
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

    def read_and_write(corpus, skipped):
        yield from read(corpus, skipped)
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


def prepared(*overrides):
    """What is said while a toy text is prepared, and the content of meta.json."""
    said: list[str] = []
    config = load(["scale=smoke", "corpus=files", "corpus.dev_share=0.3", "tokenizer.vocab_size=40", *overrides])
    return said, read_meta(prepare(config, said.append))


@pytest.mark.parametrize(
    ("documents", "number", "warned"),
    [("blank-line", 3, 1), ("paragraph", 10, 0), ("file", 10, 0)],
)
def test_paragraphs_as_documents_are_warned_about(documents, number, warned, tmp_path):
    said, _ = prepared(f"corpus.path={books(tmp_path / 'books', number)}", f"corpus.documents={documents}")
    assert sum(line.startswith("warning: ") for line in said) == warned


def test_files_and_linked_folders_that_are_not_read_are_named(tmp_path):
    folder, more = books(tmp_path / "books", 4), books(tmp_path / "more", 2)
    for name in ("MPL-2.0", "notes.md", "COPYING"):
        (folder / name).write_text("The cat sat.\n")
    for name in ("linked", ".hidden"):
        (folder / name).symlink_to(more)
    others, links = left_out(load(["corpus=files", f"corpus.path={folder}"]).corpus)
    assert (others, links) == (["MPL-2.0", "notes.md"], ["linked"])


def test_unknown_tokens_are_said_and_many_are_refused_unless_asked_for(run, tmp_path):
    documents = toy_documents()
    strange = [
        document.translate(dict(zip(b"abdegikmnorstul", "აბდეგიკმნორსტულ", strict=True))) for document in documents
    ]
    for count, most, is_refused in ((4, 0.1, False), (60, 0.1, True), (60, 0.9, False)):
        (tmp_path / "text.txt").write_text("\n\n".join([*strange[:count], *documents[count:]]))
        said: list[str] = []
        config = run(f"tokenizer.most_unknown={most}")
        if is_refused:
            with pytest.raises(ConfigError, match=r"tokenizer\.most_unknown"):
                prepare(config, said.append)
            continue
        prepare(config, said.append)
        assert any(line.startswith("warning: ") and "<unk>" in line for line in said)
        again: list[str] = []
        prepare(config, again.append)
        assert len(again) == 1, "also of text that was prepared before"


def test_bad_records_stop_a_run_or_are_counted_and_named(tmp_path):
    records = [{"text": f"The {number} cat sat. It was red."} for number in range(200)]
    lines = [json.dumps(record) for record in records]
    lines[7:7] = ['{"text": null}', '{"text": "\\ud83d"}', '{"text": ']
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match=r"a\.jsonl:8: .*corpus\.on_error=skip"):
        prepared(f"corpus.path={file}")
    said, meta = prepared(f"corpus.path={file}", "corpus.on_error=skip")
    assert meta["records_skipped"] == 3
    assert meta["documents_found"] == 200
    (line,) = [line for line in said if "on_error" in line]
    assert all(f"a.jsonl:{number}" in line for number in (8, 9, 10))


def test_lines_that_were_broken_to_fit_a_width_are_noticed_and_joined(tmp_path):
    draw = np.random.Generator(np.random.Philox(key=1))
    text = "\n\n".join(
        textwrap.fill(" ".join(f"{' '.join(draw.choice(WORDS, 9))}.".capitalize() for _ in range(12)), 60)
        for _ in range(40)
    )
    (tmp_path / "a.txt").write_text(text)
    said = {lines: prepared(f"corpus.path={tmp_path}", f"corpus.lines={lines}") for lines in ("whole", "wrapped")}
    assert any("corpus.lines=wrapped" in line for line in said["whole"][0])
    assert not any("corpus.lines=wrapped" in line for line in said["wrapped"][0])
    counts = {lines: sum(meta[split]["sentences"] for split in ("train", "dev")) for lines, (_, meta) in said.items()}
    assert counts["wrapped"] <= 40 * 12 < counts["whole"]


def test_a_book_without_blank_lines_is_cut_into_documents(tmp_path):
    (tmp_path / "book.txt").write_text("\n".join(f"Here the {number} cat sat. It was red." for number in range(200)))
    with pytest.raises(ConfigError, match=r"corpus\.document_characters"):
        prepared(f"corpus.path={tmp_path}")
    _, meta = prepared(f"corpus.path={tmp_path}", "corpus.document_characters=200")
    assert 20 < meta["train"]["sources"] + meta["dev"]["sources"] < 40
    assert meta["train"]["sentences"] + meta["dev"]["sentences"] == 400
