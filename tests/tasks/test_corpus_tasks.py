import dataclasses

import numpy as np
import pytest

from albert_lab.config.compose import load
from albert_lab.data.corpus import iterate, split_of
from albert_lab.errors import ConfigError
from albert_lab.tasks.corpus_examples import HeldOutDocument, pair_relations
from albert_lab.tasks.corpus_tasks import STANDS_FOR, data_folder, find_or_make, make_tasks
from albert_lab.tasks.task import load_task, task_names

SUBJECTS = ["king", "queen", "soldier", "farmer", "teacher", "doctor", "sailor", "merchant", "painter", "captain"]
PLACES = ["castle", "harbour", "village", "mountain", "river", "forest", "garden", "market", "bridge", "tower"]


def toy_corpus(folder, documents=60, names="{:04d}-speech.txt"):
    """Documents of paragraphs in which later sentences repeat words of earlier ones."""
    folder.mkdir()
    for number in range(documents):
        paragraphs = []
        for part in range(8):
            subject = f"{SUBJECTS[(number + part) % 10]}{number}"
            place = f"{PLACES[(number * 3 + part) % 10]}{number}"
            paragraphs.append(
                f"In that year the {subject} walked slowly to the old {place} again. "
                f"Nobody had seen such a large {place} before this summer. "
                f"The {subject} stayed there until the evening of the day."
            )
        (folder / names.format(1800 + number)).write_text("\n".join(paragraphs))
    return load(["corpus=files", f"corpus.path={folder}", "corpus.documents=file", "corpus.dev_share=0.5"])


@pytest.fixture(scope="module")
def corpus_tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    config = toy_corpus(folder / "text")
    return config, folder, make_tasks(config, folder / "tasks")


def read(corpus_tasks, name, split):
    examples, issues = load_task(name).read(corpus_tasks[1] / "tasks", split)
    assert not issues
    return examples


def text_of(example):
    return " ".join(
        value for key in ("context", "passage", "text_a") if isinstance(value := getattr(example, key, None), str)
    )


@pytest.mark.parametrize("name", STANDS_FOR)
def test_every_task_is_written_in_its_official_form(corpus_tasks, name):
    for split in ("train", "dev"):
        assert len(read(corpus_tasks, name, split)) == corpus_tasks[2][name][split] > 10


@pytest.mark.parametrize("name", STANDS_FOR)
def test_text_is_from_held_out_documents_and_no_document_is_in_train_and_dev(corpus_tasks, name):
    config = corpus_tasks[0]
    held_out, others = [], []
    for document in iterate(config.corpus):
        kept = held_out if split_of(document.text, config.corpus.dev_share) == "dev" else others
        kept.append(document.text.replace("\n", " "))
    sources = {}
    for split in ("train", "dev"):
        sources[split] = {
            next(number for number, text in enumerate(held_out) if text_of(example) in text)
            for example in read(corpus_tasks, name, split)
        }
        assert not any(text_of(example) in text for example in read(corpus_tasks, name, split) for text in others)
    assert not sources["train"] & sources["dev"]


@pytest.mark.parametrize("setting", [{"documents": "paragraph"}, {"document_tokens": 20}])
def test_tasks_do_not_depend_on_how_source_documents_are_split(corpus_tasks, tmp_path, setting):
    config, folder, sizes = corpus_tasks
    changed = config.model_copy(
        update={"corpus": config.corpus.model_copy(update={"source_documents": "file", **setting})}
    )
    assert make_tasks(changed, tmp_path) == sizes
    files = [file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) >= 2 * len(STANDS_FOR)
    assert all((tmp_path / file).read_bytes() == (folder / "tasks" / file).read_bytes() for file in files)


def test_an_answer_fills_the_gap_and_occurs_in_the_context(corpus_tasks):
    for example in read(corpus_tasks, "cloze-span", "dev"):
        assert example.question.count("_") == 1
        assert example.answers
        for answer in example.answers:
            assert example.context[answer.start : answer.start + len(answer.text)] == answer.text


def test_the_context_of_an_unanswerable_question_has_no_word_of_its_answer(corpus_tasks):
    examples = read(corpus_tasks, "cloze-span-unanswerable", "train")
    answers = {example.id: example.answers for example in read(corpus_tasks, "cloze-span", "train")}
    unanswerable = [example for example in examples if example.is_impossible]
    assert 0.2 < len(unanswerable) / len(examples) < 0.7
    for example in unanswerable:
        text = answers[example.id][0].text.lower()
        assert not set(text.split()) & set(example.context.lower().replace(".", "").split())


def test_labels_are_balanced(corpus_tasks):
    for name, most in (("next-paragraph", 0.4), ("pair-relation", 0.5), ("era", 0.51), ("document-half", 0.51)):
        labels = [example.label for example in read(corpus_tasks, name, "train")]
        assert max(labels.count(label) for label in set(labels)) / len(labels) <= most


def test_a_pair_labelled_follows_is_consecutive_in_its_document(corpus_tasks):
    texts = [document.text.replace("\n", " ") for document in iterate(corpus_tasks[0].corpus)]
    for example in read(corpus_tasks, "pair-relation", "dev"):
        follows = any(f"{example.text_a} {example.text_b}" in text for text in texts)
        assert follows == (example.label == "follows")


def test_of_a_single_document_no_pair_is_said_to_be_of_another_one():
    sentences = [f"The {subject} walked slowly to the old {PLACES[0]} again." for subject in SUBJECTS * 3]
    (document,) = [HeldOutDocument("1800-speech", " ".join(sentences), "train", [sentences])]
    kinds = [example.label for example in pair_relations([document], np.random.default_rng(0))]
    assert set(kinds) == {"follows", "same-document"}
    others = pair_relations([document, dataclasses.replace(document, name="1801-speech")], np.random.default_rng(0))
    assert "other-document" in {example.label for example in others}


def test_the_right_option_begins_the_paragraph_after_the_passage(corpus_tasks):
    texts = [document.text for document in iterate(corpus_tasks[0].corpus)]
    for example in read(corpus_tasks, "next-paragraph", "dev"):
        follows = [any(f"{example.passage}\n{option}" in text for text in texts) for option in example.options]
        assert follows.index(True) == example.label
        assert sum(follows) == 1


def test_names_without_years_yield_no_task_era(tmp_path):
    config = toy_corpus(tmp_path / "text", names="speech-{}.txt")
    assert make_tasks(config, tmp_path / "tasks")["era"] == {}
    assert not (tmp_path / "tasks/corpus/era").exists()


def test_the_tasks_of_a_corpus_are_found_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    config = toy_corpus(tmp_path / "text")
    said = []
    folder = find_or_make(config, said.append)
    assert any(line.startswith("cloze-span: ") for line in said)
    assert data_folder(load_task("era"), config, said.append) == folder
    assert data_folder(load_task("sst2"), config, said.append) != folder


def test_a_task_that_the_corpus_does_not_provide_is_refused_with_those_that_it_does(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    config = toy_corpus(tmp_path / "text", names="speech-{}.txt")
    with pytest.raises(ConfigError, match=r"^era: corpus=files does not provide .* \(it provides: cloze-.*half\)$"):
        data_folder(load_task("era"), config, print)


def test_only_tasks_of_this_module_are_of_the_family():
    assert {name for name in task_names() if load_task(name).is_made_of_corpus} == set(STANDS_FOR)
    assert all(load_task(name).kind == load_task(official).kind for name, official in STANDS_FOR.items())
    assert not {load_task(name).title for name in STANDS_FOR} & {load_task(name).title for name in STANDS_FOR.values()}


def test_a_letter_that_becomes_two_in_lower_case_breaks_no_task(tmp_path):
    folder = tmp_path / "text"
    config = toy_corpus(folder)
    for file in folder.iterdir():
        file.write_text(file.read_text().replace("In that year", "In \u0130stanbul that year"))
    corpus_tasks = (config, tmp_path, make_tasks(config, tmp_path / "tasks"))
    assert read(corpus_tasks, "cloze-span", "train")


def test_too_little_text_is_reported(tmp_path):
    (tmp_path / "one.txt").write_text("The cat sat. It was red.\n")
    config = load(["corpus=files", f"corpus.path={tmp_path}", "corpus.documents=file", "corpus.dev_share=0.999"])
    with pytest.raises(ConfigError, match="too little held-out text for tasks"):
        make_tasks(config, tmp_path / "tasks")
