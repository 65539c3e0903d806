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

MANY_ACCENTS = 0.001  # of the letters: English text has fewer


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

    def describe(self, texts: Iterable[str]) -> str | None:
        """Which letters of texts it changes, and what share of them, in a line; None if it changes none.

        It is a warning where more than MANY_ACCENTS of the letters lose an accent.
        """
        letters = Counter(char for text in texts for char in normalizers.NFKC().normalize_str(text) if char.isalpha())
        parts: list[str] = []
        if self.lower_case and (share := _share(letters, [char for char in letters if char != char.lower()])):
            parts.append(f"{share} to lower case (corpus.lower_case)")
        accented = [char for char in letters if self(char.lower()) != char.lower()]
        if self.strip_accents and (share := _share(letters, accented)):
            usual = sorted(accented, key=lambda char: (-letters[char], char))[:5]
            named = ", ".join(f"{char} to {self(char)}" for char in usual)
            parts.append(f"{share} lose an accent, such as {named} (corpus.strip_accents)")
        lost = sum(letters[char] for char in accented) if self.strip_accents else 0
        mark = "warning: " if lost > MANY_ACCENTS * letters.total() else ""
        return f"{mark}cleaning changes letters: {'; '.join(parts)}" if parts else None


AS_IS = Cleaning()


def cleaning_of(corpus: CorpusConfig) -> Cleaning:
    """The cleaning that a corpus sets."""
    return Cleaning(corpus.lower_case, corpus.strip_accents, corpus.language)


def _share(letters: Counter[str], changed: list[str]) -> str | None:
    share = sum(letters[char] for char in changed) / max(1, letters.total())
    return f"{100 * share:.2g} %" if share else None
