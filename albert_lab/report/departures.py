"""The departures of a table's runs from the paper and its release: the footnotes that every scale prints."""

import statistics
from collections.abc import Iterable, Iterator, Sequence

from albert_lab.runs.results import RunRecord, Stage

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


def departures(scale: str, runs: Sequence[RunRecord]) -> list[str]:
    """The footnotes of a table; empty if no run is finished."""
    if not runs:
        return []
    configs = [run.config for run in runs]
    passes = [run.data.epochs for run in runs]
    epochs = dict.fromkeys(f"{value:.1f}" for value in (min(passes), max(passes)))
    shape = (
        f"{distinct(config.model.num_layers for config in configs)} layers,"
        f" H = {distinct(config.model.hidden_size for config in configs)},"
        f" V = {distinct(config.tokenizer.vocab_size for config in configs)}"
    )
    batches = (
        f"length {distinct(config.max_sequence_length for config in configs)},"
        f" batches of {distinct(config.batch_size for config in configs)},"
        f" {distinct(f'{config.budget.value:,.12g} {config.budget.unit}' for config in configs)}"
    )
    optimizer = (
        f"{distinct(config.optimizer.name for config in configs)} at a peak rate of"
        f" {distinct(config.learning_rate for config in configs)}"
    )
    notes = [
        f"Scale `{scale}`: {shape}, {batches}, {optimizer}, on {distinct(run.data.train_documents for run in runs)}"
        f" documents read {' to '.join(epochs)} times. {PAPERS_SCALE}",
        f"Held-out sets: {distinct(run.data.dev_documents for run in runs)} documents of the same corpus, chosen by a"
        " hash of the raw text; the paper takes the development texts of SQuAD and RACE.",
        f"Masking `{distinct(config.masking.name for config in configs)}`:"
        f" {mean_percent(run.data.mask_rate for run in runs)} of the tokens were chosen for prediction.",
    ]
    if trained := [config.tokenizer for config in configs if config.tokenizer.training_sentences]:
        most = max(tokenizer.training_sentences or 0 for tokenizer in trained)
        fewer = "" if most >= RELEASED_SENTENCES else f", where the release took {RELEASED_SENTENCES:,}"
        as_released = {tokenizer.digit_commas for tokenizer in trained} == {"split"}
        commas = "split off, as in the release" if as_released else "kept, where the release splits them off"
        notes.append(
            f"Tokenizer `{distinct(tokenizer.name for tokenizer in trained)}`: trained on at most {most:,} sentences of"
            f" the corpus{fewer}; commas after digits are {commas}."
        )
    if {config.short_sequence_probability for config in configs} != {RELEASED_SHORT_SHARE}:
        notes.append(
            f"Of the documents, {mean_percent(config.short_sequence_probability for config in configs)} are cut into"
            " chunks of a shorter length that is drawn for each, in training and in the held-out sets alike; as"
            f" released, {100 * RELEASED_SHORT_SHARE:.0f} % are. Chunks of a single sentence are dropped, with"
            f" {mean_percent(run.data.dropped_text_share for run in runs)} of the text."
        )
    if staged := {run.config.length_schedule.name: run.data.stages for run in runs if run.data.stages}:
        schedules = "; ".join(f"`{name}`: {_short(stages)}" for name, stages in staged.items())
        notes.append(f"Short sequences first, with as many positions a step; the paper has one length. {schedules}.")
    return [*notes, _ALWAYS]


def _short(stages: Sequence[Stage]) -> str:
    """The stages of a length schedule before that of the full length."""
    return "; ".join(
        f"{stage.max_sequence_length} tokens for {stage.steps:,} steps, {100 * stage.dropped_text_share:.0f} % of the"
        " text in dropped single sentences"
        for stage in stages[:-1]
    )


def replaced(fixed: Sequence[str], commands: Iterable[str]) -> list[str]:
    """A note if commands gave other values to keys that the experiment fixes; otherwise empty."""
    own = dict(_settings(fixed))
    given = _settings(word.strip("'\"") for command in commands for word in command.split())
    others = dict.fromkeys(f"`{key}={value}` for `{own[key]}`" for key, value in given if own.get(key, value) != value)
    if not others:
        return []
    found = ", ".join(others)
    return [f"The command replaced settings of the experiment: {found}. A note that speaks of them does not hold."]


def mixed(runs: Sequence[RunRecord]) -> list[str]:
    """A note if rows were computed on different hardware; otherwise empty."""
    values = {
        "devices": {run.provenance.hardware for run in runs},
        "precisions": {run.provenance.precision for run in runs},
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


def distinct(values: Iterable[object]) -> str:
    """Different values, each once."""
    return "; ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in dict.fromkeys(values))


def mean_percent(shares: Iterable[float]) -> str:
    """The mean of shares, in percent."""
    return f"{100 * statistics.fmean(shares):.1f} %"
