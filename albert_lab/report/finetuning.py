"""The sections of a report on fine-tuning: the columns, every fine-tuning, and notes on how to read them."""

from collections.abc import Sequence

from albert_lab.report.markdown import MISSING, as_table, number
from albert_lab.report.templates import fill_lines
from albert_lab.runs.reported import FilledColumn, ReportedRun
from albert_lab.studies.experiment import Experiment


def _by_task(runs: Sequence[ReportedRun]) -> dict[str, list[FilledColumn]]:
    """The columns of runs by task, in the order in which they first occur."""
    by_task: dict[str, list[FilledColumn]] = {}
    for run in runs:
        for column in run.columns:
            by_task.setdefault(column.task, []).append(column)
    return by_task


def tasks_table(runs: Sequence[ReportedRun]) -> str:
    """The tasks on which runs were fine-tuned, with their settings; empty if nothing was fine-tuned."""
    header = ["task", "metric", "examples of dev", "of train", "steps", "batch", "rate", "length", "constant answers %"]
    with_words = any(column.score.lexical_floor is not None for run in runs for column in run.columns)
    header += ["bag of words %"] if with_words else []  # older records have none
    body = []
    for columns in _by_task(runs).values():
        column, last = columns[-1], columns[-1].finetunings[-1]
        rates = sorted({record.attempts[-1].learning_rate for filled in columns for record in filled.finetunings})
        # Wider models have smaller rates, and a fine-tuning that did not learn is repeated with a smaller one.
        rate = f"{rates[0]:g}" if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}"
        main, settings = last.best.main, last.settings
        examples = [_of(main.n, last.dev.available), _of(last.train.used, last.train.available)]
        shown = [number(settings.steps), str(settings.batch_size), rate, str(settings.max_sequence_length)]
        words = MISSING if main.lexical_floor is None else f"{main.lexical_floor:.1f}"
        floors = [f"{main.floor:.1f}", *([words] if with_words else [])]
        body.append([column.title, " and ".join(column.metrics), *examples, *shown, *floors])
    return as_table(header, body) if body else ""


def _of(used: int, available: int) -> str:
    return number(used) if used == available else f"{used:,} of {available:,}"


def tunings_table(runs: Sequence[ReportedRun]) -> str:
    together = [(run, column) for run in runs for column in run.columns]
    seeds = "seeds" if any(len(column.finetunings) > 1 for _, column in together) else "seed"
    header = ["run", "task", seeds, "best on dev (step)", "at the last step", "seconds", "padding %", "remarks"]
    body = []
    for run, column in together:
        records = column.finetunings
        best = ", ".join(f"{record.best.main.value:.1f} ({record.best.step:,})" for record in records)
        last = ", ".join(f"{record.last.main.value:.1f}" for record in records)
        seconds = number(sum(record.total_seconds for record in records))
        padding = f"{100 * sum(record.padding_share for record in records) / len(records):.0f}"
        flags = "; ".join(dict.fromkeys("; ".join(record.diverged) for record in records if record.diverged))
        numbers = ", ".join(str(record.seed) for record in records)
        body.append([f"`{run.name}`", column.title, numbers, best, last, seconds, padding, flags])
    return as_table(header, body) if body else ""


def absent_columns(experiment: Experiment, runs: Sequence[ReportedRun]) -> list[str]:
    """Titles of the experiment's downstream columns that no run has a score for."""
    filled = {column.column for run in runs for column in run.columns}
    titles = experiment.paper.columns if experiment.paper else {}
    return [titles.get(name, name) for name in experiment.tasks if name not in filled]


def notes(experiment: Experiment, runs: Sequence[ReportedRun]) -> list[str]:
    """Footnotes: subsampling, files that are not the official ones, cut examples."""
    tasks = []
    for columns in _by_task(runs).values():
        column, last = columns[-1], columns[-1].finetunings[-1]
        cut = [
            f"{split}: " + ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in examples.counts.items())
            for split, examples in (("train", last.train), ("dev", last.dev))
            if examples.counts
        ]
        tasks.append(
            {
                "title": column.title,
                "note": column.note,
                "official": column.official_examples,
                "have": {"train": last.train.available, "dev": last.dev.available},
                "cut": "; ".join(cut),
                "length": last.settings.max_sequence_length,
                "issues": "; ".join(filter(None, (last.train.issues, last.dev.issues))),
                "threshold_from": last.threshold_from,
                "new_pooler": last.settings.pooler == "new",
            }
        )
    absent = absent_columns(experiment, runs)
    return fill_lines("downstream_notes.md.j2", absent=absent, tasks=tasks) if tasks else []
