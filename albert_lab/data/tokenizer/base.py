"""The interface of all tokenizers, and the rule for tokens that start a word."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from albert_lab.config.schema import digest
from albert_lab.errors import MissingDataError

CONTROL_SYMBOLS = ("[CLS]", "[SEP]", "[MASK]")
# From _is_start_piece_sp of the release: the ASCII punctuation that it lists (not all) and the letters.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_JOINING = _PUNCTUATION | frozenset("abcdefghijklmnopqrstuvwxyz")


class Tokenizer(ABC):
    """Text, which it cleans, to token ids and back. Special tokens are looked up by name and never come from text.

    Attributes:
        fingerprint: short hash of everything that determines the tokens.
        vocab_size: number of tokens.
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
    """

    fingerprint: str
    vocab_size: int
    pad_id: int
    unk_id: int
    cls_id: int
    sep_id: int
    mask_id: int

    @abstractmethod
    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Token ids of each sentence, without special tokens."""

    @abstractmethod
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text and, for each token, its character range [start, end) in the text before cleaning.

        Ranges may overlap: a character that cleaning takes apart may belong to several tokens.
        """

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids; special tokens give no text."""

    @abstractmethod
    def tokens(self) -> list[str]:
        """The text of every token, by id."""

    @cached_property
    def word_starts(self) -> np.ndarray:
        """Which tokens start a word, bool [vocab]; all others join the token before them.

        Source: _is_start_piece_sp in create_pretraining_data.py of the release. Each punctuation mark is a separate
        word, and so is every token with a character that is neither punctuation nor an English letter.
        """
        return np.array([starts_word(token) for token in self.tokens()])


def starts_word(token: str) -> bool:
    return token.startswith(("▁", "<")) or token in _PUNCTUATION or not _JOINING.issuperset(token.lower())


def read_model(file: Path) -> bytes:
    """The content of a model file.

    Raises:
        MissingDataError: the file cannot be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise MissingDataError(f"tokenizer.model_file={file} cannot be read: {error.strerror}") from error


def digest_model(model: bytes) -> str:
    """Short hash of a model file's content."""
    return hashlib.blake2b(model, digest_size=6).hexdigest()


def fingerprint_of(model: bytes, digit_commas: str) -> str:
    """Short hash of what determines the tokens of an existing model file."""
    return digest_model(model) if digit_commas == "keep" else digest([digest_model(model), digit_commas])
