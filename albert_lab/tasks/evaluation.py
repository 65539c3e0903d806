"""From the scores of a model to answers, official scores, floors, and one Score per metric."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from albert_lab.documents import Documents, by_block
from albert_lab.errors import ConfigError
from albert_lab.score import Score, wilson
from albert_lab.tasks import metrics
from albert_lab.tasks.bag_of_words import bag_of_words
from albert_lab.tasks.examples import SpanExample
from albert_lab.tasks.features import Features, evaluation_items
from albert_lab.tasks.formats import GlueFormat, SquadFormat, level
from albert_lab.tasks.model import Predictions, Scores, TaskKind, TaskModel, load_kind
from albert_lab.tasks.records import Evaluation, fingerprint_of, load_scores, read_record
from albert_lab.tasks.task import TaskConfig

_BATCH_ITEMS = 64
# Share of the steps over which the final loss is averaged; share of the chance loss above which it is near chance.
END_SHARE, NEAR_CHANCE = 0.1, 0.97
_Z = 1.96


class Scored(NamedTuple):
    """Final answers by example id, and their scores.

    values are in percent, by name. shares has the score of each answer, from 0 to 1, by name of the score and example
    id, of scores that are means over examples: not of correlations or GLUE's F1.
    """

    answers: Mapping[str, Any]
    values: dict[str, float]
    shares: dict[str, dict[str, float]]
    threshold: float | None


class Evaluated(NamedTuple):
    """The final answers, their Scores, and sums of their scores (see FinetuningRecord).

    is_constant says whether every example has the same answer, no-answer thresholds aside.
    """

    answers: Mapping[str, Any]
    evaluation: Evaluation
    documents: Documents | None
    is_constant: bool


class Floors(NamedTuple):
    """The scores of models that need no pre-training, in percent.

    constant: those of the best constant answer, by metric; words: the main score of a bag of words, None for spans.
    """

    constant: Mapping[str, float]
    words: float | None


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
    places, gathered = np.argsort(np.concatenate(order)), {}
    for name in outputs[0]:
        parts = [output[name].cpu().numpy() for output in outputs]  # rows of shorter batches may be shorter
        if width := max((part.shape[1] for part in parts if part.ndim > 1), default=0):
            fill = -np.inf if parts[0].dtype.kind == "f" else 0
            parts = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=fill) for part in parts]
        gathered[name] = np.concatenate(parts)[places]
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


def score(task: TaskConfig, examples: Sequence[Any], predictions: Predictions) -> Scored:
    """Final answers to all examples, and their official scores, the metrics of the task first.

    A question that may be unanswerable gets no answer above the threshold that maximizes the F1 of these examples, as
    the release chooses it on dev.
    """
    form, (answers, na_probs), threshold = task.format, predictions, None
    if isinstance(form, SquadFormat):
        gold = {e.id: [answer.text for answer in e.answers] for e in examples if isinstance(e, SpanExample)}
        if na_probs is not None:
            threshold = metrics.best_threshold(gold, answers, na_probs)
            answers = {id: "" if na_probs[id] > threshold else text for id, text in answers.items()}
        shares = metrics.match_squad(gold, answers, form.unanswerable)
        values = {name: metrics.percent([*of.values()]) for name, of in shares.items()}
        values = {name: values[name] for name in task.metrics if name in values} | values
        return Scored(answers, values, shares, threshold)
    right = {example.id: float(answers[example.id] == example.label) for example in examples}
    if not isinstance(form, GlueFormat):
        shares = {f"accuracy{part}": {id: right[id] for id in ids} for part, ids in _levels([*right]).items()}
        return Scored(answers, {name: 100 * (sum(of.values()) / len(of)) for name, of in shares.items()}, shares, None)
    sides, functions = [[e.label for e in examples], [answers[e.id] for e in examples]], metrics.OF_NUMBERS
    if form.labels is not None:
        index = {label: number for number, label in enumerate(form.labels)}
        sides, functions = [[index[label] for label in side] for side in sides], metrics.OF_CLASSES
    values = {name: functions[name](*sides) for name in task.metrics}
    return Scored(answers, values, {"accuracy": right} if "accuracy" in task.metrics else {}, None)


def _levels(ids: Sequence[str]) -> dict[str, list[str]]:
    """All questions and, if there are several levels, those of each level, by the suffix of the scores' names."""
    by_level: dict[str, list[str]] = {}
    for id in sorted(ids, key=level):
        by_level.setdefault(f"_{level(id)}", []).append(id)
    return {"": [*ids]} | (by_level if len(by_level) > 1 else {})


def floors_of(task: TaskConfig, kind: TaskKind, train: Sequence[Any], examples: Sequence[Any]) -> Floors:
    """The floors of examples; bags of words are fitted on the training examples."""
    words = bag_of_words(train, examples)
    return Floors(
        score(task, examples, kind.constant(examples)).values,
        None if words is None else task.main_score(score(task, examples, Predictions(words)).values),
    )


def evaluate_scores(
    task: TaskConfig, kind: TaskKind, examples: Sequence[Any], scores: Scores, floors: Floors, *, step: int
) -> Evaluated:
    """Answers and metrics from the scores of examples after `step` steps."""
    predictions = kind.predict(examples, scores)
    answers, values, shares, threshold = score(task, examples, predictions)
    scored = {
        name: _score(value, [*shares[name].values()] if name in shares else None, len(examples), floors.constant[name])
        for name, value in values.items()
    }
    of_main = None
    if set(task.main) <= shares.keys():
        columns = zip(*(shares[name].values() for name in task.main), strict=True)
        of_main = [sum(column) / len(column) for column in columns]
    main = _score(task.main_score(values), of_main, len(examples), task.main_score(floors.constant))
    logs = kind.log_likelihoods(examples, scores)
    loss = None if logs is None or np.isnan(logs).all() else -float(np.nanmean(logs))
    main = main.model_copy(update={"lexical_floor": floors.words, "loss": loss})
    different = {round(answer, 2) if isinstance(answer, float) else answer for answer in predictions.answers.values()}
    return Evaluated(
        answers,
        Evaluation(step=step, main=main, scores=scored, threshold=threshold),
        by_block(of_main) if of_main else None,
        len(different) == 1 and len(examples) > 1,
    )


def _score(value: float, shares: Sequence[float] | None, n: int, floor: float) -> Score:
    low, high = (None, None) if shares is None else wilson(sum(shares), len(shares))
    return Score(value=value, n=n if shares is None else len(shares), low=low, high=high, floor=floor, by="fine-tuned")


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


class Ensemble(NamedTuple):
    """Answers of an ensemble with their scores, its main score, and that of each member by its file."""

    outcome: Scored
    main: float
    members: dict[Path, float]


def ensemble(task: TaskConfig, files: Sequence[Path], data: Path, *, scale: str, best: int | None = None) -> Ensemble:
    """Answers to the dev examples by averaged probabilities, or averaged span and no-answer scores.

    Members may have different runs, seeds and checkpoints, and for spans even different tokenizers.

    Args:
        files: Scores of the members, as written by fine-tunings (best.npz or last.npz).
        best: Number of members to use, those with the highest main score; None: all.

    Raises:
        MissingDataError: a file or the task's data does not exist.
        ConfigError: members with scores of different examples, or examples that are not in the data.
    """
    members = {file: load_scores(file) for file in files}
    ids = members[files[0]]["ids"].tolist()
    by_id = {example.id: example for example in task.read(data, "dev")[0]}
    examples = [by_id[id] for id in ids if id in by_id]
    for file, scores in members.items():
        name, _, seed = file.parent.name.rpartition("-seed")
        record = read_record(file.parents[2], name, int(seed)) if seed.isdecimal() else None
        is_same = record is None or record.dev.fingerprint == fingerprint_of(examples)
        if scores["ids"].tolist() != ids or len(examples) < len(ids) or not is_same:
            raise ConfigError(
                f"{file} has scores of other examples than {files[0]} or {task.file(data, 'dev')} has today: put the"
                " former file back, or repeat the fine-tuning"
            )
    kind = load_kind(task, task.at(scale))
    mains = {
        file: task.main_score(score(task, examples, kind.predict(examples, scores)).values)
        for file, scores in members.items()
    }
    mains = {file: mains[file] for file in sorted(mains, key=lambda file: -mains[file])[:best]} if best else mains
    outcome = score(task, examples, kind.predict(examples, kind.average([members[file] for file in mains])))
    return Ensemble(outcome, task.main_score(outcome.values), mains)
