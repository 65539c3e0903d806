"""The numbers of a study as tidy tables: a line a number, a line a row, a line a held-out
document.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from albert_lab.analysis.spread import Variance, prior_of, variance_of
from albert_lab.measures.catalog import units
from albert_lab.runs.reported import AVERAGE, ReportedRun
from albert_lab.score import Score
from albert_lab.studies.claims import axis_name, number_in
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study, StudyPoint
from albert_lab.tasks.task import task_names

NUMBERS = ("run", "trunk", "row", "seed", "metric", "value", "n", "floor", "segments", "words")
DOCUMENTS = ("run", "metric", "document", "n", "sum")
CURVES = ("run", "row", "seed", "step", "metric", "value", "n")
PAPER = "paper_"  # before a metric: the paper's printed cell
HERE = "here_"  # before an axis: the value that the row was run with
_FORMULA = r"^(?=[=+\-@\t\r])"
ONLY = "run"  # the row of a study without axes
_Arrays = tuple[np.ndarray, np.ndarray]  # n and the sum, by document
RANDOM = ", random weights"  # after a row: fine-tuned from random weights of the same shape
NOTHING_LEARNT = "nothing learnt"  # the name of Analysis.floor()


@dataclass(frozen=True)
class Sample:
    """The runs of a row that have a metric.

    Attributes:
        runs: their names, in the order of the seeds.
        trunks: the run that each of them goes back to (Frame.numbers).
        values: of the metric. [runs]
    """

    runs: tuple[str, ...]
    trunks: tuple[str, ...]
    values: np.ndarray

    def in_order_of_trunks(self) -> "Sample":
        """The same, in the order of the trunks."""
        order = np.argsort(self.trunks, kind="stable")
        runs = tuple(self.runs[place] for place in order)
        return Sample(runs, tuple(sorted(self.trunks)), self.values[order])


@dataclass(frozen=True)
class Frame:
    """All numbers of a study.

    Attributes:
        numbers: a line a number of a run in a row, in the order of the study. Columns: run, trunk
            (the run that it goes back to by starts from other runs, itself if it starts from none),
            row, seed of pre-training, metric, value (scores in percent, losses in nats, others in
            their own unit), and of scores n (answers), floor (percent, of the best constant
            answer), segments (percent, of single segments, that of pair scores) and words (percent,
            of a bag of words, that of a task); NaN where there is none. Two rows with the same run
            both have its numbers. A task that was also fine-tuned from random weights has rows of
            the same name followed by RANDOM, whose runs are named by the shape.
        rows: a line a row, in the order of the study. Columns: row (its name in sentences and
            tables: `sop`, `E=72, all-shared`), for each axis its label as in the paper and, after
            HERE, the value it was run with, and for each column of the paper's table, after PAPER,
            the cell as printed (text; empty if it has none).
        documents: a line a document of the held-out text (of a task: 64 blocks of consecutive dev
            examples). Columns: run, metric, document (its number), n (answers), and sum: of right
            answers, or of nats for a loss; for a task the mean over its fine-tunings. Runs with the
            same n by document were scored on the same text.
        curves: a line a number of an evaluation during training, up to the end; columns as those of
            numbers, and step. Metrics include training_seconds, tokens and share (of the budget).
        layers: a line a layer and choice of tokens, as measured (training/layers.py), with run, row
            and seed.
        tasks: the metrics of fine-tuned tasks (their scores, and parts such as F1), each with its
            task.
        own_units: the units of measures of own code.
        neighbours: the other tables of the scale and text (neighbours.py).
        of_points: the row of each point of the study.
    """

    numbers: pd.DataFrame
    rows: pd.DataFrame
    documents: pd.DataFrame
    curves: pd.DataFrame
    layers: pd.DataFrame
    tasks: Mapping[str, str]
    own_units: Mapping[str, str] = field(default_factory=dict)
    neighbours: tuple["Frame", ...] = ()
    of_points: Sequence[str] = ()

    def of(self, metric: str) -> pd.DataFrame:
        """The lines of numbers of one metric."""
        return self.numbers.loc[self.numbers["metric"] == metric]

    def samples(self, metric: str, *, log: bool = False) -> Mapping[str, Sample]:
        """The runs of each row that has a metric; with its logarithms those of rows above 0."""
        samples = self._samples.get(metric, {})
        if not log:
            return samples
        return {
            row: replace(sample, values=np.log(sample.values))
            for row, sample in samples.items()
            if (sample.values > 0).all()
        }

    @cached_property
    def _samples(self) -> dict[str, dict[str, Sample]]:
        rows: Any = self.numbers.groupby(["metric", "row"], sort=False)
        samples: dict[str, dict[str, Sample]] = {}
        for (metric, row), *sample in rows[["run", "trunk", "value"]].agg(tuple).itertuples():
            runs, trunks, values = sample
            samples.setdefault(metric, {})[row] = Sample(runs, trunks, np.array(values, float))
        return samples

    def prior(self, metric: str, *, log: bool = False) -> Variance:
        """The variance over seeds that one more row of this scale and text is expected to have of a
        metric, or of its logarithm: a mean over the rows of this table and its neighbours, rows of
        the same runs counted once. NaN with 0 degrees of freedom if no row has several runs.
        """
        if (metric, log) not in self._priors:
            distinct = {}
            for table in (self, *self.neighbours):
                for sample in table.samples(metric, log=log).values():
                    distinct[sample.runs] = sample.values
            self._priors[metric, log] = prior_of(map(variance_of, distinct.values()))
        return self._priors[metric, log]

    @cached_property
    def _priors(self) -> dict[tuple[str, bool], Variance]:
        return {}

    @cached_property
    def pooled(self) -> "Frame":
        """The tasks of this table and its neighbours as one, which says whether a task counts
        (contrasts.counts).

        The name of a row begins with the number of its table; rows are those of this table.
        """
        numbers = []
        documents = []
        for place, table in enumerate((self, *self.neighbours)):
            tasks = table.numbers[table.numbers["metric"].isin(self.tasks)]
            numbers.append(tasks.assign(row=f"{place} " + tasks["row"]))
            documents.append(table.documents[table.documents["metric"].isin(self.tasks)])
        of_runs: Any = pd.concat(documents, ignore_index=True)
        distinct = of_runs.drop_duplicates(["run", "metric", "document"])
        return replace(
            self, numbers=pd.concat(numbers, ignore_index=True), documents=distinct, neighbours=()
        )

    def unit(self, metric: str) -> str:
        """The unit of a metric: %, points, nats, degrees, or empty; a task has one although it was
        not run.
        """
        if metric.endswith("_loss"):
            return "nats"
        if metric.endswith("_degrees"):
            return "degrees"
        if metric in (*task_names(), *self.tasks, AVERAGE):
            return "%"
        return units().get(metric, self.own_units.get(metric, ""))

    def documents_of(self, metric: str) -> Mapping[str, _Arrays]:
        """The n and the sum of a metric by document, for each run that has them. [documents]"""
        return self._documents.get(metric, {})

    @cached_property
    def _documents(self) -> dict[str, dict[str, _Arrays]]:
        found: dict[str, dict[str, _Arrays]] = {}
        documents: Any = self.documents
        for (metric, run), lines in documents.groupby(["metric", "run"], sort=False):
            found.setdefault(metric, {})[run] = (
                lines["n"].to_numpy(float),
                lines["sum"].to_numpy(float),
            )
        return found

    @cached_property
    def cells(self) -> dict[str, dict[str, str]]:
        """Each column of the rows, by the name of the row."""
        rows: Any = self.rows.set_index("row")
        return rows.to_dict()

    def row(self, labels: Mapping[str, str]) -> str | None:
        """The name of the only row with these labels of axes; None if there is none, or several."""
        lines: list[dict[Any, str]] = self.rows.to_dict("records")
        names = [line["row"] for line in lines if labels.items() <= line.items()]
        return names[0] if len(names) == 1 else None


def frame(study: Study, neighbours: tuple[Frame, ...] = ()) -> Frame:
    """The tables of a study. Rows of which no run is finished have a line in rows, and no numbers.

    Args:
        neighbours: the frames of the other reports of this scale and text.
    """
    rows, of_points = _rows(study)
    known = {run.name: run for run in study.runs}
    places = zip(study.points, of_points, strict=True)
    finished = {(row, point.seed, point.run) for point, row in places if point.run in known}
    order = {row: place for place, row in enumerate(rows["row"])}
    numbers = []
    curves = []
    layers = []
    tasks = dict[str, str]()
    for row, seed, name in sorted(finished, key=lambda place: (order[place[0]], *place[1:])):
        run = known[name]
        numbers += _numbers(run, _trunk(name, known), row, seed)
        curves += _curve(run, row, seed)
        place = {"run": name, "row": row, "seed": seed}
        layers += [place | layer.model_dump() for layer in run.layers]
    for column in chain.from_iterable(run.columns for run in study.runs):
        tasks |= dict.fromkeys((column.task, *column.parts), column.task)
    documents = pd.DataFrame(
        [line for run in known.values() for line in _documents(run)], columns=pd.Index(DOCUMENTS)
    )
    return Frame(
        pd.DataFrame(numbers, columns=pd.Index(NUMBERS)),
        rows,
        # Rows of one shape share their random weights.
        documents.drop_duplicates(["run", "metric", "document"], keep="last"),
        pd.DataFrame(curves, columns=pd.Index(CURVES)),
        pd.DataFrame(layers),
        tasks,
        {name: measure.unit for name, measure in study.own_measures.items()},
        neighbours,
        of_points,
    )


def as_csv(table: pd.DataFrame) -> str:
    """A table as CSV, in which no text is a formula to a spreadsheet: before one stands an
    apostrophe.
    """
    return table.replace(_FORMULA, "'", regex=True).to_csv(index=False)


def _trunk(name: str, runs: Mapping[str, ReportedRun]) -> str:
    """The run that a run goes back to, by starts from other runs; itself if it starts from none."""
    run = runs.get(name)
    while run and run.record.start_from:
        name = run.record.start_from.run
        run = runs.get(name)
    return name


def printed(cell: str) -> float:
    """The number in a cell of the paper; NaN if there is none.

    89.3/82.3 is the mean of both, 12M a number of millions, 1.7x a factor.
    """
    match = re.fullmatch(r"\s*(-?\d+\.?\d*(?:/-?\d+\.?\d*)*)([Mx%]?)\s*", cell)
    if not match:
        return float("nan")
    return fmean(float(part) for part in match[1].split("/")) * (1e6 if match[2] == "M" else 1)


def _rows(study: Study) -> tuple[pd.DataFrame, list[str]]:
    """The table of rows, and the row of each point."""
    axes = study.varying_axes
    names = dict[tuple[str, ...], str]()  # by the values and labels of a row
    taken = Counter[str]()
    lines = []
    of_points = []
    for point in study.points:
        key = (*point.values.values(), *point.labels.values())
        if key not in names:
            name = _name(point, axes)
            taken[name] += 1
            # Other labels of one value, or a comma in a label where another row has two labels.
            names[key] = f"{name} ({taken[name]})" if taken[name] > 1 else name
            here = {HERE + axis: value for axis, value in point.values.items()}
            paper = _paper(study.experiment, point.labels)
            lines.append({"row": names[key], **point.labels, **here, **paper})
        of_points.append(names[key])
    return pd.DataFrame(lines).fillna(""), of_points


def _name(point: StudyPoint, axes: Iterable[str]) -> str:
    """A row in words: its labels; for a number the axis and the value that was run."""
    words = []
    for axis in axes:
        label = point.labels[axis]
        value = point.values[axis]
        heading = axis_name(axis)
        shown = value if _is_bare(value) else label
        words.append(f"{heading}={shown}" if _is_bare(label) else label)
    name = ", ".join(words) or ONLY
    # A label that ends so itself: without quotes it would be the row of the random weights of
    # another row.
    return f"“{name}”" if name.endswith(RANDOM) else name


def _is_bare(label: str) -> bool:
    """Whether a label says nothing without the name of its axis: a number, true or false."""
    return label in ("true", "false") or number_in(label) is not None


def _paper(experiment: Experiment, labels: Mapping[str, str]) -> dict[str, str]:
    """The columns of the paper's cells in the row of these labels; empty if it has none."""
    table = experiment.paper
    if table is None:
        return {}
    for cells in table.rows:
        if all(labels.get(axis) == cells[axis] for axis in experiment.axes):
            return {PAPER + metric: cells.get(metric, "") for metric in table.columns}
    return {}


def _numbers(run: ReportedRun, trunk: str, row: str, seed: int) -> Iterator[dict[str, Any]]:
    """The lines of Frame.numbers of a run in a row. A task that was fine-tuned from random weights
    has a line in the row + RANDOM, whose run is the name of those weights, one for a shape.
    """
    place = {"run": run.name, "trunk": trunk, "row": row, "seed": seed}
    for metric, value in run.numbers.items():
        yield {**place, "metric": metric, "value": value, **_columns(run.scores.get(metric))}
    for column in run.columns:
        if column.is_random:
            name = column.finetunings[0].run  # that of its shape
            place = {"run": name, "trunk": name, "row": row + RANDOM, "seed": seed}
            score = {"metric": column.task, "value": column.score.value}
            yield {**place, **score, **_columns(column.score)}


def _columns(score: Score | None) -> dict[str, float | None]:
    if score is None:
        return {}
    return {
        "n": score.n,
        "floor": score.floor,
        "segments": score.segments_floor,
        "words": score.lexical_floor,
    }


def _curve(run: ReportedRun, row: str, seed: int) -> Iterator[dict[str, Any]]:
    for point in run.shown_curve:
        values = dict(point)
        place = {"run": run.name, "row": row, "seed": seed, "step": values.pop("step")}
        for metric, value in values.items():
            if value is not None and not metric.endswith("_n"):
                yield {**place, "metric": metric, "value": value, "n": values.get(f"{metric}_n")}


def _documents(run: ReportedRun) -> Iterator[tuple[object, ...]]:
    """A line a document of each metric that was kept by document."""
    kept = [(run.name, metric, of.n, of.sum) for metric, of in run.record.documents.items()]
    for column in run.columns:
        known = [record.documents for record in column.finetunings if record.documents]
        if known and len({record.dev.fingerprint for record in column.finetunings}) == 1:
            name = column.finetunings[0].run if column.is_random else run.name
            means = np.mean([documents.sum for documents in known], axis=0)
            kept.append((name, column.task, known[0].n, tuple(means)))
    for name, metric, n, sums in kept:
        for document, numbers in enumerate(zip(n, sums, strict=True)):
            yield (name, metric, document, *numbers)
