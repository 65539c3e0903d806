"""Ensembles: averaged scores of several fine-tunings on the same examples (Tables 9 and 10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_lab.errors import ConfigError
from albert_lab.tasks.kind import Scores, load_kind
from albert_lab.tasks.records import fingerprint_of, load_scores, record_of_output
from albert_lab.tasks.scoring import Scored, has_gold, score
from albert_lab.tasks.task import TaskConfig

DEV = "dev"


@dataclass(frozen=True)
class Ensemble:
    """Answers of an ensemble, and the main score of each member by its file, if there are labels."""

    outcome: Scored
    main: float | None
    members: dict[Path, float]


def ensemble(
    task: TaskConfig, files: Sequence[Path], data: Path, *, scale: str, split: str = DEV, best: int | None = None
) -> Ensemble:
    """Answers of an ensemble by averaged probabilities, or averaged span and no-answer scores.

    Members may have different runs, seeds and checkpoints, and for spans even different tokenizers. Members and a
    no-answer threshold are chosen on dev, also for the answers on another split.

    Args:
        files: Scores of the members, as written by fine-tunings (best.npz, last.npz, or one of another split).
        best: Number of members to use, those with the highest main score on dev; None: all.

    Raises:
        MissingDataError: a file or the task's data does not exist.
        ConfigError: members with scores of different examples, or examples that are not in the data.
    """
    threshold = None
    if split != DEV:
        # Another split is predicted with the best weights, so by these it is chosen.
        on_dev = ensemble(task, [file.with_name("best.npz") for file in files], data, scale=scale, best=best)
        files = [file.with_name(files[0].name) for file in on_dev.members]
        threshold, best = on_dev.outcome.threshold, None
    members = {file: load_scores(file) for file in files}
    examples = _examples(task, members, data, split)
    kind = load_kind(task, task.at(scale))
    scored = {file: score(task, examples, kind.predict(examples, of), threshold) for file, of in members.items()}
    mains = {file: task.main_score(of.values) for file, of in scored.items()} if has_gold(examples) else {}
    if best is not None:
        mains = {file: mains[file] for file in sorted(mains, key=lambda file: -mains[file])[:best]}
        members = {file: members[file] for file in mains}
    outcome = score(task, examples, kind.predict(examples, kind.average(list(members.values()))), threshold)
    return Ensemble(outcome, task.main_score(outcome.values) if outcome.values else None, mains)


def _examples(task: TaskConfig, members: Mapping[Path, Scores], data: Path, split: str) -> list[Any]:
    """The examples that the members scored, in the order of the scores."""
    (first, scores), *others = members.items()
    ids = scores["ids"].tolist()
    for file, other in others:
        if other["ids"].tolist() != ids:
            raise ConfigError(f"{file} has scores of other examples than {first}")
    by_id = {example.id: example for example in task.read(data, split)[0]}
    chosen = [by_id[id] for id in ids if id in by_id]
    used = [record.dev.fingerprint for file in members if (record := record_of_output(file.parent)) and split == DEV]
    if len(chosen) < len(ids) or set(used) - {fingerprint_of(chosen)}:
        raise ConfigError(
            f"{first} has scores of other examples than {task.file(data, split)} has today: put the former file back,"
            " or repeat the fine-tuning"
        )
    return chosen
