"""Training of a SentencePiece model with the flags of the released model."""

import io
import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import sentencepiece

from albert_lab.config.data import MIN_VOCAB_SIZE, CorpusConfig, TokenizerConfig
from albert_lab.data import corpus as texts
from albert_lab.data.sentences import raw_sentences
from albert_lab.data.tokenizer.base import CONTROL_SYMBOLS
from albert_lab.data.tokenizer.cleaning import cleaning_of
from albert_lab.errors import ConfigError

USER_DEFINED_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
_SEED = 149
# Sums over sentences are divided among the threads, so another number of threads gives another model.
_TRAINING_THREADS = 4
_LONGEST_BYTES = 4192  # SentencePiece leaves longer lines out, without a word


def train_on_corpus(corpus: CorpusConfig, settings: TokenizerConfig, file: Path) -> None:
    """Trains a model on the training documents of a corpus and writes it; raises the errors of train()."""
    assert settings.training_sentences is not None
    counts: Counter[str] = Counter()
    documents = texts.distinct(texts.iterate(corpus), counts)
    split = partial(texts.split_of, dev_share=corpus.dev_share, seed=corpus.split_seed)
    training = (document.text for document in documents if split(document.text) == "train")
    sentences = (sentence for text in training for sentence in raw_sentences(text, corpus))
    sampled = sample(sentences, settings.training_sentences)
    if not sampled:
        raise texts.empty_split("train", counts["documents"] - counts[texts.DUPLICATES], corpus)
    clean = cleaning_of(corpus)
    cleaned = (clean(sampled.pop()) for _ in range(len(sampled)))
    train(chain.from_iterable(map(short_lines, cleaned)), settings, file)


def short_lines(sentence: str) -> list[str]:
    """The sentence, cut at spaces (in a part without any, between characters) where it is too long for the trainer."""
    lines = []
    while len(sentence.encode()) > _LONGEST_BYTES:
        head = sentence.encode()[:_LONGEST_BYTES].decode(errors="ignore")
        end = head.rfind(" ") + 1 or len(head)
        lines.append(sentence[:end].strip())
        sentence = sentence[end:]
    return [*lines, sentence]


def train(sentences: Iterable[str], settings: TokenizerConfig, file: Path) -> None:
    """Trains a SentencePiece unigram model on cleaned sentences and writes it; the same sentences give the same model.

    Source: the flags of the released model (google-research/albert#149).

    Raises:
        ConfigError: tokenizer.vocab_size is more than the sentences yield, or less than their characters need.
    """
    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(_SEED)
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=settings.vocab_size,
            character_coverage=settings.character_coverage,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=list(CONTROL_SYMBOLS),
            user_defined_symbols=list(USER_DEFINED_SYMBOLS),
            shuffle_input_sentence=True,
            input_sentence_size=settings.training_sentences,
            num_threads=_TRAINING_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ConfigError(_explain(error, settings)) from error
    file.write_bytes(model.getvalue())


def sample(items: Iterable[str], size: int) -> list[str]:
    """A uniform random sample of at most `size` items, in one pass (Li 1994, Algorithm L)."""
    random = np.random.Generator(np.random.Philox(key=_SEED))
    stream = iter(items)
    kept = list(islice(stream, size))
    weight = 1.0
    while True:
        weight *= math.exp(math.log(1 - random.random()) / size)
        skipped = math.floor(math.log(1 - random.random()) / math.log1p(-weight))
        item = next(islice(stream, skipped, None), None)
        if item is None:
            return kept
        kept[random.integers(size)] = item


def _explain(error: RuntimeError, settings: TokenizerConfig) -> str:
    said = f"tokenizer.vocab_size={settings.vocab_size} does not fit this corpus"
    if largest := re.search(r"Vocabulary size too high .* <= (\d+)", str(error)):
        return f"{said}: it yields at most {largest[1]} tokens (and {MIN_VOCAB_SIZE} is the least); or give more text"
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
        return (
            f"{said}: its characters and the special tokens need {smallest[1]}, or a lower tokenizer.character_coverage"
        )
    return f"no tokenizer can be trained on this corpus: {error}"
