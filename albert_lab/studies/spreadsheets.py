"""The tables of a study as CSV files, for spreadsheets; no command reads them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from albert_lab.files import csv_text
from albert_lab.runs.layer_numbers import Layer
from albert_lab.runs.reported import FilledColumn, ReportedRun
from albert_lab.score import Score, loss_name
from albert_lab.storage import write_atomically
from albert_lab.studies.study import Study
from albert_lab.tasks.records import FinetuningRecord

Cells = Mapping[str, Any]


def write(folder: Path, study: Study) -> None:
    """Write the tables of a study into a report's folder, and remove those that are empty.

    Every line begins with the axes of its row, as run here and as in the paper, the seed and the run. A run of two
    rows has its lines in both.
    """
    places: list[tuple[Cells, ReportedRun]] = []
    for row in study.rows:
        axes = row.values | {f"paper_{axis}": label for axis, label in row.labels.items()}
        places += [({**axes, "seed": run.seed, "run": run.name}, run) for run in row.runs]
    _write(folder / "points.csv", (point.as_columns() for point in study.points))
    _write(folder / "results.csv", ({**place, **_of_run(run)} for place, run in places))
    _write(folder / "curves.csv", ({**place, **point.model_dump()} for place, run in places for point in run.curve))
    _write(
        folder / "finetuning.csv",
        (
            {**place, **_of_finetuning(column, record)}
            for place, run in places
            for column in run.columns
            for record in column.finetunings
        ),
    )
    write_layers(folder / "layers.csv", [(place, run.layers) for place, run in places])
    _write(folder / "ensembles.csv", study.ensembles)


def write_layers(file: Path, found: Iterable[tuple[Cells, Sequence[Layer]]]) -> None:
    """Write the change by each layer of several encoders, with the cells that each line of an encoder begins with."""
    _write(file, ({**place, **layer.model_dump()} for place, layers in found for layer in layers))


def _write(file: Path, lines: Iterable[Cells]) -> None:
    table = pd.DataFrame([dict(line) for line in lines])
    if table.empty:
        file.unlink(missing_ok=True)
    else:
        write_atomically(file, csv_text(table))


def _of_run(run: ReportedRun) -> Cells:
    record, provenance = run.record, run.record.provenance
    config, tokenizer = record.config, record.config.tokenizer
    cells: dict[str, Any] = {"evaluation_set": record.evaluation_set}
    for name, score in run.scores.items():
        cells |= _of_score(name, score)
    cells |= run.numbers
    cells |= {f"share_of_{label}": share for label, share in record.data.label_shares.items()}
    cells |= record.data.model_dump(exclude={"label_shares", "stages"})
    for key in ("learning_rate", "embedding_size", "batch_size", "max_sequence_length", "short_sequence_probability"):
        cells[key] = getattr(config, key)
    for key in ("optimizer", "corpus", "added_corpus", "tokenizer", "masking", "length_schedule"):
        cells[key] = getattr(config, key).name
    cells |= {
        "start_from": "{run} ({keep})".format(**record.start_from) if record.start_from else "",
        "tokenizer_sentences": tokenizer.training_sentences,
        "digit_commas": tokenizer.digit_commas,
        "vocab_size": tokenizer.vocab_size,
        "num_layers": config.model.num_layers,
        "hidden_size": config.model.hidden_size,
        "budget": f"{config.budget.value:g} {config.budget.unit}",
        "results_version": record.results_version,
        "alarms": "; ".join(f"{alarm.metric} not above {alarm.floor}" for alarm in record.alarms),
    }
    cells |= {f"{name}_fingerprint": fingerprint for name, fingerprint in record.fingerprints.items()}
    cells |= provenance.model_dump(exclude={"packages", "commit", "devices", "processes_from_step"})
    return cells | {
        "packages": provenance.software,
        "commit": provenance.code,
        "devices": provenance.device_names,
    }


def _of_score(name: str, score: Score) -> Cells:
    rest = score.model_dump(exclude={"value", "loss", "over_segments"}, exclude_none=True)
    if score.over_segments:
        rest |= dict(zip(("over_segments_low", "over_segments_high"), score.over_segments, strict=True))
    loss = {} if score.loss is None else {loss_name(name): score.loss}
    return {name: score.value, **{f"{name}_{key}": value for key, value in rest.items()}, **loss}


def _of_finetuning(column: FilledColumn, record: FinetuningRecord) -> Cells:
    settings = record.settings
    cells: dict[str, Any] = {
        "column": column.column,
        "task": column.task,
        "title": column.title,
        "metric": " and ".join(column.metrics),
        "finetuning_seed": record.seed,
        "best": record.best.main.value,
        "best_step": record.best.step,
        "last": record.last.main.value,
        "last_loss": record.last.main.loss,
        "constant_answers": record.best.main.floor,
        "n": record.best.main.n,
    }
    cells |= {f"best_{name}": score.value for name, score in record.best.scores.items()}
    for split, examples in (("train", record.train), ("dev", record.dev)):
        cells |= {f"{split}_used": examples.used, f"{split}_available": examples.available}
        cells |= {f"{split}_{name}": count for name, count in examples.counts.items()}
    return cells | {
        "steps": settings.steps,
        "batch_size": settings.batch_size,
        "learning_rate": record.attempts[-1].learning_rate,
        "max_sequence_length": settings.max_sequence_length,
        "attempts": len(record.attempts),
        "diverged": "; ".join(record.diverged),
        "threshold_from": record.threshold_from or "",
        "training_seconds": record.training_seconds,
        "total_seconds": record.total_seconds,
        "examples_per_second": record.examples_per_second,
        "padding_share": record.padding_share,
    }
