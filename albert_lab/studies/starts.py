"""Runs that start from another run: of the same study, or an existing one; and what a start has to keep."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import attrgetter

from albert_lab.config.compose import axes, validate
from albert_lab.config.schema import RunConfig
from albert_lab.config.section import complete
from albert_lab.data.fingerprint import fingerprint
from albert_lab.data.tokenizer.cache import find_tokenizer, tokenizer_fingerprint
from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape, check_deepening
from albert_lab.runs import run as runs
from albert_lab.runs.single_run import find_run
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.points import Point, Start

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
    "length_schedule",
    "max_sequence_length",
    "evaluation",
    "seed",
)
# Groups and plain keys that the weights of an existing run determine.
_DECIDED = ("model", "sharing", "embedding_size", "projection", "tokenizer")
# Keys that keep the values of an existing run unless given.
_KEPT = ("inter_sentence", "dropout", "corpus.lower_case", "corpus.strip_accents")
# Those that it keeps on the same text: by others, a document that it was trained on would be held out.
_SPLIT = ("corpus.dev_share", "corpus.split_seed", "corpus.source_documents")


def lineage(point: Point, known: dict[int, list[tuple[Point, runs.Run]]] | None = None) -> list[tuple[Point, runs.Run]]:
    """A point's ancestors with their runs, oldest first, and the point itself with its run last.

    Args:
        known: the results for points of the same study, by id(); this one's is added.

    Raises:
        ConfigError: a point that cannot start from its parent, or a configuration that does not fit.
        MissingDataError: text is missing.
    """
    known = {} if known is None else known
    if id(point) not in known:
        known[id(point)] = _lineage(point, known)
    return known[id(point)]


def _lineage(point: Point, known: dict[int, list[tuple[Point, runs.Run]]]) -> list[tuple[Point, runs.Run]]:
    if point.run:
        return [(point, point.run)]
    if point.start is None:
        return [(point, runs.plan(point.config))]
    above = lineage(point.start.point, known)
    parent = above[-1][1]
    run = runs.plan(point.config, runs.StartFrom(run=parent.name, keep=point.start.keep))
    try:
        _check_training(run, parent) if point.start.keep == "training" else _check_weights(run, parent)
    except ConfigError as error:
        label, parent_label = (place.label or "the run" for place in (point, point.start.point))
        raise ConfigError(f"{label} cannot start from {parent_label}: {error}") from error
    return [*above, (point, run)]


def _check_training(run: runs.Run, parent: runs.Run) -> None:
    for key in _SAME_IN_TRAINING:
        here, there = (attrgetter(key)(config) for config in (run.config, parent.config))
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
    labels, before = (len(each.config.inter_sentence.labels) for each in (run, parent))
    if before not in (0, labels):  # a parent without a pair head is given a new one
        raise ConfigError(f"its pair head has {labels} labels, and that of the weights {before}")
    check_deepening(*(EncoderShape.from_config(config.config) for config in (parent, run)))


def take_start(overrides: Sequence[str]) -> tuple[str | None, list[str]]:
    """The run of `start_from=RUN` among overrides, and the others, at the scale of that run unless they give one.

    Raises:
        ConfigError: an unknown or unfinished run.
    """
    named = [text.partition("=")[2] for text in overrides if text.startswith("start_from=")]
    rest = [text for text in overrides if not text.startswith("start_from=")]
    if not named:
        return None, rest
    is_scaled = any(text.startswith("scale=") for text in rest)
    return named[-1], rest if is_scaled else [f"scale={_parent(named[-1]).config.scale.name}", *rest]


def _parent(name: str) -> runs.Run:
    try:
        return find_run(name)
    except ConfigError as error:
        raise ConfigError(f"start_from={name}: {error}") from error


def continued(points: Sequence[Point], experiment: Experiment, overrides: Sequence[str]) -> list[Point]:
    """The points of a study as continuations of an existing run, with its weights, its shape and its tokenizer.

    Raises:
        ConfigError: an unknown or unfinished run, or a configuration that does not fit its weights.
    """
    assert isinstance(experiment.start_from, str)
    parent = _parent(experiment.start_from)
    typed = {key for text in overrides for key in axes([text])}
    start = Start(Point({"run": parent.name}, parent.config, run=parent), "weights")
    started = []
    for point in points:
        choices = [experiment.grid.get(axis, {}).get(label, "") for axis, label in point.row.items()]
        in_row = {*point.row, *(_key(text) for choice in choices if isinstance(choice, tuple) for text in choice)}
        _refuse_determined(parent, typed | in_row)
        config = _adopt(point.config, parent, {*typed, *in_row, *map(_key, experiment.fixed)})
        started.append(replace(point, config=config, start=start))
    return started


def _key(text: str) -> str:
    return text.partition("=")[0].lstrip("+")


def _refuse_determined(parent: runs.Run, keys: Collection[str]) -> None:
    for key in keys:
        if key.split(".")[0] in _DECIDED:
            raise ConfigError(f"{key} cannot be set: the weights of {parent.name} determine it")


def _adopt(config: RunConfig, parent: runs.Run, overridden: Collection[str]) -> RunConfig:
    content, there = config.model_dump(mode="json"), complete(parent.config)
    for key in _DECIDED:
        content[key] = there[key]
    has_same_text = parent.fingerprints.get("corpus") == fingerprint(config.corpus)
    for key in (*_KEPT, *(_SPLIT if has_same_text and not (parent.folder / runs.IMPORT).exists() else ())):
        section, _, last = key.rpartition(".")
        if key not in overridden:
            (content[section] if section else content)[last] = (there[section] if section else there)[last]
    adopted = validate(content)
    if parent.config.tokenizer.model_file is None and (
        tokenizer_fingerprint(adopted) != parent.fingerprints["tokenizer"]
    ):  # this run reads other text than the tokenizer was trained on
        file = {"name": "model-file", "model_file": str(find_tokenizer(parent.config))}
        file |= {"training_sentences": None, "character_coverage": None}
        adopted = adopted.model_copy(update={"tokenizer": parent.config.tokenizer.model_copy(update=file)})
    return adopted
