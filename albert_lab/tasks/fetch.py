"""Official task data: fetched from the Hugging Face Hub into files that the tasks read, and its status."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import Say
from albert_lab.storage import replacing
from albert_lab.tasks.examples import describe
from albert_lab.tasks.formats import GlueFormat, RaceFormat
from albert_lab.tasks.rows import JSON_LINES
from albert_lab.tasks.squad import SquadFormat
from albert_lab.tasks.task import TaskConfig, load_task, task_names


def fetch(name: str, folder: Path, say: Say, overrides: Sequence[str] = ()) -> list[Path]:
    """Fetches a family of tasks (glue, squad, race) or one task, except existing files; returns the files written.

    Args:
        name: The family, or a task by name or file.
        overrides: Settings of every task, such as hub.path=FOLDER for a local copy of its data set.

    Raises:
        ConfigError: unknown name, or a data set of another form.
        MissingDataError: the data set cannot be reached, or `datasets` is not installed.
    """
    known = [load_task(name) for name in ([name] if name.endswith(".yaml") else task_names())]
    names = [task.name for task in known if task.hub and name in (task.name, task.family)]
    if name.endswith(".yaml") and known[0].hub:
        names = [name]
    if not names:
        families = dict.fromkeys(task.family for task in map(load_task, task_names()))
        raise ConfigError(f"{name} cannot be fetched (allowed: {', '.join(families)}, or a task that has hub)")
    return [file for of in names for file in _fetch_task(load_task(of, overrides), folder, say)]


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
        for split in task.splits:
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
    body = []
    for row in rows:
        counts = ", ".join(f"{split} {count:,}" for split, count in row["examples"].items())
        lacks = [f"{split}: {file.removeprefix(f'{folder}/')}" for split, file in row["missing"].items()]
        lacks += [f"{split}: {problem}" for split, problem in row["problems"].items()]
        body.append([row["title"], counts, "; ".join(lacks)])
    table = tabulate(body, headers=["task", "examples", "missing or wrong"], tablefmt="simple", disable_numparse=True)
    return f"{table}\n\nlooked for in {folder} ($ALBERT_LAB_TASKS); `albert-lab data fetch` downloads what is missing"


def _fetch_task(task: TaskConfig, folder: Path, say: Say) -> list[Path]:
    assert task.hub is not None
    written = []
    for split, theirs in task.hub.splits.items():
        file = task.file(folder, split)
        if file.exists():
            say(f"{task.name}: {file} is there already")
            continue
        place = f"{task.hub.path} ({task.hub.name}, {theirs})"
        rows, labels = _load(task, theirs, file)
        try:
            texts = _passages(rows) if isinstance(task.format, RaceFormat) else {"": _text(task, rows, labels, file)}
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"{place} is not of the form of {task.name}: {error!r}") from error
        with replacing(file) as partial:
            for inside, text in texts.items():
                (partial / inside).parent.mkdir(parents=True, exist_ok=True)
                (partial / inside).write_text(text, encoding="utf-8", newline="")
        say(f"{task.name}: {len(rows)} rows of {place} in {file}")
        written.append(file)
    return written


def _load(task: TaskConfig, split: str, file: Path) -> tuple[list[dict[str, Any]], list[str] | None]:
    """The rows of a split, and the names of the numeric labels."""
    assert task.hub is not None
    path = task.hub.path
    try:
        from datasets import config as datasets_config
        from datasets import load_dataset
    except ImportError as error:
        raise MissingDataError(f"{path} needs the package datasets: pip install 'albert-lab[hub]'") from error
    # Otherwise `datasets` imports torch if it is installed, and makes a stream a data set of torch.
    datasets_config.TORCH_AVAILABLE = False
    try:
        stream = load_dataset(path, task.hub.name, split=split, streaming=True)  # the rows are stored only once
        rows = list(stream)
    except OSError as error:
        raise MissingDataError(
            f"{task.name}: the data set {path} cannot be reached: {error}. Without a network, put the official"
            f" file at {file}, or give a local copy of the data set: hub.path=FOLDER"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} ({task.hub.name}, {split}): {error}") from error
    if not rows:
        raise ConfigError(f"{path} ({task.hub.name}, {split}) is empty")
    return rows, getattr((stream.features or {}).get("label"), "names", None)


def _text(task: TaskConfig, rows: list[dict[str, Any]], labels: Sequence[str] | None, file: Path) -> str:
    """The rows as GLUE's official table, else as JSON in the form that they have."""
    if isinstance(task.format, GlueFormat) and file.suffix == ".tsv":
        return "".join(
            "\t".join(re.sub(r"[\t\r\n]+", " ", cell) for cell in row) + "\n"
            for row in _table(task.format, rows, labels)
        )
    if isinstance(task.format, SquadFormat):
        rows = [{key: row[key] for key in ("id", "title", "context", "question", "answers")} for row in rows]
    if labels:  # -1: none
        rows = [row | {"label": labels[row["label"]] if row["label"] >= 0 else None} for row in rows]
    if file.suffix in JSON_LINES:
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return json.dumps({"data": rows}, ensure_ascii=False)


def _table(form: GlueFormat, rows: list[dict[str, Any]], labels: Sequence[str] | None) -> Iterator[list[str]]:
    """GLUE's columns, of which those that the Hub lacks are empty; test files have index and texts."""

    def label(value: Any) -> str:
        if form.labels is None:
            return f"{value:.7g}"  # stored in 32 bits: 3.8 is read as 3.799999952316284
        name = str(labels[value]) if labels else str(value)
        known = name if name in form.labels else str(value)
        if known not in form.labels:
            raise ValueError(f"the label {name} is none of {', '.join(form.labels)}")
        return known

    texts = [key for key, value in rows[0].items() if isinstance(value, str)]
    columns = [column for column in (form.text_a, form.text_b) if column]
    if len(texts) != len(columns):
        raise ValueError(f"columns of text: {', '.join(texts)}")
    is_labelled = any(row["label"] not in (None, -1) for row in rows)
    names = list(form.columns) if is_labelled else ["index", *columns]
    if form.header or not is_labelled:
        yield names
    for number, row in enumerate(rows):
        cells = {"index": str(number), "id": str(number)} | {
            ours: row[theirs] for ours, theirs in zip(columns, texts, strict=True)
        }
        cells |= {form.label: label(row["label"])} if is_labelled else {}
        yield [cells.get(name, "") for name in names]


def _passages(rows: list[dict[str, Any]]) -> dict[str, str]:
    """RACE's files, one per passage, by their names: like the official ones in the folder of their level."""
    passages: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        passages.setdefault(re.sub(r"^(\D+)", r"\1/", row["example_id"]), []).append(row)
    keys = {"answers": "answer", "options": "options", "questions": "question"}
    return {
        name: json.dumps(
            {ours: [row[theirs] for row in asked] for ours, theirs in keys.items()} | {"article": asked[0]["article"]}
        )
        for name, asked in passages.items()
    }
