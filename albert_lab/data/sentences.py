"""Sentences of a raw document: split, and cleaned by the settings of the corpus."""

import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain

import sentencex

from albert_lab.config.data import CorpusConfig

_segment: Callable[[str, str], list[str]] = sentencex.segment  # pyright: ignore[reportAttributeAccessIssue]  # no stubs


def clean(text: str, corpus: CorpusConfig) -> str:
    """The text with single spaces and, if the corpus sets it, without accents and in lower case.

    Source: preprocess_text in tokenization.py of the release, which drops characters that have a combining class.
    """
    text = " ".join(text.split())
    if corpus.strip_accents and not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return text.lower() if corpus.lower_case else text


def raw_sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Sentences of a document before cleaning, since the splitter needs capital letters."""
    lines = text.split("\n")
    if corpus.sentences == "line":
        return iter(lines)
    return chain.from_iterable(_segment(corpus.language, line) for line in lines)


def sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Cleaned sentences of a raw document; none is empty."""
    cleaned = (clean(sentence, corpus) for sentence in raw_sentences(text, corpus))
    return (sentence for sentence in cleaned if sentence.strip())
