"""From text to token shards: their cost, their path in the cache, and a parallel build in bounded memory."""

import json
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.config.schema import RunConfig, digest
from albert_lab.data import corpus as texts
from albert_lab.data.build import DiskFullError, find_or_build, worker_pool
from albert_lab.data.corpus import Split
from albert_lab.data.fingerprint import fingerprint, remember_fingerprints, settings
from albert_lab.data.lengths import Lengths, warnings
from albert_lab.data.sentences import sentences
from albert_lab.data.shards import OFFSET, SPLITS, ShardWriter, read_meta, token_dtype
from albert_lab.data.tokenizer.base import Tokenizer
from albert_lab.data.tokenizer.cache import find_or_train, find_tokenizer, tokenizer_fingerprint
from albert_lab.data.tokenizer.cache import load as load_model
from albert_lab.data.tokenizer.cleaning import Cleaning, cleaning_of
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.machine import cores
from albert_lab.messages import Say
from albert_lab.units import duration, size

# Increment them with every change that writes other shards from the same text, settings and tokenizer.
SHARDS_VERSION = 4
ADDED_VERSION = 1  # of shards with added text

_BATCH_CHARACTERS = 2**19
# One process reads for all workers; more workers than this would wait for it and use memory. For 1 MB of plain text,
# reading takes 0.023 s of a core and encoding 0.16 s, so the reader keeps seven workers busy.
_MAX_WORKERS = 8
# Below this much text, one more worker takes longer to start than it saves.
_BYTES_PER_WORKER = 2**24
_PLAIN_PROGRESS_SECONDS = 10
# For English prose and vocabularies of tens of thousands of tokens; only the estimates of describe() use it.
_BYTES_PER_TOKEN = 4.4
_BYTES_PER_SENTENCE = 120


def find_shards(config: RunConfig) -> Path:
    """The folder of a run's token shards, whether they are built or not.

    Raises:
        MissingDataError: the text or the model file does not exist.
    """
    content: list[Any] = [SHARDS_VERSION]
    for corpus in _corpora(config):
        content += [settings(corpus), fingerprint(corpus)]
    content += [ADDED_VERSION] if len(_corpora(config)) > 1 else []
    return paths.cache() / "shards" / digest([*content, tokenizer_fingerprint(config)])


def _corpora(config: RunConfig) -> list[CorpusConfig]:
    added = texts.added_to(config.corpus, config.added_corpus)
    return [config.corpus, *([added] if added else [])]


def prepare(config: RunConfig, say: Say) -> Path:
    """The folder of a run's token shards; builds it and the tokenizer first if they are not in the cache.

    Raises:
        ConfigError: the text, the tokenizer or a split cannot be used.
        MissingDataError: the text or the model file does not exist.
        DiskFullError: no space for the shards; no part of them is kept.
    """
    fingerprints, folder = [fingerprint(corpus) for corpus in _corpora(config)], find_shards(config)
    model = find_or_train(config, say)
    find_or_build(folder, lambda part: _build(config, fingerprints, model, part, say), "the token shards", say)
    remember_fingerprints()
    return folder


def without_added(config: RunConfig) -> RunConfig:
    """The configuration without added text, on which floors and probes are fitted: rows of a table share them."""
    if config.added_corpus.source == "none":
        return config
    return config.model_copy(update={"added_corpus": config.added_corpus.model_copy(update={"source": "none"})})


def describe(config: RunConfig) -> dict[str, Any]:
    """The sizes of a run's prepared data; writes nothing, and returns missing data instead of raising an error.

    Returns:
        raw_bytes (of text; None if unknown), num_tokens and disk_bytes (estimates until the shards are built; None if
        unknown), has_tokenizer, is_prepared, missing (message about missing data, or None).
    """
    facts: dict[str, Any] = {"raw_bytes": None, "num_tokens": None, "disk_bytes": None}
    facts |= {"has_tokenizer": False, "is_prepared": False, "missing": None}
    try:
        facts["raw_bytes"] = raw_bytes = _raw_bytes(config)
        if raw_bytes is not None:
            facts["num_tokens"] = round(raw_bytes / _BYTES_PER_TOKEN)
            facts["disk_bytes"] = round(
                facts["num_tokens"] * token_dtype(config.tokenizer.vocab_size).itemsize
                + raw_bytes / _BYTES_PER_SENTENCE * OFFSET.itemsize
            )
        facts["has_tokenizer"] = find_tokenizer(config).exists()
        folder = find_shards(config)
    except MissingDataError as error:
        return facts | {"missing": str(error)}
    if folder.is_dir():
        meta = read_meta(folder)
        facts |= {"is_prepared": True, "disk_bytes": meta["disk_bytes"]}
        facts["num_tokens"] = sum(meta[split]["tokens"] for split in SPLITS)
    return facts


def _raw_bytes(config: RunConfig) -> int | None:
    sizes = [texts.raw_bytes(corpus) for corpus in _corpora(config)]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


class _Batch(NamedTuple):
    split: Split
    sources: list[list[str]]  # raw texts of the documents of each source document
    corpus: CorpusConfig


class _Encoded(NamedTuple):
    split: Split
    text_bytes: int
    tokens: np.ndarray  # [tokens of the batch]
    sentence_lengths: np.ndarray  # in tokens, [sentences of the batch]
    document_lengths: np.ndarray  # in sentences, [documents of the batch]
    source_lengths: np.ndarray  # in documents, [source documents of the batch]
    empty_documents: int
    short_paragraphs: int
    unknown_tokens: int


def _build(config: RunConfig, fingerprints: list[str], model: Path, folder: Path, say: Say) -> None:
    corpus, *added = _corpora(config)
    how = (cleaning_of(corpus), config.tokenizer.digit_commas)
    tokenizer = load_model(model, *how)
    encode = partial(_encode, model=model, how=how, fingerprint=tokenizer.fingerprint)
    raw_bytes = _raw_bytes(config)
    workers = config.machine.workers or _default_workers(raw_bytes)
    _announce(corpus, encode, raw_bytes, workers, folder, say)

    start = time.monotonic()
    counts: Counter[str] = Counter()
    unknown: Counter[Split] = Counter()
    seen: set[int] = set()
    held_out: set[int] | None = set() if added else None
    batches = [_batches(corpus, counts, seen, held_out)]
    for other in added:
        of_added = _batches(other, counts, seen, held_out, is_added=True)
        batches.append(batch for batch in of_added if batch.split == "train")
    writers, documents = {split: ShardWriter(folder, split) for split in SPLITS}, Lengths()
    results = _map_in_order(encode, chain.from_iterable(batches), workers)
    with closing(results), _progress("encoding text", raw_bytes, say) as advance:
        for encoded in results:
            lengths = (encoded.sentence_lengths, encoded.document_lengths, encoded.source_lengths)
            writers[encoded.split].append(encoded.tokens, *lengths)
            documents.add(encoded.sentence_lengths, encoded.document_lengths)
            counts["text_bytes"] += encoded.text_bytes
            counts["empty_documents"] += encoded.empty_documents
            counts["short_paragraphs"] += encoded.short_paragraphs
            unknown[encoded.split] += encoded.unknown_tokens
            advance(encoded.text_bytes)
    seconds = time.monotonic() - start

    for split in SPLITS:
        is_left_empty = split == "train" and corpus.dev_share >= 1  # to score a whole text
        if not writers[split].counts["documents"] and not is_left_empty:
            raise texts.empty_split(split, sum(writer.counts["documents"] for writer in writers.values()), corpus)
    if [fingerprint(source) for source in (corpus, *added)] != fingerprints:
        raise ConfigError(f"the text of corpus={corpus.name} changed while it was read: run this again later")
    meta = {
        "version": SHARDS_VERSION,
        "corpus": settings(corpus),
        "corpus_fingerprint": fingerprints[0],
        "added_corpus": [settings(other) for other in added],
        "added_corpus_fingerprint": fingerprints[1] if added else None,
        "tokenizer_fingerprint": tokenizer_fingerprint(config),
        "model_fingerprint": tokenizer.fingerprint,
        "vocab_size": tokenizer.vocab_size,
        "dtype": token_dtype(tokenizer.vocab_size).name,
        **{
            split: {**writers[split].counts, "unknown_share": unknown[split] / max(1, writers[split].counts["tokens"])}
            for split in SPLITS
        },
        **documents.medians,
        "documents_found": counts["documents"],
        "duplicates_dropped": counts["duplicates"],
        "held_out_copies_dropped": counts["held_out_copies"],
        "empty_documents_dropped": counts["empty_documents"],
        "short_paragraphs_dropped": counts["short_paragraphs"],
        "text_bytes": counts["text_bytes"],
        "disk_bytes": sum(file.stat().st_size for file in folder.iterdir()),
        "seconds": round(seconds, 3),
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    say(_summarize(meta))
    for line in warnings(corpus, documents):
        say(line)


def _summarize(meta: dict[str, Any]) -> str:
    parts = ("sources", "documents", "sentences", "tokens")
    total = {key: sum(meta[split][key] for split in SPLITS) for key in parts}
    of_sources = f" of {total['sources']:,} source documents" if total["sources"] != total["documents"] else ""
    rate = meta["text_bytes"] / max(meta["seconds"], 1e-3)
    return (
        f"prepared {total['documents']:,} documents{of_sources} ({meta['dev']['documents']:,} held out; the median one"
        f" has {meta['median_document_tokens']:,} tokens), {total['sentences']:,} sentences, {total['tokens']:,}"
        f" tokens: {size(meta['disk_bytes'])} in {duration(meta['seconds'])}"
        f" ({size(rate)} of text a second); dropped {meta['duplicates_dropped']:,} duplicate and"
        f" {meta['empty_documents_dropped']:,} empty documents"
        + (
            f", and {meta['short_paragraphs_dropped']:,} paragraphs of one sentence"
            if meta["corpus"]["documents"] == "paragraph"
            else ""
        )
    )


def _announce(
    corpus: CorpusConfig,
    encode: Callable[[_Batch], _Encoded],
    raw_bytes: int | None,
    workers: int,
    folder: Path,
    say: Say,
) -> None:
    """Prints size and time, estimated from a sample of the text; raises DiskFullError if the disk is too small."""
    batches = list(islice(_batches(corpus, Counter(), set()), 2))
    start = time.monotonic()
    sample = [encode(batch) for batch in batches]
    seconds = (time.monotonic() - start) / workers
    text_bytes = sum(batch.text_bytes for batch in sample)
    if not text_bytes:
        return
    if changes := cleaning_of(corpus).describe(
        text for batch in batches for source in batch.sources for text in source
    ):
        say(changes)
    tokens = sum(len(batch.tokens) for batch in sample)
    offsets = sum(len(batch.sentence_lengths) + len(batch.document_lengths) for batch in sample)
    disk_bytes = tokens * sample[0].tokens.itemsize + offsets * OFFSET.itemsize
    processes = f"with {workers} processes" if workers > 1 else "in this process"
    if raw_bytes is None:
        scale = 2**30 / text_bytes
        say(f"size unknown; 1 GiB takes about {size(disk_bytes * scale)} and {duration(seconds * scale)} {processes}")
        return
    scale = raw_bytes / text_bytes
    say(
        f"{size(raw_bytes)} of text: about {tokens * scale:,.0f} tokens, {size(disk_bytes * scale)} on"
        f" disk, {duration(seconds * scale)} {processes}"
    )
    free = shutil.disk_usage(folder).free
    if disk_bytes * scale > free:
        raise DiskFullError(
            f"the token shards take about {size(disk_bytes * scale)}; {folder.parent} has {size(free)} left"
        )


def _default_workers(raw_bytes: int | None) -> int:
    useful = _MAX_WORKERS if raw_bytes is None else 1 + raw_bytes // _BYTES_PER_WORKER
    return min(cores(), useful, _MAX_WORKERS)


def _batches(
    corpus: CorpusConfig,
    counts: Counter[str],
    seen: set[int],
    held_out: set[int] | None = None,
    is_added: bool = False,
) -> Iterator[_Batch]:
    """Batches of source documents, in order, each as its distinct documents; a batch has one split.

    Args:
        held_out: marks of held-out documents (texts.marks): those of a corpus are added, and added documents that share
            one are left out. None: no text is added.
    """
    waiting: dict[Split, list[list[str]]] = {split: [] for split in SPLITS}
    characters: Counter[Split] = Counter()
    for source in texts.iterate(corpus):
        split = texts.split_of(source.text, corpus.dev_share)
        if held_out is not None and is_added and texts.marks(source) & held_out:
            counts["held_out_copies"] += 1
            continue
        if held_out is not None and not is_added and split == "dev":
            held_out |= texts.marks(source)
        # By document: a paragraph that occurs in two source documents must not be both trained on and held out.
        documents = [document.text for document in texts.distinct(texts.documents_of(source, corpus), counts, seen)]
        waiting[split].append(documents)
        characters[split] += sum(map(len, documents))
        if characters[split] >= _BATCH_CHARACTERS:
            yield _Batch(split, waiting[split], corpus)
            waiting[split], characters[split] = [], 0
    yield from (_Batch(split, rest, corpus) for split, rest in waiting.items() if rest)


def _map_in_order(
    function: Callable[[_Batch], _Encoded], batches: Iterable[_Batch], workers: int
) -> Generator[_Encoded]:
    """Results in the order of the batches, for any number of workers; few are pending, so memory is bounded."""
    if workers == 1:
        yield from map(function, batches)
        return
    with worker_pool(workers) as pool:
        pending = deque()
        for batch in batches:
            pending.append(pool.submit(function, batch))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _encode(batch: _Batch, *, model: Path, how: tuple[Cleaning, str], fingerprint: str) -> _Encoded:
    tokenizer = _load(model, how, fingerprint)
    fewest = 2 if batch.corpus.documents == "paragraph" else 1
    counts: Counter[str] = Counter()
    sources: list[list[list[list[int]]]] = []  # token ids by source document, document, sentence
    encoded_documents = iter(_encode_documents(list(chain.from_iterable(batch.sources)), batch.corpus, tokenizer))
    for source in batch.sources:
        documents = list(islice(encoded_documents, len(source)))
        counts["empty"] += sum(not document for document in documents)
        counts["short"] += sum(0 < len(document) < fewest for document in documents)
        sources.append([document for document in documents if len(document) >= fewest])
    documents = list(chain.from_iterable(sources))
    encoded = list(chain.from_iterable(documents))
    tokens = np.fromiter(chain.from_iterable(encoded), token_dtype(tokenizer.vocab_size))
    return _Encoded(
        split=batch.split,
        text_bytes=sum(len(text.encode()) for source in batch.sources for text in source),
        tokens=tokens,
        sentence_lengths=np.array([len(sentence) for sentence in encoded], OFFSET),
        document_lengths=np.array([len(document) for document in documents], OFFSET),
        source_lengths=np.array([len(source) for source in sources if source], OFFSET),
        empty_documents=counts["empty"],
        short_paragraphs=counts["short"],
        unknown_tokens=int((tokens == tokenizer.unk_id).sum()),
    )


def _encode_documents(documents: list[str], corpus: CorpusConfig, tokenizer: Tokenizer) -> list[list[list[int]]]:
    """Token ids of the sentences of each document, or of its first ones up to corpus.document_tokens tokens."""
    if corpus.document_tokens is not None:
        return [_first_sentences(text, corpus, tokenizer, corpus.document_tokens) for text in documents]
    # All in one call: many calls with a few sentences take twice the time.
    split = [list(sentences(text, corpus)) for text in documents]
    encoded = iter(tokenizer.encode(list(chain.from_iterable(split))))
    return [[sentence for sentence in islice(encoded, len(document)) if sentence] for document in split]


def _first_sentences(text: str, corpus: CorpusConfig, tokenizer: Tokenizer, most: int) -> list[list[int]]:
    """Token ids of the first sentences of a document, up to so many tokens and at least two."""
    kept: list[list[int]] = []
    # One at a time, so that most of a long document is never split into sentences.
    for sentence in chain.from_iterable(tokenizer.encode([line]) for line in sentences(text, corpus)):
        if len(kept) >= 2 and sum(map(len, kept)) + len(sentence) > most:
            break
        if sentence:
            kept.append(sentence)
    return kept


@lru_cache(maxsize=1)
def _load(model: Path, how: tuple[Cleaning, str], fingerprint: str) -> Tokenizer:
    tokenizer = load_model(model, *how)
    assert tokenizer.fingerprint == fingerprint, "the model file changed while it was in use"
    return tokenizer


@contextmanager
def _progress(what: str, total: int | None, say: Say) -> Iterator[Callable[[int], None]]:
    """Yields a function that adds bytes done; shows a bar if stderr is a terminal, else a line every few seconds."""
    if sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(what, total=total)
            yield lambda num_bytes: progress.advance(task, num_bytes)
        return
    done, spoken = 0, time.monotonic()

    def advance(num_bytes: int) -> None:
        nonlocal done, spoken
        done += num_bytes
        if time.monotonic() - spoken > _PLAIN_PROGRESS_SECONDS:
            spoken = time.monotonic()
            say(f"{what}: {size(done)}" + (f" of about {size(total)}" if total else ""))

    yield advance
