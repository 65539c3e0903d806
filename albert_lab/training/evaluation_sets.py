"""The fixed sets of examples on which a run is evaluated: one for each held-out measure, and those of probes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch, Vocabulary, masked_set, micro_batches
from albert_lab.data.pairs import Pairs
from albert_lab.data.shards import Shards
from albert_lab.errors import ConfigError
from albert_lab.measures.catalog import of_kind
from albert_lab.measures.measure import HeldOutPairs, PairMeasure


@dataclass(frozen=True)
class EvaluationSets:
    """Fixed sets of examples, planned at once and masked at their use.

    Attributes:
        vocabulary: special ids and word starts.
        config: lengths, masking and sizes.
        dev, train: the texts of the sets.
        pairs: the held-out pairs of each measure.
        probes: pairs of training documents, by measure, on which its linear probe is fitted; empty if a whole text is
            scored, whose train is None.
        left_out: the measures whose sets cannot be made from a whole text that is scored, or from a text of single
            sentences, with the reasons.
        floors: whether each segment by itself answers each pair correctly [pairs] bool, by measure (see
            measures/segments_floor.py); empty if unknown.
    """

    vocabulary: Vocabulary
    config: RunConfig
    dev: Shards
    train: Shards | None
    pairs: Mapping[str, Pairs]
    probes: Mapping[str, Pairs]
    floors: Mapping[str, np.ndarray]
    left_out: Mapping[str, str]
    _kept: dict[str, Batch] = field(default_factory=dict)

    def batch(self, measure: HeldOutPairs, num_pairs: int | None = None) -> Batch:
        """The masked examples of a measure, all or the first num_pairs."""
        batch = self._kept.get(measure.name) or self._masked(self.dev, self.pairs[measure.name])
        if measure.in_curves:  # it is used again and again
            self._kept[measure.name] = batch
        return batch if num_pairs is None else next(micro_batches(batch, num_pairs))

    def probe(self, measure: PairMeasure) -> Batch:
        """The training examples of the linear probe of a measure."""
        assert self.train is not None
        return self._masked(self.train, self.probes[measure.name])

    def sources(self, measure: HeldOutPairs) -> np.ndarray:
        """The source document of the first segment of each pair of a measure [pairs]."""
        return self.dev.source_of(self.dev.document_at(self.pairs[measure.name].a_start))

    def _masked(self, shards: Shards, pairs: Pairs) -> Batch:
        return masked_set(
            shards,
            pairs,
            self.config.masking,
            self.vocabulary,
            max_sequence_length=self.config.max_sequence_length,
            seed=self.config.evaluation.seed,
        )


def make_sets(
    train: Shards | None,
    dev: Shards,
    vocabulary: Vocabulary,
    config: RunConfig,
    floors: Mapping[str, np.ndarray] | None = None,
) -> EvaluationSets:
    """The evaluation sets of a run; they do not depend on its seed or its objective.

    Every set is masked like the training batches ("the same procedure", section 4.1).

    Args:
        train: the training text without added text, for probes; None: no probes.
        dev: the held-out text.
        vocabulary, config, floors: see EvaluationSets.

    Raises:
        ConfigError: a set cannot be made from the text; without a training text, or of single sentences, none is made.
    """
    sizes = config.evaluation
    left_out: dict[str, str] = {}

    def made(shards: Shards, measures: Iterable[HeldOutPairs], number: int) -> dict[str, Pairs]:
        pairs: dict[str, Pairs] = {}
        for measure in measures:
            try:
                pairs[measure.name] = measure.pairs(shards, config, number)
            except ConfigError as error:
                if train is not None and not dev.is_of_single_sentences:
                    raise
                left_out[measure.name] = str(error)
        return pairs

    pairs = made(dev, of_kind(HeldOutPairs), sizes.num_pairs)
    probed = [measure for measure in of_kind(PairMeasure) if measure.probe and measure.name in pairs]
    return EvaluationSets(
        vocabulary,
        config,
        dev,
        train,
        pairs=pairs,
        probes=made(train, probed, sizes.num_probe_pairs) if train is not None else {},
        floors=floors or {},
        left_out=left_out,
    )
