"""Continued pre-training of an existing run: an import, or one that was finished under its own budget."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from albert_lab.config.compose import axes, validate
from albert_lab.config.schema import RunConfig, TokenizerConfig
from albert_lab.data.tokenizer.cache import find_tokenizer, tokenizer_fingerprint
from albert_lab.errors import ConfigError
from albert_lab.runs import run as runs
from albert_lab.runs.tuning import find_run
from albert_lab.studies import experiment as experiments
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.points import Point, Start

# Groups and plain keys that the weights determine.
_DECIDED = ("model", "sharing", "embedding_size", "projection", "tokenizer")
# Keys that keep the values of the continued run unless given.
_KEPT = ("inter_sentence", "dropout", "corpus.lower_case", "corpus.strip_accents")


def experiment(name: str, overrides: Sequence[str]) -> Experiment:
    """The study that continues a run, at its scale unless another is given: a row for each value that is swept, or one.

    Args:
        name: the run's name or folder.
        overrides: `key=value` texts for keys that the weights leave open: corpus, budget, optimizer, batches, masking.

    Raises:
        ConfigError: an unknown or unfinished run, or an override of a key that its weights determine.
    """
    run = find_run(name)
    given = axes(overrides)
    _refuse(run.name, given)
    swept = {key: values for key, values in given.items() if len(values) > 1 and key != "seed"}
    loss = given.get("inter_sentence", [run.config.inter_sentence.name])
    own_scale = [] if "scale" in given else [f"scale={run.config.scale.name}"]
    return Experiment.model_validate(
        {
            "name": f"continue-{run.name}",
            "title": f"Pre-training continued from {run.name}",
            "source": "no table of the paper",
            "fixed": own_scale,
            "grid": {"inter_sentence": loss} | swept,
            "continues": run.name,
        }
    )


def read(file: Path) -> Experiment:
    """An experiment from a user's file; the run that it continues exists.

    Raises:
        ConfigError: the file is invalid, or the run is unknown or unfinished; names the file and the key.
    """
    found = experiments.read(file)
    if found.continues:
        try:
            find_run(found.continues)
        except ConfigError as error:
            raise ConfigError(f"{file}: continues={found.continues}: {error}") from error
    return found


def start_from(points: Sequence[Point], name: str, overrides: Sequence[str]) -> list[Point]:
    """The points of a study, which start from the weights of another run and have its shape and tokenizer.

    Raises:
        ConfigError: an unknown run, or a configuration that does not fit its weights.
    """
    parent = find_run(name)
    given = {key for text in overrides for key in axes([text])} | {key for point in points for key in point.row}
    _refuse(parent.name, given)
    there = Point({"run": parent.name}, parent.config, run=parent)
    return [
        replace(point, config=_adopt(point.config, parent, given), start=Start(there, "weights")) for point in points
    ]


def _refuse(name: str, given: Collection[str]) -> None:
    for key in given:
        if key.split(".")[0] in _DECIDED:
            raise ConfigError(f"{key} cannot be set: the weights of {name} determine it")


def _adopt(config: RunConfig, parent: runs.Run, given: Collection[str]) -> RunConfig:
    content, there = config.model_dump(mode="json"), parent.config.model_dump(mode="json")
    for key in _DECIDED:
        content[key] = there[key]
    for key in _KEPT:
        section, _, last = key.rpartition(".")
        if key not in given:
            (content[section] if section else content)[last] = (there[section] if section else there)[last]
    adopted = validate(content)
    if parent.config.tokenizer.model_file is None and (
        tokenizer_fingerprint(adopted) != parent.fingerprints["tokenizer"]
    ):  # this run reads other text than the tokenizer was trained on
        adopted = adopted.model_copy(update={"tokenizer": _as_file(parent.config)})
    return adopted


def _as_file(config: RunConfig) -> TokenizerConfig:
    file = {"name": "model-file", "model_file": str(find_tokenizer(config))}
    return config.tokenizer.model_copy(update=file | {"training_sentences": None, "character_coverage": None})
