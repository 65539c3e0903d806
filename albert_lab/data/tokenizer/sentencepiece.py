"""A tokenizer of a SentencePiece model, such as the released one of ALBERT, and its form as a tokenizer.json."""

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2

from albert_lab.data.tokenizer.base import CONTROL_SYMBOLS, Tokenizer, fingerprint_of
from albert_lab.data.tokenizer.cleaning import AS_IS, Cleaning
from albert_lab.errors import ConfigError

_SPECIAL = ("<pad>", "<unk>", *CONTROL_SYMBOLS)


class SentencePieceTokenizer(Tokenizer):
    """Text to token ids and back by a SentencePiece model."""

    def __init__(self, model: bytes, origin: str, cleaning: Cleaning = AS_IS, digit_commas: str = "keep") -> None:
        """Takes a serialized SentencePiece model; origin names it in errors, digit_commas is as in TokenizerConfig.

        Raises:
            ConfigError: not a SentencePiece model, or a special token is missing or could come from text.
        """
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise ConfigError(f"{origin} is not a SentencePiece model") from error
        self._model, self._clean = model, cleaning
        self.fingerprint = fingerprint_of(model, digit_commas)
        self.vocab_size: int = self._processor.GetPieceSize()
        self._split = self._split_tokens() if digit_commas == "split" else {}
        self.pad_id = self._special("<pad>", origin)
        self.unk_id = self._special("<unk>", origin)
        self.cls_id, self.sep_id, self.mask_id = (self._special(token, origin) for token in CONTROL_SYMBOLS)

    def _special(self, token: str, origin: str) -> int:
        token_id = self._processor.PieceToId(token)
        if self._processor.IdToPiece(token_id) != token:
            raise ConfigError(f"{origin} has no token {token}; it must have {', '.join(_SPECIAL)}")
        if not (self._processor.IsUnknown(token_id) if token == "<unk>" else self._processor.IsControl(token_id)):
            raise ConfigError(f"{origin}: {token} is not a control symbol, so it could come from text; train it as one")
        return token_id

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        # Differs from the release: digit_commas=keep keeps a token such as "2,"; encode_pieces splits off its comma.
        cleaned = [self._clean(sentence) for sentence in sentences]
        encoded = self._processor.Encode(cleaned, out_type=int, num_threads=1)
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

    @cached_property
    def _aligned(self) -> tokenizers.Tokenizer:
        """The same tokenizer, ten times slower, which knows the place of each token in the text before cleaning."""
        content = as_json(self._model, self._clean) | {"added_tokens": [], "post_processor": None}
        vocabulary = content["model"]["vocab"]
        # A token of spaces never comes from text.
        content["model"]["vocab"] = [(f" {token}" if token in _SPECIAL else token, at) for token, at in vocabulary]
        return tokenizers.Tokenizer.from_str(json.dumps(content))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoded = self._aligned.encode(text, add_special_tokens=False)
        space = self._processor.PieceToId("▁")
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for token, (first, end) in zip(encoded.ids, encoded.offsets, strict=True):
            parts = self._split.get(token, [token])
            ends = [first if token == space else end]
            for part in reversed(parts[1:]):  # from the back, so that the first part gets the remainder
                ends.append(max(first, ends[-1] - len(self._processor.IdToPiece(part).lstrip("▁"))))
            ids += parts
            offsets += zip([first, *reversed(ends[1:])], reversed(ends), strict=True)
        return ids, offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids; special tokens give no text, except the unknown token."""
        return self._processor.Decode([int(token) for token in ids])

    def tokens(self) -> list[str]:
        return [self._processor.IdToPiece(token) for token in range(self.vocab_size)]


def as_json(model: bytes, cleaning: Cleaning) -> dict[str, Any]:
    """The content of a tokenizer.json that cleans text and then gives the ids of a SentencePiece unigram model.

    Brackets, quotes and other symbols that SentencePiece never joins to others remain ordinary tokens, with their
    score of 0, the highest. transformers would make them added tokens, which drop the space before them.
    """
    proto = sentencepiece_model_pb2.ModelProto()  # pyright: ignore[reportAttributeAccessIssue]
    proto.ParseFromString(model)
    vocabulary = [(entry.piece, entry.score) for entry in proto.pieces]
    ids = {token: number for number, (token, _) in enumerate(vocabulary)}
    normalizers = [json.loads(cleaning.normalizer.__getstate__())]
    if charsmap := proto.normalizer_spec.precompiled_charsmap:
        normalizers.append({"type": "Precompiled", "precompiled_charsmap": b64encode(charsmap).decode()})
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    cls, sep = ({"SpecialToken": {"id": token, "type_id": 0}} for token in CONTROL_SYMBOLS[:2])
    first, second = ({"Sequence": {"id": name, "type_id": number}} for number, name in enumerate("AB"))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, **flags} for token in _SPECIAL],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [cls, first, sep],
            "pair": [cls, first, sep, second, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in CONTROL_SYMBOLS[:2]
            },
        },
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": ids["<unk>"], "vocab": vocabulary, "byte_fallback": False},
    }
