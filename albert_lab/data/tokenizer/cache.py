"""The tokenizer of a run: its model file, which is trained if it is not in the cache."""

import json
import time
from pathlib import Path
from typing import Any

from albert_lab import files, paths
from albert_lab.config.schema import RunConfig, digest
from albert_lab.data.build import find_or_build, worker_pool
from albert_lab.data.fingerprint import fingerprint, source_settings
from albert_lab.data.tokenizer.base import Tokenizer, digest_model, fingerprint_of, read_model
from albert_lab.data.tokenizer.cleaning import AS_IS, Cleaning, cleaning_of
from albert_lab.data.tokenizer.sentencepiece import SentencePieceTokenizer
from albert_lab.data.tokenizer.tokenizer_json import JsonTokenizer
from albert_lab.data.tokenizer.train import train_on_corpus
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.messages import Say, duration

# Increment it with every change that gives other models from the same text and settings.
TOKENIZER_VERSION = 2

MODEL_FILE = "spiece.model"
RECORD = "tokenizer.json"


def load(file: Path, cleaning: Cleaning = AS_IS, digit_commas: str = "keep") -> Tokenizer:
    """The tokenizer of a model file: a tokenizer.json (by its suffix), which has its own cleaning, or a SentencePiece
    model, for which text is cleaned as given.

    Raises:
        MissingDataError: the file does not exist.
        ConfigError: the file is not such a model, a special token is missing or could come from text, or
            digit_commas=split for a tokenizer.json.
    """
    model = read_model(file)
    if file.suffix != ".json":
        return SentencePieceTokenizer(model, str(file), cleaning, digit_commas)
    if digit_commas != "keep":
        raise ConfigError(f"tokenizer.digit_commas={digit_commas}: {file} allows only keep")
    return JsonTokenizer(model, str(file))


def tokenizer_fingerprint(config: RunConfig) -> str:
    """Short hash of what determines the tokens: the model file, or the text and settings from which it is trained.

    Raises:
        MissingDataError: the model file or the text does not exist.
    """
    if config.tokenizer.model_file is not None:
        return fingerprint_of(read_model(find_tokenizer(config)), config.tokenizer.digit_commas)
    settings = config.tokenizer.model_dump(exclude={"name", "model_file", "most_unknown"})
    return digest([TOKENIZER_VERSION, settings, source_settings(config.corpus), fingerprint(config.corpus)])


def find_tokenizer(config: RunConfig) -> Path:
    """The path of the model file of a run's tokenizer, whether it is trained or not.

    Raises:
        MissingDataError: the training text does not exist.
    """
    if config.tokenizer.model_file is not None:
        return paths.expanded(config.tokenizer.model_file)
    return paths.cache() / "tokenizers" / tokenizer_fingerprint(config) / MODEL_FILE


def load_tokenizer(config: RunConfig) -> Tokenizer:
    """The tokenizer of a run; its model file must exist.

    Raises:
        MissingDataError, ConfigError: see load().
    """
    return load(find_tokenizer(config), cleaning_of(config.corpus), config.tokenizer.digit_commas)


def find_or_train(config: RunConfig, say: Say) -> Path:
    """The model file of a run's tokenizer; trains it first if no file is given and the cache has none.

    Raises:
        ConfigError: the file is not a suitable model, its size is not tokenizer.vocab_size, or the corpus does not
            yield that many tokens.
        DamagedFileError: the model in the cache changed after training.
        MissingDataError: the model file or the text does not exist.
        WriteError: no space for the model.
    """
    settings = config.tokenizer
    file = find_tokenizer(config)
    if settings.model_file is None:
        find_or_build(file.parent, lambda folder: _build(config, folder, say), "the tokenizer", say)
        _check_cached(file)
    size = load_tokenizer(config).vocab_size
    if size != settings.vocab_size:
        raise ConfigError(f"tokenizer.vocab_size={settings.vocab_size}, but {file} has {size} tokens: set it to {size}")
    return file


def _check_cached(file: Path) -> None:
    remedy = f"the cached tokenizer is damaged: remove {file.parent}, and the same command trains it again"
    record = files.read_json(file.with_name(RECORD), dict[str, Any], remedy)
    if digest_model(files.read_bytes(file, remedy)) != record.get("model_fingerprint"):
        raise DamagedFileError(file, f"is not the trained model that {RECORD} describes", remedy)


def _build(config: RunConfig, folder: Path, say: Say) -> None:
    corpus, settings = config.corpus, config.tokenizer
    for key in ("training_sentences", "character_coverage"):
        if getattr(settings, key) is None:
            raise ConfigError(f"tokenizer.{key}=null: give a number, by which a tokenizer is trained")
    say(f"training a tokenizer: {settings.vocab_size:,} tokens from at most {settings.training_sentences:,} sentences")
    start = time.monotonic()
    file = folder / MODEL_FILE
    with worker_pool(1) as pool:  # the end of the process frees hundreds of megabytes
        pool.submit(train_on_corpus, corpus, settings, file).result()
    record = {
        "tokenizer": settings.model_dump(mode="json"),
        "corpus": source_settings(corpus),
        "corpus_fingerprint": fingerprint(corpus),
        "model_fingerprint": digest_model(file.read_bytes()),
        "version": TOKENIZER_VERSION,
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n")
    say(f"trained the tokenizer in {duration(time.monotonic() - start)}")
