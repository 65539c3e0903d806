"""The analysis of a study: everything that a report says of it, as values. Each is computed once, when it is needed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from albert_lab.analysis import agreement, alarms, decisions, learnt
from albert_lab.analysis.agreement import Agreement, Comparison
from albert_lab.analysis.alarms import RowAlarm, TaskAlarm
from albert_lab.analysis.decisions import Verdict
from albert_lab.analysis.learnt import Learnt
from albert_lab.analysis.statistics import Components, components
from albert_lab.analysis.table_scores import TableScores
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study
from albert_lab.studies.table import Column, Row, RowNames, intrinsic_columns, task_columns


@dataclass(frozen=True)
class TaskAtFloor:
    """A task of the average that rows have not learnt: these rows, of all that have the task."""

    task: str
    rows: tuple[Row, ...]
    of: int


@dataclass(frozen=True)
class Sources:
    """The spread of a claimed score of one row by its sources: pre-training and fine-tuning."""

    task: str
    row: Row
    spread: Components


@dataclass(frozen=True)
class Analysis:
    """A study and the rows of its table, with all that follows from them. Frozen; nothing in it is text."""

    study: Study
    rows: Sequence[Row]

    @property
    def experiment(self) -> Experiment:
        return self.study.experiment

    @property
    def axes(self) -> list[str]:
        return self.study.axes

    @cached_property
    def finished(self) -> list[ReportedRun]:
        return list({run.name: run for row in self.rows for run in row.runs}.values())

    @cached_property
    def names(self) -> RowNames:
        """The names of its rows in sentences."""
        return RowNames(self.experiment, self.rows)

    @cached_property
    def held_out(self) -> list[Column]:
        """The columns of the scores on held-out documents."""
        return intrinsic_columns(self.experiment)

    @cached_property
    def tasks(self) -> list[Column]:
        """The columns of the scores after fine-tuning; empty if nothing was fine-tuned."""
        return task_columns(self.experiment, self.rows)

    @cached_property
    def scores(self) -> TableScores:
        """The columns of the table as samples over seeds."""
        return TableScores(self.rows)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return decisions.decide(self.experiment, self.scores)

    @cached_property
    def companions(self) -> list[Verdict]:
        """The verdicts by measures that are not the paper's."""
        return decisions.companions(self.experiment, self.scores)

    @cached_property
    def comparisons(self) -> dict[Comparison, Agreement]:
        return agreement.comparisons(self.experiment, self.scores)

    @property
    def agreement(self) -> Agreement:
        return agreement.total([self.comparisons])

    @property
    def left_out(self) -> Counter[str]:
        """The pairs of rows that its agreement leaves out, counted by the reason."""
        return agreement.left_out(self.experiment, self.scores)

    @cached_property
    def row_alarms(self) -> list[RowAlarm]:
        return alarms.held_out(self.rows)

    @cached_property
    def task_alarms(self) -> list[TaskAlarm]:
        return alarms.of_tasks(self.tasks, self.rows)

    @cached_property
    def learnt(self) -> list[Learnt]:
        """What each row learnt of the two sentence tasks."""
        return learnt.learnt(self.held_out, self.scores)

    @cached_property
    def tasks_at_floor(self) -> list[TaskAtFloor]:
        """The tasks of the average that some rows have not learnt."""
        at_floor = []
        for task in self.scores.tasks:
            if low := self.scores.at_floor(task):
                having = [row for row in self.rows if self.scores.sample(row, task)]
                at_floor.append(TaskAtFloor(task, tuple(low), len(having)))
        return at_floor

    @cached_property
    def sources(self) -> list[Sources]:
        """The sources of the spread of each claimed task, if any run was fine-tuned on it with several seeds."""
        metrics = {claim.metric for claim in self.experiment.claims}
        if not any(len(column.finetunings) > 1 for run in self.finished for column in run.columns):
            return []
        spreads = []
        for column, task in self.scores.columns.items():
            for row in self.rows if column in metrics else ():
                tuned = [filled for run in row.runs for filled in run.columns if filled.column == column]
                spread = components([[record.best.main.value for record in filled.finetunings] for filled in tuned])
                if spread.pretraining is not None or spread.finetuning is not None:
                    spreads.append(Sources(task, row, spread))
        return spreads


def analyse(study: Study) -> Analysis:
    """The analysis of a study."""
    return Analysis(study, study.rows)
