"""The sections of a report on fine-tuning: the columns, every fine-tuning, and notes on how to read them."""

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from albert_lab.report.markdown import as_table, number
from albert_lab.studies.experiment import Experiment
from albert_lab.tasks.task import task_names

Line = dict[str, Any]  # a fine-tuning as runs.tables.finetunings() returns it

HEADINGS = ("The downstream tasks", "Every fine-tuning")


def sections(tunings: pd.DataFrame) -> list[str]:
    """Headings and tables; empty if nothing was fine-tuned."""
    lines = tunings.to_dict("records")
    if not lines:
        return []
    return [f"## {HEADINGS[0]}", _tasks(lines), f"## {HEADINGS[1]}", _tunings(lines)]


def _tasks(lines: Sequence[Line]) -> str:
    header = ["task", "metric", "examples of dev", "of train", "steps", "batch", "rate", "length", "constant answers %"]
    body = []
    for line in {line["task"]: line for line in lines}.values():
        rates = sorted({each["learning_rate"] for each in lines if each["task"] == line["task"]})
        # Wider models have smaller rates, and a fine-tuning that diverged is repeated with a smaller one.
        rate = f"{rates[0]:g}" if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}"
        dev, train = _of(line["n"], line["dev_available"]), _of(line["train_used"], line["train_available"])
        settings = [number(line["steps"]), str(line["batch_size"]), rate]
        length = str(line["max_sequence_length"])
        body.append([line["title"], line["metric"], dev, train, *settings, length, f"{line['baseline']:.1f}"])
    return as_table(header, body)


def _of(used: int, available: int) -> str:
    return number(used) if used == available else f"{used:,} of {available:,}"


def _tunings(lines: Sequence[Line]) -> str:
    grouped: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        grouped.setdefault((line["run"], line["task"]), []).append(line)
    seeds = "seeds" if any(len(group) > 1 for group in grouped.values()) else "seed"
    header = ["run", "task", seeds, "best on dev (step)", "at the last step", "seconds", "padding %", "remarks"]
    body = []
    for (run, _), group in grouped.items():
        best = ", ".join(f"{line['best']:.1f} ({line['best_step']:,})" for line in group)
        last = ", ".join(f"{line['last']:.1f}" for line in group)
        seconds = number(sum(line["total_seconds"] for line in group))
        padding = f"{100 * sum(line['padding_share'] for line in group) / len(group):.0f}"
        flags = "; ".join(dict.fromkeys(line["diverged"] for line in group if line["diverged"]))
        numbers = ", ".join(str(line["seed"]) for line in group)
        body.append([f"`{run}`", group[0]["title"], numbers, best, last, seconds, padding, flags])
    return as_table(header, body)


def absent_columns(experiment: Experiment, tunings: pd.DataFrame) -> list[str]:
    """Titles of the experiment's downstream columns that no run has a score for."""
    filled = set(tunings["column"]) if len(tunings) else set()
    titles = experiment.paper.columns if experiment.paper else {}
    return [titles.get(name, name) for name in experiment.columns if name in task_names() and name not in filled]


def notes(experiment: Experiment, tunings: pd.DataFrame) -> list[str]:
    """Footnotes: replacements of official tasks, subsampling, files that are not the official ones, cut examples."""
    lines = tunings.to_dict("records")
    if not lines:
        return []
    found = [
        "Downstream scores are those of the best checkpoint on the dev set (medians over the fine-tuning seeds), as the"
        " paper's seem to be; those of the last step are in columns of their own and never mixed in. SQuAD's kind shows"
        " F1/EM and counts as their mean. Intervals cover the chance of the dev examples alone, not that of seeds."
    ]
    titles = experiment.paper.columns if experiment.paper else {}
    if absent := absent_columns(experiment, tunings):
        found.append(
            f"Not in the table: {', '.join(absent)}. Their data is not here and the corpus brings nothing in their"
            " place, or they were not asked for, or no run has finished them."
        )
    for line in {line["task"]: line for line in lines}.values():
        title = line["title"]
        if line["column"] != line["task"]:
            resembles = f"; it {line['note']}" if line["note"] else ""
            official = titles.get(line["column"], line["column"])
            found.append(
                f"{title} replaces the paper's {official}, whose data is not here. It is made of held-out"
                f" documents of the corpus and compares with no published score{resembles}."
            )
        official = json.loads(line["official"])
        have = {"train": line["train_available"], "dev": line["dev_available"]}
        if official and official != have:
            found.append(
                f"{title}: its files have {have['train']:,} training and {have['dev']:,} dev examples, the official"
                f" ones {official['train']:,} and {official['dev']:,}: the score compares with nothing published."
            )
        counts = [
            f"{split}: " + ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in of_split.items())
            for split, of_split in json.loads(line["counts"]).items()
            if of_split
        ]
        if counts:
            found.append(f"{title}, cut to {line['max_sequence_length']} tokens: {'; '.join(counts)}.")
        if line["issues"]:
            found.append(f"{title}, examples with a flaw: {line['issues']}.")
        if line["threshold_from"]:
            found.append(f"{title}: the threshold of no answer is chosen on {line['threshold_from']}.")
    return found
