"""The floor of pair measures, each segment by itself: a linear classifier of both, which cannot
relate the two.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_lab import files, own_code, paths
from albert_lab.config.schema import RunConfig, digest
from albert_lab.data.batches import SAMPLED_BLOCKS
from albert_lab.data.pairs import NoPairsError, Pairs, Stream, generator, make_pairs
from albert_lab.data.prepare import find_shards
from albert_lab.data.shards import Shards
from albert_lab.measures.catalog import of_kind
from albert_lab.measures.measure import PairMeasure
from albert_lab.messages import Say
from albert_lab.storage import find_or_build

if TYPE_CHECKING:  # they take half a second to import, and only fitting needs them
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import SGDClassifier

VERSION = 2  # increment it with every change that gives other floors for the same text and settings
# A classifier reads at most so many training pairs for each held-out pair (about what a run reads),
# and epochs of them.
TRAINING_PAIRS = 32
MOST_EPOCHS = 20
# Share of the training documents whose pairs choose among these constant learning rates.
VALIDATION_SHARE = 0.1
RATES = (0.002, 0.005, 0.015)
_DECAY = 1e-4
EDGE = 3  # the first and last tokens of a segment that count with their place
BIGRAMS = 1 << 15  # into which the pairs of adjacent tokens are hashed


def find_or_fit(config: RunConfig, train: Shards, dev: Shards, say: Say) -> dict[str, list[bool]]:
    """Whether the floor answers each pair of each pair measure correctly [pairs]; fitted once,
    then cached.

    It depends on the text, the lengths and the evaluation's settings, but not on a run's seed,
    objective or budget.

    Raises:
        ConfigError: text from which no pairs can be made (see pairs.make_pairs), or a damaged file
            in the cache.
        OSError: no space left.
    """
    identity = [
        VERSION,
        find_shards(config).name,
        config.max_sequence_length,
        config.short_sequence_probability,
        config.evaluation.num_pairs,
        config.evaluation.seed,
        *(measure.name for measure in of_kind(PairMeasure)),
        *own_code.included().values(),
    ]
    folder = paths.cache() / "segments-floors" / digest(identity)

    def build(folder: Path) -> None:
        (folder / "right.json").write_text(json.dumps(_right(config, train, dev, say)))

    file = find_or_build(folder, build, say) / "right.json"
    remedy = f"remove {folder}, and the same command builds it again"
    return files.read_json(file, dict[str, list[bool]], remedy)


def _right(config: RunConfig, train: Shards, dev: Shards, say: Say) -> dict[str, list[bool]]:
    """Whether the floor answers each held-out pair correctly, of the measures that have pairs."""
    settings = config.evaluation
    describe = partial(features, vocab_size=config.tokenizer.vocab_size)
    fitted: dict[str, SGDClassifier] = {}
    right: dict[str, list[bool]] = {}
    # Those with a classifier of their own come first: others are answered by it.
    for measure in sorted(of_kind(PairMeasure), key=lambda measure: measure.fitted_as is not None):
        try:
            pairs = measure.pairs(dev, config, settings.num_pairs)
            if measure.fitted_as is None:
                epochs = _epochs(train, measure, config)
                fitted[measure.name] = fit(train, epochs, describe, settings.seed)
        except NoPairsError as error:
            say(f"warning: {measure.label} is not scored: {error}")
            continue
        classifier = fitted.get(measure.fitted_as or measure.name)
        if classifier:
            answers = classifier.predict(describe(dev, pairs))
            right[measure.name] = np.equal(answers, pairs.label).tolist()
    return right


def _epochs(train: Shards, measure: PairMeasure, config: RunConfig) -> Iterator[Pairs]:
    """Epochs of training pairs, with other cuts and other pairs in each, up to the bounds."""
    left = TRAINING_PAIRS * config.evaluation.num_pairs
    seed = config.evaluation.seed
    for epoch in range(MOST_EPOCHS):
        pairs = make_pairs(
            train, measure.objective(), config, seed=seed, epoch=epoch, most_blocks=SAMPLED_BLOCKS
        )
        pairs = pairs.take(slice(left))
        left -= len(pairs)
        yield pairs
        if not left:
            return


def fit(
    shards: Shards,
    epochs: Iterator[Pairs],
    describe: "Callable[[Shards, Pairs], csr_matrix]",
    seed: int,
) -> "SGDClassifier":
    """A logistic regression, fitted in one pass over epochs of pairs, as a model reads them.

    Its weights are the average over all steps (Polyak and Juditsky 1992). The learning rate, which
    determines how far they go in one pass, is chosen on documents that its candidates do not read;
    then all documents count.

    Args:
        describe: returns the features of pairs of a text.
        seed: of the choice of documents and of the order of pairs.
    """
    from sklearn.linear_model import SGDClassifier

    def candidates() -> "dict[float, SGDClassifier]":
        fixed: Any = {"alpha": _DECAY, "average": True, "random_state": seed}
        return {
            rate: SGDClassifier("log_loss", learning_rate="constant", eta0=rate, **fixed)
            for rate in RATES
        }

    wholly = candidates()  # fitted on all documents
    partly = candidates()  # on those that are not kept out
    kept_out = generator(Stream.ORDER, seed, 0).random(shards.num_documents) < VALIDATION_SHARE
    unread: list[tuple[csr_matrix, np.ndarray]] = []
    for pairs in epochs:
        rows = describe(shards, pairs)
        labels = pairs.label
        first = kept_out[shards.document_at(pairs.a_start)]
        second = kept_out[shards.document_at(pairs.b_start)]
        read = ~(first | second)
        if first.any():
            unread.append((rows[first], labels[first]))
        for rate in RATES:
            wholly[rate].partial_fit(rows, labels, classes=[0, 1])
            if read.any():
                partly[rate].partial_fit(rows[read], labels[read], classes=[0, 1])
    return wholly[max(RATES, key=lambda rate: _num_right(partly[rate], unread))]


def _num_right(
    classifier: "SGDClassifier", parts: "Sequence[tuple[csr_matrix, np.ndarray]]"
) -> int:
    """The number of right answers; 0 if the text was too small to keep documents apart."""
    if not hasattr(classifier, "coef_"):
        return 0
    return sum(int(np.count_nonzero(classifier.predict(rows) == labels)) for rows, labels in parts)


def features(shards: Shards, pairs: Pairs, vocab_size: int) -> "csr_matrix":
    """Counts of each segment by itself [pairs, features]: no feature looks at both segments.

    Per segment: its tokens, its first and its last EDGE tokens by their place, and its hashed pairs
    of adjacent tokens.
    """
    from scipy.sparse import csr_matrix

    first_bigram = (1 + 2 * EDGE) * vocab_size
    width = first_bigram + BIGRAMS  # features of a segment
    rows = []
    columns = []
    sides = [(pairs.a_start, pairs.a_length), (pairs.b_start, pairs.b_length)]
    for side, (start, length) in enumerate(sides):
        # A row of each of these arrays is a segment, and then what follows up to the longest.
        place = np.arange(length.max())
        before_end = length[:, None] - 1 - place
        is_text = before_end >= 0
        token = shards.tokens[np.where(is_text, start[:, None] + place, 0)].astype(np.int64)
        # The column of a kind of feature, and the tokens that have such a feature.
        kinds = [(token, is_text)]
        for edge in range(EDGE):
            kinds.append((token + (1 + edge) * vocab_size, is_text & (place == edge)))
            kinds.append((token + (1 + EDGE + edge) * vocab_size, before_end == edge))
        bigram = (token * 2003 + np.roll(token, -1, axis=1) * 7919) % BIGRAMS
        kinds.append((bigram + first_bigram, before_end > 0))
        for column, counts in kinds:
            rows.append(np.nonzero(counts)[0])
            columns.append(column[counts] + side * width)
    places = (np.concatenate(rows), np.concatenate(columns))
    return csr_matrix((np.ones(len(places[0])), places), (len(pairs), 2 * width))
