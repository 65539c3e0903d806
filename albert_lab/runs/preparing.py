"""Preparation of the data of runs in advance: `python -m albert_lab.runs.preparing FOLDER...`."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from albert_lab import registry, signals
from albert_lab.config.schema import RunConfig
from albert_lab.errors import FIXABLE, ConfigError
from albert_lab.messages import Say, to_stderr
from albert_lab.runs import states
from albert_lab.runs.run import Run, read


def prepare_all(runs: Iterable[Run], say: Say) -> None:
    """Text, tokenizer and shards, once for all runs that share them; fails early if there is too little text.

    Raises:
        ConfigError: text, tokenizer or split cannot be used.
        MissingDataError: the text or a file is missing.
        DiskFullError: not enough disk space.
    """
    from albert_lab.data.prepare import prepare

    by_data = {
        (run.evaluation_set, run.config.inter_sentence.name, run.fingerprints.get("added_corpus")): run for run in runs
    }
    for config in (run.config for run in by_data.values()):
        _check_pairs(prepare(config, say), config, say)


def _check_pairs(folder: Path, config: RunConfig, say: Say) -> None:
    """Fail if a split has too little text for the pairs of a run; say if it has few of a label."""
    from albert_lab.data.batches import SAMPLED_BLOCKS
    from albert_lab.data.pairs import make_pairs
    from albert_lab.data.shards import SPLITS, open_shards

    spec = config.inter_sentence
    for split in SPLITS:
        pairs = make_pairs(
            open_shards(folder, split),
            spec,
            max_sequence_length=config.max_sequence_length,
            short_sequence_probability=config.short_sequence_probability,
            seed=config.evaluation.seed,
            epoch=0,
            most_blocks=SAMPLED_BLOCKS,
        )
        for label, entry in enumerate(spec.labels):
            share = float((pairs.label == label).mean())
            if share < entry.share / 2 and spec.single_sentence_chunks == "drop":
                say(
                    f"inter_sentence={spec.name}: {100 * share:.1f} % of the pairs of the {split} text are of kind"
                    f" {entry.kind}, not {100 * entry.share:g} %: few segments find a second one of that kind"
                )


def lacking(folders: Iterable[Path]) -> list[Path]:
    """The run folders whose shards are missing, one for each set of shards."""
    from albert_lab.data.prepare import find_shards

    waiting = [folder for folder in folders if states.state(folder) != "done"]
    by_shards = {find_shards(read(folder).config): folder for folder in waiting}
    return [folder for shards, folder in by_shards.items() if not shards.is_dir()]


def command(folders: Iterable[Path]) -> list[str]:
    return [sys.executable, "-m", "albert_lab.runs.preparing", *map(str, folders)]


def main(arguments: Sequence[str]) -> int:
    """Prepare the data of run folders and return the exit code: 2 or 4 for errors that the user can fix."""
    parser = argparse.ArgumentParser(prog="python -m albert_lab.runs.preparing")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    asked = parser.parse_args(arguments)
    try:
        planned = [read(folder) for folder in asked.folders]
        for run in planned:
            registry.include_recorded(run.config.own_code)
        prepare_all(planned, to_stderr)
    except FIXABLE as error:
        to_stderr(str(error))
        return 2 if isinstance(error, ConfigError) else 4
    return 0


if __name__ == "__main__":
    signals.end_with_parent()
    sys.exit(main(sys.argv[1:]))
