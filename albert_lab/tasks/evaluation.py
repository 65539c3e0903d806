"""From a model to the scores of examples, floors, and one Score per metric; ensembles of fine-tunings."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from albert_lab.errors import ConfigError
from albert_lab.score import Score, wilson
from albert_lab.tasks.features import Features, evaluation_items
from albert_lab.tasks.metrics import bag_of_words
from albert_lab.tasks.model import Predictions, Scored, Scores, TaskKind, TaskModel, load_kind
from albert_lab.tasks.records import Evaluation, load_scores
from albert_lab.tasks.task import TaskConfig

_BATCH_ITEMS = 64
# Share of the steps over which the final loss is averaged; share of the chance loss above which it is near chance.
END_SHARE, NEAR_CHANCE = 0.1, 0.97
_Z = 1.96


# In percent: the scores of the best constant answer, by metric, and the main score of a bag of words (None for spans).
Floors = tuple[Mapping[str, float], float | None]


def score_examples(
    model: TaskModel,
    kind: TaskKind,
    examples: Sequence[Any],
    features: Features,
    device: torch.device,
    precision: Callable[[], AbstractContextManager],
) -> Scores:
    """The scores of examples by a model; waits for the device once, and leaves the model in training mode."""
    model.eval()
    order, outputs = [*evaluation_items(features.lengths, _BATCH_ITEMS)], []
    with torch.no_grad():
        for items in order:
            with precision():
                outputs.append(model.scores(features.batch(items, device)))
    model.train()
    places, gathered = np.argsort(np.concatenate(order)), {}
    for name in outputs[0]:
        parts = [output[name].cpu().numpy() for output in outputs]  # rows of shorter batches may be shorter
        if width := max((part.shape[1] for part in parts if part.ndim > 1), default=0):
            fill = -np.inf if parts[0].dtype.kind == "f" else 0
            parts = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=fill) for part in parts]
        gathered[name] = np.concatenate(parts)[places]
    return kind.collect(examples, features, gathered)


def floors_of(kind: TaskKind, train: Sequence[Any], examples: Sequence[Any]) -> Floors:
    """The floors of examples; bags of words are fitted on the training examples."""
    words = bag_of_words(train, examples)
    main = None if words is None else kind.task.main_score(kind.score(examples, Predictions(words)).values)
    return kind.score(examples, kind.constant(examples)).values, main


def evaluate_scores(kind: TaskKind, examples: Sequence[Any], scores: Scores, floors: Floors, step: int) -> Evaluation:
    """The metrics of scores of examples after `step` steps."""
    task, n, (constant, of_words) = kind.task, len(examples), floors
    scored = kind.score(examples, kind.predict(examples, scores))
    logs = kind.log_likelihoods(examples, scores)
    loss = None if logs is None or np.isnan(logs).all() else -float(np.nanmean(logs))
    main = _score(task.main_score(scored.values), shares_of_main(task, scored), n, task.main_score(constant))
    main = main.model_copy(update={"lexical_floor": of_words, "loss": loss})
    of = {name: _score(value, scored.shares.get(name), n, constant[name]) for name, value in scored.values.items()}
    return Evaluation(step=step, main=main, scores=of, threshold=scored.threshold)


def shares_of_main(task: TaskConfig, scored: Scored) -> list[float] | None:
    """The main score of each example, from 0 to 1; None if it is no mean over examples, such as a correlation."""
    if not set(task.main) <= scored.shares.keys():
        return None
    return [sum(column) / len(column) for column in zip(*(scored.shares[name] for name in task.main), strict=True)]


def _score(value: float, shares: Sequence[float] | None, n: int, floor: float) -> Score:
    low, high = (None, None) if shares is None else wilson(sum(shares), len(shares))
    return Score(value=value, n=n if shares is None else len(shares), low=low, high=high, floor=floor, by="fine-tuned")


def signs_of(end_loss: float, chance_loss: float, last: Score, answers: Sequence[Any]) -> tuple[str, ...]:
    """The signs that a fine-tuning did not learn; empty if it learnt.

    It did not if it gives every dev example the same answer, or if both its training loss and its score end near
    those of a model that ignores the example.

    Args:
        end_loss: mean training loss of the last END_SHARE of the steps.
        chance_loss: the lowest training loss of a model that ignores the example.
        last: the main score after the last step; its floor is the score of constant answers.
        answers: those to the dev examples after the last step, no-answer thresholds aside.
    """
    is_constant = len({round(answer, 2) if isinstance(answer, float) else answer for answer in answers}) == 1
    signs = ["it gives every dev example the same answer"] if is_constant and len(answers) > 1 else []
    low = last.low
    if low is None:  # a correlation, whose standard error near zero is 1 / sqrt(n)
        low = last.value - 100 * _Z / math.sqrt(last.n)
    if end_loss >= NEAR_CHANCE * chance_loss and low <= last.floor:
        signs.append(
            f"it ends near chance: training loss {end_loss:.3f} (chance {chance_loss:.3f}),"
            f" score {last.value:.1f} (constant answers {last.floor:.1f})"
        )
    return tuple(signs)


def ensemble(
    task: TaskConfig, files: Sequence[Path], data: Path, *, scale: str, best: int | None = None
) -> tuple[Scored, list[float]]:
    """Answers to the dev examples by averaged probabilities, or averaged span and no-answer scores.

    Beside them are the main scores of the members, the best first. Members may have different runs, seeds and
    checkpoints, and for spans even different tokenizers.

    Args:
        files: Scores of the members, as written by fine-tunings (best.npz).
        best: Number of members to use, those with the highest main score; None: all.

    Raises:
        MissingDataError: a file or the task's data does not exist.
        ConfigError: members with scores of different examples, or examples that are not in the data.
    """
    kind, members = load_kind(task, task.at(scale)), [load_scores(file) for file in files]
    ids, by_id = [*members[0]["ids"].tolist()], {example.id: example for example in task.read(data, "dev")[0]}
    if not by_id.keys() >= {*ids} or any(scores["ids"].tolist() != ids for scores in members):
        raise ConfigError(f"{', '.join(map(str, files))}: scores of other examples than those of {task.name} today")
    examples = [by_id[id] for id in ids]

    def scored(scores: Scores) -> Scored:
        return kind.score(examples, kind.predict(examples, scores))

    singles = [task.main_score(scored(scores).values) for scores in members]
    used = sorted(range(len(files)), key=lambda place: -singles[place])[:best]
    return scored(kind.average([members[place] for place in used])), [singles[place] for place in used]
