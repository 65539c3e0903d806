"""A tokenizer of a tokenizer.json, the file format of Hugging Face, such as BERT's WordPiece."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import tokenizers

from albert_lab.data.tokenizer.base import CONTROL_SYMBOLS, Tokenizer, digest_model
from albert_lab.errors import ConfigError

# Names of the special tokens: BERT's, and ALBERT's if a SentencePiece model was converted to a tokenizer.json.
_PAD, _UNK = ("[PAD]", "<pad>"), ("[UNK]", "<unk>")
_CONTINUATION = "##"


class JsonTokenizer(Tokenizer):
    """Text to token ids and back by a tokenizer.json, without its special tokens, truncation and padding.

    The file says how text is cleaned (in BERT: lower case, accents, punctuation); the corpus does not.
    """

    def __init__(self, model: bytes, origin: str) -> None:
        """Takes the content of a tokenizer.json; origin names it in errors.

        Raises:
            ConfigError: not a tokenizer.json, or a special token is missing.
        """
        try:
            self._model = tokenizers.Tokenizer.from_buffer(model)
        except ValueError as error:
            raise ConfigError(f"{origin} is not a tokenizer.json: {error}") from error
        self._model.no_truncation()
        self._model.no_padding()
        self._model.encode_special_tokens = True  # the word [MASK] in a text is text
        self.fingerprint = digest_model(model)
        self.vocab_size = 1 + max(self._model.get_vocab().values())  # ids may have gaps
        self.pad_id, self.unk_id = self._find(_PAD, origin), self._find(_UNK, origin)
        self.cls_id, self.sep_id, self.mask_id = (self._find((token,), origin) for token in CONTROL_SYMBOLS)

    def _find(self, names: Sequence[str], origin: str) -> int:
        ids = [token for token in map(self._model.token_to_id, names) if token is not None]
        if not ids:
            raise ConfigError(f"{origin} has no token {' or '.join(names)}")
        return ids[0]

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._model.encode_batch(list(sentences), add_special_tokens=False)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self._model.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def decode(self, ids: Sequence[int]) -> str:
        return self._model.decode([int(token) for token in ids])

    def tokens(self) -> list[str]:
        return [str(self._model.id_to_token(token)) for token in range(self.vocab_size)]

    @cached_property
    def word_starts(self) -> np.ndarray:
        """Which tokens start a word, bool [vocab]; all others join the token before them.

        In WordPiece, every token without `##` (create_pretraining_data.py of BERT, whole word masking); otherwise as
        in Tokenizer.
        """
        tokens = self.tokens()
        if not any(token.startswith(_CONTINUATION) for token in tokens):
            return super().word_starts
        return np.array([not token.startswith(_CONTINUATION) for token in tokens])
