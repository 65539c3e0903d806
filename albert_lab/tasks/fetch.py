"""Official task data: fetched from the Hugging Face Hub into files that the tasks read, and its status."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import Say
from albert_lab.storage import replacing
from albert_lab.tasks.examples import describe
from albert_lab.tasks.formats import JSON_LINES, GlueFormat, RaceFormat
from albert_lab.tasks.task import SPLITS, HubSource, TaskConfig, load_task, task_names


def fetch(name: str, folder: Path, say: Say, overrides: Sequence[str] = ()) -> list[Path]:
    """Fetches a family of tasks (glue, squad, race) or one task, except existing files; returns the files written.

    Args:
        name: The family, or a task by name or file.
        overrides: Settings of every task, such as hub.path=FOLDER for a local copy of its data set.

    Raises:
        ConfigError: unknown name, or a data set of another form.
        MissingDataError: the data set cannot be reached, or `datasets` is not installed.
    """
    is_file, written = name.endswith(".yaml"), []
    tasks = [load_task(of, overrides) for of in ([name] if is_file else task_names())]
    splits = [
        (task, task.hub, ours, theirs)
        for task in tasks
        if task.hub and (is_file or name in (task.name, task.family))
        for ours, theirs in task.hub.splits.items()
    ]
    if not splits:
        raise ConfigError(f"{name} cannot be fetched (allowed: glue, squad, race, or a task that has hub)")
    for task, hub, ours, theirs in splits:
        if (file := task.file(folder, ours)).exists():
            say(f"{task.name}: {file} is there already")
            continue
        say(f"{task.name}: {_write(task, hub, theirs, file)} rows of {hub.path} ({hub.name}, {theirs}) in {file}")
        written.append(file)
    return written


def status(folder: Path, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """One row per task: name, title, and by split the number of usable examples, and what is missing or wrong.

    Args:
        names: tasks by name or file; None: all tasks of the project.

    Raises:
        ConfigError: unknown task.
    """
    rows = []
    for task in map(load_task, task_names() if names is None else names):
        row: dict[str, Any] = {"task": task.name, "title": task.title, "examples": {}, "problems": {}}
        for split in SPLITS:
            try:
                examples, issues = task.read(folder, split)
                row["examples"][split] = len(examples)
                row["problems"] |= {split: describe(issues)} if issues else {}
            except (ConfigError, MissingDataError) as error:
                row["problems"][split] = str(error)
        rows.append(row)
    return rows


def _write(task: TaskConfig, hub: HubSource, split: str, file: Path) -> int:
    """Writes a split of a data set into a task's file or folder; the number of its rows."""
    try:
        from datasets import config as datasets_config
        from datasets import load_dataset
    except ImportError as error:
        raise MissingDataError(f"{hub.path} needs the package datasets: pip install 'albert-lab[hub]'") from error
    # Otherwise `datasets` imports torch if it is installed, and makes a stream a data set of torch.
    datasets_config.TORCH_AVAILABLE = False
    try:
        stream = load_dataset(hub.path, hub.name, split=split, streaming=True)  # the rows are stored only once
        rows: list[dict[str, Any]] = list(stream)
        names = getattr((stream.features or {}).get("label"), "names", None)
        texts = _passages(rows) if isinstance(task.format, RaceFormat) else {"": _text(task, rows, names, file)}
    except OSError as error:
        raise MissingDataError(
            f"{task.name}: the data set {hub.path} cannot be reached: {error}. Without a network, put the official"
            f" file at {file}, or give a local copy of the data set: hub.path=FOLDER"
        ) from error
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ConfigError(f"{hub.path} ({hub.name}, {split}) is not of the form of {task.name}: {error!r}") from error
    with replacing(file) as partial:
        for inside, text in texts.items():
            (partial / inside).parent.mkdir(parents=True, exist_ok=True)
            (partial / inside).write_text(text, encoding="utf-8", newline="")
    return len(rows)


def _text(task: TaskConfig, rows: list[dict[str, Any]], names: Sequence[str] | None, file: Path) -> str:
    """The rows as GLUE's official table, else as JSON, with the names of labels."""
    if isinstance(task.format, GlueFormat) and file.suffix == ".tsv":
        lines = _table(task.format, rows, names)
        return "".join("\t".join(re.sub(r"[\t\r\n]+", " ", cell) for cell in line) + "\n" for line in lines)
    if names:  # -1: none
        rows = [row | {"label": names[row["label"]] if row["label"] >= 0 else None} for row in rows]
    if file.suffix in JSON_LINES:
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return json.dumps({"data": rows}, ensure_ascii=False)


def _table(form: GlueFormat, rows: list[dict[str, Any]], names: Sequence[str] | None) -> Iterator[Sequence[str]]:
    """GLUE's columns, of which those that the Hub lacks are empty."""
    texts = [key for key, value in rows[0].items() if isinstance(value, str)]
    columns = [column for column in (form.text_a, form.text_b) if column]
    yield from [form.columns] if form.header else []
    for row in rows:
        # Numbers are stored in 32 bits: 3.8 is read as 3.799999952316284.
        label = f"{row['label']:.7g}"
        if form.labels and label not in form.labels:
            label = form.labels[form.labels.index((names or ())[row["label"]])]
        cells = {form.label: label} | {ours: row[theirs] for ours, theirs in zip(columns, texts, strict=True)}
        yield [cells.get(name, "") for name in form.columns]


def _passages(rows: list[dict[str, Any]]) -> dict[str, str]:
    """RACE's files, one per passage, by their names: like the official ones in the folder of their level."""
    passages: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = re.sub(r"^(\D+)", r"\1/", row["example_id"])
        passage = passages.setdefault(name, {"article": row["article"], "answers": [], "options": [], "questions": []})
        for key in ("answers", "options", "questions"):
            passage[key].append(row[key if key == "options" else key.removesuffix("s")])
    return {name: json.dumps(passage) for name, passage in passages.items()}
