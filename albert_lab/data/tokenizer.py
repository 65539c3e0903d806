"""Cleaned text to token ids: by a SentencePiece model, such as ALBERT's, or by a tokenizer.json,
such as BERT's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from albert_lab.config.data import CorpusConfig
from albert_lab.errors import ConfigError
from albert_lab.files import digest_of, read_bytes

CONTROL_SYMBOLS = ("[CLS]", "[SEP]", "[MASK]")
Located = tuple[list[int], list[tuple[int, int]]]  # token ids, and the range of each in the text
_SPECIAL = ("<pad>", "<unk>", *CONTROL_SYMBOLS)
# BERT's names of those that have another one in ALBERT.
_OF_BERT = {"<pad>": "[PAD]", "<unk>": "[UNK]"}
# From _is_start_piece_sp of the release: the ASCII punctuation that it lists (not all) and the
# letters.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_LETTERS_AND_PUNCTUATION = _PUNCTUATION | frozenset("abcdefghijklmnopqrstuvwxyz")
# What str.split() or the rules of SentencePiece (nmt_nfkc) take for a space and Unicode's normal
# forms do not turn into one. In its form of these rules, transformers loses an accent after U+200C.
_SPACES = (
    "[\\t-\\r\\x1c-\\x1f\\x{85}\\x{1680}\\x{200b}\\x{200c}\\x{200e}\\x{200f}"
    "\\x{2028}\\x{2029}\\x{feff}\\x{fffd}]"
)
# The blocks of combining diacritical marks: accents of the Latin, Greek and Cyrillic alphabets. The
# vowel signs and voicing marks of other scripts are letters and stay.
_ACCENTS = (
    "[\\x{0300}-\\x{036f}\\x{1ab0}-\\x{1aff}\\x{1dc0}-\\x{1dff}"
    "\\x{20d0}-\\x{20ff}\\x{fe20}-\\x{fe2f}]"
)

# A unigram model takes these words for the pieces of their names, also where they stand in a text;
# cut after the bracket, they are text. Ordinary pieces have no bracket before a letter, as scripts
# are not mixed in them.
_APART = Regex(r"<(?=(?:pad|unk)>)|\[(?=(?:CLS|SEP|MASK|PAD|UNK)\])")


@dataclass(frozen=True)
class Cleaning:
    """Normal form NFKC with single spaces, and, if asked for, lower case and no accents.

    Source: preprocess_text in tokenization.py of the release.
    # Differs from the release, which drops every character with a combining class: the virama of
    Hindi as well.
    """

    lower_case: bool = False
    strip_accents: bool = False

    def __call__(self, text: str) -> str:
        """The cleaned text."""
        # as below but for runs of spaces, in a fraction of the time
        if text.isascii():
            text = " ".join(text.split())
            return text.lower() if self.lower_case else text
        return self.normalizer.normalize_str(text)

    @cached_property
    def normalizer(self) -> normalizers.Normalizer:
        """The cleaning as a part of a tokenizer.json."""
        parts: list[normalizers.Normalizer] = [
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.NFKC(),
        ]
        if self.lower_case:
            parts.append(normalizers.Lowercase())
        if self.strip_accents:
            parts += [normalizers.NFKD(), normalizers.Replace(Regex(_ACCENTS), "")]
        return normalizers.Sequence([*parts, normalizers.NFKC()])


def cleaning_of(corpus: CorpusConfig) -> Cleaning:
    """The cleaning that a corpus sets."""
    return Cleaning(corpus.lower_case, corpus.strip_accents)


class Tokenizer:
    """Text, which it cleans, to token ids, by a tokenizer.json without its truncation and padding.

    The file says how text is cleaned (in BERT: lower case, accents, punctuation); the corpus does
    not. Special tokens are looked up by name and never come from text.

    Attributes:
        fingerprint: short hash of everything that determines the tokens.
        vocab_size: number of tokens.
        model: content of the file that gives the same tokens elsewhere.
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
    """

    def __init__(self, model: bytes, origin: str) -> None:
        """Takes the content of a tokenizer.json, which origin names in errors; ConfigError if it
        cannot be used.
        """
        try:
            self._aligned = tokenizers.Tokenizer.from_buffer(model)
        except ValueError as error:
            raise ConfigError(f"{origin} is not a tokenizer.json: {error}") from error
        self._aligned.no_truncation()
        self._aligned.no_padding()
        self._aligned.encode_special_tokens = True  # the word [MASK] in a text is text
        self.model = model
        if isinstance(self._aligned.model, models.Unigram):
            self._aligned.pre_tokenizer = _specials_apart(self._aligned.pre_tokenizer)
            self.model = self._aligned.to_str(pretty=True).encode()
        self._is_word_piece = isinstance(self._aligned.model, models.WordPiece)
        self.fingerprint = digest_of(model)
        vocabulary = self._aligned.get_vocab()
        self.vocab_size = 1 + max(vocabulary.values())  # ids may have gaps
        self._find_special(vocabulary, origin)

    def _find_special(self, vocabulary: Mapping[str, int], origin: str) -> None:
        """Sets the ids of the special tokens, in ALBERT's or BERT's names; or ConfigError."""
        ids: list[int] = []
        for token in _SPECIAL:
            name = token if token in vocabulary else _OF_BERT.get(token, token)
            if name not in vocabulary:
                raise ConfigError(f"{origin} has no special token {name}")
            ids.append(vocabulary[name])
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Token ids of each sentence, without special tokens."""
        return [
            encoding.ids
            for encoding in self._aligned.encode_batch(list(sentences), add_special_tokens=False)
        ]

    def encode_with_offsets(self, text: str) -> Located:
        """Token ids of a text and, for each token, its character range [start, end) in the text
        before cleaning.

        Ranges may overlap: a character that cleaning takes apart may belong to several tokens.
        """
        encoding = self._aligned.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def tokens(self) -> list[str]:
        """The text of every token, by id."""
        return [str(self._aligned.id_to_token(token)) for token in range(self.vocab_size)]

    @cached_property
    def word_starts(self) -> np.ndarray:
        """Which tokens start a word, bool [vocab]; all others join the token before them.

        Source: _is_start_piece_sp in create_pretraining_data.py of the release. Each punctuation
        mark is a separate word, and so is every token with a character that is neither punctuation
        nor an English letter. In WordPiece, every token without `##` (create_pretraining_data.py of
        BERT, whole word masking).
        """
        tokens = self.tokens()
        if self._is_word_piece:
            return np.array([not token.startswith("##") for token in tokens])
        return np.array([starts_word(token) for token in tokens])


def starts_word(token: str) -> bool:
    """Whether a token of a SentencePiece model starts a word: by ▁, as a punctuation mark by
    itself, or by any character but English letters and punctuation (a digit, é, 中). All others
    continue the word of the token before them.
    """
    return (
        token.startswith(("▁", "<"))
        or token in _PUNCTUATION
        or not _LETTERS_AND_PUNCTUATION.issuperset(token.lower())
    )


def load(file: Path, cleaning: Cleaning = Cleaning()) -> Tokenizer:
    """The tokenizer of a model file: a tokenizer.json (by its suffix), which has its own cleaning,
    or a SentencePiece model, for which text is cleaned as given.

    Raises:
        ConfigError: the file cannot be read or is not such a model, or a special token is missing
            or could come from text.
    """
    model = read_bytes(file)
    return (
        Tokenizer(model, str(file))
        if file.suffix == ".json"
        else SentencePieceTokenizer(model, str(file), cleaning)
    )


class SentencePieceTokenizer(Tokenizer):
    """Text to token ids by a SentencePiece model.

    # Differs from the release: a token such as "2," stays; its encode_pieces splits off the comma.
    """

    _is_word_piece = False

    def __init__(self, model: bytes, origin: str, cleaning: Cleaning = Cleaning()) -> None:
        """Takes a serialized SentencePiece model, which origin names in errors; ConfigError if it
        is none, lacks a special token, or is no unigram model that a tokenizer.json can express.
        """
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise ConfigError(f"{origin} is not a SentencePiece model") from error
        self.model = model
        self.fingerprint = digest_of(model)
        _parsed_unigram(model, origin)
        self._clean = cleaning
        self.vocab_size = self._processor.GetPieceSize()
        # A piece of the same name that is no control symbol could come from text.
        unknown = self._processor.unk_id()
        special = {
            token: number
            for number, token in enumerate(self.tokens())
            if self._processor.IsControl(number) or number == unknown
        }
        self._find_special(special, origin)

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        cleaned = [self._clean(sentence) for sentence in sentences]
        return self._processor.Encode(cleaned, out_type=int, num_threads=threads)

    @cached_property
    def _aligned(self) -> tokenizers.Tokenizer:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The same tokenizer, ten times slower, which knows the place of each token in the text
        before cleaning.
        """
        aligned = tokenizers.Tokenizer.from_str(json.dumps(as_json(self.model, self._clean)))
        aligned.encode_special_tokens = True
        return aligned

    def encode_with_offsets(self, text: str) -> Located:
        space = self._processor.PieceToId("▁")
        ids, offsets = super().encode_with_offsets(text)
        # A lone ▁ is the space before a word: it has no character of the word that begins there.
        return ids, [
            (first, first if token == space else end)
            for token, (first, end) in zip(ids, offsets, strict=True)
        ]

    def tokens(self) -> list[str]:
        return [self._processor.IdToPiece(token) for token in range(self.vocab_size)]


def _parsed_unigram(model: bytes, origin: str) -> Any:
    """The content of a SentencePiece model; ConfigError unless it has the rules that _unigram()
    has.
    """
    # protobuf takes a while, and only exports read it
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()  # pyright: ignore[reportAttributeAccessIssue]
    proto.ParseFromString(model)
    trainer = proto.trainer_spec
    is_allowed = (
        trainer.model_type == trainer.UNIGRAM
        and trainer.split_by_whitespace
        and proto.normalizer_spec.add_dummy_prefix
        and not trainer.byte_fallback
        and not trainer.treat_whitespace_as_suffix
    )
    if not is_allowed:
        allowed = (
            "model_type=unigram, split_by_whitespace, add_dummy_prefix, no byte_fallback, no "
            "suffixes"
        )
        raise ConfigError(f"{origin} is a SentencePiece model of another kind (allowed: {allowed})")
    return proto


def _unigram(proto: Any, cleaning: Cleaning) -> tokenizers.Tokenizer:
    """A SentencePiece unigram model, before which text is cleaned, as a tokenizer without special
    tokens.

    Brackets, quotes and other symbols that SentencePiece never joins to others remain ordinary
    tokens, with their score of 0, the highest. transformers would make them added tokens, which
    drop the space before them.
    """
    pieces = [(entry.piece, entry.score) for entry in proto.pieces]
    unknown = [entry.piece for entry in proto.pieces].index("<unk>")
    result = tokenizers.Tokenizer(models.Unigram(pieces, unknown, byte_fallback=False))
    steps = [cleaning.normalizer]
    if proto.normalizer_spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap))
    result.normalizer = normalizers.Sequence(steps)
    result.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    result.decoder = decoders.Metaspace()
    return result


def _specials_apart(
    pre_tokenizer: pre_tokenizers.PreTokenizer | None,
) -> pre_tokenizers.PreTokenizer:
    """The pre-tokenizer, after which no word of a text is the name of a special token."""
    cut = pre_tokenizers.Split(_APART, "merged_with_previous")
    return pre_tokenizers.Sequence([pre_tokenizer, cut] if pre_tokenizer else [cut])


def as_json(model: bytes, cleaning: Cleaning) -> dict[str, Any]:
    """The content of a tokenizer.json that cleans text and then gives the ids of a SentencePiece
    unigram model.

    In transformers, the name of a special token in a text is that token, unless
    split_special_tokens=True.
    """
    tokenizer = _unigram(_parsed_unigram(model, "the model"), cleaning)
    tokenizer.pre_tokenizer = _specials_apart(tokenizer.pre_tokenizer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in _SPECIAL])
    ends = [(token, tokenizer.token_to_id(token)) for token in CONTROL_SYMBOLS[:2]]
    pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=pair, special_tokens=ends
    )
    content = json.loads(tokenizer.to_str())
    cleaning_steps = json.loads(cleaning.normalizer.__getstate__())
    steps = content["normalizer"]["normalizers"]
    # Cleaning stays one step: transformers takes single steps for those of its own ALBERT.
    steps[: len(cleaning_steps["normalizers"])] = [cleaning_steps]
    return content
