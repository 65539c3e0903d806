"""The speeds of finished runs, from which the time of other runs is estimated."""

from itertools import islice
from pathlib import Path

from albert_lab import paths
from albert_lab.config.schema import RunConfig
from albert_lab.cost.rates import Rates, Speed, choose_device
from albert_lab.errors import ConfigError
from albert_lab.runs import results

# The number of newest records to read: several, since other work on the machine slowed some of the runs.
_NEWEST = 100
# Fewer measure the start of a process and what else the machine does at that moment: four runs of 31 steps took from 21
# to 95 seconds there.
_FEWEST_STEPS = 100


def choose_rates(asked: str | None, config: RunConfig) -> Rates:
    """The rates of the device that --on names, or else of the one that will train a configuration here.

    Raises:
        ConfigError: no such device.
    """
    name, why = choose_device(asked, config.machine)
    files = sorted(paths.runs().glob(f"*/{results.RECORD}"), key=lambda file: file.stat().st_mtime, reverse=True)
    speeds = (speed for file in files if (speed := read_speed(file.parent)))
    return Rates(name, why, tuple(islice(speeds, _NEWEST)))


def read_speed(folder: Path) -> Speed | None:
    """The speed of the run in a folder.

    None if it is not finished, has too few steps, its record is of an earlier version, or its own code, which counts
    its FLOPs, is not included.
    """
    try:
        record = results.read(folder)
    except ConfigError:
        return None
    if record is None or record.training.steps < _FEWEST_STEPS:
        return None
    training, place = record.training, record.provenance
    parts = place.processes if place.device == "cuda" else 1  # processes on one CPU share its cores
    # The recorded tokens per second do not include padding.
    positions_per_second = training.tokens_per_second / (1 - record.data.padding_share)
    return Speed(
        config=record.config,
        flops_per_second=positions_per_second * record.train_flops_per_token / parts,
        padding_share=record.data.padding_share,
        device=place.device,
        devices=place.devices,
        precision=place.precision,
    )
