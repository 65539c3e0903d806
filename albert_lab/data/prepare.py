"""From text to token shards: their path in the cache, and a parallel build in bounded memory."""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.config.schema import RunConfig, digest
from albert_lab.data import corpus as texts
from albert_lab.data.build import find_or_build, worker_pool
from albert_lab.data.cleaning import Cleaning, cleaning_of
from albert_lab.data.corpus import Split, sentences
from albert_lab.data.files import left_out
from albert_lab.data.fingerprint import fingerprint, remember_fingerprints, settings
from albert_lab.data.shards import OFFSET, SPLITS, ShardWriter, read_meta, token_dtype
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import find_or_train, tokenizer_fingerprint
from albert_lab.data.words import Overlap
from albert_lab.errors import ConfigError
from albert_lab.machine import cores
from albert_lab.messages import EVERY_SECONDS, Say, duration, size

# Increment them with every change that writes other shards from the same text, settings and tokenizer.
SHARDS_VERSION = 5

_BATCH_CHARACTERS = 2**19
# One process reads for all workers; more workers than this would wait for it and use memory. For 1 MB of plain text,
# reading takes 0.023 s of a core and encoding 0.16 s, so the reader keeps seven workers busy.
_MAX_WORKERS = 8
# With fewer batches, workers take longer to start than they save.
_BATCHES_FOR_WORKERS = 32
MANY_UNKNOWN = 0.01  # of the tokens
SAMPLED_DOCUMENTS = 2_000  # whose letters show what cleaning changes


def find_shards(config: RunConfig) -> Path:
    """The folder of a run's token shards, whether they are built or not.

    Raises:
        MissingDataError: the text or the model file does not exist.
    """
    corpora = _corpora(config)
    content = [part for corpus in corpora for part in (settings(corpus), fingerprint(corpus))]
    return paths.cache() / "shards" / digest([SHARDS_VERSION, *content, tokenizer_fingerprint(config)])


def _corpora(config: RunConfig) -> list[CorpusConfig]:
    added = texts.added_to(config.corpus, config.added_corpus)
    return [config.corpus, added] if added else [config.corpus]


def prepare(config: RunConfig, say: Say) -> Path:
    """The folder of a run's token shards; builds it and the tokenizer first if they are not in the cache.

    Raises:
        ConfigError: the text, the tokenizer or a split cannot be used.
        MissingDataError: the text or the model file does not exist.
        WriteError: no space for the shards; no part of them is kept.
    """
    fingerprints, folder = [fingerprint(corpus) for corpus in _corpora(config)], find_shards(config)
    model = find_or_train(config, say)
    find_or_build(folder, lambda part: _build(config, fingerprints, model, part, say), "the token shards", say)
    remember_fingerprints()
    _check_unknown(config, read_meta(folder), say)
    return folder


def _check_unknown(config: RunConfig, meta: dict[str, Any], say: Say) -> None:
    """Say if a text has many tokens that the vocabulary lacks; refuse it if it has more than was asked for."""
    share, most = max(meta[split].get("unknown_share", 0) for split in SPLITS), config.tokenizer.most_unknown
    said = (
        f"{100 * share:.1f} % of the tokens of corpus={config.corpus.name} are unknown, <unk>: a larger"
        " tokenizer.vocab_size or tokenizer.character_coverage=1 knows more characters"
    )
    if share > max(most, MANY_UNKNOWN):
        raise ConfigError(f"{said}, and tokenizer.most_unknown={most:g} sets how many are allowed")
    if share > MANY_UNKNOWN:
        say(f"warning: {said}")


def without_added(config: RunConfig) -> RunConfig:
    """The configuration without added text, on which floors and probes are fitted: rows of a table share them."""
    return config.model_copy(update={"added_corpus": config.added_corpus.model_copy(update={"source": "none"})})


class _Batch(NamedTuple):
    split: Split
    sources: list[list[str]]  # raw texts of the documents of each source document
    corpus: CorpusConfig


class _Encoded(NamedTuple):
    split: Split
    tokens: np.ndarray  # [tokens of the batch]
    lengths: list[np.ndarray]  # of sentences in tokens, documents in sentences, and source documents in documents
    counts: Counter[str]  # bytes of text, empty documents, short paragraphs, unknown tokens by split


def _build(config: RunConfig, fingerprints: list[str], model: Path, folder: Path, say: Say) -> None:
    corpora, start = _corpora(config), time.monotonic()
    corpus, *added = corpora
    how = (cleaning_of(corpus), config.tokenizer.digit_commas)
    tokenizer = load_model(model, *how)
    encode = partial(_encode, model=model, how=how, fingerprint=tokenizer.fingerprint)
    counts: Counter[str] = Counter()
    skipped: list[str] = []
    writers = {split: ShardWriter(folder, split) for split in SPLITS}
    batches, spoken = _batches(corpora, counts, skipped), start
    with closing(_map_in_order(encode, batches, config.machine.workers)) as results:
        for encoded in results:
            writers[encoded.split].append(encoded.tokens, *encoded.lengths)
            counts += encoded.counts
            if time.monotonic() - spoken >= EVERY_SECONDS:
                spoken = time.monotonic()
                say(f"encoding text: {size(counts['text_bytes'])}")

    for split in SPLITS:
        is_left_empty = split == "train" and corpus.dev_share >= 1  # to score a whole text
        if not writers[split].counts["documents"] and not is_left_empty:
            number = sum(writer.counts["documents"] for writer in writers.values())
            raise texts.empty_split(split, number, corpus, counts[texts.REPEATED])
    if [fingerprint(source) for source in corpora] != fingerprints:
        raise ConfigError(f"the text of corpus={corpus.name} changed while it was read: run this again later")
    written = {split: writers[split].counts for split in SPLITS}
    meta = {
        "version": SHARDS_VERSION,
        "corpus": settings(corpus),
        "added_corpus": [settings(other) for other in added],
        "corpus_fingerprints": fingerprints,
        "tokenizer_fingerprint": tokenizer_fingerprint(config),
        "model_fingerprint": tokenizer.fingerprint,
        "vocab_size": tokenizer.vocab_size,
        **{
            split: {**count, "unknown_share": counts[f"unknown {split}"] / max(1, count["tokens"])}
            for split, count in written.items()
        },
        "documents_found": counts["documents"],
        "dropped": {what: count for what, count in counts.items() if count and what in _DROPPED},
        "records_skipped": len(skipped),
        "disk_bytes": sum(file.stat().st_size for file in folder.iterdir()),
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")

    documents, tokens = (sum(count[part] for count in written.values()) for part in ("documents", "tokens"))
    dropped = ", ".join(f"{count:,} {what}" for what, count in meta["dropped"].items())
    say(
        f"prepared {documents:,} documents ({written['dev']['documents']:,} held out), {tokens:,} tokens:"
        f" {size(meta['disk_bytes'])} in {duration(time.monotonic() - start)}"
        + (f"; dropped {dropped}" if dropped else "")
    )
    if skipped:
        say(f"warning: corpus.on_error=skip left {len(skipped):,} records out: {_some(skipped)}")
    sample = (document.text for document in islice(texts.iterate(corpus, []), SAMPLED_DOCUMENTS))
    if changed := cleaning_of(corpus).describe(sample):
        say(changed)
    if corpus.source == "files" and corpus.lines == "whole" and texts.is_hard_wrapped(corpus):
        say("warning: most lines are of one length and end within a sentence: corpus.lines=wrapped joins them")
    if others := left_out(corpus):
        say(f"warning: {len(others):,} files of {corpus.path} are not read: {_some(others)} (a glob reads any name)")


def _some(names: list[str], most: int = 5) -> str:
    return "; ".join(names[:most]) + "; …" * (len(names) > most)


_EMPTY, _SHORT = "empty documents", "paragraphs of one sentence"
_DROPPED = (texts.DUPLICATES, texts.REPEATED, _EMPTY, _SHORT)


def _batches(corpora: list[CorpusConfig], counts: Counter[str], skipped: list[str]) -> Iterator[_Batch]:
    """Batches of source documents, each as its distinct documents: first those that are held out, then training text.

    Training text, of which added text is a part, loses what repeats held-out text. By document: a paragraph that occurs
    in two source documents must not be both trained on and held out.
    """
    seen: set[int] = set()
    held_out = Overlap()
    parts: list[tuple[Split, CorpusConfig]] = [("dev", corpora[0]), *(("train", corpus) for corpus in corpora)]
    for split, corpus in parts:
        for sources in _in_parts(_sources(split, corpus, skipped if split == "train" else [])):
            documents = [texts.documents_of(source, corpus) for source in sources]
            if split == "dev":
                held_out.add(source.text for source in sources)
            elif corpus.repeats == "drop":
                documents = texts.without_repeated(documents, corpus, held_out, counts)
            yield _Batch(split, [[one.text for one in texts.distinct(of, counts, seen)] for of in documents], corpus)


def _sources(split: Split, corpus: CorpusConfig, skipped: list[str]) -> Iterator[texts.Document]:
    for source in texts.iterate(corpus, skipped):
        if texts.split_of(source.text, corpus.dev_share, corpus.split_seed) == split:
            yield source


def _in_parts(sources: Iterator[texts.Document]) -> Iterator[list[texts.Document]]:
    """The source documents in lists of about as many characters."""
    part, characters = [], 0
    for source in sources:
        part.append(source)
        characters += len(source.text)
        if characters >= _BATCH_CHARACTERS:
            yield part
            part, characters = [], 0
    if part:
        yield part


def _map_in_order(
    function: Callable[[_Batch], _Encoded], batches: Iterator[_Batch], workers: int | None
) -> Generator[_Encoded]:
    """Results in the order of the batches, for any number of workers; few are pending, so memory is bounded."""
    head = list(islice(batches, _BATCHES_FOR_WORKERS))
    workers = workers or (min(cores(), _MAX_WORKERS) if len(head) == _BATCHES_FOR_WORKERS else 1)
    if workers == 1:
        yield from map(function, chain(head, batches))
        return
    with worker_pool(workers) as pool:
        pending = deque()
        for batch in chain(head, batches):
            pending.append(pool.submit(function, batch))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _encode(batch: _Batch, *, model: Path, how: tuple[Cleaning, str], fingerprint: str) -> _Encoded:
    tokenizer = _load(model, how, fingerprint)
    fewest = 2 if batch.corpus.documents == "paragraph" else 1
    raw = list(chain.from_iterable(batch.sources))
    counts = Counter(text_bytes=sum(len(text.encode()) for text in raw))
    sources: list[list[list[list[int]]]] = []  # token ids by source document, document, sentence
    encoded_documents = iter(_encode_documents(raw, batch.corpus, tokenizer))
    for source in batch.sources:
        documents = list(islice(encoded_documents, len(source)))
        counts[_EMPTY] += sum(not document for document in documents)
        counts[_SHORT] += sum(0 < len(document) < fewest for document in documents)
        sources.append([document for document in documents if len(document) >= fewest])
    documents = list(chain.from_iterable(sources))
    encoded = list(chain.from_iterable(documents))
    tokens = np.fromiter(chain.from_iterable(encoded), token_dtype(tokenizer.vocab_size))
    counts[f"unknown {batch.split}"] = int((tokens == tokenizer.unk_id).sum())
    lengths = ([len(part) for part in parts if part] for parts in (encoded, documents, sources))
    return _Encoded(batch.split, tokens, [np.array(part, OFFSET) for part in lengths], counts)


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
