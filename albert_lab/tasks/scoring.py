"""From predictions to final answers and their official scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from albert_lab.tasks import metrics
from albert_lab.tasks.examples import SpanExample
from albert_lab.tasks.formats import GlueFormat, level
from albert_lab.tasks.kind import Predictions
from albert_lab.tasks.squad import SquadFormat
from albert_lab.tasks.task import TaskConfig


@dataclass(frozen=True)
class Scored:
    """Final answers by example id, and their scores.

    values are in percent, by name. shares has the score of each answer, from 0 to 1, by name of the score and example
    id, of scores that are means over examples: not of correlations or GLUE's F1. Both are empty without labels.
    """

    answers: Mapping[str, Any]
    values: dict[str, float]
    shares: dict[str, dict[str, float]]
    na_probs: Mapping[str, float] | None = None
    threshold: float | None = None


def score(
    task: TaskConfig, examples: Sequence[Any], predictions: Predictions, threshold: float | None = None
) -> Scored:
    """Final answers and scores of predictions for all examples; those without a label are not scored.

    Args:
        threshold: a question that may be unanswerable gets no answer above it. None: the threshold that maximizes the
            F1 of these examples (the release chooses it on dev).
    """
    answers, na_probs = predictions.answers, predictions.na_probs
    if na_probs is not None:
        if threshold is None:
            threshold = metrics.best_threshold(_gold_texts(examples), answers, na_probs)
        answers = {id: "" if na_probs[id] > threshold else text for id, text in answers.items()}
    values, shares = _values(task, examples, answers) if has_gold(examples) else ({}, {})
    return Scored(answers, values, shares, na_probs, threshold)


def has_gold(examples: Sequence[Any]) -> bool:
    """Whether the examples can be scored; official test files have no labels."""
    return any(e.answers or e.is_impossible if isinstance(e, SpanExample) else e.label is not None for e in examples)


def _values(
    task: TaskConfig, examples: Sequence[Any], answers: Mapping[str, Any]
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Scores by name, the metrics of the task first, and their shares."""
    form = task.format
    if isinstance(form, SquadFormat):
        shares = metrics.match_squad(_gold_texts(examples), answers, form.unanswerable)
        values = {name: metrics.percent([*of.values()]) for name, of in shares.items()}
        return {name: values[name] for name in task.metrics if name in values} | values, shares
    gold = {example.id: example.label for example in examples if example.label is not None}
    right = {id: float(answers[id] == label) for id, label in gold.items()}
    if not isinstance(form, GlueFormat):
        shares = {f"accuracy{part}": {id: right[id] for id in ids} for part, ids in _levels(gold).items()}
        return {name: 100 * (sum(of.values()) / len(of)) for name, of in shares.items()}, shares
    labels, predicted = [*gold.values()], [answers[id] for id in gold]
    if form.labels is None:
        return {name: metrics.OF_NUMBERS[name](labels, predicted) for name in task.metrics}, {}
    index = {label: number for number, label in enumerate(form.labels)}
    numbers = [[index[label] for label in side] for side in (labels, predicted)]
    values = {name: metrics.OF_CLASSES[name](*numbers) for name in task.metrics}
    return values, {"accuracy": right} if "accuracy" in task.metrics else {}


def _levels(ids: Mapping[str, Any]) -> dict[str, list[str]]:
    """All questions and, if there are several levels, those of each level, by the suffix of the scores' names."""
    by_level: dict[str, list[str]] = {}
    for id in sorted(ids, key=level):
        by_level.setdefault(f"_{level(id)}", []).append(id)
    return {"": list(ids)} | (by_level if len(by_level) > 1 else {})


def _gold_texts(examples: Sequence[SpanExample]) -> dict[str, list[str]]:
    return {e.id: [answer.text for answer in e.answers] for e in examples if e.answers or e.is_impossible}
