"""SQuAD's form, official or as `datasets` saves it: questions about contexts, with answers that are spans of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, field_validator

from albert_lab import files
from albert_lab.config.section import Section
from albert_lab.errors import ConfigError
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import Answer, Issue, SpanExample, usable
from albert_lab.tasks.rows import read_rows

T = TypeVar("T")


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Question(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    id: str
    question: str
    answers: tuple[_Answer, ...] = ()
    is_impossible: bool | None = None

    @field_validator("answers", mode="before")
    @classmethod
    def _as_items(cls, answers: Any) -> Any:
        """The answers of `datasets`, a list of texts and one of starts, in the official form."""
        if not isinstance(answers, dict):
            return answers
        texts, starts = answers.get("text"), answers.get("answer_start")
        if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
            raise ValueError("as many in text as in answer_start")
        return [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]


class _FlatQuestion(_Question):
    context: str
    title: str = ""


class _Paragraph(BaseModel):
    context: str
    qas: list[_Question]


class _Article(BaseModel):
    title: str = ""
    paragraphs: list[_Paragraph]


class SquadFormat(Section):
    """Questions on contexts, of SQuAD 2.0 if unanswerable is true, else of 1.1.

    A file has the official form, articles with paragraphs, or one row per question, as `datasets` saves it.
    """

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
        asked, is_flat = self._asked(file)
        questions = [question for _, _, question in asked]
        is_unlabelled = not any(question.answers or question.is_impossible for question in questions)
        if (labelled or not is_unlabelled) and not is_flat:
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

    def _asked(self, file: Path) -> tuple[list[tuple[str, str, _Question]], bool]:
        """Title, context and question of each, and whether the file has one row per question."""
        rows = read_rows(file)
        if flawed := [row for row in rows if row.flaw]:
            raise ConfigError(f"{file}: {flawed[0].place} is {flawed[0].flaw}")
        items = [row.cells for row in rows]
        if any("paragraphs" in item for item in items):
            articles = _checked(file, list[_Article], items)
            places = ((article.title, paragraph) for article in articles for paragraph in article.paragraphs)
            return [
                (title, paragraph.context, question) for title, paragraph in places for question in paragraph.qas
            ], False
        flat = _checked(file, list[_FlatQuestion], items)
        return [(question.title, question.context, question) for question in flat], True

    def _refuse_other_version(self, file: Path, questions: Sequence[_Question]) -> None:
        marked = next((question.id for question in questions if question.is_impossible is not None), None)
        if marked is not None and not self.unanswerable:
            raise ConfigError(f"{file}: a SQuAD 2.0 file (question {marked} has is_impossible), not 1.1")
        if marked is None and questions and self.unanswerable:
            raise ConfigError(f"{file}: a SQuAD 1.1 file (no question has is_impossible), not 2.0")

    def _is_mismarked(self, question: _Question) -> bool:
        is_marked = question.is_impossible is not None
        return self.unanswerable and is_marked and question.is_impossible == bool(question.answers)

    def _problem(self, question: _Question, answers: Sequence[Answer]) -> str:
        if self._is_mismarked(question):
            return "marked impossible, with an answer" if answers else "not marked impossible, without an answer"
        if not answers:
            return "" if self.unanswerable else "no answer"
        if not _located(answers):
            return "no answer is in the context where it says"
        return "" if all(answer.start is not None for answer in answers) else "an answer is not in the context"


def _checked(file: Path, form: type[T], content: object) -> T:
    try:
        return TypeAdapter(form).validate_python(content)
    except ValidationError as error:
        details = files.details_of(error)
        raise ConfigError(
            f"{file}: {files.describe(details[0])}{f' (and {len(details) - 1} more)' if len(details) > 1 else ''};"
            " SQuAD's form has data: [{title, paragraphs: [{context, qas}]}], that of `datasets` rows of id, context,"
            " question and answers: {text, answer_start}"
        ) from error


def _locate(answer: _Answer, context: str) -> Answer:
    start = answer.answer_start
    is_there = answer.text and start >= 0 and context.startswith(answer.text, start)
    return Answer(answer.text, start if is_there else None)


def _located(answers: Iterable[Answer]) -> bool:
    return any(answer.start is not None for answer in answers)
