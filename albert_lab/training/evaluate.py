"""Intrinsic evaluation: fixed sets of examples, the scores of a model in the held-out measures, and
their documents.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch, collate, micro_batches
from albert_lab.data.chunks import Stream, generator
from albert_lab.data.pairs import NoPairsError, Pairs
from albert_lab.data.shards import Shards
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.measures import catalog, word_overlap
from albert_lab.measures.measure import (
    Baseline,
    Difference,
    HeldOutPairs,
    Measure,
    OwnTextMeasure,
    PairMeasure,
    RandomProbe,
    TokenMeasure,
)
from albert_lab.model.encoder import PretrainingModel, PretrainingOutput, likeliest
from albert_lab.score import LINEAR_PROBE, Documents, Score, by_document, loss_name, share
from albert_lab.training.device import Clock, autocast, fetch, inputs_of, tensor_on

if TYPE_CHECKING:  # it takes a second to import, and only probes need it
    from sklearn.pipeline import Pipeline

CONSECUTIVE = "consecutive"
HEAD = "head"


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model by name, of measures and of probes, and their sums by document (see
    RunRecord); of pairs also whether each answer is right [pairs] bool.
    """

    scores: dict[str, Score] = field(default_factory=dict)
    documents: dict[str, Documents] = field(default_factory=dict)
    right: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass
class Evaluator:
    """Scores a model, which is then in evaluation mode, on fixed sets that do not depend on a run's
    seed or objective.

    Every set is masked like the training batches ("the same procedure", section 4.1), at its use.
    A set that cannot be made from the text is a ConfigError.

    Attributes:
        config: lengths, masking, sizes, the labels of the model's head, and the precision.
        train: the training text without added text, for probes.
        dev: the held-out text.
        floors: whether each segment by itself answers each pair correctly [pairs], by measure
            (see measures/segments_floor.py); empty if unknown.
        is_stopped: called before every forward pass; if true, StoppedError ends the evaluation.
        pairs: the held-out pairs of each measure; pair measures of which the text has none are left
            out.
        probe_pairs: pairs of training documents, by measure, on which its linear probe is fitted.
        kinds: the kinds of pair that the model's head separates, in the order of its logits; empty
            without a head.
    """

    config: RunConfig
    train: Shards
    dev: Shards
    tokenizer: Tokenizer
    floors: Mapping[str, Sequence[bool]]
    device: torch.device
    is_stopped: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        config = self.config
        self.autocast = autocast(config.machine.precision, self.device)
        self.kinds = [label.kind for label in config.inter_sentence.labels]
        self.pairs = self._made(
            self.dev, catalog.of_kind(HeldOutPairs), config.evaluation.num_pairs
        )
        probed = [
            measure
            for measure in catalog.of_kind(PairMeasure)
            if measure.probe and measure.name in self.pairs
        ]
        self.probe_pairs = self._made(self.train, probed, config.evaluation.num_probe_pairs)
        self._masked_once: dict[str, Batch] = {}

    def _made(
        self, shards: Shards, measures: Sequence[HeldOutPairs], number: int
    ) -> dict[str, Pairs]:
        """The pairs of each measure; without pair measures of which the text has none."""
        pairs: dict[str, Pairs] = {}
        for measure in measures:
            try:
                pairs[measure.name] = measure.pairs(shards, self.config, number)
            except NoPairsError:
                if isinstance(measure, TokenMeasure):
                    raise
        return pairs

    def batch(self, measure: HeldOutPairs, num_pairs: int | None = None) -> Batch:
        """The masked examples of a measure: the first num_pairs, or all."""
        batch = self._masked_once.get(measure.name)
        batch = batch or self._masked(self.dev, self.pairs[measure.name])
        if measure.in_curves:  # it is used again and again
            self._masked_once[measure.name] = batch
        return batch if num_pairs is None else next(micro_batches(batch, num_pairs))

    def probe(self, measure: PairMeasure) -> Batch:
        """The training examples of the linear probe of a measure."""
        return self._masked(self.train, self.probe_pairs[measure.name])

    def _masked(self, shards: Shards, pairs: Pairs) -> Batch:
        """Pairs, held out or of a probe's training, with the same masks at every evaluation."""
        config = self.config
        rng = generator(Stream.MASKING, config.evaluation.seed, 0)
        return collate(
            shards, pairs, self.tokenizer, config.masking, config.max_sequence_length, rng
        )

    def along_the_way(self, model: PretrainingModel, num_pairs: int) -> dict[str, Score]:
        """The scores for learning curves, on the first num_pairs pairs: those of the model's own
        heads, without probes, so that a model without a pair head has none of pairs.

        Raises:
            DivergedError: a loss that is not a finite number.
        """
        measures = [measure for measure in catalog.measures() if measure.in_curves]
        return self._evaluate(model.eval(), measures, {}, num_pairs).scores

    def evaluate(self, model: PretrainingModel, untrained: Collection[str] = ()) -> Evaluation:
        """The scores of a model in all measures, except those that it cannot have.

        Args:
            untrained: its parts that are missing or have random weights, such as mlm_head; linear
                probes answer for a pair head.

        Raises:
            DivergedError: a loss that is not a finite number.
        """
        unscored = (TokenMeasure, OwnTextMeasure) if "mlm_head" in untrained else ()
        unscored += (PairMeasure, Difference) if "pooler" in untrained else ()
        if "pair_head" in untrained:
            self.kinds = []
        measures = [measure for measure in catalog.measures() if type(measure) not in unscored]
        model.eval()
        fitted = {
            measure.name: self._fit_probe(model, measure)
            for measure in measures
            if isinstance(measure, PairMeasure) and measure.name in self.probe_pairs
        }
        return self._evaluate(model, measures, fitted)

    def tokens_per_second(self, model: PretrainingModel, seconds: float) -> float:
        """Tokens (without padding) per second of forward passes of encoder and heads, measured for
        so many seconds.
        """
        batch = self.batch(catalog.MLM)
        clock = Clock(self.device)
        tokens = 0
        model.eval()
        with torch.inference_mode(), self.autocast():
            for part in cycle(micro_batches(batch, self.config.evaluation.batch_size)):
                inputs = inputs_of(part, self.device)
                with clock.training():
                    model(**inputs)
                tokens += part.num_tokens
                if clock.training_seconds >= seconds:
                    break
        return tokens / clock.training_seconds

    def _evaluate(
        self,
        model: PretrainingModel,
        measures: Sequence[Measure],
        fitted: "Mapping[str, Pipeline]",
        num_pairs: int | None = None,
    ) -> Evaluation:
        """The scores of a model in some measures, on the first num_pairs pairs of each, or on all.

        A measure has no score if the text has no pairs of it, or if it has neither a head nor a
        fitted probe.
        """
        result = Evaluation()
        for measure in measures:  # differences come after what they are of
            name = measure.name
            match measure:
                case OwnTextMeasure():
                    with torch.inference_mode():
                        taken = measure.taken(model, self.tokenizer, self.device)
                    result.scores[name], result.documents[name] = taken
                case TokenMeasure():
                    self._take_tokens(result, model, measure, self.batch(measure, num_pairs))
                case PairMeasure() if name in self.pairs:
                    probe = fitted.get(measure.fitted_as or name)
                    if probe or self.kinds:
                        self._take_pairs(
                            result, model, measure, self.batch(measure, num_pairs), probe
                        )
                case Difference() if {measure.of, measure.minus} <= result.right.keys():
                    self._take_difference(result, measure)
                case Baseline() if measure.pairs_of in self.probe_pairs:
                    self._take_baseline(result, model, measure)
        return result

    def _take_tokens(
        self, result: Evaluation, model: PretrainingModel, measure: TokenMeasure, batch: Batch
    ) -> None:
        """Adds the accuracy in percent and the loss in nats per token of the MLM head on the masked
        tokens of a measure, and their sums by document.

        Raises:
            DivergedError: the loss is not a finite number.
        """
        correct = []
        losses = []
        for part, output in self._outputs(model, batch, mlm=True):
            labels = tensor_on(part.masked_labels, self.device)
            correct.append(likeliest(output.mlm_logits) == labels)
            # logsumexp instead of log_softmax, to avoid a second tensor of all log-probabilities.
            logits = output.mlm_logits.float()
            losses.append(logits.logsumexp(-1) - logits.gather(-1, labels[:, None])[:, 0])
        right = fetch(correct)
        loss = fetch(losses).astype(np.float64)
        n = len(right)
        most_frequent = 100 * float(np.bincount(batch.masked_labels).max()) / n
        result.scores[measure.name] = share(
            int(right.sum()),
            n,
            floor=most_frequent,
            by=HEAD,
            loss=_finite_or_raise(float(loss.sum()) / n),
        )
        source = self._sources(measure.name)[batch.masked_positions // batch.input_ids.shape[1]]
        result.documents[measure.name] = by_document(source, right)
        result.documents[loss_name(measure.name)] = by_document(source, loss)

    def _take_pairs(
        self,
        result: Evaluation,
        model: PretrainingModel,
        measure: PairMeasure,
        batch: Batch,
        probe: "Pipeline | None",
    ) -> None:
        """Adds the scores of the head's answers, of a probe's if there is no head, and of a probe
        apart. A head that was trained on other kinds of pairs answers, too: see margin().
        """
        log_odds, pooled = self._read(model, batch, measure.negative)
        by_head = None if log_odds is None else (log_odds, HEAD)
        by_probe = None if probe is None else (probe.decision_function(pooled), LINEAR_PROBE)
        # Changed pairs belong to the documents of the pairs that they were made of, if there are as
        # many of both; else they have no sums by document.
        made_of = measure.fitted_as if measure.changed and measure.fitted_as in self.pairs else None
        source = self._sources(made_of or measure.name)
        for name, answers in ((measure.name, by_head or by_probe), (measure.probe, by_probe)):
            if name and answers:
                _add_pairs(result, name, *answers, batch.pair_labels, source)
                floor = self.floors.get(measure.name)
                if floor is not None:
                    update = {"segments_floor": 100 * float(np.mean(floor))}
                    result.scores[name] = result.scores[name].model_copy(update=update)

    def _take_difference(self, result: Evaluation, measure: Difference) -> None:
        """Adds the score of measure.of minus measure.minus over the same pairs, in points, and
        their sums by document where both have them.

        A constant answer has a difference of 0 (floor); segments_floor is that of single segments.
        """
        minuend = result.right[measure.of]
        subtrahend = result.right[measure.minus]
        segments_floor = None
        if {measure.of, measure.minus} <= self.floors.keys():
            difference = np.mean(self.floors[measure.of]) - np.mean(self.floors[measure.minus])
            segments_floor = 100 * float(difference)
        result.scores[measure.name] = Score(
            value=100 * float(minuend.mean() - subtrahend.mean()),
            n=len(minuend),
            floor=0,
            by=result.scores[measure.of].by,
            segments_floor=segments_floor,
        )
        if {measure.of, measure.minus} <= result.documents.keys():
            result.documents[measure.name] = result.documents[measure.of].minus(
                result.documents[measure.minus]
            )

    def _take_baseline(
        self, result: Evaluation, model: PretrainingModel, measure: Baseline
    ) -> None:
        compared = catalog.MEASURES[measure.pairs_of]
        assert isinstance(compared, PairMeasure)
        held_out = self.pairs[compared.name]
        if isinstance(measure, RandomProbe):
            random = PretrainingModel(model.encoder.shape, len(self.kinds), self.config.seed)
            random.to(self.device).eval()
            _, pooled = self._read(random, self.batch(compared), compared.negative)
            log_odds = self._fit_probe(random, compared).decision_function(pooled)
        else:
            log_odds = word_overlap.log_odds(
                self.train, self.probe_pairs[compared.name], self.dev, held_out
            )
        source = self._sources(compared.name)
        _add_pairs(result, measure.name, log_odds, measure.by, held_out.label, source)

    def _sources(self, measure: str) -> np.ndarray:
        """The source document of the first segment of each pair of a measure [pairs]."""
        return self.dev.source_of(self.dev.document_at(self.pairs[measure].a_start))

    def _fit_probe(self, model: PretrainingModel, measure: PairMeasure) -> "Pipeline":
        """The linear probe of a measure, fitted on pairs of training documents."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        batch = self.probe(measure)
        _, pooled = self._read(model, batch, measure.negative)
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(
            pooled, batch.pair_labels
        )

    def _read(
        self, model: PretrainingModel, batch: Batch, negative: str
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """The log-odds of a negative kind by the head [pairs], None without a head; pooled output
        [pairs, hidden].
        """
        log_odds = []
        pooled = []
        for _, output in self._outputs(model, batch, mlm=False):
            if self.kinds:
                assert output.pair_logits is not None
                log_odds.append(margin(output.pair_logits.float(), self.kinds, negative))
            pooled.append(output.pooled.float())
        return fetch(log_odds) if log_odds else None, fetch(pooled)

    def _outputs(
        self, model: PretrainingModel, batch: Batch, *, mlm: bool
    ) -> Iterator[tuple[Batch, PretrainingOutput]]:
        """The outputs of a model for each part of a batch; without `mlm`, no token is predicted."""
        for part in micro_batches(batch, self.config.evaluation.batch_size):
            if self.is_stopped():
                raise StoppedError
            inputs = inputs_of(part, self.device)
            if not mlm:
                inputs["masked_positions"] = tensor_on(part.masked_positions[:0], self.device)
            with torch.inference_mode(), self.autocast():
                yield part, model(**inputs)


def margin(logits: Tensor, kinds: Sequence[str], negative: str) -> Tensor:
    """Log-odds of a set's negative kind against consecutive [batch]: positive if the head chooses
    negative.

    A head that was trained with the set's negative kind chooses between this kind and consecutive;
    any other head chooses between consecutive and all its other kinds. So an NSP head can be scored
    on SOP as trained.

    Args:
        logits: [batch, kinds].
        negative: the kind of pair in the set that is not consecutive.
    """
    others = [negative] if negative in kinds else [kind for kind in kinds if kind != CONSECUTIVE]
    chosen = logits[:, [kinds.index(kind) for kind in others]].logsumexp(-1)
    return chosen - logits[:, kinds.index(CONSECUTIVE)]


def _finite_or_raise(loss: float) -> float:
    if not math.isfinite(loss):
        raise DivergedError(
            f"the loss is {loss} on held-out documents; a lower learning rate may help"
        )
    return loss


def _add_pairs(
    result: Evaluation,
    name: str,
    log_odds: np.ndarray,
    by: str,
    labels: np.ndarray,
    source: np.ndarray,
) -> None:
    """Add the score of answers to pairs by their log-odds of label 1 [pairs], and of all pairs the
    sums by their source document [all pairs].
    """
    right = (log_odds > 0) == labels
    positive = float(np.mean(labels))
    signed = np.where(labels == 1, log_odds, -log_odds).astype(np.float64)
    loss = _finite_or_raise(float(np.mean(np.logaddexp(0, -signed))))
    constant = 100 * max(positive, 1 - positive)
    result.scores[name] = share(int(right.sum()), len(right), floor=constant, by=by, loss=loss)
    result.right[name] = right
    if len(right) == len(source):
        result.documents[name] = by_document(source, right)


class StoppedError(Exception):
    """The process was asked to stop during an evaluation or a fine-tuning; nothing is lost."""


class DivergedError(RuntimeError):
    """The loss is no longer a finite number: the run has failed and gives no row."""
