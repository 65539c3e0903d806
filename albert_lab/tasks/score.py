"""Official scores of predictions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from albert_lab.errors import ConfigError
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import SpanExample, enumerate_few
from albert_lab.tasks.formats import GlueFormat, SquadFormat, level
from albert_lab.tasks.task import TaskConfig


def evaluate(
    task: TaskConfig,
    examples: Sequence[Any],
    predictions: Mapping[str, Any],
    say: Callable[[str], None],
    *,
    na_probs: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """Scores by name, in percent, of predictions by example id: label (GLUE), text (SQuAD), index of an option (RACE).

    The metrics of the task come first, in its order.

    Raises:
        ConfigError: no example has a label, or the predictions do not match these examples.
    """
    if isinstance(task.format, SquadFormat):
        scores = _score_spans(task.format, examples, predictions, say, na_probs, threshold)
        return {name: scores[name] for name in task.metrics if name in scores} | scores
    if na_probs is not None:
        raise ConfigError(f"{task.name} takes no file of no-answer probabilities: SQuAD 2.0 does")
    gold = {example.id: example.label for example in examples if example.label is not None}
    _check_ids([example.id for example in examples], gold, predictions)
    predicted = {id: predictions[id] for id in gold}
    if isinstance(task.format, GlueFormat):
        return _score_labels(task, task.format, list(gold.values()), list(predicted.values()))
    return _score_choices(gold, predicted)


def shares_by_example(
    task: TaskConfig, examples: Sequence[Any], predictions: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """The score of each answer, from 0 to 1, by name of the score and example id, in the order of the examples.

    Only scores that are means over examples are included, not correlations or GLUE's F1. Examples without a label are
    left out, and so are examples to which a score does not apply.
    """
    if isinstance(task.format, SquadFormat):
        answers = _gold_texts(task.format, examples)
        if not task.format.unanswerable:
            return _by_score(("exact_match", "f1"), metrics.match_squad1(answers, predictions), {"": set(answers)})
        matches = metrics.match_squad2(answers, predictions)
        return _by_score(("exact", "f1"), matches, metrics.parts_of_squad2(answers))
    gold = {example.id: example.label for example in examples if example.label is not None}
    right = {id: (float(predictions[id] == label),) for id, label in gold.items()}
    if isinstance(task.format, GlueFormat):
        return _by_score(("accuracy",), right, {"": set(gold)}) if "accuracy" in task.metrics else {}
    return _by_score(("accuracy",), right, _levels(gold))


def _by_score(
    names: Sequence[str], matches: Mapping[str, tuple[float, ...]], parts: Mapping[str, set[str]]
) -> dict[str, dict[str, float]]:
    """The matches by score and part; the part is a prefix or suffix of the name, as in the scores."""
    by_column = {}
    for part, ids in parts.items():
        for column, name in enumerate(names):
            full = f"{name}{part}" if part.startswith("_") else f"{part}{name}"
            by_column[full] = {id: match[column] for id, match in matches.items() if id in ids}
    return {name: values for name, values in by_column.items() if values}


def _check_ids(known: Sequence[str], gold: Mapping[str, Any], predictions: Mapping[str, Any]) -> None:
    ids = set(known)
    if extra := [id for id in predictions if id not in ids]:
        raise ConfigError(f"predictions of examples that are not in the data: {enumerate_few(extra)}")
    if not gold:
        raise ConfigError("nothing to score: no example has a label, as in the official test files")
    if missing := [id for id in gold if id not in predictions]:
        raise ConfigError(f"examples without a prediction: {enumerate_few(missing)} of {len(gold)}")


def _score_labels(task: TaskConfig, form: GlueFormat, gold: list[Any], predicted: list[Any]) -> dict[str, float]:
    if form.labels is None:
        return {name: metrics.OF_NUMBERS[name](gold, predicted) for name in task.metrics}
    index = {label: number for number, label in enumerate(form.labels)}
    numbers = [[index[label] for label in labels] for labels in (gold, predicted)]
    return {name: metrics.OF_CLASSES[name](*numbers) for name in task.metrics}


def _score_choices(gold: dict[str, int], predicted: dict[str, int]) -> dict[str, float]:
    """Accuracy of all questions, and of each level if there are several."""
    return {
        f"accuracy{part}": metrics.accuracy([gold[id] for id in ids], [predicted[id] for id in ids])
        for part, ids in _levels(gold).items()
    }


def _levels(ids: Iterable[str]) -> dict[str, set[str]]:
    """All questions and, if there are several levels, those of each level, by the suffix of the scores' names."""
    levels = sorted({level(id) for id in ids})
    by_level = {"": set(ids)}
    if len(levels) > 1:
        by_level |= {f"_{name}": {id for id in ids if level(id) == name} for name in levels}
    return by_level


def _score_spans(
    form: SquadFormat,
    examples: Sequence[SpanExample],
    predictions: Mapping[str, str],
    say: Callable[[str], None],
    na_probs: Mapping[str, float] | None,
    threshold: float,
) -> dict[str, float]:
    answers = _gold_texts(form, examples)
    if not answers:
        raise ConfigError("nothing to score: no question has an answer")
    missing = [id for id in answers if id not in predictions]
    if len(missing) == len(answers):
        raise ConfigError(f"no question of the data is predicted; predictions of {enumerate_few(list(predictions))}")
    if missing:
        say(f"questions without a prediction count as wrong: {enumerate_few(missing)} of {len(answers)}")
    if extra := [id for id in predictions if id not in answers]:
        say(f"predictions of questions that are not in the data are not scored: {enumerate_few(extra)}")
    if not form.unanswerable:
        if na_probs is not None:
            raise ConfigError("SQuAD 1.1 takes no file of no-answer probabilities")
        return metrics.score_squad1(answers, predictions)
    if na_probs is not None and (unknown := [id for id in answers if id not in na_probs]):
        raise ConfigError(f"questions without a no-answer probability: {enumerate_few(unknown)} of {len(answers)}")
    return metrics.score_squad2(answers, predictions, na_probs, threshold)


def _gold_texts(form: SquadFormat, examples: Sequence[SpanExample]) -> dict[str, list[str]]:
    return {
        example.id: [answer.text for answer in example.answers]
        for example in examples
        if example.answers or example.is_impossible
    }
