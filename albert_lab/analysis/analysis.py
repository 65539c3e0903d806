"""A study with everything that is said of it: its numbers, their summary, and the verdicts on its
claims.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from albert_lab.analysis.contrasts import contrast, counts
from albert_lab.analysis.frame import PAPER, RANDOM, Frame, frame
from albert_lab.analysis.neighbours import neighbours
from albert_lab.analysis.verdict import Verdict
from albert_lab.analysis.verdicts import verdicts
from albert_lab.measures.catalog import labels, probes
from albert_lab.runs.reported import AVERAGE, ReportedRun
from albert_lab.runs.results import RunRecord
from albert_lab.score import LINEAR_PROBE, loss_name
from albert_lab.studies import study as studies
from albert_lab.studies.claims import axis_name
from albert_lab.studies.experiment import INTRINSIC, Experiment
from albert_lab.studies.study import Study, StudyPoint
from albert_lab.tasks.task import load_task, task_names

QUANTITIES = {
    "l2_roughness": "roughness of L2",
    "degrees_roughness": "roughness of angles",
    "last_rms_change": "last layer, L2 / √H",
    "last_degrees": "last layer, angle",
    "mean_rms_change": "mean of layers, L2 / √H",
    "mean_degrees": "mean of layers, angle",
    "train_flops_per_token": "training FLOPs/token",
    "tokens_per_second": "training tokens/s",
    "inference_tokens_per_second": "inference tokens/s",
}
SUMMARY = (
    "mean",
    "sd",
    "seeds",
    "low",
    "high",
    "n",
    "floor",
    "segments",
    "words",
    "paper",
    "counts",
)


@dataclass(frozen=True)
class Analysis:
    """A study and what follows from it; each table is computed once, when it is needed."""

    study: Study
    frame: Frame

    @property
    def experiment(self) -> Experiment:
        return self.study.experiment

    @cached_property
    def summary(self) -> pd.DataFrame:
        return summary(self.frame)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return verdicts(self.study, self.frame)

    @cached_property
    def rows(self) -> list[str]:
        """The names of the rows, in the order of the study."""
        return list(self.frame.rows["row"])

    @cached_property
    def runs(self) -> dict[str, ReportedRun]:
        """The runs by their names."""
        return {run.name: run for run in self.study.runs}

    @property
    def records(self) -> list[RunRecord]:
        return [run.record for run in self.study.runs]

    @property
    def points(self) -> list[tuple[str, StudyPoint]]:
        """Each point of the study with the name of its row."""
        return list(zip(self.frame.of_points, self.study.points, strict=True))

    @property
    def axes(self) -> str:
        """The names of the axes in which rows differ, as the heading of the column of rows."""
        return ", ".join(map(axis_name, self.study.varying_axes)) or "run"

    @cached_property
    def own_code(self) -> list[str]:
        """The names of the files of own code that its runs were made or scored with."""
        names = [Path(file).name for file in self.experiment.include]
        for record in self.records:
            names += [*record.own_code, *record.scored_with]
        return list(dict.fromkeys(names))

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that a run has, those of the main table first: held-out scores, the average,
        the paper's table.

        Then the other columns of the experiment, and everything else in the order of the records.
        """
        asked = self.experiment.columns
        order = [
            *(name for name in (*INTRINSIC, AVERAGE) if name in asked),
            *self.claimed,
            *self.paper_columns,
            *asked,
            *self.frame.numbers["metric"],
        ]
        known = set(self.frame.numbers["metric"])
        return [metric for metric in dict.fromkeys(order) if metric in known]

    @cached_property
    def main(self) -> list[str]:
        """The metrics of the main table: the experiment's columns, what claims are about, tasks.

        Beside the paper's columns there is room for the first scores on held-out text alone.
        """
        asked = self.experiment.columns
        if self.experiment.paper:
            first = {*INTRINSIC, AVERAGE}.intersection(asked)
            asked = [*self.paper_columns, *first]
        shown = {*asked, *self.claimed, *self.frame.tasks.values()} - {*probes()}
        return [metric for metric in self.metrics if metric in shown]

    @property
    def paper_columns(self) -> dict[str, str]:
        """The headings of the paper's columns by their metrics; empty without the paper's table."""
        paper = self.experiment.paper
        return dict(paper.columns) if paper else {}

    @cached_property
    def claimed(self) -> list[str]:
        return list(
            dict.fromkeys(metric for claim in self.experiment.claims for metric in claim.metrics)
        )

    @cached_property
    def drawn(self) -> list[str]:
        """The scores in percent that figures show first: those that count, on held-out text before
        tasks, and those that claims are about.
        """

        def place(metric: str) -> tuple[bool, bool, bool]:
            says_nothing = not counts(self.frame, metric)
            return says_nothing, metric in self.frame.tasks, metric not in self.claimed

        scores = [metric for metric in self.main if self.unit(metric) == "%"]
        return sorted(scores, key=place)

    @cached_property
    def by_probe(self) -> set[tuple[str, str]]:
        """The metrics and rows whose scores come from a linear probe, since the model has no head
        for them.
        """
        found = set[tuple[str, str]]()
        for row, point in self.points:
            scores = self.runs[point.run].record.scores if point.run in self.runs else {}
            found |= {(name, row) for name, score in scores.items() if score.by == LINEAR_PROBE}
        return {(name, row) for name, row in found if name not in probes()}

    @property
    def held_out(self) -> set[str | bytes]:
        """What tells the held-out texts of its runs apart, whatever they are called: the masked
        tokens of each document.
        """
        documents = self.frame.documents_of("mlm_accuracy")
        return {
            documents[run.name][0].tobytes() if run.name in documents else run.record.evaluation_set
            for run in self.study.runs
        }

    @cached_property
    def headings(self) -> Mapping[str, str]:
        """The headings of metrics; the others are called by their names."""
        named = {name: measure.label for name, measure in self.study.own_measures.items()}
        named |= dict(labels()) | {AVERAGE: "Avg"} | QUANTITIES
        named |= {column.task: column.title for run in self.study.runs for column in run.columns}
        named |= self.paper_columns
        named |= {loss_name(name): f"{label} loss" for name, label in named.items()}
        return named

    def unit(self, metric: str) -> str:
        """The unit of a metric, as frame.unit()."""
        return self.frame.unit(metric)

    def floor(self, metric: str) -> float:
        """What a score is where nothing is learnt: of a task from random weights, of others a
        constant answer; NaN if that was not measured.
        """
        of_rows: Any = self.summary.loc[metric]
        random = of_rows["mean"][of_rows.index.str.endswith(RANDOM)]
        return float((random if len(random) else of_rows["floor"]).mean())

    def heading(self, metric: str) -> str:
        if metric not in self.headings and metric in task_names():  # it was not run
            return load_task(metric).title
        return self.headings.get(metric, metric.replace("_", " "))


def analyse(study: Study, folder: Path | None = None) -> Analysis:
    """The analysis of a study, beside the other reports of its folder's parent; None: of the study
    alone.
    """
    return Analysis(study, frame(study, neighbours(folder, study) if folder else ()))


def read(folder: Path) -> Analysis:
    """The analysis of the study in a report's folder.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    return analyse(studies.read(folder), folder)


def summary(frame: Frame) -> pd.DataFrame:
    """A line a metric and row, in the order of the study; the index is (metric, row).

    Columns: mean, and sd over seeds (NaN for one); seeds, their number; low and high, the 95 %
    interval of the mean by seeds and documents (contrasts.py; NaN if no row has several seeds); n,
    floor, segments and words as in Frame.numbers; paper, the paper's cell as printed (text; empty
    without one); counts, whether the metric says something about pre-training here
    (contrasts.counts).
    """
    numbers: Any = frame.numbers
    lines = []
    for metric, column in numbers.groupby("metric", sort=False):
        says_something = counts(frame, metric)
        of_paper = frame.cells.get(PAPER + metric, {})
        for row, own in column.groupby("row", sort=False):
            interval = contrast(frame, metric, {row: 1.0})
            line = {
                "metric": metric,
                "row": row,
                "mean": own["value"].mean(),
                "sd": own["value"].std(),
                "seeds": len(own),
                "low": interval.low,
                "high": interval.high,
                "paper": of_paper.get(row, ""),
                "counts": says_something,
            }
            lines.append(line | own[["n", "floor", "segments", "words"]].mean().to_dict())
    return pd.DataFrame(lines, columns=pd.Index(["metric", "row", *SUMMARY])).set_index(
        ["metric", "row"]
    )


def compare_summaries(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Two summaries side by side, by metric and row: both means, and b minus a with its 95 %
    interval.
    """
    both: Any = a.merge(b, left_index=True, right_index=True, suffixes=("_a", "_b"))
    both["difference"] = both["mean_b"] - both["mean_a"]
    half = np.hypot(both["high_a"] - both["mean_a"], both["high_b"] - both["mean_b"])
    both["low"] = both["difference"] - half
    both["high"] = both["difference"] + half
    return both[["mean_a", "mean_b", "difference", "low", "high"]]
