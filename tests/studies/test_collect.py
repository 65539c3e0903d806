from toy import toy_config

from albert_lab.runs import run as runs
from albert_lab.runs import worker
from albert_lab.studies import collect, planning, points


def test_a_run_is_collected_once_with_layers_only_on_request(corpus, own_home):
    run = runs.plan(toy_config(corpus, "budget.value=2", "evaluation.num_curve_points=0"))
    assert worker.main(runs.create(run)) == 0
    item = planning.PlannedPoint(points.Point({}, run.config), run, {})
    (without,) = collect.runs([item, item], lambda _line: None)
    assert without.layers == ()
    (measured,) = collect.runs([item, item], lambda _line: None, with_layers=True)
    assert [each.layer for each in measured.layers if each.token == "mean"] == [1, 2]
