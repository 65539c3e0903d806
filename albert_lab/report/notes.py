"""What a reader has to know of a study's numbers, in plain text: the lines that change how it is
read, and others.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from albert_lab.analysis.analysis import Analysis
from albert_lab.report.numbers import value
from albert_lab.runs.results import RunRecord

# What the text says of the settings of runs, by their words.
SETTINGS = {
    "layers": "model.num_layers",
    "H": "model.hidden_size",
    "V": "tokenizer.vocab_size",
    "length": "max_sequence_length",
    "batch": "batch_size",
    "optimizer": "optimizer",
}
OF_PAPER = (
    "layers 12, H 768, V 30000, length 512, batch 4096, optimizer LAMB, 125,000 steps on Wikipedia "
    "and BookCorpus"
)


def first(analysis: Analysis) -> list[str]:
    """What changes the reading: converted weights, what a constant answer and single segments
    score, how much was trained, and what differs from the paper; empty without records.
    """
    records = analysis.records
    lines = [_conversions(analysis), _floors(analysis)] if records else []
    if any(record.training.steps for record in records):
        lines += [_cost(records), _departures(records)]
    return [line for line in lines if line]


def others(analysis: Analysis) -> list[str]:
    """The other lines; one on what does not concern this study is left out."""
    records = analysis.records
    lines = [_seeds(analysis), _data(records)] if records else []
    lines.append(_missing(analysis))
    if analysis.own_code:
        lines.append(f"Own code, which the paper does not have: {', '.join(analysis.own_code)}.")
    return [line for line in lines if line]


def _conversions(analysis: Analysis) -> str:
    """Which rows start from weights of another shape, and what was changed; empty if none does."""
    rows = dict[str, str]()
    steps = set[int]()
    for row, point in analysis.points:
        run = analysis.runs.get(point.run)
        if run and run.record.conversion:
            rows[row] = run.record.conversion.as_text(run.record.config.conversion)
            steps.add(run.record.training.steps)
    if not rows:
        return ""
    lines = "; ".join(f"{row}: {text}" for row, text in rows.items())
    return (
        "Not trained from scratch: trained weights were converted, and then trained for "
        f"{_distinct(f'{number:,}' for number in sorted(steps))} steps. {lines}."
    )


def _floors(analysis: Analysis) -> str:
    """What a constant answer and single segments give, and the number of answers, of the scores of
    the main table.
    """
    said = []
    for metric in analysis.main:
        table: Any = analysis.summary.loc[metric]
        if metric in analysis.frame.tasks or table["floor"].isna().all():
            continue
        ns = _distinct(f"{n:,.0f}" for n in sorted(table["n"].dropna()))
        floors = _distinct(value(floor, "%") for floor in table["floor"].dropna())
        segments = _distinct(value(floor, "%") for floor in table["segments"].dropna())
        by_segments = f", single segments {segments}" if segments else ""
        said.append(f"{analysis.heading(metric)} {floors}{by_segments} (n = {ns})")
    return f"What a constant answer scores, in %: {'; '.join(said)}." if said else ""


def _seeds(analysis: Analysis) -> str:
    finished = Counter(row for row, point in analysis.points if point.run in analysis.runs)
    seeds = {*finished.values()}
    if seeds == {1}:
        return "One seed a row: no spread, so no interval and no verdict."
    line = (
        f"{_distinct(map(str, sorted(seeds)))} seeds a row; ± is a standard deviation over seeds, "
        "intervals are 95 % over seeds and held-out documents."
    )
    if late := ", ".join(map(str, analysis.study.late_seeds)):
        line += f" Seeds added when results had been seen: {late}, so p-values are too small."
    return line


def _cost(records: Sequence[RunRecord]) -> str:
    """What a run took, and what all of them took together."""
    tokens = _span(run.training.tokens for run in records)
    seconds = _span(run.training.training_seconds for run in records)
    flops = _span(run.train_flops_per_token * run.training.tokens for run in records)
    passes = _span(run.data.passes for run in records)
    minutes = sum(run.training.total_seconds for run in records) / 60
    return (
        f"A run: {tokens} tokens ({passes} passes over its text), {flops} FLOPs, {seconds} s of "
        f"training. All {len(records)} runs: {minutes:,.0f} min."
    )


def _departures(records: Sequence[RunRecord]) -> str:
    ours = [
        f"{words} {_distinct(str(record.config.value(key)) for record in records)}"
        for words, key in SETTINGS.items()
    ]
    return f"Here {', '.join(ours)}; in the paper, for Tables 3 to 5: {OF_PAPER}."


def _data(records: Sequence[RunRecord]) -> str:
    """How much text there was, and what of it was left out."""
    documents = _distinct(f"{run.data.train_documents:,}" for run in records)
    dev = _distinct(f"{run.data.dev_documents:,}" for run in records)
    dropped = fmean(run.data.dropped_text_share for run in records)
    is_cut = all(run.config.corpus.documents == "paragraph" for run in records)
    kind = "paragraphs" if is_cut else "documents"
    line = (
        f"Text: {documents} {kind} to train on, and for scores {dev} others of the same corpus "
        "(the paper: SQuAD's and RACE's)."
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
    return line


def _missing(analysis: Analysis) -> str:
    """The rows and the columns, those of the paper too, that have no numbers, and why."""
    asked = {name: analysis.heading(name) for name in analysis.experiment.columns}
    asked |= analysis.paper_columns
    columns = [title for name, title in asked.items() if name not in analysis.metrics]
    said = [f"{', '.join(columns)} (not measured here)"] if columns else []
    reasons: dict[str, list[str]] = {}
    for row, point in analysis.points:
        reason = point.failed_tasks
        if point.run not in analysis.runs:
            reason = point.reason or "no record in this report"
        if reason:
            reasons.setdefault(reason, []).append(f"{row}, seed {point.seed}")
    said += [f"{'; '.join(places)}: {reason}" for reason, places in reasons.items()]
    return f"Missing: {'. '.join(said)}." if said else ""


def _distinct(values: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(values))


def _span(values: Iterable[float]) -> str:
    found = sorted(values)
    ends = [
        f"{number:.2g}" if number >= 1e9 else value(number, "") for number in (found[0], found[-1])
    ]
    return " to ".join(dict.fromkeys(ends))


def provenance(analysis: Analysis) -> list[str]:
    """Where the numbers come from: software, machine, text and held-out set, each by its
    fingerprint.
    """
    records = analysis.records
    if not records:
        return []
    origins = [record.provenance for record in records]
    code = _distinct(f"{of.albert_lab}, commit {of.commit or 'unknown'}" for of in origins)
    machine = _distinct(
        f"{of.platform}, {of.processor}, {of.cores} cores, {_distinct(sorted(of.devices))}, "
        f"{of.precision}"
        for of in origins
    )
    software = _distinct(
        " ".join([f"python {of.python}", *(" ".join(item) for item in sorted(of.packages.items()))])
        for of in origins
    )
    text = _distinct(
        f"{record.fingerprints['corpus']}, tokenizer {record.fingerprints['tokenizer']}"
        for record in records
    )
    held_out = _distinct(record.evaluation_set for record in records)
    versions = _distinct(str(record.results_version) for record in records)
    return [
        f"Code: albert-lab {code}; {software}",
        f"Machine: {machine}",
        f"Text: {text}; held-out set {held_out}; records of version {versions}",
    ]
