"""Fine-tunings of a single run: with other seeds, settings, from random weights, as ensembles."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tabulate import tabulate

from albert_lab import paths, storage
from albert_lab.config.compose import parse
from albert_lab.config.schema import digest
from albert_lab.config.section import SEEDS
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import Say
from albert_lab.runs import columns, finetunings, states
from albert_lab.runs import run as runs
from albert_lab.tasks.records import FinetuningRecord, output_folder, read_record, summarize
from albert_lab.tasks.task import TaskConfig, load_task

CHECKPOINTS = ("best", "last")


@dataclass(frozen=True)
class Wanted:
    """The requested fine-tunings: tasks, seeds (None: those of the scale), overrides of the tasks' files."""

    tasks: Sequence[str]
    seeds: Sequence[int] | None
    overrides: Sequence[str]
    is_random: bool


def read_seeds(text: str) -> list[int]:
    """Seeds from a text such as 0,1,2.

    Raises:
        ConfigError: any other text.
    """
    parts = text.split(",")
    seeds = [int(part) for part in parts if part.isdecimal() and int(part) < SEEDS]
    if len(set(seeds)) < len(parts):
        raise ConfigError(
            f"--seeds {text}: different whole numbers below {SEEDS} with commas between them, as in 0,1,2"
        )
    return seeds


def find_run(name: str) -> runs.Run:
    """A finished or imported run by its name or folder.

    Raises:
        ConfigError: an unknown run, one of another results version, or an unfinished one.
    """
    folder = runs.find(name)
    run = runs.read(folder)
    if run.folder.resolve() != folder.resolve():
        raise ConfigError(f"{folder} is not the folder of its run, which is {run.folder}: check ALBERT_LAB_HOME")
    states.check_finished(folder)
    return run


def finetune_run(name: str, wanted: Wanted, say: Say) -> list[FinetuningRecord]:
    """The records of fine-tunings of a run; makes missing ones, after waiting for other processes of the run.

    Raises:
        ConfigError, MissingDataError: the run, a task or its data is missing, or settings are invalid.
        DivergedError: the loss was not finite.
    """
    if not wanted.tasks:
        raise ConfigError("--tasks none: name a task to fine-tune on")
    run = find_run(name)
    _check_scale(wanted.overrides, run.config.scale.name)
    tasks = [*columns.load_named(wanted.tasks, wanted.overrides).values()]
    for task in tasks:
        task.fitted(run.config)
    runs.use_threads(run.folder, run.config)
    start = finetunings.random_weights(run) if wanted.is_random else run
    with runs.locked(start.folder, say):
        return _finetune(start, tasks, wanted, say)


def _check_scale(overrides: Sequence[str], scale: str) -> None:
    for override in parse(overrides) if overrides else ():
        section, _, rest = override.key_or_group.partition(".")
        if section == "settings" and rest and rest.split(".")[0] != scale:
            raise ConfigError(
                f"{override.key_or_group}: the run has scale={scale}, so this changes nothing (settings.{scale} does)"
            )


def _finetune(run: runs.Run, tasks: Sequence[TaskConfig], wanted: Wanted, say: Say) -> list[FinetuningRecord]:
    from albert_lab.tasks.finetune import finetune

    start = finetunings.start_of(run, say)
    if wanted.overrides:  # kept separately: the records in the run folder are those of the tables
        start = replace(start, folder=start.folder / f"settings-{digest(list(wanted.overrides))}")
    seeds = {task.name: wanted.seeds or task.fitted(run.config).seeds for task in tasks}
    for task in tasks:  # missing data is reported before anything is trained
        if any(read_record(start.folder, task.name, seed) is None for seed in seeds[task.name]):
            columns.check_data(task)
    records = []
    for task in tasks:
        for seed in seeds[task.name]:
            record = finetune(start, task, seed, data=paths.tasks_data(), say=say)
            assert record is not None, "nothing stops it but a signal, which ends this process"
            say(f"{finetunings.describe(record)}; predictions in {output_folder(start.folder, task.name, seed)}")
            records.append(record)
    return records


def as_text(records: Sequence[FinetuningRecord]) -> str:
    by_task: dict[str, list[FinetuningRecord]] = {}
    for record in records:
        by_task.setdefault(record.task, []).append(record)
    body = []
    for seeds in by_task.values():
        summary, train = summarize(seeds), seeds[0].train
        best = summary.best
        bounds = "" if best.low is None else f" [{best.low:.1f}, {best.high:.1f}]"
        values = ", ".join(map(_value, seeds))
        n, trained = f"{best.n:,}", f"{train.used:,} of {train.available:,}"
        floors = [f"{best.floor:.1f}", "" if best.lexical_floor is None else f"{best.lexical_floor:.1f}"]
        scores = [f"{best.value:.1f}{bounds}", values, f"{summary.last.value:.1f}", *floors]
        body.append([seeds[0].title, seeds[0].weights, *scores, n, trained])
    header = [
        "task",
        "weights",
        "median of best",
        "best by seed",
        "last",
        "constant",
        "bag of words",
        "n",
        "trained on",
    ]
    table = tabulate(body, headers=header, tablefmt="simple", disable_numparse=True)
    failed = [
        f"{record.title}, seed {record.seed}, did not learn at any rate tried ({_rates(record)}): "
        f"{'; '.join(record.diverged)}"
        for record in records
        if record.diverged
    ]
    return "\n".join([table, *([""] if failed else []), *failed])


def _value(record: FinetuningRecord) -> str:
    again = f" (attempt {len(record.attempts)})" if len(record.attempts) > 1 else ""
    return f"{record.best.main.value:.1f}{' (did not learn)' if record.diverged else again}"


def _rates(record: FinetuningRecord) -> str:
    return ", ".join(f"{attempt.learning_rate:g}" for attempt in record.attempts)


def ensemble_runs(
    name: str, names: Sequence[str], say: Say, *, which: str, best: int | None, output: Path | None
) -> dict[str, Any]:
    """An ensemble of all fine-tunings of runs on a task: its scores next to those of its members, in percent.

    chosen_on_dev has what was chosen by the examples of dev, which are those that are scored.

    Raises:
        ConfigError, MissingDataError: the run, task or fine-tunings are missing, or the members do not match.
    """
    if which not in CHECKPOINTS:
        raise ConfigError(f"--which {which}: one of {', '.join(CHECKPOINTS)}")
    if output is not None:
        storage.check_folder(output.parent, "--output: folder")
        if output.is_dir():
            raise ConfigError(f"--output {output} is a folder: name a file")
    from albert_lab.tasks.evaluation import ensemble

    task, chosen = load_task(name), [find_run(run) for run in names]
    different = {run.name: run for run in chosen}.values()
    files = [file for run in different for file in _score_files(run, name, which)]
    if not files:
        raise MissingDataError(f"none of these runs is fine-tuned on it: `albert-lab finetune RUN --tasks {name}`")
    if best is not None and best > len(files):
        raise ConfigError(f"--best {best}: these runs have only {len(files)} fine-tunings on {task.name}")
    config = chosen[0].config
    ensembled = ensemble(task, files, paths.tasks_data(), scale=config.scale.name, best=best)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(dict(ensembled.outcome.answers), ensure_ascii=False), encoding="utf-8")
    chosen_on_dev = ["members"] * (best is not None)
    chosen_on_dev += ["no-answer threshold"] * (ensembled.outcome.threshold is not None)
    return {
        "task": task.name,
        "main": ensembled.main,
        "scores": ensembled.outcome.values,
        "members": {f"{file.parents[2].name}, {file.parent.name}": main for file, main in ensembled.members.items()},
        "chosen_on_dev": chosen_on_dev,
        "predictions": str(output) if output else None,
    }


def ensemble_text(ensembled: dict[str, Any]) -> str:
    """An ensemble and its members, a line each."""
    lines = [f"{score:6.2f}  {member}" for member, score in ensembled["members"].items()]
    lines.append(f"{ensembled['main']:6.2f}  ensemble of {len(lines)} on {ensembled['task']}")
    lines.append(", ".join(f"{name} {value:.2f}" for name, value in ensembled["scores"].items()))
    if ensembled["chosen_on_dev"]:
        chosen = ", ".join(ensembled["chosen_on_dev"])
        lines.append(f"chosen on dev, the examples that are scored here: the score is too high: {chosen}")
    return "\n".join([*lines, *([f"predictions: {ensembled['predictions']}"] if ensembled["predictions"] else [])])


def _score_files(run: runs.Run, name: str, stem: str) -> list[Path]:
    """Scores of the finished fine-tunings of the task's settings; name is one that load_task() takes."""
    written, task = [], load_task(name)
    for folder in sorted(output_folder(run.folder, task.name, 0).parent.glob(f"{task.name}-seed*/")):
        seed = int(folder.name.rpartition("seed")[2])
        if finetunings.Finetuning(run, task, seed).record_of_settings and (folder / f"{stem}.npz").exists():
            written.append(folder / f"{stem}.npz")
    return written
