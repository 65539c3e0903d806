"""Preparation of the data of runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from albert_lab.config.schema import RunConfig
from albert_lab.messages import Say
from albert_lab.runs.run import Run

if TYPE_CHECKING:  # plans of finished runs need none of them
    from albert_lab.data.shards import Shards
    from albert_lab.data.tokenizer import Tokenizer


class Data(NamedTuple):
    """The open data of a run; fitted_on is train without added text: linear probes and floors of
    single segments are fitted on it, so that the rows of a table share them.
    """

    train: "Shards"
    dev: "Shards"
    fitted_on: "Shards"
    tokenizer: "Tokenizer"
    floors: Mapping[str, Sequence[bool]]


def load(config: RunConfig, say: Say) -> Data:
    """Text, tokenizer, shards and floors of a run, made first if they are missing.

    Raises:
        ConfigError: text, tokenizer or split cannot be used.
        MissingDataError: the text or a file is missing.
        OSError: the disk is full.
    """
    from albert_lab.data.prepare import prepare, without_added
    from albert_lab.data.shards import open_shards
    from albert_lab.data.vocabulary import load_tokenizer
    from albert_lab.measures.segments_floor import find_or_fit

    shards = prepare(config, say)
    base = without_added(config)
    tokenizer = load_tokenizer(config)
    train, dev = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))
    fitted_on = train if base == config else open_shards(prepare(base, say), "train", tokenizer)
    return Data(train, dev, fitted_on, tokenizer, find_or_fit(base, fitted_on, dev, say))


def prepare_all(runs: Iterable[Run], say: Say) -> None:
    """Make what load() opens, once for all runs that share it, with its errors."""
    by_data = {(run.evaluation_set, run.fingerprints.get("added_corpus")): run for run in runs}
    for run in by_data.values():
        load(run.config, say)
