"""A toy tokenizer, toy runs, and tasks of a few examples, small enough to fine-tune within a test.

`python tests/toy_tasks.py FOLDER` writes files of every task of the project.
"""

import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import torch
from omegaconf import OmegaConf

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer import Cleaning, SentencePieceTokenizer, Tokenizer
from albert_lab.data.vocabulary import MODEL_FILE, train
from albert_lab.tasks.batches import TaskBatch
from albert_lab.tasks.examples import Answer, ChoiceExample, SpanExample, TextExample
from albert_lab.tasks.kind import TaskKind, load_kind
from albert_lab.tasks.model import InitialModel, TaskModel
from albert_lab.tasks.task import TaskConfig, load_task, task_names

TEXT = (
    "the cat sat on a mat and it was red green blue big small good bad dog ran to his house in "
    "1864 , . ( )"
)
WORDS = TEXT.split()

UNCASED = Cleaning(lower_case=True, strip_accents=True)


@cache
def toy_tokenizer(cleaning: Cleaning = UNCASED) -> Tokenizer:
    """A unigram tokenizer of toy sentences and every printable ASCII character."""
    sentences = [" ".join(WORDS[start : start + 7]) for start in range(len(WORDS) - 6)] * 20
    sentences += ["".join(chr(code) for code in range(33, 127))] * 20
    settings = load(["scale=smoke"]).tokenizer.model_copy(update={"vocab_size": 126})
    with TemporaryDirectory() as folder:
        train(sentences, settings, Path(folder) / MODEL_FILE)
        return SentencePieceTokenizer((Path(folder) / MODEL_FILE).read_bytes(), "toy", cleaning)


def toy_config(*overrides: str) -> RunConfig:
    """A run of the smoke scale with the toy vocabulary, in full precision on one thread."""
    size = toy_tokenizer().vocab_size
    machine = ["machine.device=cpu", "machine.precision=fp32", "machine.threads=1"]
    corpus = ["corpus=files", "corpus.path=nowhere", f"tokenizer.vocab_size={size}"]
    return load(["scale=smoke", *corpus, *machine, *overrides])


def toy_start(
    folder: Path, *overrides: str, weights: Path | None = None, name: str = "toy"
) -> InitialModel:
    """A toy run to fine-tune."""
    return InitialModel(name, toy_config(*overrides), toy_tokenizer(), weights, folder)


def toy_task(name: str, data: Path, *overrides: str) -> TaskConfig:
    """A task of the project with a few toy examples instead of its data, written below `data`."""
    settings = {"steps": 6, "warmup_steps": 1, "checkpoint_steps": 3, "batch_size": 4}
    short = [f"settings.smoke.{key}={value}" for key, value in settings.items()]
    task = changed(load_task(name), *short, *overrides)
    for split in ("train", "dev"):
        write_examples(task, task.file(data, split))
    return task


def toy_kind(name: str, **changes: Any) -> TaskKind:
    """The kind of a task of the project with settings of smoke, some of them changed."""
    task = load_task(name)
    return load_kind(task, task.at("smoke").model_copy(update=changes))


def changed(task: TaskConfig, *overrides: str) -> TaskConfig:
    """A task with other values of its keys."""
    merged = OmegaConf.merge(task.model_dump(mode="json"), OmegaConf.from_dotlist([*overrides]))
    return TaskConfig.model_validate_json(json.dumps(OmegaConf.to_container(merged)))


def write_examples(task: TaskConfig, file: Path, examples: Sequence[Any] | None = None) -> None:
    """Examples in the official form of a task; a few toy ones if none are given."""
    make, write = {
        "glue": (text_examples, _write_table),
        "squad": (span_examples, _write_squad),
        "race": (choice_examples, _write_race),
    }[task.format.name]
    file.parent.mkdir(parents=True, exist_ok=True)
    write(task.format, file, make(task) if examples is None else examples)


def _write_table(form: Any, file: Path, examples: Sequence[TextExample]) -> None:
    rows = [{form.text_a: e.text_a, form.text_b: e.text_b, form.label: e.label} for e in examples]
    names = form.columns or [name for name in rows[0] if name]
    table = pd.DataFrame(rows).reindex(columns=names)
    table.to_csv(file, sep="\t", index=False, header=not form.columns)


def _write_squad(form: Any, file: Path, examples: Sequence[SpanExample]) -> None:
    paragraphs = []
    for e in examples:
        answers = [{"text": answer.text, "answer_start": answer.start} for answer in e.answers]
        question = {"id": e.id, "question": e.question, "answers": answers}
        marks = {"is_impossible": e.is_impossible} if form.unanswerable else {}
        paragraphs.append({"context": e.context, "qas": [question | marks]})
    file.write_text(json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]}))


def _write_race(form: Any, file: Path, examples: Sequence[ChoiceExample]) -> None:
    for e in examples:
        content = {"article": e.passage, "questions": [e.question], "options": [e.options]}
        place = file / e.id.removesuffix("/0")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(content | {"answers": ["ABCD"[e.label]]}))


def text_examples(task: TaskConfig) -> list[TextExample]:
    form: Any = task.format
    text_b = "it was" if form.text_b else None
    examples = []
    for number in range(16):
        place = number % len(form.labels or "ab")
        label = form.labels[place] if form.labels else float(number % 5)
        text_a = f"the {('good', 'bad', 'red')[place]} cat sat on {number}"
        examples.append(TextExample(str(number), text_a, text_b, label))
    return examples


def span_examples(task: TaskConfig) -> list[SpanExample]:
    form: Any = task.format
    examples = []
    for number in range(12):
        colour = ("red", "green", "blue")[number % 3]
        context = f"The cat sat on a {colour} mat, and it was big. " * (1 + number % 3)
        is_impossible = form.unanswerable and number % 2 == 1
        answers = () if is_impossible else (Answer("mat", context.index("mat")),)
        question = "on what did it sit"
        examples.append(SpanExample(f"q{number}", question, context, answers, is_impossible))
    return examples


def choice_examples(task: TaskConfig) -> list[ChoiceExample]:
    texts = ("the cat sat on a mat", "it was _", ("red", "green", "blue", "big"))
    return [ChoiceExample(f"high/{number}.txt/0", *texts, number % 4) for number in range(12)]


def loss_of(model: TaskModel, batch: TaskBatch) -> torch.Tensor:
    return model.head.loss(*model(batch), batch)


def scores_of(model: TaskModel, batch: TaskBatch) -> dict[str, torch.Tensor]:
    return model.head.scores(*model(batch), batch)


if __name__ == "__main__":
    for task_name in task_names():
        toy_task(task_name, Path(sys.argv[1]))
