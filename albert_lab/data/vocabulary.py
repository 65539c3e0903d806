"""The tokenizer of a run: its model file, trained with the flags of the released one if it is not
in the cache.
"""

import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import sentencepiece

from albert_lab import paths
from albert_lab.config.data import TokenizerConfig
from albert_lab.config.schema import RunConfig, digest
from albert_lab.data import corpus as texts
from albert_lab.data.files import fingerprint, text_settings
from albert_lab.data.tokenizer import CONTROL_SYMBOLS, Cleaning, Tokenizer, cleaning_of, load
from albert_lab.errors import ConfigError
from albert_lab.files import digest_of, read_bytes
from albert_lab.messages import Say
from albert_lab.storage import find_or_build

# Increment it with every change that gives other models from the same text and settings.
TOKENIZER_VERSION = 2

MODEL_FILE = "spiece.model"
USER_DEFINED_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
_SEED = 149
_LONGEST_BYTES = 4192  # SentencePiece leaves longer lines out, without a word


def tokenizer_fingerprint(config: RunConfig) -> str:
    """Short hash of what determines the tokens: the model file, or the text and settings from which
    it is trained.

    Raises:
        MissingDataError: the text does not exist. ConfigError: the model file cannot be read.
    """
    if config.tokenizer.model_file is not None:
        return digest_of(read_bytes(find_tokenizer(config), "tokenizer.model_file names it"))
    # Of the text, what determines its source documents, their sentences and their split: not the
    # documents in them.
    text = text_settings(config.corpus)
    if text.pop("documents") == "file":
        text["source_documents"] = "file"
    del text["document_tokens"]
    settings = config.tokenizer.model_dump(exclude={"name", "model_file"})
    return digest([TOKENIZER_VERSION, settings, text, fingerprint(config.corpus)])


def find_tokenizer(config: RunConfig) -> Path:
    """The path of the model file of a run's tokenizer, trained or not; or MissingDataError: its
    text does not exist.
    """
    if config.tokenizer.model_file is not None:
        return paths.expanded(config.tokenizer.model_file)
    return paths.cache() / "tokenizers" / tokenizer_fingerprint(config) / MODEL_FILE


def load_tokenizer(config: RunConfig) -> Tokenizer:
    """The tokenizer of a run, whose model file must exist; with the errors of find_tokenizer() and
    load().
    """
    return load(find_tokenizer(config), cleaning_of(config.corpus))


def find_or_train(config: RunConfig, say: Say) -> Path:
    """The model file of a run's tokenizer; trains it first if no file is given and the cache has
    none.

    Raises:
        ConfigError: the file is not a suitable model, its size is not tokenizer.vocab_size, or the
            corpus does not yield that many tokens.
        MissingDataError: the text does not exist.
        OSError: no space for the model.
    """
    settings = config.tokenizer
    file = find_tokenizer(config)
    if settings.model_file is None:
        find_or_build(
            file.parent, lambda folder: _train_on_corpus(config, folder / MODEL_FILE, say), say
        )
    size = load_tokenizer(config).vocab_size
    if size != settings.vocab_size:
        raise ConfigError(
            f"tokenizer.vocab_size={settings.vocab_size}, but {file} has {size} tokens: set it to "
            f"{size}"
        )
    return file


def _train_on_corpus(config: RunConfig, file: Path, say: Say) -> None:
    """Trains on a uniform sample of the sentences of the distinct training documents, and writes
    the model into file.

    Raises:
        ConfigError: the train split is empty, or the settings do not fit the text.
    """
    corpus = config.corpus
    settings = config.tokenizer
    if settings.training_sentences is None or settings.character_coverage is None:
        raise ConfigError(
            "tokenizer.training_sentences or character_coverage is null: a tokenizer is trained by "
            "both"
        )
    say(
        f"training a tokenizer: {settings.vocab_size:,} tokens from at most "
        f"{settings.training_sentences:,} sentences"
    )
    counts = Counter[str]()
    skipped_records: list[str] = []

    def sentences() -> Iterator[str]:
        for document in texts.distinct(texts.iterate(corpus, skipped_records), counts, set()):
            text = "\n".join(document)
            if texts.split_of(text, corpus.dev_share, corpus.split_seed) == "train":
                yield from texts.raw_sentences(text, corpus)

    sampled = sample(sentences(), settings.training_sentences)
    if not sampled:
        num_documents = counts["documents"] - counts[texts.DUPLICATES]
        raise texts.empty_split("train", num_documents, corpus, skipped_records, counts)
    train(_cleaned(sampled, cleaning_of(corpus)), settings, file)


def _cleaned(sentences: list[str], clean: Cleaning) -> Iterator[str]:
    """The cleaned sentences, from the last one on, cut where they are too long for the trainer;
    they are taken out of the list, which may be large.
    """
    while sentences:
        yield from cut_to_lines(clean(sentences.pop()))


def cut_to_lines(sentence: str) -> Iterator[str]:
    """The sentence, cut at spaces (in a part without any, between characters) where it is too long
    for the trainer.
    """
    while len(sentence.encode()) > _LONGEST_BYTES:
        head = sentence.encode()[:_LONGEST_BYTES].decode(errors="ignore")
        end = head.rfind(" ") + 1 or len(head)
        yield sentence[:end].strip()
        sentence = sentence[end:]
    yield sentence


def train(sentences: Iterable[str], settings: TokenizerConfig, file: Path) -> None:
    """Trains a SentencePiece unigram model on cleaned sentences and writes it; the same sentences
    give the same model.

    Source: the flags of the released model (google-research/albert#149).

    Raises:
        ConfigError: tokenizer.vocab_size is more than the sentences yield, or less than their
            characters need.
    """
    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(_SEED)
    try:
        sentencepiece.SentencePieceTrainer.Train(
            # a Ctrl-C in a generator would only end the sentences
            sentence_iterator=iter(list(sentences)),
            model_writer=model,
            model_type="unigram",
            vocab_size=settings.vocab_size,
            character_coverage=settings.character_coverage,
            pad_id=0,
            unk_id=1,
            bos_id=-1,  # of no token: -1
            eos_id=-1,
            control_symbols=list(CONTROL_SYMBOLS),
            user_defined_symbols=list(USER_DEFINED_SYMBOLS),
            shuffle_input_sentence=True,
            input_sentence_size=settings.training_sentences,
            # which add up parts of the sentences: another number gives another model
            num_threads=4,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2]  # before it: a line of SentencePiece's source code
        reason = reason.replace("--character_coverage option", "tokenizer.character_coverage")
        raise ConfigError(
            f"tokenizer.vocab_size={settings.vocab_size} does not fit this corpus: {reason}"
        ) from error
    file.write_bytes(model.getvalue())


def sample(items: Iterable[str], size: int) -> list[str]:
    """A uniform random sample of at most `size` items, in one pass (Li 1994, Algorithm L)."""
    random = np.random.Generator(np.random.Philox(key=_SEED))
    stream = iter(items)
    kept = list(islice(stream, size))
    # As if each item had a random key and the largest keys were kept: weight is the smallest of
    # those, and the number of items until a larger one is geometric.
    weight = 1.0
    while True:
        weight *= math.exp(math.log(1 - random.random()) / size)
        skipped = math.floor(math.log(1 - random.random()) / math.log1p(-weight))
        item = next(islice(stream, skipped, None), None)
        if item is None:
            return kept
        kept[random.integers(size)] = item
