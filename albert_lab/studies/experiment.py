"""Experiments: a grid of runs with the paper's numbers for it, read from a YAML file or given as a
sweep.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from albert_lab import own_code, paths
from albert_lab.config.compose import axes, groups, load
from albert_lab.config.schema import Keep
from albert_lab.config.section import DistinctSeeds, default
from albert_lab.errors import ConfigError
from albert_lab.files import (
    Distinct,
    Name,
    Record,
    check,
    check_distinct,
    check_known,
    read_yaml,
)
from albert_lab.measures.catalog import labels
from albert_lab.runs import results
from albert_lab.runs.reported import AVERAGE, AVERAGED
from albert_lab.score import loss_name
from albert_lab.studies.claims import Claim, Labels, number_in
from albert_lab.tasks.task import COLUMNS, task_names
from albert_lab.training.layers import LAYER_NUMBERS

Texts = tuple[str, ...]
# The columns on held-out text of an experiment that names none.
INTRINSIC = ("mlm_accuracy", "nsp_accuracy", "sop_accuracy")
# This figure needs measurements of the layers of runs.
LAYERS_FIGURE = "layer-similarity"
ONE_MODEL = "pretrain"
# Those of figures/figures.py.
FigureName = Literal["learning-curves", "scores-by-setting", "sharing-tradeoff", "layer-similarity"]


class PaperTable(Record):
    """The cells of the paper: each row has the value of every axis and the cells exactly as printed
    (text).
    """

    table: str
    columns: dict[str, str]
    rows: tuple[dict[str, str], ...]


class PaperCurve(Record):
    """A curve of a figure as read off the plot: the points that could be read, and the range of the
    rest.

    row names our row that it corresponds to; panel names the plotted quantity by our column.
    """

    panel: str
    row: str
    points: tuple[tuple[float, float], ...]
    between: tuple[float, float] | None = None


class PaperFigure(Record):
    """A figure of the paper, read off approximately; x is the quantity on its horizontal axis.

    numbers has what the figure shows of our columns by row, in their units: the size of the effects
    that claims are about where the paper prints no number.
    """

    figure: str
    x: str
    curves: tuple[PaperCurve, ...]
    numbers: dict[str, dict[str, float]] = Field(default={})


# The replacement of a value of the paper: one override's value for the axis, or overrides of
# several keys.
Choice = str | Texts


def _choices(values: Any) -> Any:
    """A list of values as choices by label: each label is its own value."""
    if isinstance(values, dict):
        check_distinct([str(label).strip() for label in values])
    if not isinstance(values, list | tuple):
        return values
    labels = ["null" if value is None else str(value) for value in values]
    check_distinct(labels)
    return dict(zip(labels, labels, strict=True))


Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Values = Annotated[dict[Label, Choice], BeforeValidator(_choices), Field(min_length=1)]


class BeyondPaper(Record):
    """Values of an axis that the paper does not print: rows at some scales, at others on
    request.
    """

    values: Values
    scales: Texts


class Link(Record):
    """Rows that start from another run, their parent, and what they keep of it; of two for a row,
    the first counts.

    Rows are selected by labels of axes, the parent by the labels that differ. A parent that also
    sets a key that is no axis is a trunk: it is no row of the table and has no parent.
    """

    row: Labels
    parent: Labels
    keep: Keep


OF_CLAIM = re.compile(r"\{(.+?)\}")  # in the text of an answer


class Answer(Record):
    """The sentence that answers the question of a table if these claims, named by their `short`,
    are decided so. The name of one of them in braces becomes the number that decides it.
    """

    say: str = Field(min_length=1)
    holds: Texts = ()
    fails: Texts = ()


class Experiment(Record):
    """One table of the paper or of a user: fixed settings, varied settings and columns.

    An axis of the grid maps the paper's value to the override that replaces it here, or to a list
    of overrides of several keys; if value and override are the same, the axis is a plain list.
    finetuning_seeds replace those that each task has for the scale. Of answers, the first whose
    claims are decided so is the answer. start_from has links between rows, or names an existing run
    from whose weights every row starts. include has files of own code, by their paths from the
    folder of the experiment file.
    """

    name: Name
    title: str = Field(min_length=1)
    source: str
    fixed: Texts = ()
    grid: dict[str, Values]
    beyond_paper: dict[str, BeyondPaper] = Field(default={})
    start_from: str | tuple[Link, ...] = ()
    columns: Annotated[Texts, Distinct] = (*INTRINSIC, *AVERAGED, AVERAGE)
    paper: PaperTable | None = None
    finetuning_seeds: DistinctSeeds | None = None
    claims: tuple[Claim, ...] = ()
    answers: tuple[Answer, ...] = ()
    figures: Annotated[tuple[FigureName, ...], Distinct] = ("learning-curves",)
    paper_figure: PaperFigure | None = None
    notes: Texts = ()
    include: Texts = default(())
    is_record: bool = default(False)

    @model_validator(mode="after")
    def _keys_and_names_fit(self) -> "Experiment":
        known = {axis: self.choices(axis) for axis in self.grid}
        check_distinct([*self.grid, *map(key_of, self.fixed)])
        for axis in self.grid:
            if axis in (*COLUMNS, *scores()):
                raise ValueError(
                    f"grid: {axis} names a column or a score of the tables: name the axis otherwise"
                )
        for column in self.columns:
            check_known("columns", column, [*scores(), *self.unchecked_columns])
        for axis in self.beyond_paper:
            check_known("beyond_paper", axis, self.grid)
        rows = [("start_from.row", link.row) for link in self.links]
        for row in self.paper.rows if self.paper else ():
            rows.append(("paper.rows", {axis: row.get(axis, "") for axis in self.grid}))
        for place, row in rows:
            for axis, label in row.items():
                check_known(place, axis, known)
                check_known(f"{place}: {axis}", label, known[axis])
        return self

    @model_validator(mode="after")
    def _claims_fit(self) -> "Experiment":
        grid = {axis: self.grid[axis] for axis in self.axes}
        text = {*labels(), *self.unchecked_columns}
        paper = self.paper.columns if self.paper else ()
        metrics = {
            *text,
            *map(loss_name, text),
            *scores(),
            *results.NUMBERS,
            *LAYER_NUMBERS,
            *paper,
        }
        for number, claim in enumerate(self.claims, 1):
            try:
                claim.fit(grid, metrics)
            except ValueError as error:
                raise ValueError(f"claim {number} ({claim.check}): {error}") from error
        self._check_scales_and_settings()
        shorts = [claim.short for claim in self.claims if claim.short]
        check_distinct(shorts)
        for answer in self.answers:
            for short in (*answer.holds, *answer.fails):
                check_known("answers", short, shorts)
            for short in OF_CLAIM.findall(answer.say):
                check_known("answers: say", short, [*answer.holds, *answer.fails])
        return self

    def _check_scales_and_settings(self) -> None:
        """Check the names that are used after the training; ValueError for one that is unknown."""
        if self.is_record:  # its own options may not be at hand
            return
        scales = [claim.at_scale for claim in self.claims if claim.at_scale]
        for beyond in self.beyond_paper.values():
            scales += beyond.scales
        for scale in scales:
            check_known("scale", scale, groups()["scale"])
        for key in chain.from_iterable(claim.needs for claim in self.claims):
            if number_in(str(load().value(key))) is None:
                raise ValueError(f"needs: {key} is no setting with a number")

    @property
    def links(self) -> tuple[Link, ...]:
        """The rows that start from other runs of the study."""
        return () if isinstance(self.start_from, str) else self.start_from

    @property
    def unchecked_columns(self) -> tuple[str, ...]:
        """Its columns, if it is the record of a study or lacks its own code, so that own measures
        and tasks are not known here; else none.
        """
        is_whole = {Path(file).name for file in self.include} <= own_code.included().keys()
        return () if is_whole and not self.is_record else self.columns

    def choices(self, axis: str, scale: str | None = None) -> dict[str, Choice]:
        """The choices of an axis by label, also beyond the paper; those that have rows at a scale
        unless others are asked for.
        """
        beyond = self.beyond_paper.get(axis)
        if beyond and (scale is None or scale in beyond.scales):
            return self.grid[axis] | beyond.values
        return self.grid[axis]

    @property
    def is_of_paper(self) -> bool:
        """Whether its claims are sentences of the paper: it has the paper's table or figure, and
        each its section.
        """
        return (self.paper or self.paper_figure) is not None and all(
            claim.section for claim in self.claims
        )

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that make the rows of the table; seeds are averaged over."""
        return tuple(axis for axis in self.grid if axis != "seed")


def read(file: Path, *, with_code: bool = False) -> Experiment:
    """An experiment from a YAML file, such as one that a user wrote, or a record.

    Args:
        with_code: execute the files of own code that it includes.

    Raises:
        ConfigError: a missing file, invalid YAML or invalid keys, or own code that fails; names the
            file and the key.
    """
    content = read_yaml(file)
    included = content.get("include") if with_code else None
    # of another form it is refused below
    for own in included if isinstance(included, list) else ():
        own_code.include(file.parent / str(own))
    return check(file, {"name": file.stem} | _as_text(content, file), Experiment)


def _as_text(value: Any, file: Path) -> Any:
    """Every value as text: cells of the paper and labels of axes are printed as they were written,
    1 is not true.
    """
    if isinstance(value, dict):
        texts = {str(key): _as_text(item, file) for key, item in value.items()}
        if len(texts) < len(value):
            raise ConfigError(f"{file}: two of {[*value]} are the same text: name one otherwise")
        return texts
    if isinstance(value, list):
        return [_as_text(item, file) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None else str(value)


def key_of(override: str) -> str:
    return override.partition("=")[0].lstrip("+")


def scores() -> tuple[str, ...]:
    """The columns of scores: the measures on held-out text and their probes, tasks, their
    average.
    """
    return (*labels(), *task_names(), AVERAGE)


def files() -> list[Path]:
    """The experiment files that come with the package; each is a sub-command."""
    return sorted(paths.EXPERIMENTS.glob("*.yaml"), key=lambda file: file.stem)


@cache
def named(name: str) -> Experiment:
    """An experiment of the package."""
    return read(paths.EXPERIMENTS / f"{name}.yaml")


def from_overrides(
    overrides: Sequence[str], *, is_one: bool = False
) -> tuple[Experiment, list[str]]:
    """The experiment of a bare sweep, or of one model, and the overrides of its runs.

    It is scored on held-out text; its figure has the scores along numbers that are swept. The seed
    of one model is that of conf/config.yaml unless given, not those of the scale.

    Raises:
        ConfigError: an invalid override; or several values for one model.
    """
    given = axes(overrides)
    several = [key for key, values in given.items() if len(values) > 1]
    if is_one and several:
        key = several[0]
        raise ConfigError(
            f"{key}={','.join(given[key])}: pretrain trains one model, `albert-lab sweep` several"
        )
    swept = [key for key in several if key != "seed"]
    content = {
        "name": "-".join(["sweep", *swept]),
        "title": f"What changes with {' and '.join(swept) or 'the seed'}?",
        "source": "own sweep",
        "grid": {},  # the axes are those of the overrides
        "columns": INTRINSIC,
        "figures": ["scores-by-setting", "learning-curves"],
    }
    of_runs = [*overrides]
    if is_one:
        content |= {"name": ONE_MODEL, "title": "One model", "source": "own model"}
        if "seed" not in given:
            of_runs.append(f"seed={load().seed}")
    return check(Path(str(content["name"])), content, Experiment), of_runs
