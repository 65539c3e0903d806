"""The throughput of the rows of a report, measured side by side on one machine, and its file in the report's folder."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from albert_lab import files
from albert_lab.cost import rounds
from albert_lab.errors import ConfigError
from albert_lab.machine import cores, cpu_model
from albert_lab.record import Record
from albert_lab.runs.results import INFERENCE_SPEED, TRAINING_SPEED, RunRecord
from albert_lab.storage import write_atomically
from albert_lab.studies.table import Row

FILE = "throughput.json"
REMEDY = "remove it, or measure again with `albert-lab speed --report`"


class RowThroughput(Record):
    """One row: the run that was its example, and tokens/s by round."""

    run: str
    training: tuple[float, ...] = Field(min_length=1)
    inference: tuple[float, ...] = Field(min_length=1)


class SideBySide(Record):
    """The throughput of all rows in the same rounds, with the hardware, the precision and the threads of one process.

    Each round measures every row once, in a random order, so rounds are paired samples.
    """

    processor: str
    cores: int
    device: str
    precision: str
    threads: int
    finished: str
    rows: tuple[RowThroughput, ...] = Field(min_length=1)

    @property
    def num_rounds(self) -> int:
        return len(self.rows[0].training)

    @property
    def conditions(self) -> str:
        device = "" if self.device == "cpu" else f", {self.device}"
        threads = f"{self.threads} thread{'' if self.threads == 1 else 's'}"
        return f"{self.finished}, {self.processor}, {self.cores} cores{device}, {self.precision}, {threads}"


def read(folder: Path) -> SideBySide | None:
    """The measurement in a report's folder; None if there is none.

    Raises:
        DamagedFileError: its file cannot be read.
    """
    file = folder / FILE
    return files.read_json(file, SideBySide, REMEDY) if file.is_file() else None


def write(folder: Path, measured: SideBySide) -> None:
    write_atomically(folder / FILE, measured.model_dump_json(indent=1) + "\n")


def attached(table: Sequence[Row], sides: SideBySide) -> list[Row]:
    rounds_of = {
        of_row.run: {TRAINING_SPEED: of_row.training, INFERENCE_SPEED: of_row.inference} for of_row in sides.rows
    }
    measured = [next((rounds_of[run.name] for run in row.runs if run.name in rounds_of), {}) for row in table]
    if not all(rounds for rounds, row in zip(measured, table, strict=True) if row.runs):
        return list(table)
    return [replace(row, rounds=rounds) for row, rounds in zip(table, measured, strict=True)]


def measure_rows(
    records: Sequence[RunRecord], *, number: int, seconds: float, say: Callable[[str], None]
) -> SideBySide:
    """Measure the configurations of these runs in interleaved rounds, with the machine settings of the first run.

    Args:
        records: one run of each row.
        seconds: the approximate duration of measuring training and inference in each round.

    Raises:
        ConfigError: a configuration cannot be measured on this machine.
    """
    machine = records[0].config.machine
    configs = [record.config.model_copy(update={"machine": machine}) for record in records]
    measured = rounds.measure_speeds(configs, rounds=number, seconds=seconds, say=say)
    for record, result in zip(records, measured, strict=True):
        if result.failure:
            raise ConfigError(f"{record.name} was not measured: {result.failure}")
    first = measured[0]
    assert first.device_name
    assert first.precision
    assert first.threads
    return SideBySide(
        processor=cpu_model(),
        cores=cores(),
        device=first.device_name,
        precision=first.precision,
        threads=first.threads,
        finished=datetime.now(UTC).date().isoformat(),
        rows=tuple(
            RowThroughput(
                run=record.name,
                training=tuple(measurement.training for measurement in result.measurements),
                inference=tuple(measurement.inference for measurement in result.measurements),
            )
            for record, result in zip(records, measured, strict=True)
        ),
    )
