import re
from dataclasses import replace

import numpy as np
import pytest
from records import toy_curve_point
from toy_reports import toy_report

from albert_lab.analysis.analysis import analyse
from albert_lab.report import report
from albert_lab.report.page import curves
from albert_lab.runs.reported import CurvePoint
from albert_lab.studies import experiment, study


def section_of(folder):
    (section,) = curves.sections(report.read(folder))
    return str(section.body)


def polylines(text, panel=0):
    """The content of the lines of a panel: the run's number, values, places and points."""
    figure = text.split("<figure ")[panel + 1]
    result = re.findall(r'data-run="(\d+)" data-values="(.*?)" data-places="(.*?)" points="(.*?)">', figure)
    return {int(run): (values, places, points) for run, values, places, points in result}


@pytest.fixture
def folder(tmp_path):
    return toy_report(tmp_path / "report", experiment.named("sop-vs-nsp"), seeds=2)


def changed(point, mlm):
    return CurvePoint.model_validate(point.model_dump() | {"mlm_accuracy": mlm})


def rewrite(folder, change):
    """Change each run's curve, from a list of entries to another."""
    result = study.read(folder)
    runs = [replace(run, curve=tuple(change(run.name, list(run.curve)))) for run in result.runs]
    study.write(folder, replace(result, runs=runs))


def test_every_run_has_a_line_in_every_panel_with_the_values_of_its_curve(folder):
    text = section_of(folder)
    assert re.findall(r"<figcaption>(.*?)</figcaption>", text) == [
        "held-out MLM accuracy (%)",
        "held-out NSP accuracy (%)",
        "held-out SOP accuracy (%)",
    ]
    assert [len(polylines(text, panel)) for panel in range(3)] == [6, 6, 6]
    assert polylines(text)[3][:2] == ("5.8 11.5 17.2 23.0", "100 200 300 400")  # the second row, seed 1
    assert '<button type="button" disabled aria-pressed="false" aria-label="nsp, seed 1" data-run="3"' in text


def test_points_are_placed_according_to_the_axes(folder):
    text = section_of(folder)
    ticks = re.findall(r'<g class="(x|y)"><text x="(.*?)" y="(.*?)">([\d,.]+)<', text.split("<figure ")[1])
    xs = {float(label): float(x) for axis, x, _, label in ticks if axis == "x"}
    ys = {float(label): float(y) for axis, _, y, label in ticks if axis == "y"}
    low, high = min(ys), max(ys)
    assert (xs[min(xs)], xs[max(xs)], ys[low], ys[high]) == (curves.LEFT, curves.RIGHT, curves.BOTTOM, curves.TOP)
    assert low <= 5
    assert high >= 25
    last = polylines(text)[1][2].split()[-1]  # 21 % at step 400
    x, y = map(float, last.split(","))
    assert x == xs[400]
    assert y == pytest.approx(np.interp(21, [low, high], [curves.BOTTOM, curves.TOP]), abs=0.06)


def test_runs_of_a_row_share_its_colour_and_dashes(folder):
    styles = re.findall(r'<polyline class="line (.*?)" data-run="(\d)"', section_of(folder).split("<figure ")[1])
    assert [style for style, _ in styles] == [style for row in range(3) for style in [f"colour-{row} dash-{row}"] * 2]


def test_a_constant_answer_is_drawn_or_written_where_curves_would_have_no_room(folder):
    panels = section_of(folder).split("<figure ")[1:]
    assert ['class="constant"' in panel for panel in panels] == [True, True, True]
    rewrite(folder, lambda _run, curve: [toy_curve_point(point.step, mlm_accuracy=20.0) for point in curve])
    text = section_of(folder)  # from 20 to 25 %
    assert 'class="constant"' not in text
    assert "<figcaption>held-out MLM accuracy (%)<span>; a constant answer: 5.0</span></figcaption>" in text


def test_a_run_without_a_curve_is_named(folder):
    rewrite(folder, lambda run, curve: [] if run == "sop_seed1" else curve)
    text = section_of(folder)
    assert "No curve was recorded of <code>sop_seed1</code>." in text
    assert len(polylines(text)) == 5


def test_a_missing_value_is_left_out_of_its_line(folder):
    rewrite(folder, lambda _run, curve: [changed(point, None) if point.step == 200 else point for point in curve])
    assert polylines(section_of(folder))[3][1] == "100 300 400"


def test_a_single_evaluation_and_equal_values_are_drawn_inside_the_panel(tmp_path):
    folder = toy_report(tmp_path / "report", experiment.named("sop-vs-nsp"), seeds=1, trunk_points=4)
    rewrite(folder, lambda _run, curve: curve[-1:])
    for values, places, points in polylines(section_of(folder)).values():
        assert (values, places) == ("20.0", "400")
        x, y = map(float, points.split(","))
        assert curves.LEFT <= x <= curves.RIGHT
        assert curves.TOP <= y <= curves.BOTTOM


def test_with_a_budget_in_seconds_curves_are_drawn_over_seconds(tmp_path):
    text = section_of(toy_report(tmp_path / "report", experiment.named("same-wall-clock"), seeds=1))
    assert polylines(text)[0][1] == "2 4 6 8"
    assert 'data-unit="seconds"' in text


def test_without_any_curve_there_is_no_section(folder):
    rewrite(folder, lambda _run, _curve: [])
    assert curves.sections(report.read(folder)) == []


def test_names_are_escaped(folder):
    result = study.read(folder)
    named = {"inter_sentence": "<b>sop</b>"}
    points = [
        point.model_copy(update={"values": named, "labels": named})
        if point.values["inter_sentence"] == "sop"
        else point
        for point in result.points
    ]
    text = str(curves.sections(analyse(replace(result, points=points)))[0].body)
    assert "<b>" not in text
    assert "&lt;b&gt;sop&lt;/b&gt;" in text
