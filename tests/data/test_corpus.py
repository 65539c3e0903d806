import bz2
import gzip
import json
import lzma
import os
from collections import Counter
from functools import cache
from pathlib import Path

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_lab.config.compose import load
from albert_lab.config.data import AddedText, CorpusConfig
from albert_lab.data import corpus as texts
from albert_lab.data.corpus import sentences
from albert_lab.data.files import fingerprint
from albert_lab.errors import ConfigError, MissingDataError

TWO_DOCUMENTS = "One line.\nAnother, naïve one.\n\nA second document.\n"


@cache
def usual() -> CorpusConfig:
    settings = [
        "corpus.dev_share=0.5",
        "corpus.documents=blank-line",
        "corpus.document_tokens=null",
    ]
    return load(["corpus=files", "corpus.path=texts", *settings]).corpus


def corpus(path: Path | str = "texts", **changes):
    return usual().model_copy(update={"path": str(path)} | changes)


def read(settings):
    return [*map("\n".join, texts.iterate(settings, []))]


# ---- documents ----


def test_a_blank_line_or_the_end_of_a_file_ends_a_document(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("\n" + TWO_DOCUMENTS + "   \n\n")
    result = list(texts.iterate(corpus(file), []))
    assert result == [["One line.\nAnother, naïve one."], ["A second document."]]
    assert read(corpus(file, documents="file")) == [
        "One line.\nAnother, naïve one.\nA second document."
    ]


def divide(settings):
    return [
        [*map("\n".join, texts.documents_of(source, settings))]
        for source in texts.iterate(settings, [])
    ]


def test_a_source_document_is_split_into_its_documents(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text(TWO_DOCUMENTS)
    whole = ["One line.\nAnother, naïve one.", "A second document."]
    blocks = whole[0].split("\n")
    for source, documents, expected in [
        ("blank-line", "blank-line", [[whole[0]], [whole[1]]]),
        ("blank-line", "paragraph", [blocks, [whole[1]]]),
        ("file", "blank-line", [whole]),
        ("file", "paragraph", [[*blocks, whole[1]]]),
        # a document is never split between two source documents
        ("blank-line", "file", [["\n".join(whole)]]),
    ]:
        assert divide(corpus(file, source_documents=source, documents=documents)) == expected
    by_lines = corpus(file, source_documents="file", documents="paragraph", sentences="line")
    assert divide(by_lines) == [whole], "where a line is a sentence, a blank line ends a paragraph"


def test_the_paragraphs_of_a_record_are_its_lines(tmp_path):
    record = "One. Two.\n\nThree.\n  \n"
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": record}))
    assert divide(corpus(tmp_path)) == [["One. Two.\nThree."]]
    assert divide(corpus(tmp_path, documents="paragraph")) == [["One. Two.", "Three."]]


def test_files_are_source_documents_if_about_two_of_them_would_be_held_out(tmp_path, monkeypatch):
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text(TWO_DOCUMENTS)

    def count(share: float, form: str = "auto") -> int:
        return len(read(corpus(tmp_path, dev_share=share, source_documents=form)))

    assert (count(0.2), count(0.19)) == (10, 20)
    assert (count(0.01, "file"), count(0.9, "blank-line")) == (10, 20)
    monkeypatch.setattr(texts, "_SHARD", 10)  # bytes: these files are larger
    assert count(0.9) == 20


PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


RECORDS = [{"id": "1", "text": "One, of\ntwo lines."}, {"id": "2", "text": "T\x85wo."}]


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.ndjson", "a.json", "wiki_00", "a.csv", "a.tsv", "a.csv.gz", "a.parquet"]
)
@pytest.mark.parametrize("form", ["lines", "array", "pretty"])
def test_records_of_every_format_are_read_by_name_or_first_line(tmp_path, name, form):
    table, file = pandas.DataFrame(RECORDS), tmp_path / name
    if name.endswith("parquet"):
        table.to_parquet(file)
    elif "sv" in name:
        table.to_csv(file, index=False, sep="\t" if "tsv" in name else ",")
    else:
        is_array = form != "lines" and name not in ("a.jsonl", "a.ndjson")
        indent = 2 if form == "pretty" and is_array else 0
        table.to_json(file, orient="records", lines=not is_array, indent=indent, force_ascii=False)
    assert read(corpus(file)) == read(corpus(tmp_path)) == [record["text"] for record in RECORDS]


def test_several_paths_are_read_in_their_order(tmp_path):
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(f"In {name}.")
    both = corpus(tmp_path).model_copy(
        update={"path": (str(tmp_path / "b.txt"), str(tmp_path / "*.txt"))}
    )
    assert read(both) == ["In b.txt.", "In a.txt.", "In b.txt."]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\ufeff"])
def test_lines_of_every_system_end_and_what_looks_blank_is_blank(tmp_path, end, blank):
    (tmp_path / "a.txt").write_bytes(end.join(["One.", "Two.", blank, "Three."]).encode())
    assert read(corpus(tmp_path)) == ["One.\nTwo.", "Three."]


def test_a_folder_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    scan = os.scandir
    (tmp_path / "in").mkdir()
    (tmp_path / "a.txt").write_text("In a.")

    def guarded(folder):
        if Path(folder).name == "in":
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(MissingDataError, match="in Permission denied"):
        read(corpus(tmp_path))


def test_a_folder_gives_its_text_files_sorted_by_name_and_a_glob_all_that_it_matches(tmp_path):
    names = ["b.txt", "a/z.txt", "wiki_00", ".hidden/x.txt", ".DS_Store", "README.md", "t.csv.gz"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"In {name}.")
    (tmp_path / "a" / "back").symlink_to(tmp_path)
    assert read(corpus(tmp_path)) == ["In a/z.txt.", "In b.txt.", "In wiki_00."]
    assert read(corpus(tmp_path / "**" / "*.txt")) == ["In a/z.txt.", "In b.txt."]
    assert read(corpus(tmp_path / "*.md")) == ["In README.md."]
    with pytest.raises(MissingDataError, match=r"\*\.rst"):
        read(corpus(tmp_path / "*.rst"))


@pytest.mark.parametrize("pattern", ["", "*.txt", "**/*"])
@pytest.mark.parametrize(
    "make", [lambda file: file.symlink_to("nowhere"), lambda file: file.symlink_to(file), os.mkfifo]
)
def test_a_path_that_is_no_file_and_no_folder_is_refused_by_name(tmp_path, make, pattern):
    (tmp_path / "a.txt").write_text("In a.")
    make(tmp_path / "b.txt")
    with pytest.raises(ConfigError, match=r"b\.txt is .*(link|file)"):
        read(corpus(tmp_path / pattern))
    (tmp_path / "b.txt").rename(tmp_path / ".b.txt")
    assert read(corpus(tmp_path / pattern)) == ["In a."]


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_files_give_their_text_and_damaged_ones_are_refused(tmp_path, suffix):
    file = tmp_path / f"a.txt{suffix}"
    packed = PACK[suffix](TWO_DOCUMENTS.encode())
    file.write_bytes(packed)
    assert read(corpus(tmp_path)) == ["One line.\nAnother, naïve one.", "A second document."]
    for content in (packed[:-10], TWO_DOCUMENTS.encode()):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match=f"a.txt{suffix}"):
            read(corpus(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.txt", b"fine\n\x89PNG\0", "a.txt:2"),
        ("a.txt", "fine\nnaïve".encode("latin-1"), "a.txt:2"),
        ("a.jsonl", b'{"text": "fine"}\n{"text": ', "a.jsonl:2"),
        ("a.jsonl", b'{"body": "x", "id": 1}', "a.jsonl:1: corpus.text_field"),
        ("a.jsonl", b'{"text": "\\ud800"}', "a.jsonl:1"),
        ("a.json", b"[1, 2", "a.json"),
        ("a.csv", b"id,body\n1,x\n", "a.csv:1: corpus.text_field"),
        ("a.txt", b"<?xml version='1.0'?>\n<p>Text.</p>", "a.txt"),
        (
            "wiki_00",
            b'<doc id="1" url="u" title="T">\nT\n\nText.\n</doc>\n',
            "wiki_00 .*wikiextractor --json",
        ),
        ("a.csv", b"text,label\nOne.,1,\nTwo.,0,\n", "a.csv cannot be read as a table: row 1"),
        (
            "a.tsv",
            b'id\ttext\n1\t"Stop.\n2\tShe ran"\n',
            "a.tsv cannot be read as a table: .* a quoted cell",
        ),
        ("a.tsv", b'id\ttext\n1\t"Stop," she said.\n', "a.tsv cannot be read as a table"),
        ("a.parquet", b"PAR1", "a.parquet"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(tmp_path, name, content, place):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=place):
        read(corpus(tmp_path))


@pytest.mark.parametrize("name", ["nowhere", ""])
def test_a_path_without_text_is_named(tmp_path, name):
    (tmp_path / "only.rst").write_bytes(b"x")
    with pytest.raises(MissingDataError, match=str(tmp_path / name)):
        fingerprint(corpus(tmp_path / name))


@pytest.mark.parametrize("skip", ["stop", "skip"])
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("data-0.arrow", "train/data-0.arrow.*load_from_disk"),
        ("a.tar.gz", "a.tar.gz.*unpack"),
    ],
)
def test_a_file_of_another_format_is_refused_with_what_converts_it(tmp_path, name, remedy, skip):
    (tmp_path / "train").mkdir()
    file = tmp_path / "train" / name
    file.write_bytes(b"{\\rtf PK\0")
    if name == "data-0.arrow":  # datasets writes JSON about them beside
        (tmp_path / "train" / "state.json").write_text('{"splits": ["train"]}')
    for path in (file, file.parent, tmp_path / "train" / "*"):
        with pytest.raises(ConfigError, match=remedy):
            read(corpus(path, on_error=skip))


def test_lines_without_a_blank_one_are_documents_where_a_line_is_a_sentence(tmp_path):
    file = tmp_path / "news.txt"
    file.write_text("\nOne line.\nAnother one.\n\n")
    lines = corpus(file, sentences="line")
    assert read(lines) == ["One line.", "Another one."]
    for change in ("sentences=split", "documents=file", "source_documents=blank-line"):
        key, value = change.split("=")
        assert len(read(lines.model_copy(update={key: value}))) == 1
    added = AddedText.model_construct(**dict(lines))
    assert len(read(added)) == 1, "all of it is trained on"
    file.write_text("One line.\nAnother one.\n\nA third one.")
    assert read(lines) == ["One line.\nAnother one.", "A third one."]


@pytest.mark.parametrize(
    ("start", "remedy"),
    [
        ("7\t", "sed -E"),
        ("7\ten\t", "sed -E"),
        ("7. ", "sed -E"),
        ("", None),
        ("In 1850 ", None),
    ],
)
def test_what_is_in_front_of_every_sentence_is_said_before_it_becomes_text(tmp_path, start, remedy):
    (tmp_path / "a.txt").write_text(
        "\n\n".join(f"{start}The {number} cat sat." for number in range(30))
    )
    doubts = texts.doubts(corpus(tmp_path))
    assert [remedy in doubt for doubt in doubts] == ([True] if remedy else [])


@pytest.mark.parametrize("path", ["my-texts.txt", "../texts", "texts", "~/texts", "os"])
@pytest.mark.parametrize(
    ("section", "option"), [("corpus", "sotu"), ("added_corpus", "sotu-since-1900")]
)
def test_a_path_of_the_users_own_is_not_taken_for_a_package(path, section, option):
    config = load(["scale=smoke", f"{section}={option}", f"{section}.path='{path}'"])
    with pytest.raises(MissingDataError, match=f"{section}.path={path}"):
        fingerprint(texts.corpora_of(config)[-1])


# ---- splits and repetitions ----


def test_a_repeated_text_is_dropped_and_counted_in_any_white_space():
    counts = Counter()
    documents = [[text] for text in ["a  b", "c", "a\nb", "A b", "a b"]]
    kept = list(texts.distinct(documents, counts, set()))
    assert kept == [["a  b"], ["c"], ["A b"]]
    assert counts == {"documents": 5, texts.DUPLICATES: 2}


def test_the_split_of_a_document_never_changes():
    for seed, held_out in ((0, ["two", "four"]), (1, ["one", "three", "four"])):
        words = ["one", "two", "three", "four"]
        assert [word for word in words if texts.split_of(word, 0.5, seed) == "dev"] == held_out


def test_the_dev_split_has_its_share_and_a_larger_share_only_adds_documents():
    documents = [f"document {number}" for number in range(20_000)]
    few, many = (
        {text for text in documents if texts.split_of(text, share) == "dev"}
        for share in (0.02, 0.2)
    )
    assert few < many
    assert len(few) == pytest.approx(400, abs=4 * 400**0.5)
    assert len(many) == pytest.approx(4000, abs=4 * 4000**0.5)


# ---- sentences ----


def test_capital_letters_decide_where_a_line_is_split_into_sentences():
    text = "He met Mr. Smith in the U.S. in May. Then he left.\n\n \nA new paragraph"
    assert list(sentences(text, corpus())) == [
        "He met Mr. Smith in the U.S. in May.",
        "Then he left.",
        "A new paragraph",
    ]
    assert list(sentences(text, corpus(sentences="line"))) == [
        "He met Mr. Smith in the U.S. in May. Then he left.",
        "A new paragraph",
    ]


@given(st.text(alphabet=st.sampled_from("aB. \n\u00a8\u0301é")))
def test_no_sentence_is_empty_and_no_letter_is_lost(text):
    result = list(sentences(text, corpus()))
    assert all(sentence.strip() for sentence in result)
    assert "".join("".join(result).split()) == "".join(text.split())
