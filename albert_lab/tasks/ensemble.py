"""Several fine-tunings as one: their scores of the same examples, averaged (the ensembles of Tables 9 and 10)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_lab.errors import ConfigError
from albert_lab.tasks.examples import enumerate_few
from albert_lab.tasks.kind import Answers, Scores, decide, has_gold, judge, load_kind
from albert_lab.tasks.predictions import load_scores
from albert_lab.tasks.task import TaskConfig


@dataclass(frozen=True)
class Ensemble:
    """What an ensemble says, and the main score of each of its members by its file, where there are labels."""

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
    split: str = "dev",
    best: int | None = None,
) -> Ensemble:
    """Answers of an ensemble: averaged probabilities, or averaged span and no-answer scores.

    Members may be of different runs, seeds and checkpoints, and for spans even of different tokenizers.

    Args:
        task: The task that all have been fine-tuned on.
        files: Scores of the members, as fine-tunings leave them (best.npz, last.npz).
        data: The tasks folder.
        say: Takes lines on what is left out.
        scale: The scale of the fine-tunings.
        split: The split they have scored.
        best: Takes only so many members, those with the highest main score on this split.

    Raises:
        MissingDataError: a file or the task's data is not there.
        ConfigError: no member, members that have scored different examples, or examples that are not in the data.
    """
    if not files:
        raise ConfigError("an ensemble needs at least one file of scores")
    members = {file: load_scores(file) for file in files}
    examples = _examples(task, members, data, split)
    kind = load_kind(task, task.at(scale))
    labelled = has_gold(examples)

    def main_of(scores: Scores) -> float:
        return task.main_score(judge(task, examples, kind.predict(examples, scores), say).scores)

    mains = {file: main_of(scores) for file, scores in members.items()} if labelled else {}
    if best is not None:
        if not labelled:
            raise ConfigError(f"members cannot be chosen on {split}: it has no labels")
        chosen = sorted(mains, key=lambda file: -mains[file])[:best]
        mains = {file: mains[file] for file in chosen}
        members = {file: members[file] for file in chosen}
    predictions = kind.predict(examples, kind.average(list(members.values())))
    if not labelled:
        if predictions.na_probs is not None:
            raise ConfigError(f"when {task.name} has no answer is decided by a threshold; {split} has no labels for it")
        return Ensemble(decide(predictions, None), None, {})
    outcome = judge(task, examples, predictions, say)
    return Ensemble(outcome, task.main_score(outcome.scores), mains)


def _examples(task: TaskConfig, members: dict[Path, Scores], data: Path, split: str) -> list[Any]:
    """The examples that the members have scored, in the order of their scores."""
    (first, scores), *others = members.items()
    ids = scores["ids"].tolist()
    for file, other in others:
        if other["ids"].tolist() != ids:
            raise ConfigError(f"{file} has scores of other examples than {first}")
    examples, _ = task.read(data, split)
    by_id = {example.id: example for example in examples}
    if unknown := [id for id in ids if id not in by_id]:
        raise ConfigError(f"{first} has scores of examples that are not in {split}: {enumerate_few(unknown)}")
    return [by_id[id] for id in ids]
