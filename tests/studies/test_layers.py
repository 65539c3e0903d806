import pandas as pd
import pytest
from toy import toy_config

from albert_lab.runs import run as runs
from albert_lab.runs import worker
from albert_lab.studies import experiment, layers, points, sweep


@pytest.fixture
def finished(corpus, own_home):
    """Folder of a finished run of a few steps."""
    folder = runs.create(runs.plan(toy_config(corpus, "budget.value=2", "evaluation.num_curve_points=0")))
    assert worker.main(folder) == 0
    return folder


def test_layers_are_kept_with_a_report_that_has_their_figure_and_no_other(finished, tmp_path):
    run = runs.read(finished)
    item = sweep.PlannedPoint(points.Point({}, run.config), run, {})
    for name in ("sop-vs-nsp", "layer-similarity"):
        layers.keep(tmp_path / name, experiment.named(name), [item, item], lambda _line: None)
    assert not (tmp_path / "sop-vs-nsp").exists()
    assert len(pd.read_csv(tmp_path / "layer-similarity" / "layers.csv")) == 4
