"""Tasks made from the held-out documents of any corpus, in the official file formats but with other names."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.config.schema import RunConfig, digest
from albert_lab.data import corpus as texts
from albert_lab.data.build import find_or_build
from albert_lab.data.fingerprint import fingerprint, source_settings
from albert_lab.data.sentences import raw_sentences
from albert_lab.errors import ConfigError
from albert_lab.messages import Say
from albert_lab.tasks.corpus_examples import (
    HeldOutDocument,
    cloze_spans,
    eras,
    halves,
    next_paragraphs,
    pair_relations,
    passages_of,
    unanswerable,
    words_of,
    year_of,
)
from albert_lab.tasks.task import TaskConfig, load_task

# Increment it with every change that makes other examples from the same text.
TASKS_VERSION = 1

# The official task whose column each task can replace; if several can, the first that a corpus yields.
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
_WORDS_READ = 500_000  # enough held-out text; more would require reading a large corpus to its end
MOST_EXAMPLES = {"train": 6400, "dev": 1000}
_FREQUENT_WORDS = 300


def find_substitute(column: str, corpus: CorpusConfig) -> str | None:
    """The task of a corpus that is expected to replace an official task; None if there is none.

    Raises:
        ConfigError, MissingDataError: the corpus cannot be read.
    """
    own = [name for name, official in STANDS_FOR.items() if official == column]
    if "era" in own:
        first = next(iter(texts.iterate(corpus)), None)
        if first is None or year_of(first.name) is None:
            own.remove("era")
    return own[0] if own else None


def data_folder(task: TaskConfig, config: RunConfig, say: Say) -> Path:
    """The tasks folder with a task's data: the user's folder, or the corpus's in the cache for a task of this module.

    Raises:
        ConfigError, MissingDataError: the corpus cannot be read, or the task cannot be made from it.
    """
    if not task.is_made_of_corpus:
        return paths.tasks_data()
    folder = find_or_make(config, say)
    if not task.file(folder, "train").exists():
        provided = [name for name in STANDS_FOR if load_task(name).file(folder, "train").exists()]
        raise ConfigError(
            f"{task.name}: corpus={config.corpus.name} does not provide this task (it provides: {', '.join(provided)})"
        )
    return folder


def find(corpus: CorpusConfig) -> Path:
    """The folder in the cache of the tasks made from a corpus, whether they are made or not.

    Raises:
        MissingDataError: the text does not exist.
    """
    return paths.cache() / "tasks" / digest([TASKS_VERSION, source_settings(corpus), fingerprint(corpus)])


def find_or_make(config: RunConfig, say: Say) -> Path:
    """The folder in the cache with the tasks made from the corpus; makes it first if it does not exist.

    Raises:
        ConfigError, MissingDataError: the corpus cannot be read, or no task can be made from it.
    """
    folder = find(config.corpus)
    find_or_build(folder, lambda partial: _make_and_say(config, partial, say), "the corpus's own tasks", say)
    # An empty folder is kept: plans, which make nothing, see there that the corpus provides no task.
    if not any(folder.iterdir()):
        raise _too_little_text(config.corpus)
    return folder


def _too_little_text(corpus: CorpusConfig) -> ConfigError:
    return ConfigError(f"corpus={corpus.name} has too little held-out text for tasks")


def _make_and_say(config: RunConfig, folder: Path, say: Say) -> None:
    for name, sizes in _make(config, folder).items():
        say(f"{name}: " + (", ".join(f"{count} {split}" for split, count in sizes.items()) or "not of this corpus"))


def make_tasks(config: RunConfig, folder: Path) -> dict[str, dict[str, int]]:
    """Writes the tasks below a tasks folder; returns the number of examples by task and split, if any.

    All text is from held-out source documents, for any corpus.documents; no document is used for both train and dev.
    The same text and settings give the same files.

    Raises:
        ConfigError: there is no held-out document, or too little text for any task.
        MissingDataError: the text does not exist.
    """
    counts = _make(config, folder)
    if not any(counts.values()):
        raise _too_little_text(config.corpus)
    return counts


def _make(config: RunConfig, folder: Path) -> dict[str, dict[str, int]]:
    documents = _read(config.corpus)
    frequencies = Counter(word.lower() for document in documents for word in words_of(document.text))
    frequent = {word for word, _ in frequencies.most_common(_FREQUENT_WORDS)}
    years = [document.year for document in documents if document.year is not None]
    boundary = median_low(years) if len(years) == len(documents) else None
    makers: dict[str, Callable[[list[HeldOutDocument], np.random.Generator], Iterator[Any]]] = {
        "cloze-span": lambda some, rng: cloze_spans(some, frequencies, frequent),
        "cloze-span-unanswerable": lambda some, rng: unanswerable(cloze_spans(some, frequencies, frequent), rng),
        "next-paragraph": next_paragraphs,
        "pair-relation": pair_relations,
        "era": lambda some, rng: eras(some, boundary),
        "document-half": lambda some, rng: halves(some),
    }
    counts: dict[str, dict[str, int]] = {}
    for number, (name, make) in enumerate(makers.items()):
        task = load_task(name)
        sets = {}
        for part, split in enumerate(("train", "dev")):
            rng = np.random.Generator(np.random.Philox(key=[_SEED, 2 * number + part]))
            some = [document for document in documents if document.split == split]
            sets[split] = _choose(list(make(some, rng)), MOST_EXAMPLES[split], rng)
        counts[name] = {}
        if all(sets.values()):
            for split, examples in sets.items():
                file = task.file(folder, split)
                file.parent.mkdir(parents=True, exist_ok=True)
                task.format.write(examples, file)
                counts[name][split] = len(examples)
    return counts


def _read(corpus: CorpusConfig) -> list[HeldOutDocument]:
    documents: list[HeldOutDocument] = []
    counts: Counter[str] = Counter()
    num_words = 0
    for document in texts.distinct(texts.iterate(corpus), counts):
        if texts.split_of(document.text, corpus.dev_share) != "dev":
            continue
        # Salted, since all of these documents are in one split of the corpus by the unsalted hash.
        split = texts.split_of(f"tasks\n{document.text}", _DEV_SHARE)
        documents.append(HeldOutDocument(document.name, document.text, split, _paragraphs(document.text, corpus)))
        num_words += len(document.text.split())
        if num_words >= _WORDS_READ:
            break
    if not documents:
        raise texts.empty_split("dev", counts["documents"] - counts["duplicates"], corpus)
    return documents


def _paragraphs(text: str, corpus: CorpusConfig) -> list[list[str]]:
    """Sentences by paragraph: a line or, if lines are sentences, a passage of them."""
    if corpus.sentences == "line":
        return list(passages_of([_in_one_line(line) for line in text.split("\n") if line.strip()]))
    lines = (raw_sentences(line, corpus) for line in text.split("\n") if line.strip())
    return [[_in_one_line(sentence) for sentence in line if sentence.strip()] for line in lines]


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _choose(examples: list[Any], most: int, rng: np.random.Generator) -> list[Any]:
    """A random choice of at most `most` examples, in their order."""
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:most])]
