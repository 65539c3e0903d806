"""Intrinsic evaluation: masked language modelling, NSP and SOP on held-out documents, as accuracy and as loss."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import torch

from albert_lab.config.compose import load_option
from albert_lab.config.schema import InterSentenceConfig, RunConfig
from albert_lab.data.batches import Batch, Vocabulary, fixed_set, micro_batches
from albert_lab.data.shards import Shards
from albert_lab.model.heads import PretrainingModel, PretrainingOutput, likeliest
from albert_lab.score import LINEAR_PROBE, Score, share
from albert_lab.training.clock import synchronize
from albert_lab.training.transfer import fetch, inputs_of, tensor_on

# For each pair accuracy: the inter_sentence option of its pairs, and the kind it separates from consecutive pairs.
PAIR_ACCURACIES = {"nsp_accuracy": ("nsp", "other-document"), "sop_accuracy": ("sop", "swapped")}
PAIR_OPTIONS = [option for option, _ in PAIR_ACCURACIES.values()]
MLM_ACCURACY = "mlm_accuracy"
ACCURACIES = (MLM_ACCURACY, *PAIR_ACCURACIES)
CONSECUTIVE = "consecutive"


@dataclass(frozen=True)
class EvaluationSets:
    """Fixed sets of examples: one for masked language modelling, and one per pair accuracy, by name.

    probes: pairs of training documents for the probe of a model without a pair head; empty if the model has a head.
    lexical_floors: the score of bags of tokens on each complete set of pairs, in percent.
    """

    mlm: Batch
    pairs: dict[str, Batch]
    probes: dict[str, Batch]
    lexical_floors: Mapping[str, float]

    def head(self, num_pairs: int) -> "EvaluationSets":
        """The first pairs of every set, for evaluations during training; their lexical floors are unknown."""

        def first(batch: Batch) -> Batch:
            return next(micro_batches(batch, num_pairs))

        return EvaluationSets(
            first(self.mlm),
            {name: first(batch) for name, batch in self.pairs.items()},
            {name: first(batch) for name, batch in self.probes.items()},
            {},
        )


def make_sets(
    train: Shards,
    dev: Shards,
    vocabulary: Vocabulary,
    config: RunConfig,
    lexical_floors: Mapping[str, float] | None = None,
) -> EvaluationSets:
    """The fixed evaluation sets of a run; they do not depend on its seed or its objective.

    The masked language modelling set has the chunks of SOP, unswapped. Every set is masked like the training batches
    ("the same procedure", section 4.1).

    Args:
        train: documents for the training of probes, for a run without a pair head.
        dev: held-out documents.
        vocabulary: special ids and word starts.
        config: configuration of the run, with lengths, masking and sizes.
        lexical_floors: in percent, by inter_sentence option (see data/lexical_floor.py); None if unknown.

    Raises:
        ConfigError: a set cannot be made from the held-out text.
    """

    # Differs from the paper, whose set is made from the development texts of SQuAD and RACE (section 4.1).
    def make(shards: Shards, option: str, num_pairs: int) -> Batch:
        return fixed_set(
            shards,
            load_option("inter_sentence", option, InterSentenceConfig),
            config.masking,
            vocabulary,
            num_pairs=num_pairs,
            max_sequence_length=config.max_sequence_length,
            short_sequence_probability=config.short_sequence_probability,
            seed=config.evaluation.seed,
        )

    evaluation = config.evaluation
    return EvaluationSets(
        mlm=make(dev, "none", evaluation.num_pairs),
        pairs={name: make(dev, option, evaluation.num_pairs) for name, (option, _) in PAIR_ACCURACIES.items()},
        probes={}
        if config.inter_sentence.labels
        else {name: make(train, option, evaluation.num_probe_pairs) for name, (option, _) in PAIR_ACCURACIES.items()},
        lexical_floors={name: lexical_floors[option] for name, (option, _) in PAIR_ACCURACIES.items()}
        if lexical_floors
        else {},
    )


@dataclass
class ForwardPasses:
    """Number of tokens (without padding) passed through encoder and heads, and seconds of these forward passes."""

    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Evaluator:
    """Scores a model on fixed sets.

    Attributes:
        sets: the examples.
        kinds: the kinds of pair that the model's head separates, in the order of its logits; empty without a head.
        batch_size: examples per forward pass.
        device: device of the model.
        autocast: returns the context of a forward pass.
        is_stopped: called before every forward pass; if true, StoppedError ends the evaluation.
        forwarded: tokens and seconds on the set for masked language modelling only, since the other sets may differ
            between runs: a model without a pair head is probed on additional pairs.
    """

    sets: EvaluationSets
    kinds: Sequence[str]
    batch_size: int
    device: torch.device
    autocast: Callable[[], AbstractContextManager[object]]
    is_stopped: Callable[[], bool]
    forwarded: ForwardPasses = field(default_factory=ForwardPasses)

    def scores(
        self, model: PretrainingModel, num_pairs: int | None = None, only: Collection[str] = ACCURACIES
    ) -> dict[str, Score]:
        """mlm_accuracy, nsp_accuracy and sop_accuracy of a model, or some of them, on all or the first num_pairs pairs.

        Raises:
            DivergedError: a loss that is not a finite number.
        """
        sets = self.sets if num_pairs is None else self.sets.head(num_pairs)
        was_training = model.training
        model.eval()
        found = {MLM_ACCURACY: self._mlm(model, sets.mlm)} if MLM_ACCURACY in only else {}
        for name, (_, negative) in PAIR_ACCURACIES.items():
            if name not in only:
                continue
            batch = sets.pairs[name]
            if self.kinds:
                margins, by = self._head_margins(model, batch, negative), "head"
            else:
                margins, by = self._probe_margins(model, sets.probes[name], batch), LINEAR_PROBE
            found[name] = _of_pairs(margins, batch.pair_labels, by, sets.lexical_floors.get(name))
        model.train(was_training)
        return found

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
                if not mlm:
                    yield part, model(**inputs)
                    continue
                synchronize(self.device)
                start = perf_counter()
                output = model(**inputs)
                synchronize(self.device)
                self.forwarded.seconds += perf_counter() - start
                self.forwarded.tokens += part.num_tokens
                yield part, output

    def _mlm(self, model: PretrainingModel, batch: Batch) -> Score:
        correct, losses = [], []
        for part, output in self._outputs(model, batch, mlm=True):
            labels = tensor_on(part.masked_labels, self.device)
            correct.append((likeliest(output.mlm_logits) == labels).sum())
            # logsumexp instead of log_softmax, to avoid a second tensor of all log-probabilities.
            logits = output.mlm_logits.float()
            losses.append((logits.logsumexp(-1) - logits.gather(-1, labels[:, None])[:, 0]).sum())
        loss = sum(fetch([torch.stack(losses)]).tolist(), start=0.0)
        _require_finite(loss)
        _, counts = np.unique(batch.masked_labels, return_counts=True)
        n = len(batch.masked_labels)
        right = int(fetch([torch.stack(correct)]).sum())
        return share(right, n, floor=100 * float(counts.max()) / n, by="head", loss=loss / n)

    def _head_margins(self, model: PretrainingModel, batch: Batch, negative: str) -> np.ndarray:
        margins = []
        for _, output in self._outputs(model, batch, mlm=False):
            assert output.pair_logits is not None
            margins.append(margin(output.pair_logits.float(), self.kinds, negative))
        return fetch(margins)

    def _probe_margins(self, model: PretrainingModel, probe: Batch, batch: Batch) -> np.ndarray:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        def pooled(pairs: Batch) -> np.ndarray:
            return fetch([output.pooled.float() for _, output in self._outputs(model, pairs, mlm=False)])

        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        return classifier.fit(pooled(probe), probe.pair_labels).decision_function(pooled(batch))


def margin(logits: torch.Tensor, kinds: Sequence[str], negative: str) -> torch.Tensor:
    """Log-odds of a set's negative kind against consecutive [batch]: positive if the head chooses negative.

    A head that was trained with the set's negative kind chooses between this kind and consecutive; any other head
    chooses between consecutive and all its other kinds. So an NSP head can be scored on SOP as trained.

    Args:
        logits: logits of the pair head [batch, labels].
        kinds: the kind of pair of each label.
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


def _of_pairs(margins: np.ndarray, labels: np.ndarray, by: str, lexical_floor: float | None) -> Score:
    """The score from log-odds of label 1 [pairs] and labels [pairs]."""
    correct = int(((margins > 0) == labels).sum())
    positive = float(np.mean(labels))
    right = np.where(labels == 1, margins, -margins).astype(np.float64)
    floor = 100 * max(positive, 1 - positive)
    loss = float(np.mean(np.logaddexp(0, -right)))
    _require_finite(loss)
    return share(correct, len(labels), floor=floor, by=by, loss=loss, lexical_floor=lexical_floor)


class StoppedError(Exception):
    """The process was asked to stop during an evaluation; nothing is lost."""


class DivergedError(RuntimeError):
    """The loss is no longer a finite number: the run has failed and gives no row."""
