"""Ensembles: the answers of several fine-tunings of one task, by the averages of their scores."""

from collections.abc import Sequence
from pathlib import Path

from albert_lab.errors import ConfigError
from albert_lab.files import read_arrays
from albert_lab.tasks.examples import subsample
from albert_lab.tasks.kind import Scored, Scores, load_kind
from albert_lab.tasks.records import REMEDY
from albert_lab.tasks.task import TaskConfig


def ensemble(
    task: TaskConfig, files: Sequence[Path], data: Path, *, scale: str, best: int | None = None
) -> tuple[Scored, list[float]]:
    """Answers to the dev examples by averaged probabilities, or averaged span and no-answer scores.

    Beside them are the main scores of the members, the best first. Members may have different runs,
    seeds and checkpoints, and for spans even different tokenizers.

    Args:
        files: Scores of the members, as written by fine-tunings (best.npz).
        best: Number of members to use, those with the highest main score; None: all.

    Raises:
        MissingDataError: the task's data does not exist. DamagedFileError: a file does not, or has
            no scores.
        ConfigError: members with scores of different examples, or examples that are not in the
            data.
    """
    kind = load_kind(task, task.at(scale))
    members = [read_arrays(file, REMEDY) for file in files]
    examples = subsample(task.read(data, "dev")[0], kind.settings.dev_examples)
    ids = [example.id for example in examples]
    if any(member["ids"].tolist() != ids for member in members):
        raise ConfigError(
            f"{', '.join(map(str, files))}: scores of other examples than those of {task.name} "
            "today"
        )

    def scored(scores: Scores) -> Scored:
        return kind.score(examples, *kind.predict(examples, scores))

    singles = [task.main_score(scored(member).values) for member in members]
    used = sorted(range(len(files)), key=lambda place: -singles[place])[:best]
    averaged = kind.average([members[place] for place in used])
    return scored(averaged), [singles[place] for place in used]
