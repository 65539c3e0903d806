"""Cleaning of text before its tokens: one normalizer, with which a tokenizer trains, encodes and is exported."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tokenizers import Regex, normalizers

from albert_lab.config.data import CorpusConfig

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
