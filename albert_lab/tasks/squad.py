"""SQuAD's form, official or as `datasets` saves it: questions about contexts, with answers that are spans of them."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, field_validator

from albert_lab import files
from albert_lab.config.section import Section
from albert_lab.errors import ConfigError
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import Answer, Issue, SpanExample
from albert_lab.tasks.rows import read_rows


class _Answer(BaseModel):
    text: str
    answer_start: int

    def located(self, context: str) -> Answer:
        start = self.answer_start
        is_there = self.text and start >= 0 and context.startswith(self.text, start)
        return Answer(self.text, start if is_there else None)


class _Question(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    id: str
    question: str
    context: str
    title: str = ""
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


class _Paragraph(BaseModel):
    context: str
    qas: list[dict[str, Any]]


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

    def read(self, file: Path, training: bool) -> tuple[list[SpanExample], list[Issue]]:
        """The questions of a file of this version, in order; for training, only those with a usable answer."""
        examples, issues, seen = [], [], set()
        for question in self._questions(file):
            answers = tuple(answer.located(question.context) for answer in question.answers)
            located = [answer.start is not None for answer in answers]
            mark = question.is_impossible if self.unanswerable else None
            is_unusable = not answers and not self.unanswerable
            problem, is_left_out = next(
                (
                    (reason, is_left_out)
                    for reason, holds, is_left_out in (
                        ("its id occurs twice", question.id in seen, True),
                        ("marked impossible, with an answer", mark is True and answers, training),
                        ("not marked impossible, without an answer", mark is False and not answers, training),
                        ("no answer", is_unusable, True),
                        ("no answer is in the context where it says", answers and not any(located), training),
                        ("an answer is not in the context", not all(located), False),
                    )
                    if holds
                ),
                ("", False),
            )
            if problem:
                issues.append(Issue(question.id, problem))
            seen.add(question.id)
            if not is_left_out:
                parts = (question.id, question.question, question.context, answers)
                examples.append(SpanExample(*parts, self.unanswerable and not answers, question.title))
        return examples, issues

    def _questions(self, file: Path) -> list[_Question]:
        items = [cells for _, cells in read_rows(file)]
        is_official = any("paragraphs" in item for item in items)
        try:
            if is_official:
                items = [
                    {"context": paragraph.context, "title": article.title} | question
                    for article in TypeAdapter(list[_Article]).validate_python(items)
                    for paragraph in article.paragraphs
                    for question in paragraph.qas
                ]
            questions = TypeAdapter(list[_Question]).validate_python(items)
        except ValidationError as error:
            raise ConfigError(
                f"{file}: {files.describe(files.details_of(error)[0])}; SQuAD's form has data: [{{title, paragraphs:"
                " [{context, qas}]}], that of `datasets` rows of id, context, question and answers: {text,"
                " answer_start}"
            ) from error
        # Rows of `datasets` have no marks.
        if is_official and self.unanswerable != any(question.is_impossible is not None for question in questions):
            has, is_for = ("1.1", "2.0") if self.unanswerable else ("2.0", "1.1")
            raise ConfigError(f"{file}: a file of SQuAD {has} (by is_impossible of its questions), not {is_for}")
        return questions
