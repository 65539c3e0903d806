import io
import sys

import pytest
import time_to_loss
from time_to_loss import seconds_to, table, train
from toy import toy_overrides

CURVE = [(0.0, 0, 7.0), (10.0, 5, 6.0), (30.0, 15, 5.0), (40.0, 20, 5.5)]


def test_a_loss_is_reached_on_the_line_between_two_points():
    assert [seconds_to(CURVE, loss) for loss in (7.0, 6.5, 6.0, 5.5, 5.0)] == [
        0.0,
        5.0,
        10.0,
        20.0,
        30.0,
    ]
    assert seconds_to(CURVE, 4.9) is None


def test_a_loss_that_a_library_never_reaches_has_the_time_it_was_given():
    fast = [(seconds / 2, steps, loss - 1) for seconds, steps, loss in CURVE]
    lines = [
        line.split("|")[1:-1]
        for line in table({"albert-lab": fast, "transformers": CURVE}, [4.5]).splitlines()
    ]
    assert [cell.strip() for cell in lines[2]] == ["albert-lab", "10", "1.0", "1000.0"]
    assert [cell.strip() for cell in lines[3]] == [
        "transformers",
        "not in 40",
        "4.0 or more",
        "2000.0",
    ]


def test_both_libraries_start_from_the_same_weights_and_train(corpus, monkeypatch):
    told = {}
    for library in time_to_loss.LIBRARIES[:2]:
        points = told[library] = []
        monkeypatch.setattr(
            time_to_loss, "_tell", lambda *point, points=points: points.append(point)
        )
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        train(library, [*toy_overrides(corpus), "optimizer=muon", "budget.value=24"])
    ours, theirs = told.values()
    assert ours[0][2] == pytest.approx(theirs[0][2], abs=1e-3)
    assert [points[-1][1] for points in (ours, theirs)] == [24, time_to_loss.SLOWER * 24]
    assert all(points[-1][2] < points[0][2] - 0.3 for points in (ours, theirs))
