import statistics
from dataclasses import replace
from decimal import Decimal

import pytest
from planted import analysed
from records import scored, toy_column, toy_finetuning, toy_run

from albert_lab.report.markdown import scores_table
from albert_lab.runs.reported import AVERAGED
from albert_lab.studies import experiment
from albert_lab.studies.table import Column, Row, axis_labels, half_up, task_columns, told_apart

ROWS = [
    (file.stem, row)
    for file in experiment.files()
    if (paper := experiment.read(file).paper) and "average" in paper.columns
    for row in paper.rows
    if "average" in row
]


def average_as_printed(cells: dict[str, str]) -> str:
    """The mean of the paper's five task cells as it prints them: SQuAD as the mean of F1 and EM, rounded half up."""
    means = [statistics.mean(Decimal(part) for part in cells[task].split("/")) for task in AVERAGED]
    return str(half_up(statistics.mean(means)))


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_the_papers_average_is_recomputed_from_its_cells(name, row):
    assert {*AVERAGED} <= row.keys()
    assert average_as_printed(row) == row["average"]


def test_a_score_of_one_run_alone_has_the_interval_of_that_run():
    runs = [toy_run("one", 0, {}), toy_run("other", 1, {"race": scored(40.0, low=37.0, high=43.0)})]
    row = Row({"inter_sentence": "sop"}, {"inter_sentence": "sop"}, runs, {})
    text = scores_table(analysed(experiment.named("sop-vs-nsp"), [row]), [Column("race", "RACE", "race")])
    assert " 40.0 [37.0, 43.0] |" in text


def test_the_average_comes_before_its_tasks():
    run = toy_run("run", 0, {}, (toy_column("race", toy_finetuning("run", "race", 40.0)),))
    assert [column.heading for column in task_columns(experiment.named("sharing"), [Row({}, {}, [run], {})])] == [
        "Avg",
        "RACE",
    ]


def test_rows_of_one_shape_are_named_by_the_settings_in_which_they_differ():
    asked = experiment.named("layer-similarity")

    def row(label: str, **settings: object) -> Row:
        run = toy_run(label, 0, {})
        config = run.record.config.model_copy(update=settings)
        record = run.record.model_copy(update={"config": config})
        return Row({"model": label}, {"model": "compact"}, [replace(run, record=record)], {})

    rows = [row("ALBERT-large", embedding_size=16), row("BERT-large", embedding_size=96)]
    labels = [axis_labels(asked, found, ["model"]) for found in told_apart(asked, rows)]
    assert labels == [["compact, E = 16 (paper: ALBERT-large)"], ["compact, E = 96 (paper: BERT-large)"]]
    assert told_apart(asked, rows[:1]) == rows[:1]
    other = [rows[0], replace(rows[1], values={"model": "compact-large"})]
    assert told_apart(asked, other) == other
