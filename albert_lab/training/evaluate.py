"""Intrinsic evaluation: fixed sets of examples, the scores of a model in the held-out measures, and their documents."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import torch

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch, masked_set, micro_batches
from albert_lab.data.pairs import Pairs
from albert_lab.data.shards import Shards
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.errors import ConfigError
from albert_lab.measures import catalog
from albert_lab.measures.measure import Difference, HeldOutPairs, Measure, PairMeasure, TokenMeasure
from albert_lab.model.encoder import PretrainingModel, PretrainingOutput, likeliest
from albert_lab.score import LINEAR_PROBE, SEGMENTS, Documents, Score, by_document, loss_name, paired, share
from albert_lab.training.device import fetch, inputs_of, synchronize, tensor_on

if TYPE_CHECKING:  # it takes a second to import, and only probes need it
    from sklearn.pipeline import Pipeline

CONSECUTIVE = "consecutive"
HEAD = "head"


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

    vocabulary: Tokenizer
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
        length, seed = self.config.max_sequence_length, self.config.evaluation.seed
        return masked_set(shards, pairs, self.config.masking, self.vocabulary, max_sequence_length=length, seed=seed)


def make_sets(
    train: Shards | None,
    dev: Shards,
    vocabulary: Tokenizer,
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

    pairs = made(dev, catalog.of_kind(HeldOutPairs), config.evaluation.num_pairs)
    probed = [measure for measure in catalog.of_kind(PairMeasure) if measure.probe and measure.name in pairs]
    probes = made(train, probed, config.evaluation.num_probe_pairs) if train is not None else {}
    return EvaluationSets(vocabulary, config, dev, train, pairs, probes, floors or {}, left_out)


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model by name, of measures and of probes, and their sums by document (see RunRecord)."""

    scores: dict[str, Score]
    documents: dict[str, Documents]


@dataclass(frozen=True)
class PairAnswers:
    """Answers to the pairs of one set.

    Attributes:
        margins: log-odds of label 1 [pairs].
        labels: [pairs].
    """

    margins: np.ndarray
    labels: np.ndarray
    by: str

    @property
    def right(self) -> np.ndarray:
        """Whether each answer is right [pairs] bool."""
        return (self.margins > 0) == self.labels


@dataclass(frozen=True)
class Evaluator:
    """Scores a model on fixed sets.

    Attributes:
        sets: the examples.
        kinds: the kinds of pair that the model's head separates, in the order of its logits; empty without a head.
        batch_size: examples per forward pass.
        autocast: returns the context of a forward pass.
        is_stopped: called before every forward pass; if true, StoppedError ends the evaluation.
    """

    sets: EvaluationSets
    kinds: Sequence[str]
    batch_size: int
    device: torch.device
    autocast: Callable[[], AbstractContextManager[object]]
    is_stopped: Callable[[], bool]

    def along_the_way(self, model: PretrainingModel, num_pairs: int) -> dict[str, Score]:
        """The scores for learning curves, on the first num_pairs pairs: those of the model's own heads.

        Raises:
            DivergedError: a loss that is not a finite number.
        """
        measures = [m for m in catalog.measures() if m.in_curves and (self.kinds or isinstance(m, TokenMeasure))]
        with _evaluating(model):
            return self._evaluate(model, measures, {}, num_pairs).scores

    def evaluate(self, model: PretrainingModel, without: Collection[type[Measure]] = ()) -> Evaluation:
        """The scores of a model in all measures, except those of some kinds.

        Raises:
            DivergedError: a loss that is not a finite number.
        """
        measures = [measure for measure in catalog.measures() if type(measure) not in without]
        with _evaluating(model):
            return self._evaluate(model, measures, self._fit_probes(model, measures))

    def _evaluate(
        self,
        model: PretrainingModel,
        measures: Sequence[Measure],
        probes: "Mapping[str, Pipeline]",
        num_pairs: int | None = None,
    ) -> Evaluation:
        scores: dict[str, Score] = {}
        documents: dict[str, Documents] = {}
        pairs: dict[str, PairAnswers] = {}
        floors = self.sets.floors if num_pairs is None else {}
        for measure in measures:  # differences come last
            if isinstance(measure, TokenMeasure) and measure.name in self.sets.pairs:
                scores[measure.name], of_tokens = self._of_tokens(model, measure, num_pairs)
                documents |= of_tokens
            elif isinstance(measure, PairMeasure) and measure.name in self.sets.pairs:
                own = self._answers(model, measure, probes.get(measure.fitted_as or measure.name), num_pairs)
                scores |= {name: _score(answers, floors.get(measure.name)) for name, answers in own.items()}
                documents |= self._of_pairs(measure, {name: answers.right for name, answers in own.items()})
                pairs |= own
            elif isinstance(measure, Difference) and {measure.of, measure.minus} <= pairs.keys():
                scores[measure.name] = _difference(measure, pairs, floors)
                for end in ("", SEGMENTS):
                    of, minus = (documents.get(name + end) for name in (measure.of, measure.minus))
                    if of and minus:
                        documents[measure.name + end] = of.minus(minus)
        return Evaluation(scores, documents)

    def _answers(
        self, model: PretrainingModel, measure: PairMeasure, probe: "Pipeline | None", num_pairs: int | None
    ) -> dict[str, PairAnswers]:
        """The answers to the pairs of a measure by the name of their score: of the head, and of a probe."""
        if not (probe or self.kinds):
            return {}
        batch = self.sets.batch(measure, num_pairs)
        margins, pooled = self._read(model, batch, measure.negative)
        own: dict[str, PairAnswers] = {}
        if probe is not None:
            by_probe = PairAnswers(probe.decision_function(pooled), batch.pair_labels, LINEAR_PROBE)
            own = dict.fromkeys(filter(None, (measure.name, measure.probe)), by_probe)
        if self.kinds:
            own[measure.name] = PairAnswers(margins, batch.pair_labels, HEAD)
        return own

    def tokens_per_second(self, model: PretrainingModel, seconds: float) -> float:
        """Tokens (without padding) per second of forward passes of encoder and heads, measured for so many seconds."""
        batch = self.sets.batch(catalog.of_kind(TokenMeasure)[0])
        tokens, spent = 0, 0.0
        with _evaluating(model), torch.inference_mode(), self.autocast():
            for part in cycle(micro_batches(batch, self.batch_size)):
                inputs = inputs_of(part, self.device)
                synchronize(self.device)
                start = perf_counter()
                model(**inputs)
                synchronize(self.device)
                tokens, spent = tokens + part.num_tokens, spent + perf_counter() - start
                if spent >= seconds:
                    break
        return tokens / spent

    def _of_pairs(self, measure: PairMeasure, right: dict[str, np.ndarray]) -> dict[str, Documents]:
        """The right answers to the pairs of a measure by document, and those of single segments for each of them.

        Changed pairs belong to the documents of those that they were made of; none if there are not as many.
        """
        names = {other.name: other for other in catalog.of_kind(PairMeasure)}
        source = self.sets.sources(names[measure.fitted_as] if measure.changed and measure.fitted_as else measure)
        floor = self.sets.floors.get(measure.name)
        own = right if floor is None else right | {name + SEGMENTS: floor for name in right}
        return {name: by_document(source, values) for name, values in own.items() if len(values) == len(source)}

    def _of_tokens(
        self, model: PretrainingModel, measure: TokenMeasure, num_pairs: int | None
    ) -> tuple[Score, dict[str, Documents]]:
        batch = self.sets.batch(measure, num_pairs)
        correct, losses = [], []
        for part, output in self._outputs(model, batch, mlm=True):
            labels = tensor_on(part.masked_labels, self.device)
            correct.append(likeliest(output.mlm_logits) == labels)
            # logsumexp instead of log_softmax, to avoid a second tensor of all log-probabilities.
            logits = output.mlm_logits.float()
            losses.append(logits.logsumexp(-1) - logits.gather(-1, labels[:, None])[:, 0])
        right, loss = fetch(correct), fetch(losses).astype(np.float64)
        total, n = float(loss.sum()), len(right)
        _require_finite(total)
        _, counts = np.unique(batch.masked_labels, return_counts=True)
        source = self.sets.sources(measure)[batch.masked_positions // batch.input_ids.shape[1]]
        documents = {measure.name: by_document(source, right), loss_name(measure.name): by_document(source, loss)}
        return share(int(right.sum()), n, floor=100 * float(counts.max()) / n, by=HEAD, loss=total / n), documents

    def _fit_probes(self, model: PretrainingModel, measures: Sequence[Measure]) -> "dict[str, Pipeline]":
        """The linear probe of each measure that has one, fitted on pairs of training documents."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        probes = {}
        for measure in measures:
            if isinstance(measure, PairMeasure) and measure.name in self.sets.probes:
                batch = self.sets.probe(measure)
                _, pooled = self._read(model, batch, measure.negative)
                probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
                probes[measure.name] = probe.fit(pooled, batch.pair_labels)
        return probes

    def _read(self, model: PretrainingModel, batch: Batch, negative: str) -> tuple[np.ndarray, np.ndarray]:
        """The log-odds of a negative kind by the head [pairs], empty without a head; pooled output [pairs, hidden]."""
        margins, pooled = [torch.empty(0)], []
        for _, output in self._outputs(model, batch, mlm=False):
            if self.kinds:
                assert output.pair_logits is not None
                margins.append(margin(output.pair_logits.float(), self.kinds, negative))
            pooled.append(output.pooled.float())
        return fetch(margins[1:] or margins), fetch(pooled)

    def _outputs(
        self, model: PretrainingModel, batch: Batch, *, mlm: bool
    ) -> Iterator[tuple[Batch, PretrainingOutput]]:
        for part in micro_batches(batch, self.batch_size):
            if self.is_stopped():
                raise StoppedError
            inputs = inputs_of(part, self.device)
            if not mlm:
                inputs["masked_positions"] = tensor_on(part.masked_positions[:0], self.device)
            with torch.inference_mode(), self.autocast():
                yield part, model(**inputs)


def margin(logits: torch.Tensor, kinds: Sequence[str], negative: str) -> torch.Tensor:
    """Log-odds of a set's negative kind against consecutive [batch]: positive if the head chooses negative.

    A head that was trained with the set's negative kind chooses between this kind and consecutive; any other head
    chooses between consecutive and all its other kinds. So an NSP head can be scored on SOP as trained.

    Args:
        negative: the kind of pair in the set that is not consecutive.
    """
    consecutive = logits[:, kinds.index(CONSECUTIVE)]
    if negative in kinds:
        other = logits[:, kinds.index(negative)]
    else:
        other = logits[:, [index for index, kind in enumerate(kinds) if kind != CONSECUTIVE]].logsumexp(-1)
    return other - consecutive


def _require_finite(loss: float) -> None:
    if not math.isfinite(loss):
        raise DivergedError(f"the loss is {loss} on held-out documents; a lower learning rate may help")


def _score(answers: PairAnswers, floor: np.ndarray | None = None) -> Score:
    labels, right = answers.labels, answers.right
    positive = float(np.mean(labels))
    signed = np.where(labels == 1, answers.margins, -answers.margins).astype(np.float64)
    loss = float(np.mean(np.logaddexp(0, -signed)))
    _require_finite(loss)
    constant = 100 * max(positive, 1 - positive)
    score = share(int(right.sum()), len(right), floor=constant, by=answers.by, loss=loss)
    further: dict[str, object] = {"auc": auc_of(answers)}
    if floor is not None:
        further["segments_floor"] = 100 * float(floor.mean())
    return score.model_copy(update=further)


def auc_of(answers: PairAnswers) -> float | None:
    """The share of pairs of a positive and a negative that the margins order correctly, in percent (ties: half)."""
    from scipy.stats import rankdata

    ranks, positive = rankdata(answers.margins), answers.labels == 1
    n, others = int(positive.sum()), int((~positive).sum())
    return 100 * float(ranks[positive].sum() - n * (n + 1) / 2) / (n * others) if n and others else None


def _difference(measure: Difference, pairs: Mapping[str, PairAnswers], floors: Mapping[str, np.ndarray]) -> Score:
    """The difference of two measures; its floor is that of the floors' answers."""
    first, second = pairs[measure.of], pairs[measure.minus]
    value, low, high = paired(first.right, second.right)
    n = len(first.labels)
    difference = Score(value=value, n=n, low=low, high=high, floor=0, by=first.by)
    if measure.of not in floors:
        return difference
    by_segments = 100 * float(floors[measure.of].mean() - floors[measure.minus].mean())
    return difference.model_copy(update={"segments_floor": by_segments})


@contextmanager
def _evaluating(model: PretrainingModel) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


class StoppedError(Exception):
    """The process was asked to stop during an evaluation; nothing is lost."""


class DivergedError(RuntimeError):
    """The loss is no longer a finite number: the run has failed and gives no row."""
