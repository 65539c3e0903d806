"""A toy tokenizer, toy runs, and tasks of a few examples, small enough to fine-tune within a test.

`python tests/toy_tasks.py FOLDER` writes files of every task of the project.
"""

import io
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from omegaconf import OmegaConf

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer import CONTROL_SYMBOLS, Cleaning, SentencePieceTokenizer, Tokenizer
from albert_lab.tasks.batches import TaskBatch
from albert_lab.tasks.examples import Answer, ChoiceExample, SpanExample, TextExample
from albert_lab.tasks.formats import GlueFormat, SquadFormat
from albert_lab.tasks.model import InitialModel, TaskModel
from albert_lab.tasks.records import Evaluation
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
    model = io.BytesIO()
    ids: dict[str, Any] = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type="unigram",
        vocab_size=150,
        **ids,
        control_symbols=list(CONTROL_SYMBOLS),
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return SentencePieceTokenizer(model.getvalue(), "toy", cleaning)


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
    task = changed(load_task(name), *_settings(*overrides))
    for split in ("train", "dev"):
        write_examples(task, task.file(data, split))
    return task


def changed(task: TaskConfig, *overrides: str) -> TaskConfig:
    """A task with other values of its keys."""
    merged = OmegaConf.merge(task.model_dump(mode="json"), OmegaConf.from_dotlist([*overrides]))
    return TaskConfig.model_validate_json(json.dumps(OmegaConf.to_container(merged)))


def write_examples(task: TaskConfig, file: Path, examples: Sequence[Any] | None = None) -> None:
    """Examples in the official form of a task; a few toy ones if none are given."""
    make: Any = {"glue": text_examples, "squad": span_examples, "race": choice_examples}[
        task.format.name
    ]
    chosen: Sequence[Any] = make(task) if examples is None else examples
    file.parent.mkdir(parents=True, exist_ok=True)
    match task.format:
        case GlueFormat() as form:
            rows = [
                {form.text_a: e.text_a, form.text_b: e.text_b, form.label: e.label} for e in chosen
            ]
            lines = [] if form.columns else [[name or "" for name in rows[0]]]
            lines += [[str(row.get(name, "")) for name in form.columns or rows[0]] for row in rows]
            file.write_text("".join("\t".join(line) + "\n" for line in lines))
        case SquadFormat():
            paragraphs = []
            for e in chosen:
                answers = [
                    {"text": answer.text, "answer_start": answer.start} for answer in e.answers
                ]
                marks = {"is_impossible": e.is_impossible} if task.format.unanswerable else {}
                question = {"id": e.id, "question": e.question, "answers": answers, **marks}
                paragraphs.append({"context": e.context, "qas": [question]})
            file.write_text(json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]}))
        case _:
            for e in chosen:
                content = {"article": e.passage, "questions": [e.question], "options": [e.options]}
                place = file / e.id.removesuffix("/0")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(json.dumps(content | {"answers": ["ABCD"[e.label]]}))


def _settings(*overrides: str) -> list[str]:
    settings = {"steps": 6, "warmup_steps": 1, "checkpoint_steps": 3, "batch_size": 4}
    return [*(f"settings.smoke.{key}={value}" for key, value in settings.items()), *overrides]


def text_examples(task: TaskConfig) -> list[TextExample]:
    labels = getattr(task.format, "labels", None)
    text_b = "it was" if getattr(task.format, "text_b", None) is not None else None
    examples = []
    for number in range(16):
        word = ("good", "bad", "red")[number % len(labels or "ab")]
        label = labels[number % len(labels)] if labels else float(number % 5)
        examples.append(TextExample(str(number), f"the {word} cat sat on {number}", text_b, label))
    return examples


def span_examples(task: TaskConfig) -> list[SpanExample]:
    examples = []
    for number in range(12):
        context = (
            f"The cat sat on a {['red', 'green', 'blue'][number % 3]} mat, and it was big. "
            * (1 + number % 3)
        )
        impossible = getattr(task.format, "unanswerable", False) and number % 2 == 1
        answers = () if impossible else (Answer("mat", context.index("mat")),)
        examples.append(
            SpanExample(f"q{number}", "on what did it sit", context, answers, impossible)
        )
    return examples


def choice_examples(task: TaskConfig) -> list[ChoiceExample]:
    texts = ("the cat sat on a mat", "it was _", ("red", "green", "blue", "big"))
    return [ChoiceExample(f"high/{number}.txt/0", *texts, number % 4) for number in range(12)]


def loss_of(model: TaskModel, batch: TaskBatch) -> torch.Tensor:
    return model.head.loss(*model(batch), batch)


def scores_of(model: TaskModel, batch: TaskBatch) -> dict[str, torch.Tensor]:
    return model.head.scores(*model(batch), batch)


def values_of(evaluation: Evaluation) -> dict[str, float]:
    """The value of each metric."""
    return {metric: score.value for metric, score in evaluation.scores.items()}


if __name__ == "__main__":
    for task_name in task_names():
        toy_task(task_name, Path(sys.argv[1]))
