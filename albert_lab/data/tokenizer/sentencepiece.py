"""A tokenizer of a SentencePiece model, such as the released one of ALBERT."""

from collections.abc import Sequence

import sentencepiece

from albert_lab.config.schema import digest
from albert_lab.data.tokenizer.base import CONTROL_SYMBOLS, Tokenizer, digest_model
from albert_lab.errors import ConfigError


class SentencePieceTokenizer(Tokenizer):
    """Text to token ids and back by a SentencePiece model."""

    def __init__(self, model: bytes, origin: str, digit_commas: str = "keep") -> None:
        """Takes a serialized SentencePiece model; origin names it in errors, digit_commas is as in TokenizerConfig.

        Raises:
            ConfigError: not a SentencePiece model, or a special token is missing or could come from text.
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
        self._split = self._split_tokens() if digit_commas == "split" else {}
        self.pad_id = self._special("<pad>", origin)
        self.unk_id = self._special("<unk>", origin)
        self.cls_id, self.sep_id, self.mask_id = (self._special(token, origin) for token in CONTROL_SYMBOLS)

    def _special(self, token: str, origin: str) -> int:
        token_id: int = self._processor.PieceToId(token)
        if self._processor.IdToPiece(token_id) != token:
            raise ConfigError(
                f"{origin} has no token {token}; all of <pad>, <unk>, {', '.join(CONTROL_SYMBOLS)} must be"
            )
        if not (self._processor.IsUnknown(token_id) if token == "<unk>" else self._processor.IsControl(token_id)):
            raise ConfigError(f"{origin}: {token} is not a control symbol, so it could come from text; train it as one")
        return token_id

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        # Differs from the release: digit_commas=keep keeps a token such as "2,"; encode_pieces splits off its comma.
        if len(sentences) == 1:  # a call with a list starts a thread, which takes longer than a sentence
            encoded = [self._processor.Encode(sentences[0], out_type=int)]
        else:
            encoded = self._processor.Encode(list(sentences), out_type=int, num_threads=1)
        if not self._split:
            return encoded
        return [[part for token in ids for part in self._split.get(token, (token,))] for ids in encoded]

    def _split_tokens(self) -> dict[int, list[int]]:
        """For each token that ends in a digit and a comma, the tokens by which the release replaces it."""
        split = {}
        for token, text in enumerate(self.tokens()):
            if len(text) > 1 and text.endswith(",") and text[-2].isdigit():
                parts = self._processor.EncodeAsPieces(text[:-1].replace("▁", ""))
                if not text.startswith("▁") and parts[0].startswith("▁"):
                    parts = [parts[0][1:], *parts[1:]] if len(parts[0]) > 1 else parts[1:]
                split[token] = [self._processor.PieceToId(part) for part in [*parts, ","]]
        return split

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text and, for each token, its character range [start, end) in the text.

        The space before a word belongs to its first token. A range is empty if normalization makes two tokens of one
        character.
        """
        encoded = self._processor.Encode(text, return_type="offset_mapping")
        if not self._split:
            return encoded["ids"], encoded["offsets"]
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for token, (first, end) in zip(encoded["ids"], encoded["offsets"], strict=True):
            parts = self._split.get(token, [token])
            # From the back, so that the first part gets the remainder, including the space before it.
            ends = [end]
            for part in reversed(parts[1:]):
                ends.append(max(first, ends[-1] - len(self._processor.IdToPiece(part).lstrip("▁"))))
            ids += parts
            offsets += zip([first, *reversed(ends[1:])], reversed(ends), strict=True)
        return ids, offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids; special tokens give no text, except the unknown token."""
        return self._processor.Decode([int(token) for token in ids])

    def tokens(self) -> list[str]:
        return [self._processor.IdToPiece(token) for token in range(self.vocab_size)]
