import math

import pytest

from albert_lab.errors import ConfigError
from albert_lab.studies import experiment
from albert_lab.studies.claims import Comparison
from albert_lab.studies.experiment import Experiment

GRID = {"sharing": ["all-shared", "not-shared"], "embedding_size": [768, 64, 128]}
ROW = "{sharing: all-shared, embedding_size: 64}"
OTHER = "{sharing: all-shared, embedding_size: 128}"
GREATER = f"check: greater, row: {ROW}, than: {OTHER}"


def read(tmp_path, claim: str) -> Experiment:
    file = tmp_path / "mine.yaml"
    claim = claim if claim.startswith("{") else f"{{quote: q, metric: average, {claim}}}"
    file.write_text(f"title: Mine\nsource: none\ngrid: {GRID}\nclaims: [{claim}]\n")
    return experiment.read(file)


def comparisons(tmp_path, claim: str) -> list[Comparison]:
    asked = read(tmp_path, claim)
    return asked.claims[0].comparisons(asked.grid)


@pytest.mark.parametrize(
    ("claim", "named"),
    [
        (f"{{quote: q, metric: averge, {GREATER}}}", "average"),
        (GREATER.replace("all-shared", "unshared"), "unshared"),
        (GREATER.replace(", embedding_size: 64", "", 1), "embedding_size"),
        (GREATER.replace("greater", "grater"), "grater"),
        (f"check: greater, row: [{ROW}, {OTHER}], than: {ROW}", "two rows"),
        ("check: ordered, axis: embedding_size, peak: 99, where: {sharing: all-shared}", "99"),
        ("check: ordered, axis: embedding_size, peak: 64", "sharing"),
        (
            "check: ordered, axis: embedding_size, direction: upwards, where: {sharing: "
            "all-shared}",
            "direction",
        ),
        (
            "check: ordered, axis: sharing, direction: rising, where: {embedding_size: 64}",
            "axis=sharing",
        ),
        (
            "check: ordered, axis: embedding_size, direction: rising, where: {sharing: "
            "all-shared, embedding_size: 64}",
            "other axes",
        ),
        (f"check: ordered, order: [{ROW}, {OTHER}, {ROW}]", "given twice"),
        (f"check: ordered, order: [{ROW}], axis: embedding_size, direction: rising", "two rows"),
        (f"check: ratio, row: {ROW}, to: {OTHER}, low: 2, high: 1", "low=2"),
        (f"check: within, row: {ROW}, of: {OTHER}, margin: 0", "margin"),
        (f"check: within, row: {ROW}, of: {ROW}, margin: 1", "itself"),
        (f"check: at-chance, row: {ROW}, trained_for: mln", "trained_for=mln"),
        (f"check: better, row: {ROW}, than: {OTHER}", "needs by"),
        (f"{{quote: q, {GREATER}}}", "one of metric"),
        (
            f"{{quote: q, by: {{loss: mlm_los}}, check: better, row: {ROW}, than: {OTHER}}}",
            "mlm_los",
        ),
    ],
)
def test_a_claim_that_makes_no_sense_is_refused_and_says_what_is_wrong(tmp_path, claim, named):
    with pytest.raises(ConfigError) as error:
        read(tmp_path, claim)
    assert "mine.yaml" in str(error.value)
    assert named in str(error.value)


def signed(found: Comparison) -> list[tuple[float, str]]:
    return [(weight, labels["embedding_size"]) for weight, labels in found.weights]


def test_rising_is_a_slope_that_no_step_contradicts_with_the_smallest_number_first(tmp_path):
    along = "check: ordered, axis: embedding_size, where: {sharing: all-shared}"
    slope, *steps = comparisons(tmp_path, f"{along}, direction: rising")
    assert signed(slope) == [(-0.5, "64"), (0.0, "128"), (0.5, "768")]
    assert [signed(step) for step in steps] == [[(1, "128"), (-1, "64")], [(1, "768"), (-1, "128")]]
    assert [slope.is_required, *(step.is_required for step in steps)] == [True, False, False]
    falling = comparisons(tmp_path, f"{along}, direction: falling")[0]
    assert signed(falling) == [(-0.5, "768"), (0.0, "128"), (0.5, "64")]


def test_a_peak_is_above_every_other_row(tmp_path):
    found = comparisons(
        tmp_path, "check: ordered, axis: embedding_size, peak: 128, where: {sharing: all-shared}"
    )
    assert [signed(item) for item in found] == [[(1, "128"), (-1, "64")], [(1, "128"), (-1, "768")]]


def test_two_rows_against_two_are_an_interaction(tmp_path):
    other = [row.replace("all", "not") for row in (ROW, OTHER)]
    (found,) = comparisons(
        tmp_path, f"check: greater, row: [{ROW}, {OTHER}], than: [{', '.join(other)}]"
    )
    assert [(weight, *labels.values()) for weight, labels in found.weights] == [
        (1, "all-shared", "64"),
        (-1, "all-shared", "128"),
        (-1, "not-shared", "64"),
        (1, "not-shared", "128"),
    ]


def test_better_by_a_loss_is_less_of_it(tmp_path):
    asked = read(
        tmp_path,
        f"{{quote: q, by: {{loss: mlm_loss, tasks: [mnli]}}, check: better, row: {ROW}, than: "
        f"{OTHER}}}",
    )
    (by_task,) = asked.claims[0].comparisons_of("mnli", asked.grid)
    (by_loss,) = asked.claims[0].comparisons_of("mlm_loss", asked.grid)
    assert signed(by_task) == [(1, "64"), (-1, "128")]
    assert signed(by_loss) == [(1, "128"), (-1, "64")]


def test_a_ratio_is_bounded_in_logarithms(tmp_path):
    (found,) = comparisons(tmp_path, f"check: ratio, row: {ROW}, to: {OTHER}, low: 2")
    assert (found.low, found.high, found.is_log) == (math.log(2), math.inf, True)
