"""Examples of the tasks that are made from the held-out documents of a corpus."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np

from albert_lab.tasks.examples import Answer, ChoiceExample, SpanExample, TextExample
from albert_lab.tasks.formats.race import BLANK, LETTERS

# The texts are short, so that most of them fit the short sequences of small scales.
_PASSAGE_WORDS = 48
_SENTENCE_WORDS = range(6, 31)
_LONGEST_SPAN_WORDS = 3


@dataclass(frozen=True)
class HeldOutDocument:
    """A held-out source document and the split of the tasks to which it belongs."""

    name: str
    text: str
    split: str
    paragraphs: list[list[str]]  # uncleaned sentences

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences of all paragraphs, in order."""
        return list(chain.from_iterable(self.paragraphs))

    @property
    def year(self) -> int | None:
        """The year at the start of its name, or None."""
        return year_of(self.name)


def year_of(name: str) -> int | None:
    """The year at the start of a name such as 1790-Washington-1.txt, or None."""
    match = re.match(r"(\d{4})\b", name.rpartition("/")[2])
    return int(match.group(1)) if match else None


def passages_of(sentences: Sequence[str]) -> Iterator[list[str]]:
    """Groups consecutive sentences into passages."""
    passage: list[str] = []
    for sentence in sentences:
        passage.append(sentence)
        if sum(len(kept.split()) for kept in passage) >= _PASSAGE_WORDS:
            yield passage
            passage = []
    if passage:
        yield passage


def _before(sentences: Sequence[str], end: int) -> list[str]:
    """The sentences before number `end`, as many as fit into a passage."""
    first, num_words = end, 0
    while first > 0 and num_words + len(sentences[first - 1].split()) <= _PASSAGE_WORDS:
        first -= 1
        num_words += len(sentences[first].split())
    return list(sentences[first:end])


def words_of(text: str) -> list[str]:
    """The words of a text, without punctuation."""
    return re.findall(r"\w+", text)


def _fits(sentence: str) -> bool:
    return len(sentence.split()) in _SENTENCE_WORDS


# ---- spans ----


def cloze_spans(
    documents: Sequence[HeldOutDocument], frequencies: Counter[str], frequent: set[str]
) -> Iterator[SpanExample]:
    """Questions: a sentence with a gap, and as context the passage before it, which contains the words of the gap."""
    for document in documents:
        for number, sentence in enumerate(document.sentences):
            context = " ".join(_before(document.sentences, number))
            gap = _gap(sentence, context, frequencies, frequent) if _fits(sentence) else None
            if gap is not None:
                question = f"{sentence[: gap.start()]}{BLANK}{sentence[gap.end() :]}"
                answers = tuple(Answer(match.group(), match.start()) for match in _occurrences(gap.group(), context))
                yield SpanExample(f"{document.name}:{number}", question, context, answers, False, document.name)


def _gap(sentence: str, context: str, frequencies: Counter[str], frequent: set[str]) -> re.Match[str] | None:
    """The sentence's rarest word that also occurs in the context, with the following words that occur there too."""
    known = {word.lower() for word in words_of(context)}
    shared = [word for word in map(str.lower, words_of(sentence)) if word in known - frequent and len(word) > 3]
    for word in sorted(shared, key=lambda word: (frequencies[word], word)):
        # If lower case makes two letters of one (İ), the word is not found again.
        if _occurrences(word, context) and (occurrences := _occurrences(word, sentence)):
            gap = occurrences[0]
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
    """Occurrences of words in a text, ignoring case."""
    return list(re.finditer(rf"\b{re.escape(words)}\b", text, re.IGNORECASE))


def unanswerable(examples: Iterator[SpanExample], rng: np.random.Generator) -> Iterator[SpanExample]:
    """Replaces the context of half of the questions by another passage of the document without a word of the answer."""
    by_document: dict[str, list[SpanExample]] = {}
    for example in examples:
        by_document.setdefault(example.title, []).append(example)
    for of_document in by_document.values():
        for example in of_document:
            if rng.random() < 0.5:
                yield example
                continue
            other = of_document[rng.integers(len(of_document))]
            missing = {word.lower() for word in words_of(example.answers[0].text)}
            if not missing & {word.lower() for word in words_of(other.context)}:
                yield SpanExample(example.id, example.question, other.context, (), True, example.title)


# ---- choice ----


def next_paragraphs(documents: Sequence[HeldOutDocument], rng: np.random.Generator) -> Iterator[ChoiceExample]:
    """Questions: which of four sentences begins the next paragraph? The others begin other paragraphs."""
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


def pair_relations(documents: Sequence[HeldOutDocument], rng: np.random.Generator) -> Iterator[TextExample]:
    """Pairs of sentences with the label: consecutive, same document, or different documents."""
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
            is_other = source != index  # not if this is the only document
            if place in fitting[source] and (is_near, is_other) == (kind == "follows", kind == "other-document"):
                second = documents[source].sentences[place]
                yield TextExample(f"{document.name}:{number}", document.sentences[number], second, kind)


def eras(documents: Sequence[HeldOutDocument], boundary: int | None) -> Iterator[TextExample]:
    """Passages labelled as from earlier or later documents, if the names of the documents begin with a year."""
    if boundary is None:
        return iter(())
    return _balanced(
        TextExample(f"{document.name}:{number}", " ".join(passage), None, "later" if year > boundary else "earlier")
        for document in documents
        if (year := document.year) is not None
        for number, passage in enumerate(passages_of(document.sentences))
    )


def halves(documents: Sequence[HeldOutDocument]) -> Iterator[TextExample]:
    """Passages labelled with the half of their document, first or second."""
    return _balanced(
        TextExample(
            f"{document.name}:{number}", " ".join(passage), None, "second" if 2 * number >= len(passages) else "first"
        )
        for document in documents
        for passages in [list(passages_of(document.sentences))]
        for number, passage in enumerate(passages)
        if len(passages) > 1
    )


def _balanced(examples: Iterator[TextExample]) -> Iterator[TextExample]:
    """The same number of examples for each label, evenly spaced among all examples of the label."""
    by_label: dict[Any, list[TextExample]] = {}
    for example in examples:
        by_label.setdefault(example.label, []).append(example)
    fewest = min(map(len, by_label.values())) if len(by_label) > 1 else 0
    for of_label in by_label.values():
        for index in range(fewest):
            yield of_label[index * len(of_label) // fewest]
