"""From text to token shards: their path in the cache, and a build in bounded memory."""

import json
import math
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.config.schema import RunConfig, digest
from albert_lab.data import corpus as texts
from albert_lab.data.corpus import Split
from albert_lab.data.files import files_of, fingerprint, known_digests, text_settings, walk
from albert_lab.data.shards import OFFSET, SPLITS, ShardWriter, token_dtype
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.data.vocabulary import find_or_train, load_tokenizer, tokenizer_fingerprint
from albert_lab.data.words import ngrams
from albert_lab.errors import ConfigError
from albert_lab.machine import cores
from albert_lab.messages import Say
from albert_lab.storage import find_or_build

# Increment them with every change that writes other shards from the same text, settings and
# tokenizer.
SHARDS_VERSION = 5

_BATCH = 32  # source documents, which are in memory at once
_MAX_THREADS = 8  # a third of the time is spent outside of them
_EMPTY = "empty documents"
_SHORT = "paragraphs of one sentence"
_DROPPED = (texts.DUPLICATES, texts.REPEATED, _EMPTY, _SHORT)


def find_shards(config: RunConfig) -> Path:
    """The folder of a run's token shards, built or not; or MissingDataError: the text or model file
    does not exist.
    """
    content: list[Any] = [SHARDS_VERSION]
    for corpus in texts.corpora_of(config):
        content += [text_settings(corpus), fingerprint(corpus)]
    content.append(tokenizer_fingerprint(config))
    return paths.cache() / "shards" / digest(content)


def prepare(config: RunConfig, say: Say) -> Path:
    """The folder of a run's token shards; builds it and the tokenizer first if they are not in the
    cache.

    Raises:
        ConfigError: the text, the tokenizer or a split cannot be used.
        MissingDataError: the text or the model file does not exist.
        OSError: no space for the shards; no part of them is kept.
    """
    folder = find_shards(config)
    if not folder.is_dir():
        for doubt in texts.doubts(config.corpus):
            say(f"warning: {doubt}")
    find_or_train(config, say)
    return find_or_build(folder, lambda part: _build(config, part, say), say)


def without_added(config: RunConfig) -> RunConfig:
    """The configuration without added text, on which floors and probes are fitted: rows of a table
    share them.
    """
    return config.model_copy(
        update={"added_corpus": config.added_corpus.model_copy(update={"source": "none"})}
    )


def _build(config: RunConfig, folder: Path, say: Say) -> None:
    corpora = texts.corpora_of(config)
    corpus = corpora[0]
    fingerprints = [fingerprint(source) for source in corpora]
    tokenizer = load_tokenizer(config)
    threads = config.machine.workers or min(cores(), _MAX_THREADS)
    counts = Counter[str]()
    skipped: list[str] = []
    writers = {split: ShardWriter(folder, split) for split in SPLITS}
    last_message = time.monotonic()
    for split, text, sources in _batches(corpora, counts, skipped):
        tokens, lengths = _encode(sources, text, tokenizer, threads, counts)
        writers[split].append(tokens, *lengths)
        counts[split] += int(np.count_nonzero(tokens == tokenizer.unk_id))
        if time.monotonic() - last_message >= 10:  # seconds
            last_message = time.monotonic()
            say(f"encoding text: {counts['documents']:,} documents")

    written = {split: writers[split].counts for split in SPLITS}
    num_documents = sum(part["documents"] for part in written.values())
    for split, part in written.items():
        if not part["documents"]:
            raise texts.empty_split(split, num_documents, corpus, skipped, counts)
        part["unknown_share"] = counts[split] / part["tokens"]
    known_digests.clear()  # to look at the files again
    if [fingerprint(source) for source in corpora] != fingerprints:
        raise ConfigError(
            f"the text of corpus={corpus.name} changed while it was read: run this again later"
        )
    meta = {
        "version": SHARDS_VERSION,
        "corpus": text_settings(corpus),
        "added_corpus": [text_settings(added) for added in corpora[1:]],
        "corpus_fingerprints": fingerprints,
        "tokenizer_fingerprint": tokenizer_fingerprint(config),
        "model_fingerprint": tokenizer.fingerprint,
        "vocab_size": tokenizer.vocab_size,
        **written,
        "documents_found": counts["documents"],
        "dropped": {reason: counts[reason] for reason in _DROPPED if counts[reason]},
        "records_skipped": len(skipped),
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    _say_what_was_prepared(meta, corpus, skipped, say)


def _say_what_was_prepared(
    meta: dict[str, Any], corpus: CorpusConfig, skipped: Sequence[str], say: Say
) -> None:
    train = meta["train"]
    dev = meta["dev"]
    dropped = [f", {count:,} {reason} dropped" for reason, count in meta["dropped"].items()]
    say(
        f"prepared {train['documents']:,} documents and {train['tokens']:,} tokens for training, "
        f"{dev['documents']:,} and {dev['tokens']:,} held out{''.join(dropped)}"
    )
    if skipped:
        examples = "; ".join(skipped[:5])
        say(f"warning: {len(skipped):,} records are left out, such as {examples}")
    if corpus.source == "files":
        folders = filter(Path.is_dir, map(paths.expanded, corpus.paths))
        unread = {*chain.from_iterable(map(walk, folders))} - {*files_of(corpus)}
        if unread:
            _, example = min(unread)
            say(
                f"warning: {len(unread):,} files are not read, such as {example}: a glob reads any "
                "name"
            )


def _batches(
    corpora: list[CorpusConfig], counts: Counter[str], skipped: list[str]
) -> Iterator[tuple[Split, CorpusConfig, list[list[str]]]]:
    """Batches of source documents, each as its distinct documents: first those that are held out,
    then training text.

    Training text, of which added text is a part, loses what repeats held-out text. By document: a
    paragraph that occurs in two source documents must not be both trained on and held out.
    """
    seen: set[int] = set()
    held_out: set[int] = set()

    def sources_of(split: Split, corpus: CorpusConfig) -> Iterator[list[str]]:
        # Each record is read once for each split, and is counted once.
        for source in texts.iterate(corpus, skipped if split == "train" else []):
            text = "\n".join(source)
            if texts.split_of(text, corpus.dev_share, corpus.split_seed) != split:
                continue
            documents: Iterable[texts.Document] = texts.documents_of(source, corpus)
            if split == "dev":
                held_out.update(ngrams(text))
            else:
                documents = texts.without_repeated(documents, held_out, counts)
            distinct = texts.distinct(documents, counts, seen)
            yield ["\n".join(document) for document in distinct]

    parts: list[tuple[Split, CorpusConfig]] = [("dev", corpora[0])]
    parts.extend(("train", corpus) for corpus in corpora)
    for split, corpus in parts:
        sources = sources_of(split, corpus)
        while batch := list(islice(sources, _BATCH)):
            yield split, corpus, batch


def _encode(
    sources: list[list[str]],
    corpus: CorpusConfig,
    tokenizer: Tokenizer,
    threads: int,
    counts: Counter[str],
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The token ids of source documents, each given by its documents; and the lengths that
    ShardWriter takes.
    """
    split = [[list(texts.sentences(text, corpus)) for text in source] for source in sources]
    # All in one call: many calls with a few sentences take twice the time.
    all_sentences = chain.from_iterable(chain.from_iterable(split))
    encoded = iter(tokenizer.encode(list(all_sentences), threads))
    fewest = 2 if corpus.documents == "paragraph" else 1
    documents: list[list[list[int]]] = []  # the token ids of each sentence of each
    in_source = Counter[int]()  # documents
    for number, source in enumerate(split):
        for sentences in source:
            # Cleaning can leave nothing of a sentence.
            document = [ids for ids in islice(encoded, len(sentences)) if ids]
            if len(document) < fewest:
                counts[_SHORT if document else _EMPTY] += 1
                continue
            documents.append(_first_sentences(document, corpus.document_tokens or math.inf))
            in_source[number] += 1
    kept = list(chain.from_iterable(documents))
    tokens = np.fromiter(chain.from_iterable(kept), token_dtype(tokenizer.vocab_size))
    levels = (map(len, kept), map(len, documents), in_source.values())
    return tokens, [np.fromiter(lengths, OFFSET) for lengths in levels]


def _first_sentences(document: list[list[int]], most: float) -> list[list[int]]:
    """The first sentences of a document, up to so many tokens and at least two."""
    return document[: max(2, bisect_right(list(accumulate(map(len, document))), most))]
