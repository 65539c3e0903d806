"""The numbers of a report as pandas frames for the user, and as CSV files for spreadsheets; no command reads them."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from albert_lab.files import csv_text
from albert_lab.measures.catalog import labels
from albert_lab.paths import expanded
from albert_lab.runs.reported import CurvePoint, FilledColumn, ReportedRun
from albert_lab.score import Score, loss_name
from albert_lab.storage import write_atomically
from albert_lab.studies import study as studies
from albert_lab.studies.study import EnsembleLine, Study
from albert_lab.tasks.records import FinetuningRecord
from albert_lab.training.layer_numbers import Layer

Cells = Mapping[str, Any]


class Report:
    """The numbers of a report as tidy pandas frames: `albert_lab.report(path)`.

    Each call gives a new frame. Its first columns are the axes of the table as run here (numbers if all are numbers),
    `paper_<axis>` as in the paper, `seed` and `run`. A run of two rows has lines in both. Scores are in percent, their
    differences in points, losses in nats, times in seconds.

    Attributes:
        path: the folder of the report.
        title: the title of its table.
    """

    def __init__(self, path: str | Path):
        """Read the records of a report; later changes of the folder do not matter.

        Raises:
            ConfigError: the folder is no report of a study, or a file in it cannot be read.
        """
        self.path = expanded(str(path))
        self._study = studies.read(self.path)
        self.title = self._study.experiment.title

    def __repr__(self) -> str:
        """Its folder and its size."""
        return f"<report {self.path}: {self.title!r}, {len(self._study.finished)} runs>"

    def runs(self) -> pd.DataFrame:
        """One line a run: every score (percent) and loss (nats) by its name, cost, settings and provenance.

        Cost: `parameters`, `train_flops_per_token`, `steps`, `tokens` (without padding), `training_seconds` and
        `total_seconds`, `tokens_per_second`, `peak_memory_bytes`. Shares and rates are between 0 and 1.
        """
        return _frame(self._study, ({**place, **run.numbers, **_settings(run)} for place, run in _places(self._study)))

    def scores(self) -> pd.DataFrame:
        """One line a run and score.

        Columns: `score` (its name); `value`, the ends `low` and `high` of its 95 % interval over the answers, the
        floors `floor` (the best constant answer) and `segments_floor`, and `auc`, all in percent; `over_segments_low`
        and `over_segments_high`, the interval of the score minus that floor in points; `n` (answers), `by` (what
        answered) and `loss` (nats).
        """
        return _frame(
            self._study,
            (
                {**place, "score": name, "value": score.value, **_parts(score), "loss": score.loss}
                for place, run in _places(self._study)
                for name, score in run.scores.items()
            ),
        )

    def curves(self) -> pd.DataFrame:
        """One line a run, evaluation during training, and score on held-out text.

        The last evaluation is that of the table, on all answers; those before have fewer.

        Columns: `step`, `share` of the budget (0 to 1), `tokens` (without padding), `training_seconds`; `score` (its
        name), `value` (percent), `n` (answers) and `loss` (nats).
        """
        return _frame(
            self._study,
            (
                {**place, **_moment(point), "score": name, "value": point.value(name)}
                | {"n": point.value(f"{name}_n"), "loss": point.value(loss_name(name))}
                for place, run in _places(self._study)
                for point in run.shown_curve
                for name in labels()
                if point.value(name) is not None
            ),
        )

    def finetunings(self) -> pd.DataFrame:
        """One line a run, column of tasks, and fine-tuning seed.

        Columns: `column` (of the table), `task` (that fills it), `metric` (its main score), `finetuning_seed`; `best`
        (of all evaluations on dev), `last` (after the last step), `constant_answers` and `best_<metric>` in percent;
        `last_loss` (nats an example); `n` (dev examples), numbers of examples, settings and times (seconds).
        """
        return _frame(self._study, _finetunings(self._study))


def write(folder: Path, study: Study) -> None:
    """Write the tables of a study into a report's folder as CSV files; remove those that are empty."""
    places = _places(study)
    _write(folder / "points.csv", (point.as_columns() for point in study.points))
    _write(folder / "results.csv", ({**place, **_of_run(run)} for place, run in places))
    _write(
        folder / "curves.csv", ({**place, **point.model_dump()} for place, run in places for point in run.shown_curve)
    )
    _write(folder / "finetuning.csv", _finetunings(study))
    write_layers(folder / "layers.csv", [(place, run.layers) for place, run in places])
    _write(folder / "ensembles.csv", map(_of_ensemble, study.ensembles))


def _places(study: Study) -> list[tuple[Cells, ReportedRun]]:
    """The runs of a study, each with the cells that its lines begin with."""
    places: list[tuple[Cells, ReportedRun]] = []
    for row in study.rows:
        axes = row.values | {f"paper_{axis}": label for axis, label in row.labels.items()}
        places += [({**axes, "seed": run.seed, "run": run.name}, run) for run in row.runs]
    return places


def _frame(study: Study, lines: Iterable[Cells]) -> pd.DataFrame:
    """A frame of lines; the values of an axis are numbers if all are, and missing numbers are NaN."""
    frame = pd.DataFrame([dict(line) for line in lines])
    axes = {*study.axes, *(f"paper_{axis}" for axis in study.axes)}
    for name, cells in frame.items():
        if name in axes or not any(isinstance(cell, str) for cell in cells):
            with contextlib.suppress(ValueError):  # names of options stay text
                frame[name] = pd.to_numeric(cells)
    return frame


def _moment(point: CurvePoint) -> Cells:
    return {key: point.value(key) for key in ("step", "share", "tokens", "training_seconds")}


def _finetunings(study: Study) -> list[Cells]:
    return [
        {**place, **_of_finetuning(column, record)}
        for place, run in _places(study)
        for column in run.columns
        for record in column.finetunings
    ]


def write_layers(file: Path, layers_of: Iterable[tuple[Cells, Sequence[Layer]]]) -> None:
    """Write the change by each layer of several encoders, with the cells that each line of an encoder begins with."""
    _write(file, ({**place, **layer.model_dump()} for place, layers in layers_of for layer in layers))


def _write(file: Path, lines: Iterable[Cells]) -> None:
    table = pd.DataFrame([dict(line) for line in lines])
    if table.empty:
        file.unlink(missing_ok=True)
    else:
        write_atomically(file, csv_text(table))


def _of_run(run: ReportedRun) -> Cells:
    cells: dict[str, Any] = {"evaluation_set": run.record.evaluation_set}
    for name, score in run.scores.items():
        cells |= _of_score(name, score)
    return {**cells, **run.numbers, **_settings(run)}


def _settings(run: ReportedRun) -> Cells:
    """Settings, training data and provenance of a run."""
    record, provenance = run.record, run.record.provenance
    config, tokenizer = record.config, record.config.tokenizer
    cells: dict[str, Any] = {"evaluation_set": record.evaluation_set}
    cells |= {f"share_of_{label}": share for label, share in record.data.label_shares.items()}
    cells |= record.data.model_dump(exclude={"label_shares", "stages"})
    for key in ("learning_rate", "embedding_size", "batch_size", "max_sequence_length", "short_sequence_probability"):
        cells[key] = getattr(config, key)
    for key in ("optimizer", "corpus", "added_corpus", "tokenizer", "masking", "length_schedule"):
        cells[key] = getattr(config, key).name
    cells |= {
        "start_from": "{run} ({keep})".format(**dict(record.start_from)) if record.start_from else "",
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
    loss = {} if score.loss is None else {loss_name(name): score.loss}
    parts = {f"{name}_{key}": value for key, value in _parts(score).items() if value is not None}
    return {name: score.value, **parts, **loss}


def _parts(score: Score) -> Cells:
    """The numbers beside the value of a score."""
    low, high = score.over_segments or (None, None)
    rest = score.model_dump(exclude={"value", "loss", "over_segments"})
    return rest | {"over_segments_low": low, "over_segments_high": high}


def _of_ensemble(line: EnsembleLine) -> Cells:
    cells = line.model_dump(exclude={"metrics", "members", "single_scores", "ensemble_scores"})
    cells |= {"metric": " and ".join(line.metrics), "members": len(line.members)}
    for which, scores in (("single", line.single_scores), ("ensemble", line.ensemble_scores)):
        cells |= {f"{which}_{name}": value for name, value in scores.items()}
    return cells


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
        "bag_of_words": record.best.main.lexical_floor,
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
