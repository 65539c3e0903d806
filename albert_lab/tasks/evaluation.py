"""The evaluation of a model on a split: scores of its examples, answers, and one Score per metric."""

import math
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
from albert_lab.tasks.kind import Scores, TaskKind
from albert_lab.tasks.model import TaskModel
from albert_lab.tasks.records import Evaluation
from albert_lab.tasks.scoring import Scored, score
from albert_lab.tasks.task import TaskConfig

_BATCH_ITEMS = 64
# Share of the steps over which the final loss is averaged; share of the chance loss above which it is near chance.
END_SHARE, NEAR_CHANCE = 0.1, 0.97
_Z = 1.96


@dataclass(frozen=True)
class Evaluated:
    """The final answers, their Scores, and sums of their scores (see FinetuningRecord).

    is_constant says whether every example has the same answer, no-answer thresholds aside.
    """

    outcome: Scored
    evaluation: Evaluation
    documents: Documents | None
    is_constant: bool


def score_examples(
    model: TaskModel,
    kind: TaskKind,
    examples: Sequence[Any],
    features: Features,
    device: torch.device,
    precision: Callable[[], AbstractContextManager],
) -> Scores:
    """The scores of examples by a model; leaves the model in training mode."""
    order, outputs = forward_all(model, features, device, precision)
    parts = [{name: values.cpu().numpy() for name, values in output.items()} for output in outputs]
    places = np.argsort(np.concatenate(order))
    gathered = {name: join_rows([part[name] for part in parts])[places] for name in parts[0]}
    return kind.collect(examples, features, gathered)


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


def join_rows(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenates arrays [items, ...]; if rows differ in length, shorter ones are padded with -inf."""
    width = max((part.shape[1] for part in parts if part.ndim > 1), default=0)
    if width:
        fill = -np.inf if parts[0].dtype.kind == "f" else 0
        parts = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=fill) for part in parts]
    return np.concatenate(parts)


@dataclass(frozen=True)
class Floors:
    """The scores of models that need no pre-training, in percent.

    constant: those of the best constant answer, by metric; words: the main score of a bag of words, None for spans.
    """

    constant: Mapping[str, float]
    words: float | None


def floors_of(task: TaskConfig, kind: TaskKind, train: Sequence[Any], examples: Sequence[Any]) -> Floors:
    """The floors of examples, which need labels; bags of words are fitted on the training examples."""
    constant = score(task, examples, kind.constant(train, examples)).values
    return Floors(constant, bag_of_words(task, train, examples))


def evaluate_scores(
    task: TaskConfig,
    kind: TaskKind,
    examples: Sequence[Any],
    scores: Scores,
    floors: Floors,
    *,
    step: int,
    threshold: float | None = None,
) -> Evaluated:
    """Answers and metrics from the scores of labelled examples; threshold: see scoring.score()."""
    predictions = kind.predict(examples, scores)
    outcome = score(task, examples, predictions, threshold)
    shares = {name: [*of.values()] for name, of in outcome.shares.items()}
    labelled = sum(getattr(example, "label", "a span") is not None for example in examples)
    scored = {
        name: _score(value, shares.get(name), labelled, floors.constant[name]) for name, value in outcome.values.items()
    }
    of_main = None
    if set(task.main) <= shares.keys():
        of_main = [sum(values) / len(values) for values in zip(*(shares[name] for name in task.main), strict=True)]
    main = _score(task.main_score(outcome.values), of_main, labelled, task.main_score(floors.constant))
    logs = kind.log_likelihoods(examples, scores)
    loss = None if logs is None or np.isnan(logs).all() else -float(np.nanmean(logs))
    main = main.model_copy(update={"lexical_floor": floors.words, "loss": loss})
    answers = predictions.answers.values()
    return Evaluated(
        outcome=outcome,
        evaluation=Evaluation(step=step, main=main, scores=scored, threshold=outcome.threshold),
        documents=by_block(of_main) if of_main else None,
        is_constant=len({round(answer, 2) if isinstance(answer, float) else answer for answer in answers}) == 1
        and len(examples) > 1,
    )


def _score(value: float, shares: Sequence[float] | None, n: int, floor: float) -> Score:
    low, high = (None, None) if shares is None else wilson(sum(shares), len(shares))
    n = n if shares is None else len(shares)
    return Score(value=value, n=n, low=low, high=high, floor=floor, by="fine-tuned")


def signs_of(end_loss: float, chance_loss: float, last: Score, is_constant: bool) -> tuple[str, ...]:
    """The signs that a fine-tuning did not learn; empty if it learnt.

    It did not if it gives every dev example the same answer, or if both its training loss and its score end near
    those of a model that ignores the example.

    Args:
        end_loss: mean training loss of the last END_SHARE of the steps.
        chance_loss: the lowest training loss of a model that ignores the example.
        last: the main score after the last step; its floor is the score of constant answers.
        is_constant: whether every dev example has the same answer after the last step.
    """
    signs = ["it gives every dev example the same answer"] if is_constant else []
    low = last.low
    if low is None:  # a correlation, whose standard error near zero is 1 / sqrt(n)
        low = last.value - 100 * _Z / math.sqrt(last.n)
    if end_loss >= NEAR_CHANCE * chance_loss and low <= last.floor:
        signs.append(
            f"it ends near chance: training loss {end_loss:.3f} (chance {chance_loss:.3f}),"
            f" score {last.value:.1f} (constant answers {last.floor:.1f})"
        )
    return tuple(signs)
