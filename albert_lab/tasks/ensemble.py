"""Ensembles: averaged scores of several fine-tunings on the same examples (Tables 9 and 10)."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from albert_lab.errors import ConfigError
from albert_lab.tasks.evaluation import Scored, score
from albert_lab.tasks.kind import load_kind
from albert_lab.tasks.records import fingerprint_of, load_scores, read_record
from albert_lab.tasks.task import TaskConfig


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
