"""The lexical floor: the score on segment pairs of a bag-of-tokens classifier, which cannot relate the two segments."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from albert_lab import files, paths
from albert_lab.config.compose import load_option
from albert_lab.config.schema import InterSentenceConfig, RunConfig, digest
from albert_lab.data.batches import fixed_pairs
from albert_lab.data.build import Say, find_or_build
from albert_lab.data.pairs import Pairs
from albert_lab.data.prepare import find_shards
from albert_lab.data.shards import Shards
from albert_lab.errors import DamagedFileError
from albert_lab.storage import write_atomically

if TYPE_CHECKING:  # takes half a second to import, and only fitting needs it
    from scipy.sparse import csr_matrix

# Increment it with every change that gives other floors for the same text and settings.
VERSION = 1
# Twice as many pairs change the SOP floor of paragraphs of Wikipedia by 0.3 points.
TRAINING_PAIRS = 40_000
# Share of the training pairs on which the strength of the regularisation is chosen.
VALIDATION_SHARE = 0.1
STRENGTHS = (0.001, 0.003, 0.01, 0.03)
_FILE = "floors.json"
Percent = Annotated[float, Field(ge=0, le=100)]


def find_or_fit(config: RunConfig, train: Shards, dev: Shards, options: Sequence[str], say: Say) -> dict[str, float]:
    """The lexical floor of the evaluation set of each inter_sentence option, in percent; fitted once, then cached.

    A floor depends on the text, the lengths and the evaluation's settings, but not on a run's seed or objective.

    Args:
        config: configuration of the run.
        train: text on which the classifiers are fitted.
        dev: text of the evaluation sets.
        options: inter_sentence options with two labels each, such as nsp and sop.
        say: receives lines for the user.

    Raises:
        ConfigError: text from which no set can be made (see pairs.make_pairs).
        DiskFullError: no space left.
    """

    def fit() -> str:
        return json.dumps({option: _floor(config, train, dev, option) for option in options}) + "\n"

    def build(folder: Path) -> None:
        (folder / _FILE).write_text(fit())

    folder = paths.cache() / "lexical-floors" / digest([VERSION, find_shards(config).name, _settings(config), *options])
    find_or_build(folder, build, "the lexical floors", say)
    try:
        return _read(folder / _FILE, options)
    except DamagedFileError as error:
        say(f"the lexical floors are fitted again: {error}")
        write_atomically(folder / _FILE, fit())
    return _read(folder / _FILE, options)


def _read(file: Path, options: Sequence[str]) -> dict[str, float]:
    floors = files.read_json(file, dict[str, Percent])
    if set(floors) != set(options):
        raise DamagedFileError(file, f"has the floors of {', '.join(floors)}, not of {', '.join(options)}")
    return floors


def _settings(config: RunConfig) -> dict[str, Any]:
    """The settings that determine the pairs, in addition to the text."""
    return {
        "max_sequence_length": config.max_sequence_length,
        "short_sequence_probability": config.short_sequence_probability,
        "num_pairs": config.evaluation.num_pairs,
        "seed": config.evaluation.seed,
    }


def _floor(config: RunConfig, train: Shards, dev: Shards, option: str) -> float:
    def pairs(shards: Shards, num_pairs: int) -> Pairs:
        return fixed_pairs(
            shards,
            load_option("inter_sentence", option, InterSentenceConfig),
            num_pairs=num_pairs,
            max_sequence_length=config.max_sequence_length,
            short_sequence_probability=config.short_sequence_probability,
            seed=config.evaluation.seed,
        )

    fitted, scored = pairs(train, TRAINING_PAIRS), pairs(dev, config.evaluation.num_pairs)
    vocab_size = config.tokenizer.vocab_size
    return 100 * accuracy(bags(train, fitted, vocab_size), fitted.label, bags(dev, scored, vocab_size), scored.label)


def bags(shards: Shards, pairs: Pairs, vocab_size: int) -> "csr_matrix":
    """Counts of each token in segment A, then of each token in segment B [pairs, 2 * vocab]."""
    from scipy.sparse import csr_matrix

    starts, lengths = np.stack([pairs.a_start, pairs.b_start], 1).ravel(), np.stack([pairs.a_length, pairs.b_length], 1)
    lengths = lengths.ravel().astype(np.int64)
    ends = np.cumsum(lengths)
    place = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths) + np.repeat(starts, lengths)
    tokens = shards.tokens[place].astype(np.int64)
    tokens += vocab_size * np.repeat(np.arange(len(lengths)) % 2, lengths)
    counts = csr_matrix((np.ones(len(tokens)), tokens, np.concatenate([[0], ends[1::2]])), (len(pairs), 2 * vocab_size))
    counts.sum_duplicates()
    return counts


def accuracy(train: "csr_matrix", train_labels: np.ndarray, dev: "csr_matrix", dev_labels: np.ndarray) -> float:
    """Accuracy (0 to 1) of a logistic regression; the regularisation is chosen on a slice of its training pairs."""
    from sklearn.linear_model import LogisticRegression

    def fit(strength: float, rows: slice) -> LogisticRegression:
        return LogisticRegression(C=strength, max_iter=1000).fit(train[rows], train_labels[rows])

    kept = round(len(train_labels) * (1 - VALIDATION_SHARE))
    slices = slice(kept), slice(kept, None)
    scores = [fit(strength, slices[0]).score(train[slices[1]], train_labels[slices[1]]) for strength in STRENGTHS]
    best = STRENGTHS[int(np.argmax(scores))]
    return float(fit(best, slice(None)).score(dev, dev_labels))
