from toy import toy_plan, train

from albert_lab.studies import collect


def test_a_run_is_collected_once_with_layers_only_on_request(corpus, own_home, runs_here):
    plan = toy_plan(corpus, "evaluation.num_curve_points=0", "seed=0")
    assert train(plan).code == 0
    (item,) = plan.updated().points
    (without,) = collect.runs([item, item], lambda _line: None)
    assert without.layers == ()
    (measured,) = collect.runs([item, item], lambda _line: None, with_layers=True)
    assert [layer.layer for layer in measured.layers if layer.token == "mean"] == [1, 2]
