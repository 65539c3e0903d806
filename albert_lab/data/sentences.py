"""Sentences of a raw document."""

from collections.abc import Callable, Iterator
from itertools import chain

import sentencex

from albert_lab.config.data import CorpusConfig

_segment: Callable[[str, str], list[str]] = sentencex.segment  # pyright: ignore[reportAttributeAccessIssue]  # no stubs


def raw_sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Sentences of a document as they stand in it; some may be blank."""
    lines = text.split("\n")
    if corpus.sentences == "line":
        return iter(lines)
    return chain.from_iterable(_segment(corpus.language, line) for line in lines)


def sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Sentences of a document that are not blank, before cleaning: the splitter needs capital letters."""
    return filter(None, map(str.strip, raw_sentences(text, corpus)))
