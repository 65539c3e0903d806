"""Official task data: fetched from the Hugging Face Hub into the official file formats, and its status."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from tabulate import tabulate

from albert_lab import paths
from albert_lab.config import compose as config
from albert_lab.data import corpus
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import Say
from albert_lab.storage import replacing
from albert_lab.tasks.examples import Answer, ChoiceExample, SpanExample, TextExample, describe
from albert_lab.tasks.formats.choices import ChoicesFormat
from albert_lab.tasks.formats.glue import GlueFormat
from albert_lab.tasks.formats.race import LETTERS, RaceFormat
from albert_lab.tasks.formats.squad import SquadFormat
from albert_lab.tasks.task import HubSource, TaskConfig, load_task, task_names


def fetch(name: str, folder: Path, say: Say, overrides: Sequence[str] = ()) -> list[Path]:
    """Fetches a family of tasks (glue, squad, race) or one task, except existing files; returns the files written.

    For a corpus of the Hub (wikipedia-books), only access is tested and nothing is written: its text is streamed.

    Args:
        name: The family, the task or the corpus.
        overrides: Settings of every task, such as hub.path=FOLDER for a local copy of its data set.

    Raises:
        ConfigError: unknown name, or a data set of another form.
        MissingDataError: the data set cannot be reached, or `datasets` is not installed.
    """
    if name in _hub_corpora():
        return _try_corpus(name, say, overrides)
    tasks = [task for task in map(load_task, task_names()) if task.hub and name in (task.name, task.family)]
    if not tasks:
        families = sorted({task.family for task in map(load_task, task_names()) if task.hub})
        known = ", ".join([*families, *_hub_corpora()])
        raise ConfigError(f"{name} cannot be fetched (allowed: {known}, or the name of a single task)")
    return [file for task in tasks for file in _fetch_task(load_task(task.name, overrides), folder, say)]


def status(folder: Path, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """One row per task: name, title, examples by existing split, missing files by split, problems by split, folder.

    Every existing file is read, and the counts are those of usable examples.

    Args:
        names: tasks by name or file; None: all tasks of the project.

    Raises:
        ConfigError: unknown task.
    """
    rows = []
    for task in map(load_task, task_names() if names is None else names):
        examples: dict[str, int] = {}
        missing: dict[str, str] = {}
        problems: dict[str, str] = {}
        for split in task.data:
            try:
                read, issues = task.read(folder, split)
                examples[split] = len(read)
                if issues:
                    problems[split] = describe(issues)
            except MissingDataError:
                missing[split] = str(task.file(folder, split))
            except ConfigError as error:
                problems[split] = str(error)
        row = {"task": task.name, "title": task.title, "examples": examples, "missing": missing, "problems": problems}
        own = task.file(folder, "train").parent if task.folder else folder / task.family
        rows.append(row | {"looked_for_in": str(own)})
    return rows


def status_text(rows: list[dict[str, Any]], folder: Path) -> str:
    """The rows as a table."""

    def counts(row: dict[str, Any]) -> str:
        return ", ".join(f"{split} {count:,}" for split, count in row["examples"].items())

    def lacks(row: dict[str, Any]) -> str:
        missing = [f"{split}: {_below(Path(file), folder)}" for split, file in row["missing"].items()]
        return "; ".join([*missing, *(f"{split}: {problem}" for split, problem in row["problems"].items())])

    body = [[row["title"], counts(row), lacks(row)] for row in rows]
    table = tabulate(body, headers=["task", "examples", "missing or wrong"], tablefmt="simple", disable_numparse=True)
    return f"{table}\n\nlooked for in {folder} ($ALBERT_LAB_TASKS); `albert-lab data fetch` downloads what is missing"


def _below(file: Path, folder: Path) -> Path:
    return file.relative_to(folder) if file.is_relative_to(folder) else file


def _hub_corpora() -> list[str]:
    files = sorted(paths.CONF.glob("corpus/*.yaml"))
    return [file.stem for file in files if OmegaConf.select(OmegaConf.load(file), "source") == "hub"]


def _try_corpus(name: str, say: Say, overrides: Sequence[str]) -> list[Path]:
    resolved = config.load([f"corpus={name}", *overrides]).corpus
    for dataset in resolved.datasets:
        if next(corpus.iterate(resolved.model_copy(update={"datasets": (dataset,)})), None) is None:
            raise MissingDataError(f"{dataset.path} has no document")
        say(f"{dataset.path} can be reached")
    say(f"{name} is not stored: its text is streamed where it is used, as in `albert-lab data prepare corpus={name}`")
    return []


def _fetch_task(task: TaskConfig, folder: Path, say: Say) -> list[Path]:
    assert task.hub is not None
    written = []
    for split, theirs in task.hub.splits.items():
        file = task.file(folder, split)
        if file.exists():
            say(f"{task.name}: {file} is there already")
            continue
        rows, label_names = _load(task, task.hub, theirs, file)
        try:
            examples = _examples(task, rows, label_names)
        except (KeyError, TypeError, ValueError) as error:
            place = f"{task.hub.path} ({task.hub.name}, {theirs})"
            raise ConfigError(f"{place} is not of the form of {task.name}: {error!r}") from error
        with replacing(file) as partial:
            task.format.write(examples, partial)
        say(f"{task.name}: {len(examples)} examples in {file}")
        written.append(file)
    return written


def _load(task: TaskConfig, hub: HubSource, split: str, file: Path) -> tuple[list[dict[str, Any]], list[str] | None]:
    """The rows of a split, and the names of the numeric labels."""
    try:
        from datasets import config as datasets_config
        from datasets import load_dataset
    except ImportError as error:
        raise MissingDataError(f"{hub.path} needs the package datasets: pip install 'albert-lab[hub]'") from error
    # Otherwise `datasets` imports torch if it is installed, and makes a stream a data set of torch.
    datasets_config.TORCH_AVAILABLE = False
    try:
        # Streamed, so that the rows are stored only once, in the official form.
        stream = load_dataset(hub.path, hub.name, split=split, streaming=True)
        rows = list(stream)
    except OSError as error:
        raise MissingDataError(
            f"{task.name}: the data set {hub.path} cannot be reached: {error}. Without a network, put the official"
            f" file at {file}, or give a local copy of the data set: hub.path=FOLDER"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{hub.path} ({hub.name}, {split}): {error}") from error
    if not rows:
        raise ConfigError(f"{hub.path} ({hub.name}, {split}) is empty")
    return rows, getattr((stream.features or {}).get("label"), "names", None)


def _examples(task: TaskConfig, rows: list[dict[str, Any]], label_names: list[str] | None) -> Sequence[Any]:
    match task.format:
        case GlueFormat():
            return _text_examples(task.format, rows, label_names)
        case SquadFormat():
            return [
                SpanExample(
                    id=row["id"],
                    question=row["question"],
                    context=row["context"],
                    answers=tuple(map(Answer, row["answers"]["text"], row["answers"]["answer_start"])),
                    is_impossible=task.format.unanswerable and not row["answers"]["text"],
                    title=row["title"],
                )
                for row in rows
            ]
        case RaceFormat():
            return _choice_examples(rows)
        case ChoicesFormat():
            raise ValueError("no data set of the Hub can be converted to the format choices")


def _text_examples(form: GlueFormat, rows: list[dict[str, Any]], label_names: list[str] | None) -> list[TextExample]:
    """Examples whose texts are the text columns, in order; a label of -1 means no label."""

    def as_label(value: Any) -> str | float | None:
        if value is None or value == -1:
            return None
        if form.labels is None:
            return float(f"{value:.7g}")  # stored in 32 bits: 3.8 is read as 3.799999952316284
        name = label_names[value] if label_names else None
        label = name if name in form.labels else str(value)
        if label not in form.labels:
            raise ValueError(f"the label {name or value} is none of {', '.join(form.labels)}")
        return label

    texts = [key for key, value in rows[0].items() if isinstance(value, str)]
    if len(texts) != 1 + (form.text_b is not None):
        raise ValueError(f"columns of text: {', '.join(texts)}")
    return [
        TextExample(str(number), row[texts[0]], row[texts[1]] if form.text_b else None, as_label(row["label"]))
        for number, row in enumerate(rows)
    ]


def _choice_examples(rows: list[dict[str, Any]]) -> list[ChoiceExample]:
    """One question per row; its passage is named like the official file in its level's folder: high10024.txt."""
    by_passage: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        path = re.sub(r"^(\D+)", r"\1/", row["example_id"])
        by_passage.setdefault(path, []).append(row)
    return [
        ChoiceExample(
            id=f"{path}/{number}",
            passage=row["article"],
            question=row["question"],
            options=tuple(row["options"]),
            label=LETTERS.index(row["answer"]),
        )
        for path, of_passage in by_passage.items()
        for number, row in enumerate(of_passage)
    ]
