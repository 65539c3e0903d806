"""Ensembles: averaged scores of several fine-tunings on the same examples (Tables 9 and 10)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_lab.errors import ConfigError
from albert_lab.tasks.examples import enumerate_few
from albert_lab.tasks.kind import Answers, Scores, decide, has_gold, judge, load_kind
from albert_lab.tasks.predictions import load_scores
from albert_lab.tasks.records import fingerprint_of, record_of_output
from albert_lab.tasks.task import TaskConfig

DEV = "dev"


@dataclass(frozen=True)
class Ensemble:
    """Answers of an ensemble, and the main score of each member by its file, if there are labels."""

    outcome: Answers
    main: float | None
    members: dict[Path, float]


def ensemble(
    task: TaskConfig,
    files: Sequence[Path],
    data: Path,
    say: Callable[[str], None],
    *,
    scale: str,
    split: str = DEV,
    best: int | None = None,
) -> Ensemble:
    """Answers of an ensemble by averaged probabilities, or averaged span and no-answer scores.

    Members may have different runs, seeds and checkpoints, and for spans even different tokenizers. Members and a
    no-answer threshold are chosen on dev, also for the answers on another split.

    Args:
        files: Scores of the members, as written by fine-tunings (best.npz, last.npz, or one of another split).
        best: Number of members to use, those with the highest main score on dev; None: all.

    Raises:
        MissingDataError: a file or the task's data does not exist.
        ConfigError: no members, members with scores of different examples, or examples that are not in the data.
    """
    if not files:
        raise ConfigError("an ensemble needs at least one file of scores")
    threshold = None
    if split != DEV:
        # Another split is predicted with the best weights, so by these it is chosen.
        on_dev = ensemble(task, [file.with_name("best.npz") for file in files], data, say, scale=scale, best=best)
        files = [file.with_name(files[0].name) for file in on_dev.members]
        threshold, best = on_dev.outcome.threshold, None
    members = {file: load_scores(file) for file in files}
    examples = _examples(task, members, data, split)
    kind = load_kind(task, task.at(scale))
    labelled = has_gold(examples)

    def main_of(scores: Scores) -> float:
        return task.main_score(judge(task, examples, kind.predict(examples, scores), say, threshold).scores)

    mains = {file: main_of(scores) for file, scores in members.items()} if labelled else {}
    if best is not None:
        if not labelled:
            raise ConfigError(f"members cannot be chosen on {split}: it has no labels")
        chosen = sorted(mains, key=lambda file: -mains[file])[:best]
        mains = {file: mains[file] for file in chosen}
        members = {file: members[file] for file in chosen}
    predictions = kind.predict(examples, kind.average(list(members.values())))
    if not labelled:
        return Ensemble(decide(predictions, threshold), None, {})
    outcome = judge(task, examples, predictions, say, threshold)
    return Ensemble(outcome, task.main_score(outcome.scores), mains)


def _examples(task: TaskConfig, members: dict[Path, Scores], data: Path, split: str) -> list[Any]:
    """The examples that the members scored, in the order of the scores."""
    (first, scores), *others = members.items()
    ids = scores["ids"].tolist()
    for file, other in others:
        if other["ids"].tolist() != ids:
            raise ConfigError(f"{file} has scores of other examples than {first}")
    examples, _ = task.read(data, split)
    by_id = {example.id: example for example in examples}
    if unknown := [id for id in ids if id not in by_id]:
        raise ConfigError(f"{first} has scores of examples that are not in {split}: {enumerate_few(unknown)}")
    chosen = [by_id[id] for id in ids]
    if split == DEV:
        today = fingerprint_of(chosen)
        for file in members:
            record = record_of_output(file.parent)
            if record is not None and record.dev.fingerprint != today:
                raise ConfigError(
                    f"{file} has scores of other examples than {task.file(data, split)} has today: "
                    "put the former file back, or repeat the fine-tuning"
                )
    return chosen
