import json
from dataclasses import replace
from typing import Any

import pytest
from records import toy_record
from test_report import changed, report_of, toy_points, toy_runs
from toy_reports import toy_report

from albert_lab.errors import ConfigError
from albert_lab.report import compare
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import experiment
from albert_lab.studies.table import Column

pytestmark = pytest.mark.usefixtures("empty_figures")


def folder(place, points, runs):
    return report_of(place / "sop-vs-nsp", points, runs)


def shifted(run: ReportedRun, points: float) -> ReportedRun:
    """The run with so many points more of SOP."""
    score = run.record.scores["sop_accuracy"]
    scores = run.record.scores | {"sop_accuracy": score.model_copy(update={"value": score.value + points})}
    return replace(run, record=run.record.model_copy(update={"scores": scores}))


@pytest.fixture
def before(tmp_path):
    points = toy_points(seeds=(0, 1, 2))
    return folder(tmp_path / "before", points, toy_runs(points))


def line(sides, row, metric) -> Any:
    return next(compared for compared in sides.lines if (compared.row, compared.metric) == (row, metric))


def test_a_change_is_shown_with_the_interval_of_its_paired_difference(before, tmp_path):
    points = toy_points(seeds=(0, 1, 2))
    runs = [shifted(run, change) for run, change in zip(toy_runs(points), [1.0, 2.0, 3.0] * 3, strict=True)]
    result = line(compare.compare(before, folder(tmp_path / "after", points, runs)), "sop", "sop_accuracy")
    assert result.is_paired
    # Differences 1, 2 and 3 points: 2 with t(2) = 4.303 times 1 / sqrt(3).
    assert result.difference.value == pytest.approx(2.0)
    assert (result.difference.low, result.difference.high) == pytest.approx((-0.484, 4.484), abs=0.001)
    assert (result.a.value, result.b.value) == (pytest.approx(72.0), pytest.approx(74.0))


def test_a_difference_in_points_is_not_called_percent(before):
    columns = [
        Column("coherence", "coherence", "coherence", unit="points"),
        Column("sop_accuracy", "SOP", "sop_accuracy"),
    ]
    assert compare.headings(columns) == {"coherence": "coherence points", "sop_accuracy": "SOP %"}


def test_fine_tuned_tasks_are_compared_under_their_names(before):
    sides = compare.compare(before, before)
    assert line(sides, "sop", "squad1").a.value == pytest.approx(10.0)
    assert line(sides, "sop", "sst2").heading == "SST-2 %"


def test_a_report_compared_with_itself_has_no_differences(before):
    sides = compare.compare(before, before)
    assert sides.has_one_set
    assert not sides.differing
    assert all(compared.difference and compared.difference.value == 0 for compared in sides.lines)
    assert "They differ" not in compare.as_text(sides)


def test_different_held_out_sets_are_reported(before, tmp_path):
    points = [changed(point, scale="laptop") for point in toy_points(seeds=(0, 1, 2))]
    other = {"processor": "another", "commit": "f" * 40, "devices": ("NVIDIA H100",)}
    provenance = toy_record().provenance.model_copy(update=other)
    runs = toy_runs(points, evaluation_set="another", provenance=provenance)
    sides = compare.compare(before, folder(tmp_path / "after", points, runs))
    assert not sides.has_one_set
    assert sides.differing["scale"] == ("smoke", "laptop")
    assert sides.differing["evaluation_set"] == ("set", "another")
    assert sides.differing["machine"] == ("Linux, toy, 2 cores", "Linux, another, 2 cores")
    assert sides.differing["commit"] == ("—", "f" * 12)
    assert sides.differing["devices"] == ("cpu", "NVIDIA H100")
    assert "**The held-out sets differ**" in compare.as_text(sides)
    assert json.loads(compare.as_json(sides))["same_held_out_set"] is False


def test_single_seeds_have_newcombes_interval(tmp_path):
    # Newcombe 1998, table II, case (a): 56/70 and 48/80, Wilson's intervals of both; B - A from 0.0524 to 0.3339.
    a, b = compare.Cell(60.0, 1, 49.04, 70.03), compare.Cell(80.0, 1, 69.18, 87.71)
    result: Any = compare.newcombe(a, b)
    assert (result.value, result.low, result.high) == pytest.approx((20.0, 5.24, 33.39), abs=0.03)
    points = toy_points(seeds=(0,))
    single = folder(tmp_path, points, toy_runs(points))
    shown = line(compare.compare(single, single), "sop", "sop_accuracy").difference
    assert (shown.low, shown.high) == pytest.approx((-4.243, 4.243), abs=0.001)


def test_one_seed_against_several_has_a_difference_without_interval(before, tmp_path):
    points = toy_points(seeds=(0,))
    result = line(compare.compare(before, folder(tmp_path / "one", points, toy_runs(points))), "sop", "sop_accuracy")
    assert result.difference == compare.Cell(-2.0, 1)


def test_a_row_of_only_one_side_is_shown_without_a_difference(before, tmp_path):
    points = toy_points(seeds=(0, 1, 2), losses=("none", "sop"))
    sides = compare.compare(before, folder(tmp_path / "after", points, toy_runs(points)))
    result = line(sides, "nsp", "sop_accuracy")
    assert result.b is None
    assert result.difference is None
    shown = next(text for text in compare.as_text(sides).splitlines() if "| nsp" in text and "SOP" in text)
    assert shown.count("—") == 3


def test_reports_without_a_row_in_common_are_refused(before, tmp_path):
    axes = {"sharing": "groups"}
    points = [changed(point, values=axes, labels=axes) for point in toy_points(seeds=(0,), losses=("sop",))]
    other = report_of(tmp_path / "other", points, toy_runs(toy_points(seeds=(0,))))
    with pytest.raises(ConfigError, match="no row in common: .*inter_sentence=none.*sharing=groups"):
        compare.compare(before, other)


def test_a_report_of_one_row_without_labels_is_named_so_if_no_row_is_in_common(before, tmp_path):
    points = toy_points(seeds=(0,), losses=("sop",))
    runs = toy_runs(points)
    points = [changed(point, values={}, labels={}) for point in points]
    other = report_of(tmp_path / "other", points, runs)
    with pytest.raises(ConfigError, match="inter_sentence=sop, and .*/other has one row without a label$"):
        compare.compare(before, other)


def test_rows_are_compared_regardless_of_the_order_of_axes(tmp_path):
    tables = [toy_report(tmp_path / name, experiment.named(name), seeds=1) for name in ("embedding-size", "sharing")]
    sides = compare.compare(*tables)
    shared = {compared.row for compared in sides.lines if compared.a and compared.b}
    assert len(shared) == 4  # E = 128 and 768, all and none shared
    assert "all-shared, E = 8 (paper: 128)" in shared
    assert len({compared.row for compared in sides.lines}) == 8 + 8 - 4
