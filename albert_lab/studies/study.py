"""The data of a report: what a plan has made, and its files: the experiment, its points, and its
runs.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from omegaconf import OmegaConf
from pydantic import Field, model_validator

from albert_lab import files, own_code
from albert_lab.config.section import Seed, default
from albert_lab.errors import ConfigError
from albert_lab.files import Name, Record, check_distinct
from albert_lab.measures.catalog import own_measures
from albert_lab.messages import Say
from albert_lab.runs import finetunings, reported, results
from albert_lab.runs.from_weights import layers_of
from albert_lab.runs.reported import REMEDY, ReportedRun
from albert_lab.storage import write_atomically
from albert_lab.studies.experiment import LAYERS_FIGURE, Experiment
from albert_lab.studies.experiment import read as read_experiment
from albert_lab.studies.plan import Plan, Point

EXPERIMENT = "experiment.yaml"
STUDY = "study.json"
TEXTS = ("report.md", "report.html", "results.csv")  # see report/report.py


class StudyPoint(Record, extra="ignore"):  # older files say more, here and below
    """A point that was asked for: values by axis as run here, labels by axis as in the paper, and
    what became of it.

    reason says why the run is missing, failed_tasks which of its fine-tunings are.
    """

    values: dict[str, str]
    labels: dict[str, str]
    seed: Annotated[int, Seed]
    run: Name
    reason: str = ""
    failed_tasks: str = ""
    scale: Name
    corpus: Name
    command: str


class OwnMeasure(Record):
    """How a measure of own code is shown, so that a report is read without that code."""

    label: str
    unit: str


class StudyFile(Record):
    """The content of study.json: what was asked for.

    first_seeds are those that the first command of the study asked for, so that seeds that were
    added when its results had been seen are known; question says which commands belong to the study
    (studies/plan.py). Both are null in older files.
    """

    points: tuple[StudyPoint, ...] = Field(min_length=1)
    first_seeds: tuple[int, ...] | None = None
    question: str | None = None
    own_measures: dict[str, OwnMeasure] = default({})


class Study(StudyFile):
    """An experiment with the points that were asked for, and its finished runs."""

    experiment: Experiment
    runs: tuple[ReportedRun, ...]

    @model_validator(mode="after")
    def _has_one_table(self) -> "Study":
        axes = {*self.axes}
        check_distinct([f"{point.labels}, seed={point.seed}" for point in self.points])
        of_runs = {run.name: (run.seed, run.record.config.scale.name) for run in self.runs}
        for point in self.points:
            asked = point.seed, point.scale
            if not {*self.experiment.axes} <= axes == {*point.labels} == {*point.values}:
                raise ValueError(f"the point of {point.run} has other axes than the table")
            if of_runs.get(point.run, asked) != asked:
                raise ValueError(f"{point.run} has not seed={point.seed} scale={point.scale}")
        return self

    @property
    def late_seeds(self) -> list[int]:
        """The seeds that later commands added; none are known of older files."""
        if self.first_seeds is None:
            return []
        return sorted({run.seed for run in self.runs} - {*self.first_seeds})

    @property
    def axes(self) -> list[str]:
        """The axes of its table: the experiment's, then those that the command line added."""
        return [*self.points[0].labels]

    @property
    def varying_axes(self) -> list[str]:
        """Those in which rows differ, here or in the experiment's table; all, if there are none."""

        def varies(axis: str) -> bool:
            labels = {point.labels[axis] for point in self.points}
            return len(labels.union(self.experiment.grid.get(axis, ()))) > 1

        return list(filter(varies, self.axes)) or self.axes

    @property
    def is_of_encoder(self) -> bool:
        """Whether its rows are not trained from nothing, but start from a trained encoder that is
        named.
        """
        return isinstance(self.experiment.start_from, str)

    @property
    def scale(self) -> str:
        return self.points[0].scale

    @property
    def corpus(self) -> str:
        return self.points[0].corpus


def renamed_if_taken(plan: Plan, say: Say) -> Plan:
    """A plan whose report replaces no report of another question: it then has the question in its
    name, which is said.

    A damaged report is written anew.
    """
    with suppress(ConfigError):  # there is no report yet, or a damaged one
        if read_points(plan.report_folder).question not in (None, plan.question):
            renamed = replace(plan, name=f"{plan.name}-{plan.question}")
            say(
                f"{plan.report_folder} is of other settings, another text or file; the report here "
                f"is {renamed.name}"
            )
            return renamed
    return plan


def check_free(folder: Path, names: Iterable[str]) -> None:
    """Raises ConfigError if files of these names in the folder of a report are of the user, since
    no report is there.
    """
    if _is_report(folder):
        return
    for name in (STUDY, *names):
        if (folder / name).exists():
            raise ConfigError(
                f"{folder} is no report, and its {name} would be overwritten: move it"
            )


def _is_report(folder: Path) -> bool:
    """Whether the study.json of a folder is a study's, as it is, even damaged, beside an
    experiment.yaml.
    """
    if (folder / EXPERIMENT).exists():
        return (folder / STUDY).exists()
    try:
        read_points(folder)
    except ConfigError:
        return False
    return True


def begin(plan: Plan) -> None:
    """Note the rows of a plan in the folder of its report, unless a report is there: its runs are
    known by them.
    """
    if not (plan.report_folder / EXPERIMENT).exists():
        points = tuple(_point(item, {}, "") for item in plan.points)
        _write_file(
            plan.report_folder,
            StudyFile(points=points, first_seeds=_first_seeds(plan), question=plan.question),
        )


def write(folder: Path, study: Study) -> None:
    """Write a study into a folder: experiment.yaml, study.json, and one file per run in runs/."""
    for run in study.runs:
        reported.write(folder, run)
    content = study.experiment.model_dump(mode="json", exclude={"name"})
    write_atomically(folder / EXPERIMENT, OmegaConf.to_yaml(OmegaConf.create(content)))
    _write_file(folder, study)


def _write_file(folder: Path, content: StudyFile) -> None:
    text = content.model_dump_json(indent=1, exclude={"experiment", "runs"})
    write_atomically(folder / STUDY, text + "\n")


def records(folder: Path) -> list[Path]:
    """The files that write() wrote into a folder, as study.json says; other files there belong to
    someone else.
    """
    names = dict.fromkeys(point.run for point in read_points(folder).points)
    runs = [file for name in names if (file := reported.file_of(folder, name)).is_file()]
    return [*runs, folder / STUDY, folder / EXPERIMENT]


def read(folder: Path) -> Study:
    """The study in a report's folder, its runs in the order of its points; ConfigError if a file
    cannot be read.
    """
    content = read_points(folder)
    if not (folder / EXPERIMENT).exists():
        raise ConfigError(f"{folder} has no report yet: the command of its study makes one")
    done = dict.fromkeys(point.run for point in content.points if not point.reason)
    parts = {
        **dict(content),
        "experiment": read_experiment(folder / EXPERIMENT),
        "runs": [reported.read(folder, name) for name in done],
    }
    return files.check(folder / STUDY, parts, Study, REMEDY)


def read_points(folder: Path) -> StudyFile:
    """What was asked for in a report's folder; ConfigError as in read()."""
    if not (folder / STUDY).exists():
        raise ConfigError(
            f"{folder} is no report, for it has no {STUDY}: give the folder that a command printed "
            "as its report, or run that command again"
        )
    return files.read_json(folder / STUDY, StudyFile, REMEDY)


def places_of_runs(reports: Path) -> dict[str, tuple[str, str]]:
    """The report of each run, and its row and seed there, by the run's name.

    Damaged reports below the folder are left out, and so are those without axes, as of `pretrain`.
    """
    places = {}
    for file in reports.glob(f"*/*/{STUDY}"):
        with suppress(ConfigError):
            for point in read_points(file.parent).points:
                if point.labels:
                    row = " ".join(map("=".join, point.labels.items()))
                    report = str(file.parent.relative_to(reports))
                    places[point.run] = (report, f"{row} seed {point.seed}")
    return places


def collect(plan: Plan, failures: Mapping[str, str], command: str, say: Say) -> Study:
    """The points of a plan, and its finished runs with their fine-tunings.

    Args:
        failures: the reasons of runs that failed, by name.

    Raises: see runs.from_weights.layers_of().
    """
    experiment = plan.experiment
    # by --include
    further = own_code.included().keys() - {Path(file).name for file in experiment.include}
    experiment = experiment.model_copy(
        update={"include": (*experiment.include, *sorted(further)), "is_record": True}
    )
    collected = []
    for item in {item.run.name: item for item in plan.points}.values():
        folder = item.run.folder
        record = results.read(folder, item.run.name)
        if record:
            columns = finetunings.filled_columns(item.finetunings)
            layers = layers_of(folder, say) if LAYERS_FIGURE in experiment.figures else ()
            collected.append(
                ReportedRun(
                    record=record, columns=columns, curve=reported.curve(folder), layers=layers
                )
            )
    own = {
        measure.name: OwnMeasure(label=measure.label, unit=measure.unit)
        for measure in own_measures()
    }
    return Study(
        experiment=experiment,
        points=tuple(_point(item, failures, command) for item in plan.points),
        runs=tuple(collected),
        first_seeds=_first_seeds(plan),
        question=plan.question,
        own_measures=own,
    )


def _first_seeds(plan: Plan) -> tuple[int, ...] | None:
    """The seeds that the first command of this study asked for, which other commands may have added
    to: those in its report (None in older ones), else those of the plan.
    """
    with suppress(ConfigError):  # there is no report yet, or a damaged one, which is written anew
        return read_points(plan.report_folder).first_seeds
    return tuple(sorted({point.config.seed for point in plan.points}))


def _point(item: Point, failures: Mapping[str, str], command: str) -> StudyPoint:
    is_done = item.pretraining == "done"
    reasons = {missing.name: "not trained" for missing in item.missing}
    reasons |= finetunings.failures(item.missing)
    return StudyPoint(
        values=item.values,
        labels=item.labels,
        seed=item.config.seed,
        run=item.run.name,
        reason="" if is_done else _reason(item, failures),
        failed_tasks="; ".join(map(": ".join, reasons.items())) if is_done else "",
        scale=item.config.scale.name,
        corpus=item.config.corpus.name,
        command=command,
    )


def _reason(item: Point, failures: Mapping[str, str]) -> str:
    """Why a run is not done: the first failure of those that it starts from and itself, or its
    state.
    """
    for above in item.lineage:
        name = above.run.name
        if name in failures:
            return f"{name}: {failures[name]}"
    return f"not finished: {item.pretraining}".removesuffix(": missing")
