"""The graph of runs: which run starts from which, which runs a request needs, and in which order."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer.cache import find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.model.deepen import check_deepening
from albert_lab.model.shape import EncoderShape
from albert_lab.runs import ancestry, states
from albert_lab.runs import run as runs
from albert_lab.studies.points import Point

# Keys that continued training must keep: they set the shape, the token ids, the labels, the schedule, the curve.
_SAME_IN_TRAINING = (
    "model",
    "sharing",
    "embedding_size",
    "inter_sentence",
    "tokenizer",
    "optimizer",
    "budget.unit",
    "budget.value",
    "batch_size",
    "evaluation",
    "seed",
)


def lineage(point: Point) -> list[tuple[Point, runs.Run]]:
    """A point's ancestors with their runs, oldest first, and the point itself with its run last.

    Raises:
        ConfigError: a point that cannot start from its parent, or a configuration that does not fit.
        MissingDataError: text is missing.
    """
    if point.run:
        return [(point, point.run)]
    if point.start is None:
        return [(point, runs.plan(point.config))]
    above = lineage(point.start.point)
    parent = above[-1][1]
    run = runs.plan(point.config, runs.StartFrom(parent.name, point.start.keep))
    try:
        _check_training(run, parent) if point.start.keep == "training" else _check_weights(run, parent)
    except ConfigError as error:
        words, parent_words = (each.words or "the run" for each in (point, point.start.point))
        raise ConfigError(f"{words} cannot start from {parent_words}: {error}") from error
    return [*above, (point, run)]


def _check_training(run: runs.Run, parent: runs.Run) -> None:
    for key in _SAME_IN_TRAINING:
        here, there = (_value(config, key) for config in (run.config, parent.config))
        if here != there:
            raise ConfigError(f"it continues that training, so {key} must be the same: {there} before, {here} after")
    if run.fingerprints["tokenizer"] != parent.fingerprints["tokenizer"]:
        raise ConfigError("it continues that training, so the tokenizer must be the same")
    if parent.config.budget.stop_at >= run.config.budget.stop_at:
        raise ConfigError(
            f"budget.stop_at={parent.config.budget.stop_at:g} there leaves nothing to do"
            f" until budget.stop_at={run.config.budget.stop_at:g} here"
        )


def _check_weights(run: runs.Run, parent: runs.Run) -> None:
    same_file = find_tokenizer(run.config) == find_tokenizer(parent.config)
    if run.fingerprints["tokenizer"] != parent.fingerprints["tokenizer"] and not same_file:
        raise ConfigError("the weights are those of another tokenizer")
    if len(run.config.inter_sentence.labels) != len(parent.config.inter_sentence.labels):
        raise ConfigError("the pair heads have different labels")
    check_deepening(*(EncoderShape.from_config(each.config) for each in (parent, run)))


def _value(config: RunConfig, key: str) -> Any:
    value: Any = config
    for part in key.split("."):
        value = getattr(value, part)
    return value


def needed(
    lineages: Iterable[Sequence[runs.Run]], ended: Collection[str] = (), recorded: Collection[str] = ()
) -> set[str]:
    """Names of the runs that a request needs to pre-train.

    A finished parent runs again only if its weights were freed and an unfinished run starts from it. A parent that no
    unfinished run needs is not included.

    Args:
        lineages: For each run that is asked for, its ancestors, oldest first, and itself last.
        ended: Names of runs that must not be made; runs that start from them are left out too.
        recorded: Names of runs whose numbers are only in reports.
    """
    found: set[str] = set()
    for line in lineages:
        wanted: list[runs.Run] = []
        for run in reversed(line):
            finished = states.state(run.folder) in states.PRETRAINED or run.name in recorded
            if finished and (not wanted or ancestry.has_weights(run.folder) or ancestry.has_weights(wanted[-1].folder)):
                break
            wanted.append(run)
        names = {run.name for run in wanted}
        if names.isdisjoint(ended):
            found |= names
    return found


def parents_among(found: Sequence[runs.Run]) -> dict[Path, Path]:
    """The folder of each run's parent, by the run's folder, if the parent is one of the runs."""
    folders = {run.name: run.folder for run in found}
    return {
        run.folder: folders[run.start_from.run] for run in found if run.start_from and run.start_from.run in folders
    }


def orphaned(run: runs.Run, reasons: Mapping[str, str]) -> str:
    """The reason of a run that is not made because its parent failed."""
    assert run.start_from is not None
    parent = run.start_from.run
    return f"not started: it starts from {parent}, which did not finish: {reasons.get(parent, 'it was stopped')}"
