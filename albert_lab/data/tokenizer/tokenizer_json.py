"""A tokenizer of a tokenizer.json, the file of Hugging Face, such as a WordPiece vocabulary of BERT."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from albert_lab.data.tokenizer.base import CONTROL_SYMBOLS, Tokenizer, digest_model
from albert_lab.errors import ConfigError, MissingDataError

# Names of the special pieces: BERT's, and ALBERT's where a SentencePiece model was turned into a tokenizer.json.
_PAD, _UNK = ("[PAD]", "<pad>"), ("[UNK]", "<unk>")
_CONTINUATION = "##"


class JsonTokenizer(Tokenizer):
    """Text to piece ids and back by a tokenizer.json, without its special pieces, cutting and padding.

    What it cleans (BERT's lower case, accents, punctuation) comes on top of the cleaning of the corpus.
    """

    def __init__(self, model: bytes, origin: str) -> None:
        """Takes the content of a tokenizer.json; origin names it in errors.

        Raises:
            MissingDataError: the package that reads it is not installed.
            ConfigError: it is no such file, or a special piece is missing.
        """
        try:
            import tokenizers
        except ImportError as error:
            raise MissingDataError(f"{origin} needs a package: pip install 'albert-lab[transformers]'") from error
        try:
            self._model = tokenizers.Tokenizer.from_buffer(model)
        except ValueError as error:
            raise ConfigError(f"{origin} is not a tokenizer.json: {error}") from error
        self._model.no_truncation()
        self._model.no_padding()
        self.fingerprint = digest_model(model)
        self.vocab_size = self._model.get_vocab_size()
        self.pad_id, self.unk_id = self._find(_PAD, origin), self._find(_UNK, origin)
        self.cls_id, self.sep_id, self.mask_id = (self._find((piece,), origin) for piece in CONTROL_SYMBOLS)

    def _find(self, names: Sequence[str], origin: str) -> int:
        found = [piece for piece in map(self._model.token_to_id, names) if piece is not None]
        if not found:
            raise ConfigError(f"{origin} has no piece {' or '.join(names)}")
        return found[0]

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Piece ids of each sentence, without special pieces."""
        return [found.ids for found in self._model.encode_batch(list(sentences), add_special_tokens=False)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Piece ids of a text and, for each, the first character that it stands for and the one after the last."""
        found = self._model.encode(text, add_special_tokens=False)
        return found.ids, found.offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text of piece ids; special pieces leave none."""
        return self._model.decode([int(piece) for piece in ids])

    def pieces(self) -> list[str]:
        """Every piece, by id."""
        return [str(self._model.id_to_token(piece)) for piece in range(self.vocab_size)]

    @cached_property
    def word_starts(self) -> np.ndarray:
        """Which pieces start a word, bool [vocab]; all others join the piece before them.

        Of WordPiece, all without `##` (create_pretraining_data.py of BERT, whole word masking); else as in Tokenizer.
        """
        pieces = self.pieces()
        if not any(piece.startswith(_CONTINUATION) for piece in pieces):
            return super().word_starts
        return np.array([not piece.startswith(_CONTINUATION) for piece in pieces])
