"""The departures of a table's runs from the paper and its release: the footnotes that every scale prints."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from albert_lab.config.data import TokenizerConfig
from albert_lab.report.markdown import distinct, mean_percent
from albert_lab.report.templates import call, fill_lines
from albert_lab.runs.results import RunRecord, Stage

RELEASED_SHORT_SHARE = 0.1
_MANY_UNKNOWN = 0.01
# What a note names of the runs of a table.
_NAMED: dict[str, Callable[[RunRecord], object]] = {
    "layers": lambda run: run.config.model.num_layers,
    "hidden_size": lambda run: run.config.model.hidden_size,
    "vocab_size": lambda run: run.config.tokenizer.vocab_size,
    "length": lambda run: run.config.max_sequence_length,
    "batch_size": lambda run: run.config.batch_size,
    "budget": lambda run: f"{run.config.budget.value:,.12g} {run.config.budget.unit}",
    "optimizer": lambda run: run.config.optimizer.name,
    "rate": lambda run: run.config.learning_rate,
    "masking": lambda run: run.config.masking.name,
    "documents": lambda run: run.data.train_documents,
    "dev_documents": lambda run: run.data.dev_documents,
}


def departures(scale: str, runs: Sequence[RunRecord]) -> list[str]:
    """The footnotes of a table; empty if no run is finished."""
    if not runs:
        return []
    passes = [run.data.passes for run in runs]
    shares = [run.config.short_sequence_probability for run in runs]
    text = mean_percent(run.data.dropped_text_share for run in runs)
    own = [", ".join(own_parts([run])) for run in runs]
    staged = {run.config.length_schedule.name: run.data.stages for run in runs if run.data.stages}
    unknown = max(run.data.unknown_share for run in runs)
    lines = fill_lines(
        "departures.md.j2",
        scale=scale,
        own=distinct(filter(None, own)),
        with_own="all runs" if all(own) else f"{sum(map(bool, own))} of {len(runs)} runs",
        named={name: distinct(map(of, runs)) for name, of in _NAMED.items()},
        passes=" to ".join(dict.fromkeys(f"{value:.1f}" for value in (min(passes), max(passes)))),
        mask_rate=mean_percent(run.data.mask_rate for run in runs),
        tokenizer=_tokenizer([run.config.tokenizer for run in runs if run.config.tokenizer.training_sentences]),
        short={*shares} != {RELEASED_SHORT_SHARE} and {"documents": mean_percent(shares), "text": text},
        schedules="; ".join(f"`{name}`: {_short(stages)}" for name, stages in staged.items()),
    )
    if unknown > _MANY_UNKNOWN:
        lines.append(
            f"{100 * unknown:.1f} % of the tokens of the training text are unknown, `<unk>`, and predicted as such."
        )
    return lines


def own_parts(runs: Iterable[RunRecord]) -> list[str]:
    """The settings of runs that neither the paper's models nor their training have."""
    return list(dict.fromkeys(part for run in runs for part in run.config.other_parts))


def _tokenizer(trained: Sequence[TokenizerConfig]) -> dict[str, object]:
    if not trained:
        return {}
    return {
        "name": distinct(tokenizer.name for tokenizer in trained),
        "sentences": max(tokenizer.training_sentences or 0 for tokenizer in trained),
        "splits_commas": {tokenizer.digit_commas for tokenizer in trained} == {"split"},
    }


def _short(stages: Sequence[Stage]) -> str:
    """The stages of a length schedule before that of the full length."""
    return "; ".join(call("note.md.j2", "stage", stage) for stage in stages[:-1])


def replaced(fixed: Sequence[str], commands: Iterable[str]) -> list[str]:
    """A note if commands gave other values to keys that the experiment fixes; otherwise empty."""
    own = dict(_settings(fixed))
    overrides = _settings(text.strip("'\"") for command in commands for text in command.split())
    others = dict.fromkeys(
        f"`{key}={value}` for `{own[key]}`" for key, value in overrides if own.get(key, value) != value
    )
    return [call("note.md.j2", "replaced", list(others))] if others else []


def mixed(runs: Sequence[RunRecord]) -> list[str]:
    """A note if rows were computed on different hardware; otherwise empty."""
    values = {
        "devices": {run.provenance.hardware for run in runs},
        "precisions": {run.provenance.precision for run in runs},
    }
    several = {what: sorted(names) for what, names in values.items() if len(names) > 1}
    return [call("note.md.j2", "mixed", several)] if several else []


def _settings(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        key, separator, value = text.partition("=")
        if separator:
            yield key, value
