"""Tasks that any corpus brings: made of its held-out documents, in the official file forms, under their own names."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np

from albert_lab import paths
from albert_lab.config.schema import CorpusConfig, RunConfig, digest
from albert_lab.data import corpus as texts
from albert_lab.data.build import find_or_build
from albert_lab.errors import ConfigError
from albert_lab.messages import Say
from albert_lab.tasks.examples import Answer, ChoiceExample, SpanExample, TextExample
from albert_lab.tasks.formats.race import BLANK, LETTERS
from albert_lab.tasks.task import TaskConfig, load_task

# Raise it with every change that makes other examples of the same text.
TASKS_VERSION = 1

# The official task whose column each can fill, under its own name; of several, the first that a corpus gives.
STANDS_FOR = {
    "cloze-span": "squad1",
    "cloze-span-unanswerable": "squad2",
    "next-paragraph": "race",
    "pair-relation": "mnli",
    "era": "sst2",
    "document-half": "sst2",
}
_SEED = 1912
_DEV_SHARE = 0.3
_WORDS_READ = 500_000  # of held-out text: enough, where finding more would mean reading a large corpus to its end
_MOST_EXAMPLES = {"train": 6400, "dev": 1000}
# Short texts: most of them fit the short sequences of small scales.
_PASSAGE_WORDS = 48
_SENTENCE_WORDS = range(6, 31)
_FREQUENT_WORDS = 300
_LONGEST_SPAN_WORDS = 3


def stand_in(column: str, corpus: CorpusConfig) -> str | None:
    """The task that a corpus is expected to bring in the place of an official one; None where there is none.

    Raises:
        ConfigError, MissingDataError: the corpus cannot be read.
    """
    own = [name for name, official in STANDS_FOR.items() if official == column]
    if "era" in own:
        first = next(iter(texts.iterate(corpus)), None)
        if first is None or _year(first.name) is None:
            own.remove("era")
    return own[0] if own else None


def data_folder(task: TaskConfig, config: RunConfig, say: Say) -> Path:
    """The tasks folder in which a task's data is: the user's, or for a task of this module the corpus's in the cache.

    Raises:
        ConfigError, MissingDataError: the corpus cannot be read, or its tasks not be made of it.
    """
    return find_or_make(config, say) if task.is_made_of_corpus else paths.tasks_data()


def find_or_make(config: RunConfig, say: Say) -> Path:
    """The folder of the corpus's own tasks in the cache, made first where it is not there.

    Raises:
        ConfigError, MissingDataError: the corpus cannot be read, or no task be made of it.
    """
    corpus = config.corpus
    content = [TASKS_VERSION, texts.source_settings(corpus), texts.fingerprint(corpus)]
    folder = paths.cache() / "tasks" / digest(content)
    return find_or_build(folder, lambda partial: _make_and_say(config, partial, say), "the corpus's own tasks", say)


def _make_and_say(config: RunConfig, folder: Path, say: Say) -> None:
    for name, sizes in make_tasks(config, folder).items():
        say(f"{name}: " + (", ".join(f"{count} {split}" for split, count in sizes.items()) or "not of this corpus"))


def make_tasks(config: RunConfig, folder: Path) -> dict[str, dict[str, int]]:
    """Number of examples by task and split, written under a tasks folder; none for a task the corpus does not give.

    All text is of held-out source documents, whatever corpus.documents splits them into; those of a train set give
    nothing to a dev set. The same text and settings give the same files.

    Raises:
        ConfigError: there is no held-out document, or too little text for any task.
        MissingDataError: the text is not there.
    """
    documents = _read(config.corpus)
    frequencies = Counter(word.lower() for document in documents for word in _words(document.text))
    frequent = {word for word, _ in frequencies.most_common(_FREQUENT_WORDS)}
    years = [document.year for document in documents if document.year is not None]
    boundary = median_low(years) if len(years) == len(documents) else None
    makers: dict[str, Callable[[list[_Document], np.random.Generator], Iterator[Any]]] = {
        "cloze-span": lambda some, rng: _cloze_spans(some, frequencies, frequent),
        "cloze-span-unanswerable": lambda some, rng: _unanswerable(_cloze_spans(some, frequencies, frequent), rng),
        "next-paragraph": _next_paragraphs,
        "pair-relation": _pair_relations,
        "era": lambda some, rng: _eras(some, boundary),
        "document-half": lambda some, rng: _halves(some),
    }
    made: dict[str, dict[str, int]] = {}
    for number, (name, make) in enumerate(makers.items()):
        task = load_task(name)
        sets = {}
        for part, split in enumerate(("train", "dev")):
            rng = np.random.Generator(np.random.Philox(key=[_SEED, 2 * number + part]))
            some = [document for document in documents if document.split == split]
            sets[split] = _choose(list(make(some, rng)), _MOST_EXAMPLES[split], rng)
        made[name] = {}
        if all(sets.values()):
            for split, examples in sets.items():
                file = task.file(folder, split)
                file.parent.mkdir(parents=True, exist_ok=True)
                task.format.write(examples, file)
                made[name][split] = len(examples)
    if not any(made.values()):
        raise ConfigError(
            f"corpus={config.corpus.name} has too little held-out text for tasks ({len(documents)} documents)"
        )
    return made


@dataclass(frozen=True)
class _Document:
    name: str
    text: str
    split: str
    paragraphs: list[list[str]]  # sentences as they are written

    @cached_property
    def sentences(self) -> list[str]:
        return list(chain.from_iterable(self.paragraphs))

    @property
    def year(self) -> int | None:
        return _year(self.name)


def _year(name: str) -> int | None:
    """The year that a name such as 1790-Washington-1.txt begins with."""
    found = re.match(r"(\d{4})\b", name.rpartition("/")[2])
    return int(found.group(1)) if found else None


def _read(corpus: CorpusConfig) -> list[_Document]:
    documents: list[_Document] = []
    counts: Counter[str] = Counter()
    num_words = 0
    for document in texts.distinct(texts.iterate(corpus), counts):
        if texts.split_of(document.text, corpus.dev_share) != "dev":
            continue
        # Salted: the same hash has put all of these into one split already.
        split = texts.split_of(f"tasks\n{document.text}", _DEV_SHARE)
        documents.append(_Document(document.name, document.text, split, _paragraphs(document.text, corpus)))
        num_words += len(document.text.split())
        if num_words >= _WORDS_READ:
            break
    if not documents:
        raise texts.empty_split("dev", counts["documents"] - counts["duplicates"], corpus)
    return documents


def _paragraphs(text: str, corpus: CorpusConfig) -> list[list[str]]:
    """Sentences by paragraph: a line, or where lines are sentences, so many that they fill a passage."""
    if corpus.sentences == "line":
        return list(_passages([_in_one_line(line) for line in text.split("\n") if line.strip()]))
    lines = (texts.raw_sentences(line, corpus) for line in text.split("\n") if line.strip())
    return [[_in_one_line(sentence) for sentence in line if sentence.strip()] for line in lines]


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _passages(sentences: Sequence[str]) -> Iterator[list[str]]:
    """Sentences in their order, a passage's words at a time."""
    passage: list[str] = []
    for sentence in sentences:
        passage.append(sentence)
        if sum(len(kept.split()) for kept in passage) >= _PASSAGE_WORDS:
            yield passage
            passage = []
    if passage:
        yield passage


def _before(sentences: Sequence[str], end: int) -> list[str]:
    """The sentences up to one, as many as fit a passage."""
    first, num_words = end, 0
    while first > 0 and num_words + len(sentences[first - 1].split()) <= _PASSAGE_WORDS:
        first -= 1
        num_words += len(sentences[first].split())
    return list(sentences[first:end])


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _fits(sentence: str) -> bool:
    return len(sentence.split()) in _SENTENCE_WORDS


def _choose(examples: list[Any], most: int, rng: np.random.Generator) -> list[Any]:
    """At most so many of the examples, in their order."""
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:most])]


# ---- spans ----


def _cloze_spans(
    documents: Sequence[_Document], frequencies: Counter[str], frequent: set[str]
) -> Iterator[SpanExample]:
    """A sentence with a gap, and the passage before it, which contains the words of the gap."""
    for document in documents:
        for number, sentence in enumerate(document.sentences):
            context = " ".join(_before(document.sentences, number))
            gap = _gap(sentence, context, frequencies, frequent) if _fits(sentence) else None
            if gap is not None:
                question = f"{sentence[: gap.start()]}{BLANK}{sentence[gap.end() :]}"
                answers = tuple(Answer(found.group(), found.start()) for found in _occurrences(gap.group(), context))
                yield SpanExample(f"{document.name}:{number}", question, context, answers, False, document.name)


def _gap(sentence: str, context: str, frequencies: Counter[str], frequent: set[str]) -> re.Match[str] | None:
    """The rarest word of the sentence that its context has too, with the words after it that occur there as well."""
    given = {word.lower() for word in _words(context)}
    shared = [word for word in map(str.lower, _words(sentence)) if word in given - frequent and len(word) > 3]
    for word in sorted(shared, key=lambda word: (frequencies[word], word)):
        # Where a letter becomes two in lower case (İ), the word is not found again.
        if _occurrences(word, context) and (found := _occurrences(word, sentence)):
            gap = found[0]
            break
    else:
        return None
    for _ in range(_LONGEST_SPAN_WORDS - 1):
        longer = re.compile(rf"{re.escape(gap.group())} (\w+)\b").match(sentence, gap.start())
        if longer is None or longer.group(1).lower() in frequent or not _occurrences(longer.group(), context):
            break
        gap = longer
    return gap


def _occurrences(words: str, text: str) -> list[re.Match[str]]:
    """Where words occur in a text, capital letters or not."""
    return list(re.finditer(rf"\b{re.escape(words)}\b", text, re.IGNORECASE))


def _unanswerable(examples: Iterator[SpanExample], rng: np.random.Generator) -> Iterator[SpanExample]:
    """Half of the questions on another passage of their document, one without any word of the answer."""
    by_document: dict[str, list[SpanExample]] = {}
    for example in examples:
        by_document.setdefault(example.title, []).append(example)
    for of_document in by_document.values():
        for example in of_document:
            if rng.random() < 0.5:
                yield example
                continue
            other = of_document[rng.integers(len(of_document))]
            missing = {word.lower() for word in _words(example.answers[0].text)}
            if not missing & {word.lower() for word in _words(other.context)}:
                yield SpanExample(example.id, example.question, other.context, (), True, example.title)


# ---- choice ----


def _next_paragraphs(documents: Sequence[_Document], rng: np.random.Generator) -> Iterator[ChoiceExample]:
    """Which of four sentences opens the next paragraph; the others open other paragraphs of the document."""
    for document in documents:
        openings = [paragraph[0] for paragraph in document.paragraphs]
        fitting = [number for number, opening in enumerate(openings) if _fits(opening)]
        for number, (paragraph, _) in enumerate(pairwise(document.paragraphs), 1):
            passage = " ".join(_before(paragraph, len(paragraph)))
            others = [other for other in fitting if abs(other - number) > 1 and openings[other] != openings[number]]
            if not passage or number not in fitting or len(others) < len(LETTERS) - 1:
                continue
            options = [openings[other] for other in rng.choice(others, len(LETTERS) - 1, replace=False)]
            label = int(rng.integers(len(LETTERS)))
            options.insert(label, openings[number])
            name = re.sub(r"\W+", "-", document.name)
            yield ChoiceExample(f"paragraphs/{name}-{number}.txt/0", passage, BLANK, tuple(options), label)


# ---- classes ----


def _pair_relations(documents: Sequence[_Document], rng: np.random.Generator) -> Iterator[TextExample]:
    """Whether a sentence follows another, is elsewhere in its document, or in another document."""
    fitting = [[n for n, sentence in enumerate(document.sentences) if _fits(sentence)] for document in documents]
    for index, document in enumerate(documents):
        for number in fitting[index]:
            kind = ("follows", "same-document", "other-document")[rng.integers(3)]
            source = index
            if kind == "other-document":
                source = int(index + rng.integers(1, max(2, len(documents)))) % len(documents)
            places = [number + 1] if kind == "follows" else fitting[source]
            place = int(places[rng.integers(len(places))]) if places else -1
            is_near = source == index and abs(place - number) <= 1
            if place in fitting[source] and is_near == (kind == "follows"):
                second = documents[source].sentences[place]
                yield TextExample(f"{document.name}:{number}", document.sentences[number], second, kind)


def _eras(documents: Sequence[_Document], boundary: int | None) -> Iterator[TextExample]:
    """Whether a passage is from the earlier or the later of the documents, where their names begin with a year."""
    if boundary is None:
        return iter(())
    return _balanced(
        TextExample(f"{document.name}:{number}", " ".join(passage), None, "later" if year > boundary else "earlier")
        for document in documents
        if (year := document.year) is not None
        for number, passage in enumerate(_passages(document.sentences))
    )


def _halves(documents: Sequence[_Document]) -> Iterator[TextExample]:
    """Whether a passage is from the first or the second half of its document."""
    return _balanced(
        TextExample(
            f"{document.name}:{number}", " ".join(passage), None, "second" if 2 * number >= len(passages) else "first"
        )
        for document in documents
        for passages in [list(_passages(document.sentences))]
        for number, passage in enumerate(passages)
        if len(passages) > 1
    )


def _balanced(examples: Iterator[TextExample]) -> Iterator[TextExample]:
    """As many examples of each label, evenly from all of them."""
    by_label: dict[Any, list[TextExample]] = {}
    for example in examples:
        by_label.setdefault(example.label, []).append(example)
    fewest = min(map(len, by_label.values())) if len(by_label) > 1 else 0
    for of_label in by_label.values():
        for index in range(fewest):
            yield of_label[index * len(of_label) // fewest]
