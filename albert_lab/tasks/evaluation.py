"""The evaluation of a model on a split: scores of its examples, answers, and one Score per metric."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from albert_lab.documents import Documents, by_block
from albert_lab.score import Score, wilson
from albert_lab.tasks.bag_of_words import bag_of_words
from albert_lab.tasks.features import Features, evaluation_items
from albert_lab.tasks.kind import Answers, Scores, TaskKind, judge
from albert_lab.tasks.model import TaskModel
from albert_lab.tasks.records import Evaluation
from albert_lab.tasks.score import shares_by_example
from albert_lab.tasks.split import Split
from albert_lab.tasks.task import TaskConfig

_BATCH_ITEMS = 64
_BY = "fine-tuned"


@dataclass(frozen=True)
class Evaluated:
    """The final answers, their Scores, and sums of their scores (see FinetuningRecord).

    is_constant says whether every example has the same answer, no-answer thresholds aside.
    """

    outcome: Answers
    evaluation: Evaluation
    documents: Documents | None
    is_constant: bool


def score_split(
    model: TaskModel,
    split: Split,
    kind: TaskKind,
    device: torch.device,
    precision: Callable[[], AbstractContextManager],
) -> Scores:
    """The scores of a split's examples by a model; leaves the model in training mode."""
    order, outputs = forward_all(model, split.features, device, precision)
    parts = [{name: values.cpu().numpy() for name, values in output.items()} for output in outputs]
    places = np.argsort(np.concatenate(order))
    gathered = {name: join_rows([part[name] for part in parts])[places] for name in parts[0]}
    return kind.collect(split.examples, split.features, gathered)


def forward_all(
    model: TaskModel, features: Features, device: torch.device, precision: Callable[[], AbstractContextManager]
) -> tuple[list[np.ndarray], list[dict[str, torch.Tensor]]]:
    """The items of each batch, and their scores on the device, without waiting for the device."""
    model.eval()
    order, outputs = [], []
    with torch.no_grad():
        for items in evaluation_items(features.lengths, _BATCH_ITEMS):
            with precision():
                outputs.append(model.scores(features.batch(items, device)))
            order.append(items)
    model.train()
    return order, outputs


@dataclass(frozen=True)
class Floors:
    """The scores of models that need no pre-training, in percent.

    constant: those of the best constant answer, by metric; words: the main score of a bag of words, None for spans.
    """

    constant: Mapping[str, float]
    words: float | None


def floors_of(
    task: TaskConfig, kind: TaskKind, train: Sequence[Any], examples: Sequence[Any], say: Callable[[str], None]
) -> Floors:
    """The floors of examples, which need labels; bags of words are fitted on the training examples."""
    constant = judge(task, examples, kind.constant(train, examples), say).scores
    return Floors(constant, bag_of_words(task, train, examples, say))


def evaluate_scores(
    task: TaskConfig,
    kind: TaskKind,
    examples: Sequence[Any],
    scores: Scores,
    floors: Floors,
    say: Callable[[str], None],
    *,
    step: int,
    threshold: float | None = None,
) -> Evaluated:
    """Answers and metrics from the scores of examples.

    Args:
        threshold: no-answer threshold; None: the one that maximizes the F1 of these examples.
    """
    predictions = kind.predict(examples, scores)
    outcome = judge(task, examples, predictions, say, threshold)
    shares = {name: [*of.values()] for name, of in shares_by_example(task, examples, outcome.answers).items()}
    known = {name: value for name, value in outcome.scores.items() if name in shares or name in task.metrics}
    labelled = sum(getattr(example, "label", "a span") is not None for example in examples)
    scored = {
        name: _score(value, shares.get(name), labelled, floors.constant[name], loss=None)
        for name, value in known.items()
    }
    of_main = None
    if set(task.main) <= shares.keys():
        of_main = [sum(values) / len(values) for values in zip(*(shares[name] for name in task.main), strict=True)]
    loss = _loss(kind.log_likelihoods(examples, scores))
    constant = task.main_score(floors.constant)
    main = _score(task.main_score(outcome.scores), of_main, labelled, constant, loss=loss)
    main = main.model_copy(update={"lexical_floor": floors.words})
    return Evaluated(
        outcome=outcome,
        evaluation=Evaluation(step=step, main=main, scores=scored, threshold=outcome.threshold),
        documents=by_block(of_main) if of_main else None,
        is_constant=len({_rounded(answer) for answer in predictions.answers.values()}) == 1 < len(examples),
    )


def _score(value: float, shares: Sequence[float] | None, n: int, floor: float, loss: float | None) -> Score:
    if shares is None:
        return Score(value=value, n=n, low=None, high=None, floor=floor, by=_BY, loss=loss)
    low, high = wilson(sum(shares), len(shares))
    return Score(value=value, n=len(shares), low=low, high=high, floor=floor, by=_BY, loss=loss)


def _loss(log_likelihoods: np.ndarray | None) -> float | None:
    """Minus the mean of the log-likelihoods; None if there are none."""
    if log_likelihoods is None or np.isnan(log_likelihoods).all():
        return None
    return -float(np.nanmean(log_likelihoods))


def join_rows(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenates arrays [items, ...]; if rows differ in length, shorter ones are padded with -inf."""
    width = max((part.shape[1] for part in parts if part.ndim > 1), default=0)
    if width:
        fill = -np.inf if parts[0].dtype.kind == "f" else 0
        parts = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=fill) for part in parts]
    return np.concatenate(parts)


def _rounded(answer: Any) -> Any:
    return round(answer, 2) if isinstance(answer, float) else answer
