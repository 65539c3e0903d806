"""A toy corpus with an order that can be learnt, and configurations that train on it within
seconds.
"""

import random
from pathlib import Path
from typing import Any

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.runs import results, worker
from albert_lab.runs.results import RunRecord
from albert_lab.runs.run import Run, create
from albert_lab.studies.execute import Outcome, execute
from albert_lab.studies.experiment import Experiment, from_overrides
from albert_lab.studies.jobs import Options
from albert_lab.studies.plan import Plan, plan_study

WORDS = [
    first + last for first in "bcdfghjklmnp" for last in ("a", "e", "ido", "oru", "ust", "ane")
]


def write_corpus(folder: Path, documents: int = 80, sentences: int = 14, seed: int = 0) -> Path:
    """A text file of documents; each sentence has a topic word of its document, and a word for its
    position.
    """
    draw = random.Random(seed)
    texts = []
    for _ in range(documents):
        topic = draw.choice(WORDS)
        texts.append(
            "\n".join(
                f"{topic} {' '.join(draw.choices(WORDS, k=draw.randint(3, 7)))} {WORDS[place]}."
                for place in range(sentences)
            )
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "toy.txt").write_text("\n\n".join(texts) + "\n")
    return folder


def toy_overrides(folder: Path, *overrides: str) -> list[str]:
    """Overrides for a run on the toy corpus that takes a second."""
    return [
        "scale=smoke",
        "corpus=files",
        f"corpus.path={folder}",
        "corpus.sentences=line",
        "corpus.dev_share=0.25",
        "tokenizer.vocab_size=56",
        "machine.device=cpu",
        "machine.precision=fp32",
        "machine.threads=1",
        *overrides,
    ]


def toy_config(folder: Path, *overrides: str) -> RunConfig:
    """The configuration of a run on the toy corpus that takes a second."""
    return load(toy_overrides(folder, *overrides))


def toy_experiment(**content: Any) -> Experiment:
    """An experiment with this content; without it, of one row."""
    named = {"name": "toy", "title": "Toy", "source": "none", "grid": {}}
    return Experiment.model_validate(named | content)


def trained(run: Run) -> RunRecord:
    """The record of a run, which is trained in this process if it is not there."""
    if not results.read(create(run)):
        assert worker.main(run.folder) == 0
    record = results.read(run.folder)
    assert record is not None
    return record


def toy_plan(folder: Path, *overrides: str) -> Plan:
    """The plan of a sweep on the toy corpus, of runs of two steps without downstream tasks."""
    experiment, rest = from_overrides(toy_overrides(folder, "budget.value=2", *overrides))
    return plan_study(experiment, rest, tasks=[])


def train(plan: Plan, **options: Any) -> Outcome:
    """The outcome of training a plan as a command does, with its runs as they are now."""
    return execute(plan.updated(), Options(**options))


def silent(_line: str) -> None:
    """Says nothing."""


def states_of(plan: Plan) -> list[str]:
    """The state of each point now."""
    return [item.state for item in plan.updated().points]
