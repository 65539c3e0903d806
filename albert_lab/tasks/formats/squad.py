"""SQuAD's JSON, 1.1 and 2.0: articles, their paragraphs and questions; predictions as id -> text."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel

from albert_lab.config.section import Section
from albert_lab.errors import ConfigError
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import Answer, Issue, SpanExample
from albert_lab.tasks.formats import read_json, usable, write_json


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Question(BaseModel):
    id: str
    question: str
    answers: tuple[_Answer, ...] = ()
    is_impossible: bool | None = None


class _Paragraph(BaseModel):
    context: str
    qas: list[_Question]


class _Article(BaseModel):
    title: str = ""
    paragraphs: list[_Paragraph]


class _Articles(BaseModel):
    data: list[_Article]


class SquadFormat(Section):
    """SQuAD 2.0 if unanswerable is true, else SQuAD 1.1."""

    name: Literal["squad"]
    unanswerable: bool
    needs: ClassVar[tuple[str, ...]] = ("question_length", "stride", "answer_length", "n_best")
    sequences: ClassVar[int] = 1

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the possible scores, as in the official scripts."""
        return metrics.OF_SQUAD2 if self.unanswerable else metrics.OF_SQUAD1

    def read(self, file: Path, labelled: bool) -> tuple[list[SpanExample], list[Issue]]:
        """The questions of a file of this version, in order."""
        articles = read_json(file, _Articles).data
        asked = [
            (article.title, paragraph.context, question)
            for article in articles
            for paragraph in article.paragraphs
            for question in paragraph.qas
        ]
        questions = [question for _, _, question in asked]
        is_unlabelled = not any(question.answers or question.is_impossible for question in questions)
        if labelled or not is_unlabelled:
            self._refuse_other_version(file, questions)
        examples, issues, seen = [], [], set()
        for title, context, question in asked:
            answers = tuple(_locate(answer, context) for answer in question.answers)
            problem = "" if is_unlabelled and not labelled else self._problem(question, answers)
            problem = "its id occurs twice" if question.id in seen else problem
            if problem:
                issues.append(Issue(question.id, problem))
            if question.id in seen:
                continue
            seen.add(question.id)
            is_impossible = self.unanswerable and not answers and not is_unlabelled
            if labelled and (self._is_mismarked(question) or not (is_impossible or _located(answers))):
                continue
            examples.append(SpanExample(question.id, question.question, context, answers, is_impossible, title))
        return usable(file, examples, issues)

    def write(self, examples: Sequence[SpanExample], file: Path) -> None:
        """Writes the official form; consecutive questions on the same context share article and paragraph."""
        data = []
        for title, of_title in groupby(examples, lambda example: example.title):
            paragraphs = [
                {"context": context, "qas": [self._question(example) for example in of_context]}
                for context, of_context in groupby(of_title, lambda example: example.context)
            ]
            data.append({"title": title, "paragraphs": paragraphs})
        write_json({"version": "v2.0" if self.unanswerable else "1.1", "data": data}, file)

    def read_predictions(self, file: Path) -> dict[str, str]:
        """Predicted answers by question id; an empty text means no answer."""
        return read_json(file, dict[str, str])

    def write_predictions(self, predictions: Mapping[str, str], file: Path) -> None:
        """Writes predicted answers by question id, in the form of the official script."""
        write_json(dict(predictions), file)

    def _refuse_other_version(self, file: Path, questions: Sequence[_Question]) -> None:
        marked = next((question.id for question in questions if question.is_impossible is not None), None)
        if marked is not None and not self.unanswerable:
            raise ConfigError(f"{file}: a SQuAD 2.0 file (question {marked} has is_impossible), not 1.1")
        if marked is None and questions and self.unanswerable:
            raise ConfigError(f"{file}: a SQuAD 1.1 file (no question has is_impossible), not 2.0")

    def _is_mismarked(self, question: _Question) -> bool:
        return self.unanswerable and bool(question.is_impossible) == bool(question.answers)

    def _problem(self, question: _Question, answers: Sequence[Answer]) -> str:
        if self._is_mismarked(question):
            return "marked impossible, with an answer" if answers else "not marked impossible, without an answer"
        if not answers:
            return "" if self.unanswerable else "no answer"
        if not _located(answers):
            return "no answer is in the context where it says"
        return "" if all(answer.start is not None for answer in answers) else "an answer is not in the context"

    def _question(self, example: SpanExample) -> dict[str, object]:
        answers = [
            {"text": answer.text, "answer_start": -1 if answer.start is None else answer.start}
            for answer in example.answers
        ]
        marked = {"is_impossible": example.is_impossible} if self.unanswerable else {}
        return {"id": example.id, "question": example.question, "answers": answers, **marked}


def _locate(answer: _Answer, context: str) -> Answer:
    start = answer.answer_start
    is_there = answer.text and start >= 0 and context.startswith(answer.text, start)
    return Answer(answer.text, start if is_there else None)


def _located(answers: Sequence[Answer]) -> bool:
    return any(answer.start is not None for answer in answers)
