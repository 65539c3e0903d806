"""The sections of a report on fine-tuning: the columns, every fine-tuning, and notes on how to read them."""

from collections.abc import Sequence

from albert_lab.report.markdown import as_table, number
from albert_lab.runs.reported import FilledColumn, ReportedRun
from albert_lab.studies.experiment import Experiment
from albert_lab.tasks.task import task_names

HEADINGS = ("The downstream tasks", "Every fine-tuning")


def sections(runs: Sequence[ReportedRun]) -> list[str]:
    """Headings and tables; empty if nothing was fine-tuned."""
    if not any(run.columns for run in runs):
        return []
    return [f"## {HEADINGS[0]}", _tasks(runs), f"## {HEADINGS[1]}", _tunings(runs)]


def _by_task(runs: Sequence[ReportedRun]) -> dict[str, list[FilledColumn]]:
    """The columns of runs by task, in the order in which they first occur."""
    found: dict[str, list[FilledColumn]] = {}
    for run in runs:
        for column in run.columns:
            found.setdefault(column.task, []).append(column)
    return found


def _tasks(runs: Sequence[ReportedRun]) -> str:
    header = ["task", "metric", "examples of dev", "of train", "steps", "batch", "rate", "length", "constant answers %"]
    body = []
    for columns in _by_task(runs).values():
        column, last = columns[-1], columns[-1].finetunings[-1]
        rates = sorted({record.attempts[-1].learning_rate for each in columns for record in each.finetunings})
        # Wider models have smaller rates, and a fine-tuning that diverged is repeated with a smaller one.
        rate = f"{rates[0]:g}" if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}"
        main, settings = last.best.main, last.settings
        examples = [_of(main.n, last.dev.available), _of(last.train.used, last.train.available)]
        shown = [number(settings.steps), str(settings.batch_size), rate, str(settings.max_sequence_length)]
        body.append([column.title, " and ".join(column.metrics), *examples, *shown, f"{main.floor:.1f}"])
    return as_table(header, body)


def _of(used: int, available: int) -> str:
    return number(used) if used == available else f"{used:,} of {available:,}"


def _tunings(runs: Sequence[ReportedRun]) -> str:
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
    return as_table(header, body)


def absent_columns(experiment: Experiment, runs: Sequence[ReportedRun]) -> list[str]:
    """Titles of the experiment's downstream columns that no run has a score for."""
    filled = {column.column for run in runs for column in run.columns}
    titles = experiment.paper.columns if experiment.paper else {}
    return [titles.get(name, name) for name in experiment.columns if name in task_names() and name not in filled]


def notes(experiment: Experiment, runs: Sequence[ReportedRun]) -> list[str]:
    """Footnotes: replacements of official tasks, subsampling, files that are not the official ones, cut examples."""
    tasks = _by_task(runs)
    if not tasks:
        return []
    found = [
        "Downstream scores are those of the best checkpoint on the dev set (medians over the fine-tuning seeds), as the"
        " paper's seem to be; those of the last step are in columns of their own and never mixed in. SQuAD's kind shows"
        " F1/EM and counts as their mean. Intervals cover the chance of the dev examples alone, not that of seeds."
    ]
    titles = experiment.paper.columns if experiment.paper else {}
    if absent := absent_columns(experiment, runs):
        found.append(
            f"Not in the table: {', '.join(absent)}. Their data is not here and the corpus brings nothing in their"
            " place, or they were not asked for, or no run has finished them."
        )
    for columns in tasks.values():
        column, last = columns[-1], columns[-1].finetunings[-1]
        title = column.title
        if column.column != column.task:
            resembles = f"; it {column.note}" if column.note else ""
            official = titles.get(column.column, column.column)
            found.append(
                f"{title} replaces the paper's {official}, whose data is not here. It is made of held-out"
                f" documents of the corpus and compares with no published score{resembles}."
            )
        official = column.official_examples
        have = {"train": last.train.available, "dev": last.dev.available}
        if official and official != have:
            found.append(
                f"{title}: its files have {have['train']:,} training and {have['dev']:,} dev examples, the official"
                f" ones {official['train']:,} and {official['dev']:,}: the score compares with nothing published."
            )
        counts = [
            f"{split}: " + ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in examples.counts.items())
            for split, examples in (("train", last.train), ("dev", last.dev))
            if examples.counts
        ]
        if counts:
            found.append(f"{title}, cut to {last.settings.max_sequence_length} tokens: {'; '.join(counts)}.")
        if issues := "; ".join(filter(None, (last.train.issues, last.dev.issues))):
            found.append(f"{title}, examples with a flaw: {issues}.")
        if last.threshold_from:
            found.append(f"{title}: the threshold of no answer is chosen on {last.threshold_from}.")
    return found
