"""SentencePiece: a model file or one trained with the official flags; special ids; which pieces start a word."""

import hashlib
import io
import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import sentencepiece
from pydantic import BaseModel

from albert_lab import files, paths
from albert_lab.config.schema import MIN_VOCAB_SIZE, CorpusConfig, RunConfig, TokenizerConfig, digest
from albert_lab.data import corpus as texts
from albert_lab.data.build import find_or_build, worker_pool
from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.messages import Say

# Raise it with every change that gives other models from the same text and settings.
TOKENIZER_VERSION = 1

MODEL_FILE = "spiece.model"
RECORD = "tokenizer.json"
CONTROL_SYMBOLS = ("[CLS]", "[SEP]", "[MASK]")
USER_DEFINED_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
_SEED = 149
# The threads share out sums over sentences: another number of them gives another model.
_TRAINING_THREADS = 4
# English prose on two cores; only the expected time rests on these.
_BYTES_PER_SENTENCE = 130
_READ_BYTES_PER_SECOND = 2.5e7
_TRAINED_BYTES_PER_SECOND = 8e5
# _is_start_piece_sp of the release: the ASCII punctuation it lists (not all there is) and the letters.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_JOINING = _PUNCTUATION | frozenset("abcdefghijklmnopqrstuvwxyz")


class Tokenizer:
    """Text to piece ids and back. Special pieces are looked up by name and never come from text."""

    def __init__(self, model: bytes, origin: str, digit_commas: str = "keep") -> None:
        """Takes a serialized SentencePiece model; origin names it in errors, digit_commas is as in TokenizerConfig.

        Raises:
            ConfigError: it is no SentencePiece model, or a special piece is missing or could come from text.
        """
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise ConfigError(f"{origin} is not a SentencePiece model") from error
        self.fingerprint = (
            digest_model(model) if digit_commas == "keep" else digest([digest_model(model), digit_commas])
        )
        self.vocab_size: int = self._processor.GetPieceSize()
        self._split = self._split_pieces() if digit_commas == "split" else {}
        self.pad_id = self._special("<pad>", origin)
        self.unk_id = self._special("<unk>", origin)
        self.cls_id, self.sep_id, self.mask_id = (self._special(piece, origin) for piece in CONTROL_SYMBOLS)

    @classmethod
    def load(cls, file: Path, digit_commas: str = "keep") -> "Tokenizer":
        """The tokenizer of a model file: SentencePiece's, or a tokenizer.json by its suffix.

        Raises:
            MissingDataError: the file, or the package that reads a tokenizer.json, is not there.
            ConfigError: it is no such model, a special piece is missing or could come from text, or digit_commas=split
                of a tokenizer.json.
        """
        if file.suffix == ".json":
            from albert_lab.data.json_tokenizer import JsonTokenizer

            if digit_commas != "keep":
                raise ConfigError(f"tokenizer.digit_commas={digit_commas}: {file} takes keep alone")
            return JsonTokenizer(_read_model(file), str(file))
        return cls(_read_model(file), str(file), digit_commas)

    def _special(self, piece: str, origin: str) -> int:
        found: int = self._processor.PieceToId(piece)
        if self._processor.IdToPiece(found) != piece:
            raise ConfigError(
                f"{origin} has no piece {piece}; all of <pad>, <unk>, {', '.join(CONTROL_SYMBOLS)} must be"
            )
        if not (self._processor.IsUnknown(found) if piece == "<unk>" else self._processor.IsControl(found)):
            raise ConfigError(f"{origin}: {piece} is no control symbol, so it could come from text; train it as one")
        return found

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids of the pieces that stand for no text: padding, unknown, [CLS], [SEP], [MASK]."""
        return self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Piece ids of each sentence, without special pieces."""
        # Differs from the release: with digit_commas=keep a piece such as "2," stays; encode_pieces cuts its comma off.
        found = self._processor.Encode(list(sentences), out_type=int, num_threads=1)
        if not self._split:
            return found
        return [[part for piece in ids for part in self._split.get(piece, (piece,))] for ids in found]

    def _split_pieces(self) -> dict[int, list[int]]:
        """For each piece that ends in a digit and a comma, the pieces that the release puts in its place."""
        split = {}
        for piece, text in enumerate(self.pieces()):
            if len(text) > 1 and text.endswith(",") and text[-2].isdigit():
                parts = self._processor.EncodeAsPieces(text[:-1].replace("▁", ""))
                if not text.startswith("▁") and parts[0].startswith("▁"):
                    parts = [parts[0][1:], *parts[1:]] if len(parts[0]) > 1 else parts[1:]
                split[piece] = [self._processor.PieceToId(part) for part in [*parts, ","]]
        return split

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Piece ids of a text and, for each, the first character of the text it stands for and the one after the last.

        The space before a word belongs to its first piece. A piece can stand for no character at all, where
        normalization makes two pieces of one character.
        """
        found = self._processor.Encode(text, return_type="offset_mapping")
        if not self._split:
            return found["ids"], found["offsets"]
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for piece, (first, end) in zip(found["ids"], found["offsets"], strict=True):
            parts = self._split.get(piece, [piece])
            # From the back: the first part keeps what is left, the space before it included.
            ends = [end]
            for part in reversed(parts[1:]):
                ends.append(max(first, ends[-1] - len(self._processor.IdToPiece(part).lstrip("▁"))))
            ids += parts
            offsets += zip([first, *reversed(ends[1:])], reversed(ends), strict=True)
        return ids, offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text of piece ids; special pieces leave none, but the unknown piece shows."""
        return self._processor.Decode([int(piece) for piece in ids])

    def pieces(self) -> list[str]:
        """Every piece, by id."""
        return [self._processor.IdToPiece(piece) for piece in range(self.vocab_size)]

    @cached_property
    def word_starts(self) -> np.ndarray:
        """Which pieces start a word, bool [vocab]; all others join the piece before them.

        Source: _is_start_piece_sp in create_pretraining_data.py of the release. Punctuation stands alone, and so does
        every piece with a character that is neither it nor a letter of English.
        """
        return np.array([_starts_word(piece) for piece in self.pieces()])


def _starts_word(piece: str) -> bool:
    return piece.startswith(("▁", "<")) or piece in _PUNCTUATION or not _JOINING.issuperset(piece.lower())


def _read_model(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise MissingDataError(f"tokenizer.model_file={file} cannot be read: {error.strerror}") from error


def digest_model(model: bytes) -> str:
    """Short hash of a model file's content."""
    return hashlib.blake2b(model, digest_size=6).hexdigest()


def tokenizer_fingerprint(config: RunConfig) -> str:
    """Short hash of what decides the pieces: a model file's content, or text and settings of one that is trained.

    Raises:
        MissingDataError: the model file or the text is not there.
    """
    how = config.tokenizer.digit_commas
    if config.tokenizer.model_file is not None:
        found = digest_model(_read_model(Path(config.tokenizer.model_file).expanduser()))
        return found if how == "keep" else digest([found, how])
    settings = config.tokenizer.model_dump(exclude={"name", "model_file"})
    return digest([TOKENIZER_VERSION, settings, texts.source_settings(config.corpus), texts.fingerprint(config.corpus)])


def find_tokenizer(config: RunConfig) -> Path:
    """Where the model file of a run's tokenizer is, or will be once it is trained.

    Raises:
        MissingDataError: the text to train on is not there.
    """
    if config.tokenizer.model_file is not None:
        return Path(config.tokenizer.model_file).expanduser()
    return paths.cache() / "tokenizers" / tokenizer_fingerprint(config) / MODEL_FILE


def load_tokenizer(config: RunConfig) -> Tokenizer:
    """The tokenizer of a run, which is there already.

    Raises:
        MissingDataError, ConfigError: see Tokenizer.load.
    """
    return Tokenizer.load(find_tokenizer(config), config.tokenizer.digit_commas)


def find_or_train(config: RunConfig, say: Say) -> Path:
    """The model file of a run's tokenizer, trained first where it has to be and is not in the cache.

    Raises:
        ConfigError: the file is no fitting SentencePiece model, its size is not tokenizer.vocab_size, or the corpus
            does not give that many pieces.
        DamagedFileError: the model in the cache is not the one that was trained.
        MissingDataError: the model file or the text is not there.
        DiskFullError: no space for the model.
    """
    settings = config.tokenizer
    file = find_tokenizer(config)
    if settings.model_file is None:
        find_or_build(file.parent, lambda folder: _build(config, folder, say), "the tokenizer", say)
        _check_cached(file)
    size = load_tokenizer(config).vocab_size
    if size != settings.vocab_size:
        raise ConfigError(f"tokenizer.vocab_size={settings.vocab_size}, but {file} has {size} pieces: set it to {size}")
    return file


class _Record(BaseModel):
    """What is read of the record beside a model that was trained here; it holds more."""

    model_fingerprint: str


def _check_cached(file: Path) -> None:
    remedy = f"the cached tokenizer is damaged: remove {file.parent}, and the same command trains it again"
    record = files.read_json(file.with_name(RECORD), _Record, remedy)
    if digest_model(files.read_bytes(file, remedy)) != record.model_fingerprint:
        raise DamagedFileError(file, f"is not what was trained, as {RECORD} says", remedy)


def _build(config: RunConfig, folder: Path, say: Say) -> None:
    corpus, settings = config.corpus, config.tokenizer
    for key in ("training_sentences", "character_coverage"):
        if getattr(settings, key) is None:
            raise ConfigError(f"tokenizer.{key}=null: a number must be given where there is no tokenizer.model_file")
    say(
        f"training a tokenizer: {settings.vocab_size:,} pieces from at most {settings.training_sentences:,} sentences,"
        f" about {_training_seconds(corpus, settings):.0f} s"
    )
    start = time.monotonic()
    file = folder / MODEL_FILE
    with worker_pool(1) as pool:  # its hundreds of megabytes are given back with the process
        pool.submit(_train_on_corpus, corpus, settings, file).result()
    record = {
        "tokenizer": settings.model_dump(mode="json"),
        "corpus": texts.source_settings(corpus),
        "corpus_fingerprint": texts.fingerprint(corpus),
        "model_fingerprint": digest_model(file.read_bytes()),
        "version": TOKENIZER_VERSION,
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n")
    say(f"trained the tokenizer in {time.monotonic() - start:.0f} s")


def _training_seconds(corpus: CorpusConfig, settings: TokenizerConfig) -> float:
    assert settings.training_sentences is not None
    raw_bytes = texts.raw_bytes(corpus)
    sampled = settings.training_sentences * _BYTES_PER_SENTENCE
    if raw_bytes is None:  # the time to read it comes on top
        return sampled / _TRAINED_BYTES_PER_SECOND
    return raw_bytes / _READ_BYTES_PER_SECOND + min(raw_bytes, sampled) / _TRAINED_BYTES_PER_SECOND


def _train_on_corpus(corpus: CorpusConfig, settings: TokenizerConfig, file: Path) -> None:
    assert settings.training_sentences is not None
    counts: Counter[str] = Counter()
    documents = texts.distinct(texts.iterate(corpus), counts)
    training = (document for document in documents if texts.split_of(document.text, corpus.dev_share) == "train")
    sentences = (sentence for document in training for sentence in texts.raw_sentences(document.text, corpus))
    sampled = sample(sentences, settings.training_sentences)
    if not sampled:
        raise texts.empty_split("train", counts["documents"] - counts["duplicates"], corpus)
    train((texts.clean(sampled.pop(), corpus) for _ in range(len(sampled))), settings, file)


def sample(items: Iterable[str], size: int) -> list[str]:
    """At most `size` of the items, each as likely as any other, in one pass (Li 1994, Algorithm L)."""
    random = np.random.Generator(np.random.Philox(key=_SEED))
    stream = iter(items)
    kept = list(islice(stream, size))
    weight = 1.0
    while True:
        weight *= math.exp(math.log(1 - random.random()) / size)
        skipped = math.floor(math.log(1 - random.random()) / math.log1p(-weight))
        item = next(islice(stream, skipped, None), None)
        if item is None:
            return kept
        kept[random.integers(size)] = item


def train(sentences: Iterable[str], settings: TokenizerConfig, file: Path) -> None:
    """Writes a SentencePiece unigram model of cleaned sentences; the same sentences always give the same model.

    Source: the flags of the released model (google-research/albert#149).

    Raises:
        ConfigError: tokenizer.vocab_size is more than the sentences give, or less than their characters need.
    """
    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(_SEED)
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=settings.vocab_size,
            character_coverage=settings.character_coverage,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=list(CONTROL_SYMBOLS),
            user_defined_symbols=list(USER_DEFINED_SYMBOLS),
            shuffle_input_sentence=True,
            input_sentence_size=settings.training_sentences,
            num_threads=_TRAINING_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ConfigError(_explain(error, settings)) from error
    file.write_bytes(model.getvalue())


def _explain(error: RuntimeError, settings: TokenizerConfig) -> str:
    vocab_size = f"tokenizer.vocab_size={settings.vocab_size}"
    if largest := re.search(r"Vocabulary size too high .* <= (\d+)", str(error)):
        if int(largest.group(1)) < MIN_VOCAB_SIZE:
            return (
                f"this corpus is too small for a tokenizer: it gives {largest.group(1)} pieces at most, and"
                f" tokenizer.vocab_size must be {MIN_VOCAB_SIZE} or more: give more text"
            )
        return f"{vocab_size} is too large for this corpus: the largest that works is {largest.group(1)}"
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
        needed = smallest.group(1)
        return (
            f"{vocab_size} is too small for this corpus: its characters and the special pieces need {needed};"
            " or lower tokenizer.character_coverage"
        )
    return f"no tokenizer can be trained on this corpus: {error}"
