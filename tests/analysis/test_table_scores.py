import numpy as np
import pytest
from planted import analysed
from records import scored, toy_run

from albert_lab.analysis.table_scores import (
    AVERAGE_LEARNT,
    AVERAGE_LIKELIHOOD,
    MLM_LIKELIHOOD,
    OVER_SEGMENTS,
    TableScores,
)
from albert_lab.answers import Answers, pack
from albert_lab.report.verdicts import tasks_at_floor
from albert_lab.runs.reported import AVERAGE, AVERAGED, ReportedRun
from albert_lab.score import Score
from albert_lab.studies import experiment
from albert_lab.studies.table import Row

FLOORS: dict[str, float] = dict(zip(AVERAGED, (3.0, 50.0, 37.0, 50.0, 25.0), strict=True))


def rows(*of_rows: dict[str, float], n: int = 1_000) -> list[Row]:
    """Rows of three seeds whose tasks are so far above their floor, in points."""
    results = []
    for place, above in enumerate(of_rows):
        runs = []
        for seed in range(3):
            numbers: dict[str, float | Score] = {"mlm_loss": 4.0 + place}
            values = {task: floor + above[task] + 0.1 * (seed - 1) for task, floor in FLOORS.items()}
            for task, value in values.items():
                numbers |= {
                    task: scored(value, FLOORS[task], n, low=value - 3, high=value + 3),
                    f"{task}_loss": 0.5 + place,
                }
            runs.append(toy_run(f"{place}-{seed}", seed, numbers | {AVERAGE: sum(values.values()) / 5}))
        results.append(Row({"row": str(place)}, {}, runs, {}))
    return results


def without(run: ReportedRun, name: str) -> ReportedRun:
    numbers = run.numbers | run.scores
    return toy_run(run.name, run.seed, {key: value for key, value in numbers.items() if key != name})


ALL: dict[str, float] = dict.fromkeys(map(str, AVERAGED), 20.0)
NONE: dict[str, float] = dict.fromkeys(map(str, AVERAGED), 0.0)


def test_a_row_whose_interval_reaches_down_to_constant_answers_is_at_the_floor():
    table = rows(ALL, NONE, NONE | {"sst2": 1.0}, NONE | {"sst2": 6.0})
    here = TableScores(table)
    assert [here.is_at_floor(row, "sst2") for row in table] == [False, True, True, False]
    assert here.at_floor("race") == table[1:]


def test_the_interval_includes_answers_and_is_wider_with_fewer():
    above = NONE | {"sst2": 6.0}
    assert not TableScores(few := rows(above, ALL)).is_at_floor(few[0], "sst2")
    assert TableScores(few := rows(above, ALL, n=100)).is_at_floor(few[0], "sst2")


def test_for_a_single_seed_the_interval_of_its_answers_decides():
    table = rows(NONE | {"sst2": 2.0, "race": 4.0})
    table = [Row(table[0].labels, {}, table[0].runs[:1], {})]
    here = TableScores(table)
    assert here.is_at_floor(table[0], "sst2")
    assert not here.is_at_floor(table[0], "race")


def test_a_column_without_a_floor_is_never_at_the_floor():
    table = rows(ALL)
    assert not TableScores(table).is_at_floor(table[0], "mlm_loss")
    assert TableScores(table).floor(table[0], AVERAGE) == pytest.approx(33.0)


def test_the_second_average_leaves_out_tasks_that_no_row_has_learnt():
    table = rows(ALL | {"squad2": 0.0}, ALL | {"squad2": 0.0, "race": 0.0})
    here = TableScores(table)
    assert here.unlearnt_tasks == ("squad2",)
    learnt = sum(FLOORS[task] + 20 for task in AVERAGED if task != "squad2") / 4
    assert list(here.sample(table[0], AVERAGE_LEARNT).values()) == pytest.approx([learnt - 0.1, learnt, learnt + 0.1])
    text = tasks_at_floor(analysed(experiment.named("sharing"), table))
    assert text.endswith("constant answers: `squad2` in every row; `race` in row = 1")
    assert tasks_at_floor(analysed(experiment.named("sharing"), rows(ALL))) == ""


def test_a_likelihood_is_minus_a_loss_and_the_averages_needs_every_task():
    table = rows(ALL)
    here = TableScores(table)
    assert set(here.sample(table[0], MLM_LIKELIHOOD).values()) == {-4.0}
    assert set(here.sample(table[0], AVERAGE_LIKELIHOOD).values()) == {-0.5}
    table[0].runs[:] = [without(run, "race_loss") for run in table[0].runs]
    assert TableScores(table).sample(table[0], AVERAGE_LIKELIHOOD) == {}


def test_rows_with_the_same_runs_count_once():
    first, second = rows(ALL, ALL | {"sst2": 25.0})
    twice = Row({"row": "2"}, {}, first.runs, {})
    pair = [(1.0, first), (-1.0, second)]
    expected = TableScores([first, second]).estimate(pair, "sst2")
    assert TableScores([first, second, twice]).estimate(pair, "sst2") == expected


def held_out_row(label: str, right: np.ndarray, floor: np.ndarray) -> Row:
    """A row of runs, one per line of `right`, that answered the SOP pairs so."""
    runs = []
    for seed, answers in enumerate(right):
        kept = Answers(pairs="sop_accuracy", right=pack(answers), floor=pack(floor))
        value, n = 100 * float(answers.mean()), len(answers)
        score = Score(value=value, n=n, low=value - 1, high=value + 1, floor=50, by="head")
        score = score.model_copy(update={"segments_floor": 100 * float(floor.mean())})
        record = toy_run(f"{label}_seed{seed}", seed, {"sop_accuracy": score}).record
        runs.append(ReportedRun(record=record.model_copy(update={"answers": {"sop_accuracy": kept}})))
    return Row({"loss": label}, {"loss": label}, runs, {})


def test_a_difference_of_rows_on_held_out_pairs_carries_the_noise_of_the_pairs():
    rng = np.random.default_rng(0)
    # Every seed of a row answers alike, so that seeds alone show no error at all.
    one, other = rng.random(400) < 0.7, rng.random(400) < 0.6
    rows = [held_out_row(label, np.stack([right] * 3), one) for label, right in (("a", one), ("b", other))]
    estimate = TableScores(rows).estimate([(1.0, rows[0]), (-1.0, rows[1])], "sop_accuracy")
    assert estimate.interval is not None
    half = (estimate.interval[1] - estimate.interval[0]) / 2
    error = 100 * np.std(one.astype(float) - other, ddof=1) / 20
    assert half == pytest.approx(1.96 * error, rel=0.1)


def test_the_gain_over_each_segment_by_itself_is_paired_pair_by_pair():
    floor = np.random.default_rng(0).random(900) < 0.6
    better = floor.copy()
    better[np.flatnonzero(~floor)[:30]] = True  # right in 30 further pairs, wrong in none
    row = held_out_row("a", np.stack([better] * 3), floor)
    estimate = TableScores([row]).estimate([(1.0, row)], f"sop_accuracy{OVER_SEGMENTS}")
    assert estimate.value == pytest.approx(100 * 30 / 900)
    assert estimate.interval is not None
    assert estimate.interval[0] > 2, "unpaired, it would reach below 0"


def test_the_coherence_of_a_row_is_compared_with_that_of_each_segment_by_itself_pair_by_pair():
    rng = np.random.default_rng(0)
    right = {name: rng.random(900) < 0.6 for name in ("sop_accuracy", "sop_across_documents")}
    value = 100 * float(right["sop_accuracy"].mean() - right["sop_across_documents"].mean())
    runs = []
    for seed in range(3):
        score = Score(value=value, n=900, low=-1, high=1, floor=0, by="head", segments_floor=value)
        record = toy_run(f"a_seed{seed}", seed, {"coherence": score}).record
        # The floor answers as the row does: it has the same coherence, and the difference no error.
        answers = {name: Answers(pairs=name, right=pack(item), floor=pack(item)) for name, item in right.items()}
        runs.append(ReportedRun(record=record.model_copy(update={"answers": answers})))
    row = Row({"loss": "a"}, {"loss": "a"}, runs, {})
    scores = TableScores([row])
    low, high = scores.estimate([(1.0, row)], "coherence").interval or (value, value)
    assert low < value < high
    assert scores.estimate([(1.0, row)], f"coherence{OVER_SEGMENTS}").example_error == 0
