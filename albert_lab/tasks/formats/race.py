"""RACE's folders: a sub-folder per level, in it a JSON file per passage with questions; predictions as id -> letter."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.examples import ChoiceExample, Issue
from albert_lab.tasks.formats import read_json, usable, write_json
from albert_lab.tasks.formats.letters import LettersFormat

LETTERS = ("A", "B", "C", "D")
# Marks the gap if a question is a sentence with a gap.
BLANK = "_"


class _Passage(BaseModel):
    article: str
    questions: list[str]
    options: list[list[str]]
    answers: list[str] | None = None


class RaceFormat(LettersFormat):
    """One folder per split, with one sub-folder per level (middle, high)."""

    name: Literal["race"]
    letters: ClassVar[tuple[str, ...]] = LETTERS
    sequences: ClassVar[int] = len(LETTERS)

    def read(self, file: Path, labelled: bool) -> tuple[list[ChoiceExample], list[Issue]]:
        """The questions of a split's folder. Their ids are level/file/number, the number from 0."""
        # The release reads a folder from an additional file, all.txt, which repeats the others.
        names = sorted(path.relative_to(file).as_posix() for path in file.rglob("*.txt") if path.name != "all.txt")
        if not names:
            raise MissingDataError(f"{file} has no passage (*.txt in one sub-folder per level)")
        examples, issues = [], []
        for name in names:
            passage = read_json(file / name, _Passage)
            answers = _answers(file / name, passage, labelled)
            for number, (question, options) in enumerate(zip(passage.questions, passage.options, strict=True)):
                id = f"{name}/{number}"
                letter = answers[number] if answers else None
                if len(options) != len(LETTERS):
                    issues.append(Issue(id, f"{len(options)} options instead of {len(LETTERS)}"))
                    continue
                label = LETTERS.index(letter) if letter in LETTERS else None
                if label is None and letter is not None:
                    issues.append(Issue(id, f"the answer is {letter!r}, not one of {', '.join(LETTERS)}"))
                if label is not None or not labelled:
                    examples.append(ChoiceExample(id, passage.article, question, tuple(options), label))
        return usable(file, examples, issues)

    def write(self, examples: Sequence[ChoiceExample], file: Path) -> None:
        """Writes a split's folder; questions about one passage must be consecutive."""
        for name, of_passage in groupby(examples, lambda example: example.id.rpartition("/")[0]):
            asked = list(of_passage)
            answers = [LETTERS[example.label] for example in asked if example.label is not None]
            passage = {"answers": answers} if answers else {}
            passage |= {
                "options": [example.options for example in asked],
                "questions": [example.question for example in asked],
                "article": asked[0].passage,
                "id": name.replace("/", ""),
            }
            (file / name).parent.mkdir(parents=True, exist_ok=True)
            write_json(passage, file / name)


def level(id: str) -> str:
    """The level of a question: the name of its sub-folder."""
    return id.rsplit("/", 2)[0] if id.count("/") > 1 else ""


def _answers(path: Path, passage: _Passage, labelled: bool) -> list[str] | None:
    counts = {"questions": len(passage.questions), "options": len(passage.options)}
    if passage.answers is not None:
        counts["answers"] = len(passage.answers)
    elif labelled:
        raise ConfigError(f"{path}: answers are missing")
    if len(set(counts.values())) > 1:
        raise ConfigError(f"{path}: {', '.join(f'{count} {key}' for key, count in counts.items())}")
    return passage.answers
