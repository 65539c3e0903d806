"""What a reader has to know of a study's numbers, in plain text: the lines that change how it is
read, and others.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from statistics import fmean
from typing import Any

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.frame import HERE
from albert_lab.config.schema import RunConfig
from albert_lab.report.numbers import value
from albert_lab.runs.results import RunRecord

# What the text says of the settings of runs: a setting, its words, and the paper's for Tables 3 to
# 5.
SETTINGS = (
    ("model.num_layers", "layers", "12"),
    ("model.hidden_size", "H", "768"),
    ("tokenizer.vocab_size", "V", "30,000"),
    ("max_sequence_length", "length", "512"),
    ("batch_size", "batch", "4,096"),
    ("optimizer.name", "optimizer", "LAMB"),
)
PAPERS_TEXT = "Wikipedia and BookCorpus"


def first(analysis: Analysis) -> list[str]:
    """What changes the reading: what needs no model, how much was trained, and what differs from
    the paper.
    """
    records = [run.record for run in analysis.study.runs]
    lines = [_conversions(analysis), _floors(analysis)] if records else []
    if any(record.training.steps for record in records):
        lines += [_cost(records), _departures(records)]
    return [line for line in lines if line]


def others(analysis: Analysis) -> list[str]:
    """The other lines; one on what does not concern this study is left out."""
    records = [run.record for run in analysis.study.runs]
    lines = [_seeds(analysis), _data(records)] if records else []
    lines += [
        _not_counting(analysis),
        _task_examples(analysis),
        _missing(analysis),
        _speeds(analysis, records),
    ]
    if analysis.own_code:
        lines.append(f"Own code, which the paper does not have: {', '.join(analysis.own_code)}.")
    return [line for line in lines if line]


def _conversions(analysis: Analysis) -> str:
    """Which rows start from weights of another shape, and what was changed; empty if none does."""
    converted = {run.name: run.record for run in analysis.study.runs if run.record.conversion}
    names: Any = analysis.frame.numbers[["run", "row"]].drop_duplicates()
    rows: dict[str, str] = {}
    for run, row in names.itertuples(index=False):
        conversion = converted[run].conversion if run in converted else None
        if conversion:
            rows[row] = conversion.as_text(converted[run].config.conversion)
    if not rows:
        return ""
    steps = _distinct(f"{record.training.steps:,}" for record in converted.values())
    lines = "; ".join(f"{row}: {text}" for row, text in rows.items())
    then = "not trained further" if steps == "0" else f"then trained for {steps} steps"
    return f"Not trained from scratch: trained weights were converted, and {then}. {lines}."


def _floors(analysis: Analysis) -> str:
    """What a constant answer and single segments give, and the number of answers, of the scores of
    the main table.
    """
    said = []
    for metric in analysis.main:
        table: Any = analysis.summary.loc[metric]
        if metric in analysis.frame.tasks or table["floor"].isna().all():
            continue
        ns = " or ".join(sorted({f"{n:,.0f}" for n in table["n"].dropna()}))
        floors, segments = (
            _distinct(value(floor, analysis.unit(metric)) for floor in table[kind].dropna())
            for kind in ("floor", "segments")
        )
        by_segments = f", single segments {segments}" if segments else ""
        said.append(f"{analysis.heading(metric)} {floors}{by_segments} (n = {ns})")
    return f"What a constant answer scores, in %: {'; '.join(said)}." if said else ""


def _seeds(analysis: Analysis) -> str:
    numbers: Any = analysis.frame.numbers
    of_rows = numbers[numbers["row"].isin(analysis.rows)]
    seeds = sorted({f"{count}" for count in of_rows.groupby("row")["seed"].nunique()})
    # Of a row that is converted and not trained, seeds differ in the fine-tuning.
    trained = any(run.record.training.steps for run in analysis.study.runs)
    kind = "pre-training" if trained else "fine-tuning"
    line = f"{' or '.join(seeds)} seed{'' if seeds == ['1'] else 's'} of {kind} a row"
    if seeds == ["1"]:
        return f"{line}: no spread, so no interval and no verdict."
    line += (
        "; ± is a standard deviation over seeds, intervals are 95 % over seeds and held-out "
        "documents"
    )
    late = [str(seed) for seed in analysis.study.late_seeds]
    if not late:
        return f"{line}."
    which = f"seed{'s' * (len(late) > 1)} {' and '.join(late)}"
    return f"{line}. Added when results had been seen: {which}, so p-values are too small."


def _cost(records: Sequence[RunRecord]) -> str:
    tokens, seconds = (
        _span(getattr(run.training, part) for run in records)
        for part in ("tokens", "training_seconds")
    )
    flops = _span(run.train_flops_per_token * run.training.tokens for run in records)
    passes = _span(run.data.passes for run in records)
    minutes = sum(run.training.total_seconds for run in records) / 60
    return (
        f"A run: {tokens} tokens ({passes} passes over its text), {flops} FLOPs, {seconds} s of "
        f"training. All {len(records)} runs: {minutes:,.0f} min."
    )


def _departures(records: Sequence[RunRecord]) -> str:
    ours = [
        f"{words} {_distinct(_setting(record.config, key) for record in records)}"
        for key, words, _ in SETTINGS
    ]
    papers = [f"{words} {number}" for _, words, number in SETTINGS]
    return (
        f"Here {', '.join(ours)}; in the paper, for Tables 3 to 5: {', '.join(papers)}, 125,000 "
        f"steps on {PAPERS_TEXT}."
    )


def _data(records: Sequence[RunRecord]) -> str:
    documents, dev = (
        _distinct(f"{getattr(run.data, part):,}" for run in records)
        for part in ("train_documents", "dev_documents")
    )
    dropped = fmean(run.data.dropped_text_share for run in records)
    is_cut = all(run.config.corpus.documents == "paragraph" for run in records)
    kind = "paragraphs" if is_cut else "documents"
    line = (
        f"Trained on {documents} {kind}, scored on {dev} others of the same corpus (the paper: "
        "SQuAD's and RACE's)."
    )
    if not any(run.training.steps for run in records):
        line = (
            f"Nothing but linear probes is trained on the {documents} {kind} of the text; scores "
            f"are of {dev} others."
        )
    if dropped >= 0.01:
        line += f" Chunks of a single sentence are dropped, with {dropped:.0%} of the text."
    if repeated := max(run.data.repeated_paragraphs for run in records):
        line += f" {repeated:,} paragraphs that repeat held-out text are left out of training."
    steps = max(run.data.earlier_steps for run in records)
    tokens = max(run.data.earlier_tokens for run in records)
    if steps:
        starts = _distinct(run.start_from.run for run in records if run.start_from)
        line += (
            f" Runs start from the weights of {starts}: {steps:,} steps and {tokens:,} tokens "
            "before their own."
        )
    unknown = max(run.data.unknown_share for run in records)
    if unknown >= 0.01:
        line += f" {unknown:.1%} of the tokens of the text are unknown, and predicted as such."
    lengths = [stage.max_sequence_length for run in records for stage in run.data.stages]
    if lengths:
        line += (
            f" Sequences are short first: from {min(lengths)} tokens; the paper's are at most 512 "
            "from the start."
        )
    return line


def _not_counting(analysis: Analysis) -> str:
    tasks = {column.task: column.title for run in analysis.study.runs for column in run.pretrained}
    low = [title for task, title in tasks.items() if not analysis.summary.loc[task]["counts"].all()]
    if not low:
        return ""
    tuned = {
        column.task for run in analysis.study.runs for column in run.columns if column.is_random
    }
    why = "rows are not clearly above random weights and words alone"
    if not tuned:
        why = "random weights of their shape were not fine-tuned"
    return f"Tasks that do not count, for {why}: {', '.join(low)}."


def _missing(analysis: Analysis) -> str:
    """The rows and the columns, those of the paper too, that have no numbers, and why."""
    asked = {name: analysis.heading(name) for name in analysis.experiment.columns}
    asked |= dict(analysis.experiment.paper.columns) if analysis.experiment.paper else {}
    columns = [
        title
        for name, title in asked.items()
        if name not in analysis.metrics and name not in _NOT_MEASURED
    ]
    said = [f"{', '.join(columns)} (not measured here)"] if columns else []
    reasons: dict[str, list[str]] = {}
    known = {run.name for run in analysis.study.runs}
    for point in analysis.study.points:
        row = analysis.frame.row(
            point.labels | {HERE + axis: value for axis, value in point.values.items()}
        )
        place = f"{row}, seed {point.seed}"
        if point.run not in known:
            reasons.setdefault(point.reason or "no record in this report", []).append(place)
        elif point.failed_tasks:
            reasons.setdefault(point.failed_tasks, []).append(place)
    said += [f"{'; '.join(places)}: {reason}" for reason, places in reasons.items()]
    return f"Missing: {'. '.join(said)}." if said else ""


def _task_examples(analysis: Analysis) -> str:
    """What is wrong with the files of tasks, and how many of their examples were cut."""
    lines: list[str] = []
    columns = (column for run in analysis.study.runs for column in run.pretrained)
    for record in (finetuning for column in columns for finetuning in column.finetunings):
        for split, examples in (("train", record.train), ("dev", record.dev)):
            place = f"{record.title}, {split}"
            if examples.issues:
                lines.append(f"{place}: {examples.issues}")
            if examples.cut:
                longest = record.settings.max_sequence_length
                lines.append(
                    f"{place}: {examples.cut:,} of {examples.used:,} cut to {longest} tokens"
                )
    return f"Examples of tasks: {'; '.join(dict.fromkeys(lines))}." if lines else ""


_NOT_MEASURED = ("speedup",)


def _speeds(analysis: Analysis, records: Sequence[RunRecord]) -> str:
    """Why speeds that a table or a claim is about are missing."""
    beside = [record for record in records if record.provenance.jobs != 1]
    asked = [*analysis.claimed, *analysis.experiment.columns]
    if not beside or not any(metric.endswith("tokens_per_second") for metric in asked):
        return ""
    which = "all runs" if len(beside) == len(records) else f"{len(beside)} of {len(records)} runs"
    return (
        f"Speeds are missing of {which}, which are not known to have had the machine to themselves "
        "(--jobs 1)."
    )


def _setting(config: RunConfig, key: str) -> str:
    value = attrgetter(key)(config)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _distinct(values: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(values))


def _span(values: Iterable[float]) -> str:
    found = sorted(values)
    ends = [
        f"{number:.2g}" if number >= 1e9 else value(number, "") for number in (found[0], found[-1])
    ]
    return " to ".join(dict.fromkeys(ends))


def versions(analysis: Analysis) -> str:
    """The version of the records of a study, on which its scores depend (CHANGELOG.md)."""
    return (
        "records of version "
        f"{_distinct(str(run.record.results_version) for run in analysis.study.runs)}"
    )


def provenance(analysis: Analysis) -> list[str]:
    """Where the numbers come from: software, machine, text and held-out set, each by its
    fingerprint.
    """
    records = [run.record for run in analysis.study.runs]
    if not records:
        return []
    origins = [record.provenance for record in records]
    code = _distinct(
        f"albert-lab {origin.albert_lab}" + f", commit {origin.commit}" * bool(origin.commit)
        for origin in origins
    )
    machine = _distinct(
        f"{of.platform}, {of.processor}, {of.cores} cores, {_distinct(sorted(of.devices))}, "
        f"{of.precision}"
        for of in origins
    )
    packages = ([("python", origin.python), *sorted(origin.packages.items())] for origin in origins)
    software = _distinct(" ".join(f"{name} {version}" for name, version in of) for of in packages)
    text = _distinct(
        f"{record.fingerprints['corpus']}, tokenizer {record.fingerprints['tokenizer']}"
        for record in records
    )
    held_out = _distinct(record.evaluation_set for record in records)
    return [
        f"Code: {code}; {software}",
        f"Machine: {machine}",
        f"Text: {text}; held-out set {held_out}; {versions(analysis)}",
    ]
