"""Cleaned text to token ids: by a SentencePiece model, such as ALBERT's, or by a tokenizer.json, such as BERT's."""

import hashlib
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, normalizers

from albert_lab.config.data import CorpusConfig
from albert_lab.config.schema import digest
from albert_lab.errors import ConfigError, MissingDataError

CONTROL_SYMBOLS = ("[CLS]", "[SEP]", "[MASK]")
_SPECIAL = ("<pad>", "<unk>", *CONTROL_SYMBOLS)
# In a tokenizer.json: BERT's names, and ALBERT's if a SentencePiece model was converted to one.
_JSON_SPECIAL = (("[PAD]", "<pad>"), ("[UNK]", "<unk>"), *((token,) for token in CONTROL_SYMBOLS))
# From _is_start_piece_sp of the release: the ASCII punctuation that it lists (not all) and the letters.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_JOINING = _PUNCTUATION | frozenset("abcdefghijklmnopqrstuvwxyz")
# What str.split() or the rules of SentencePiece (nmt_nfkc) take for a space and Unicode's normal forms do not turn into
# one. In its form of these rules, transformers loses an accent after U+200C.
_SPACES = "[\\t-\\r\\x1c-\\x1f\\x{85}\\x{1680}\\x{200b}-\\x{200f}\\x{2028}\\x{2029}\\x{feff}\\x{fffd}]"
# The blocks of combining diacritical marks: accents of the Latin, Greek and Cyrillic alphabets. The vowel signs and
# voicing marks of other scripts are letters and stay.
_ACCENTS = "[\\x{0300}-\\x{036f}\\x{1ab0}-\\x{1aff}\\x{1dc0}-\\x{1dff}\\x{20d0}-\\x{20ff}\\x{fe20}-\\x{fe2f}]"


@dataclass(frozen=True)
class Cleaning:
    """Normal form NFKC with single spaces, and, if asked for, lower case and no accents.

    Source: preprocess_text in tokenization.py of the release.
    # Differs from the release, which drops every character with a combining class: the virama of Hindi as well.
    """

    lower_case: bool = False
    strip_accents: bool = False
    language: str = "en"

    def __call__(self, text: str) -> str:
        """The cleaned text."""
        if text.isascii() and not self._is_turkic:  # the same, in a fraction of the time
            text = " ".join(text.split())
            return text.lower() if self.lower_case else text
        return self.normalizer.normalize_str(text)

    @property
    def _is_turkic(self) -> bool:
        """Whether i and ı are two letters, with the capitals İ and I."""
        return self.language.split("-")[0] in ("tr", "az")

    @cached_property
    def normalizer(self) -> normalizers.Normalizer:
        """The cleaning as a part of a tokenizer.json."""
        parts: list[normalizers.Normalizer] = [normalizers.Replace(Regex(_SPACES), " "), normalizers.NFKC()]
        if self.lower_case:
            if self._is_turkic:
                parts += [normalizers.Replace("İ", "i"), normalizers.Replace("I", "ı")]
            parts.append(normalizers.Lowercase())
        if self.strip_accents:
            parts += [normalizers.NFKD(), normalizers.Replace(Regex(_ACCENTS), "")]
        return normalizers.Sequence([*parts, normalizers.NFKC()])

    def lost_accents(self, texts: Iterable[str]) -> tuple[float, str]:
        """The share of the letters of texts that lose an accent, and the most frequent one of them."""
        letters = Counter(char for text in texts for char in normalizers.NFKC().normalize_str(text) if char.isalpha())
        lost = Counter({char: count for char, count in letters.items() if self(char.lower()) != char.lower()})
        return lost.total() / max(1, letters.total()), next((char for char, _ in lost.most_common(1)), "")


AS_IS = Cleaning()


def cleaning_of(corpus: CorpusConfig) -> Cleaning:
    """The cleaning that a corpus sets."""
    return Cleaning(corpus.lower_case, corpus.strip_accents, corpus.language)


class Tokenizer:
    """Text, which it cleans, to token ids and back, by a tokenizer.json without its truncation and padding.

    The file says how text is cleaned (in BERT: lower case, accents, punctuation); the corpus does not. Special tokens
    are looked up by name and never come from text.

    Attributes:
        fingerprint: short hash of everything that determines the tokens.
        vocab_size: number of tokens.
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
    """

    _continuation = "##"  # before a WordPiece that continues a word

    def __init__(self, model: bytes, origin: str) -> None:
        """Takes the content of a tokenizer.json; origin names it in errors.

        Raises:
            ConfigError: not a tokenizer.json, or a special token is missing.
        """
        try:
            self._aligned = tokenizers.Tokenizer.from_buffer(model)
        except ValueError as error:
            raise ConfigError(f"{origin} is not a tokenizer.json: {error}") from error
        self._aligned.no_truncation()
        self._aligned.no_padding()
        self._aligned.encode_special_tokens = True  # the word [MASK] in a text is text
        self.fingerprint = fingerprint_of(model, "keep")
        vocabulary = self._aligned.get_vocab()
        self.vocab_size = 1 + max(vocabulary.values())  # ids may have gaps
        ids = [next((vocabulary[name] for name in names if name in vocabulary), -1) for names in _JSON_SPECIAL]
        if -1 in ids:
            raise ConfigError(f"{origin} has no token {' or '.join(_JSON_SPECIAL[ids.index(-1)])}")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Token ids of each sentence, without special tokens."""
        return [encoding.ids for encoding in self._aligned.encode_batch(list(sentences), add_special_tokens=False)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text and, for each token, its character range [start, end) in the text before cleaning.

        Ranges may overlap: a character that cleaning takes apart may belong to several tokens.
        """
        encoding = self._aligned.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids; special tokens give no text."""
        return self._aligned.decode([int(token) for token in ids])

    def tokens(self) -> list[str]:
        """The text of every token, by id."""
        return [str(self._aligned.id_to_token(token)) for token in range(self.vocab_size)]

    @cached_property
    def word_starts(self) -> np.ndarray:
        """Which tokens start a word, bool [vocab]; all others join the token before them.

        Source: _is_start_piece_sp in create_pretraining_data.py of the release. Each punctuation mark is a separate
        word, and so is every token with a character that is neither punctuation nor an English letter. In WordPiece,
        every token without `##` (create_pretraining_data.py of BERT, whole word masking).
        """
        continues = [token.startswith(self._continuation) for token in self.tokens()]
        return ~np.array(continues) if any(continues) else np.array([starts_word(token) for token in self.tokens()])


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


def fingerprint_of(model: bytes, digit_commas: str) -> str:
    """Short hash of what determines the tokens of an existing model file."""
    content = hashlib.blake2b(model, digest_size=6).hexdigest()
    return content if digit_commas == "keep" else digest([content, digit_commas])


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
    return Tokenizer(model, str(file))


class SentencePieceTokenizer(Tokenizer):
    """Text to token ids and back by a SentencePiece model."""

    _continuation = "\0"  # its words begin with ▁

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
        self.vocab_size = self._processor.GetPieceSize()
        ids = [self._processor.PieceToId(token) for token in _SPECIAL]
        for token, number in zip(_SPECIAL, ids, strict=True):
            is_special = self._processor.IsUnknown if token == "<unk>" else self._processor.IsControl
            if self._processor.IdToPiece(number) != token or not is_special(number):
                raise ConfigError(
                    f"{origin} has no control symbol {token}, which cannot come from text; it must have"
                    f" {', '.join(_SPECIAL)}"
                )
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids
        self._split = self._split_tokens() if digit_commas == "split" else {}

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        # Differs from the release: digit_commas=keep keeps a token such as "2,"; encode_pieces splits off its comma.
        cleaned = [self._clean(sentence) for sentence in sentences]
        encoded = self._processor.Encode(cleaned, out_type=int, num_threads=threads)
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
    def _aligned(self) -> tokenizers.Tokenizer:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The same tokenizer, ten times slower, which knows the place of each token in the text before cleaning."""
        content = as_json(self._model, self._clean) | {"added_tokens": [], "post_processor": None}
        vocabulary = content["model"]["vocab"]
        # A token of spaces never comes from text.
        content["model"]["vocab"] = [(f" {token}" if token in _SPECIAL else token, at) for token, at in vocabulary]
        return tokenizers.Tokenizer.from_str(json.dumps(content))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        space = self._processor.PieceToId("▁")
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for token, (first, end) in zip(*super().encode_with_offsets(text), strict=True):
            parts = self._split.get(token, [token])
            ends = [first if token == space else end]
            for part in reversed(parts[1:]):  # from the back, so that the first part gets the remainder
                ends.append(max(first, ends[-1] - len(self._processor.IdToPiece(part).lstrip("▁"))))
            ids += parts
            offsets += zip([first, *reversed(ends[1:])], reversed(ends), strict=True)
        return ids, offsets

    def decode(self, ids: Sequence[int]) -> str:
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
    steps = [json.loads(cleaning.normalizer.__getstate__())]
    if charsmap := proto.normalizer_spec.precompiled_charsmap:
        steps.append({"type": "Precompiled", "precompiled_charsmap": b64encode(charsmap).decode()})
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    cls, sep = ({"SpecialToken": {"id": token, "type_id": 0}} for token in CONTROL_SYMBOLS[:2])
    first, second = ({"Sequence": {"id": name, "type_id": number}} for number, name in enumerate("AB"))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, **flags} for token in _SPECIAL],
        "normalizer": {"type": "Sequence", "normalizers": steps},
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
