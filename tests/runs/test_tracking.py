import pytest
from toy_reports import toy_report

from albert_lab.errors import ConfigError
from albert_lab.runs import tracking as trackings
from albert_lab.studies import experiment, study
from albert_lab.trackers import feed


class Toy:
    def __init__(self, points):
        self.points = points
        self.last_step = max((step for step, _ in points), default=-1)

    def log(self, step, values):
        self.points.append((step, dict(values)))

    def close(self):
        pass


@pytest.fixture
def sent(monkeypatch):
    """The points of toy trackers, by run; a tracker that is opened again has those of before."""
    results = {}
    monkeypatch.setattr(feed, "open_run", lambda _name, run, *_: Toy(results.setdefault(run, [])))
    return results


def test_the_runs_of_a_report_are_sent_once_with_their_curve_and_final_scores(own_home, sent):
    folder = toy_report(own_home / "dropout", experiment.named("dropout"))
    for _ in range(2):
        trackings.track(str(folder), ["trackio"], lambda line: None)
    runs = study.read(folder).runs
    assert {*sent} == {run.name for run in runs}
    for run in runs:
        points = sent[run.name]
        assert len(points) == len({step for step, _ in points})
        curve = {
            step: values["evaluation/mlm_accuracy"] for step, values in points if "evaluation/mlm_accuracy" in values
        }
        assert curve == {point.step: point.value("mlm_accuracy") for point in run.curve}
        assert points[-1][1]["final/mlm_accuracy"] == run.scores["mlm_accuracy"].value


def test_an_unknown_tracker_and_an_unfinished_run_are_refused(own_home, sent):
    with pytest.raises(ConfigError, match="--to comet is no tracker .allowed: mlflow, tensorboard, trackio, wandb"):
        trackings.track("any", ["comet"], lambda line: None)
    with pytest.raises(ConfigError, match="--to: wandb is given twice"):
        trackings.track("any", ["wandb", "wandb"], lambda line: None)
    with pytest.raises(ConfigError, match="neither a folder nor a run"):
        trackings.track("any", ["wandb"], lambda line: None)
    assert not sent
