"""The departures of a table's runs from the paper and its release: the footnotes that every scale prints."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from albert_lab.report.speedups import hardware

Run = dict[str, Any]  # a run as runs.tables.row() returns it

PAPERS_SCALE = (
    "The paper's ablations: 12 layers, H = 768, V = 30,000, length 512, batches of 4,096, 125,000 steps, LAMB at"
    " 0.00176, on Wikipedia and BookCorpus."
)
RELEASED_SHORT_SHARE = 0.1
RELEASED_SENTENCES = 10_000_000
# Departures of the code at every scale; each is marked in the code by "Differs from the ...".
_ALWAYS = (
    "At every scale, unlike the release: text is cut from the front and the back of a chunk alternately, so that"
    " lengths do not reveal the order of segments; a segment of another document begins at the start of a sentence; the"
    " shares of the labels are exact, not drawn; an n-gram is masked within one segment."
)


def departures(scale: str, runs: Sequence[Run]) -> list[str]:
    """The footnotes of a table; empty if no run is finished."""
    if not runs:
        return []

    def values(column: str) -> str:
        return distinct(runs, column)

    epochs = dict.fromkeys(f"{read(run['epochs'] for run in runs):.1f}" for read in (min, max))
    shape = f"{values('num_layers')} layers, H = {values('hidden_size')}, V = {values('vocab_size')}"
    batches = f"length {values('max_sequence_length')}, batches of {values('batch_size')}, {_budgets(runs)}"
    optimizer = f"{values('optimizer')} at a peak rate of {values('learning_rate')}"
    notes = [
        f"Scale `{scale}`: {shape}, {batches}, {optimizer}, on {values('train_documents')} documents read"
        f" {' to '.join(epochs)} times. {PAPERS_SCALE}",
        f"Held-out sets: {values('dev_documents')} documents of the same corpus, chosen by a hash of the raw text; the"
        " paper takes the development texts of SQuAD and RACE.",
        f"Masking `{values('masking')}`: {mean_percent(runs, 'mask_rate')} of the tokens were chosen for prediction.",
    ]
    if trained := [run for run in runs if _sentences(run)]:
        most = max(int(_sentences(run)) for run in trained)
        fewer = "" if most >= RELEASED_SENTENCES else f", where the release took {RELEASED_SENTENCES:,}"
        as_released = {run["digit_commas"] for run in trained} == {"split"}
        commas = "split off, as in the release" if as_released else "kept, where the release splits them off"
        notes.append(
            f"Tokenizer `{distinct(trained, 'tokenizer')}`: trained on at most {most:,} sentences of the corpus{fewer};"
            f" commas after digits are {commas}."
        )
    if {run["short_sequence_probability"] for run in runs} != {RELEASED_SHORT_SHARE}:
        notes.append(
            f"Of the documents, {mean_percent(runs, 'short_sequence_probability')} are cut into chunks of a shorter"
            " length that is drawn for each, in training and in the held-out sets alike; as released,"
            f" {100 * RELEASED_SHORT_SHARE:.0f} % are. Chunks of a single sentence are dropped, with"
            f" {mean_percent(runs, 'dropped_text_share')} of the text."
        )
    if staged := {run["length_schedule"]: run for run in runs if run.get("short_stages")}:
        schedules = "; ".join(f"`{name}`: {run['short_stages']}" for name, run in staged.items())
        notes.append(f"Short sequences first, with as many positions a step; the paper has one length. {schedules}.")
    return [*notes, _ALWAYS]


def replaced(fixed: Sequence[str], commands: Iterable[str]) -> list[str]:
    """A note if commands gave other values to keys that the experiment fixes; otherwise empty."""
    own = dict(_settings(fixed))
    given = _settings(word.strip("'\"") for command in commands for word in command.split())
    others = dict.fromkeys(f"`{key}={value}` for `{own[key]}`" for key, value in given if own.get(key, value) != value)
    if not others:
        return []
    found = ", ".join(others)
    return [f"The command replaced settings of the experiment: {found}. A note that speaks of them does not hold."]


def mixed(runs: Sequence[Run]) -> list[str]:
    """A note if rows were computed on different hardware; otherwise empty."""
    values = {
        "devices": {hardware(run) for run in runs},
        "precisions": {run["precision"] for run in runs},
    }
    several = [f"{what}: {'; '.join(sorted(names))}" for what, names in values.items() if len(names) > 1]
    if not several:
        return []
    found = " and ".join(several)
    return [f"Rows were computed on different {found}; speeds of runs do not compare, scores up to rounding."]


def _settings(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        key, separator, value = word.partition("=")
        if separator:
            yield key, value


def _budgets(runs: Sequence[Run]) -> str:
    budgets = (run["budget"].split() for run in runs)
    return "; ".join(dict.fromkeys(f"{float(value):,.12g} {unit}" for value, unit in budgets))


def _sentences(run: Run) -> float:
    """The maximum number of sentences for a run's tokenizer; 0 for a model file, and in older tables."""
    found = run.get("tokenizer_sentences") or 0
    return found if found == found else 0  # an empty cell is not a number


def distinct(runs: Sequence[Run], column: str) -> str:
    """The different values of a column."""
    values = dict.fromkeys(run[column] for run in runs)
    return "; ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in values)


def mean_percent(runs: Sequence[Run], column: str) -> str:
    """The mean of a column of shares, in percent."""
    return f"{100 * statistics.fmean(run[column] for run in runs):.1f} %"
