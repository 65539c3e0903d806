import pytest

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.trackers import feed, tracker
from albert_lab.trackers.feed import Feed, points


class Toy:
    """A tracker that keeps its points in a list; it fails at the steps that are named."""

    def __init__(self, points, fails_at=()):
        self.points, self.fails_at = points, fails_at
        self.last_step = max((step for step, _ in points), default=-1)

    def log(self, step, values):
        if step in self.fails_at:
            raise OSError("no network")
        self.points.append((step, dict(values)))

    def close(self):
        self.points.append("closed")


@pytest.fixture
def feeding(monkeypatch, tmp_path):
    """A function that sends lines to toy trackers, as one process of a run does; it returns what was said."""

    def send(toys, lines, final=None):
        said = []
        monkeypatch.setattr(feed, "open_run", lambda name, *_: toys[name])
        opened = Feed(toys, "run", tmp_path, {}, said.append)
        for line in lines:
            opened.take(line)
        if final:
            opened.finish(final, lines[-1]["step"])
        opened.close()
        return said

    return send


def line(step, event="training", **numbers):
    return {"event": event, "step": step, **numbers}


def test_the_lines_of_a_step_are_one_point_of_numbers_by_event():
    lines = [line(10, loss=2.0), line(10, "evaluation", mlm_accuracy=5, note="x", loss=None), line(20, loss=1.0)]
    assert list(points(lines)) == [
        (10, {"training/loss": 2.0, "evaluation/mlm_accuracy": 5.0}),
        (20, {"training/loss": 1.0}),
    ]


def test_a_resumed_run_sends_the_steps_that_a_tracker_lacks_and_no_other(feeding):
    lines = [line(step, loss=float(step)) for step in (10, 20, 30)]
    toy = Toy([])
    feeding({"toy": toy}, lines)
    assert toy.points == [(10, {"training/loss": 10.0}), (20, {"training/loss": 20.0}), "closed"]
    kept = Toy(toy.points[:-1])
    feeding({"toy": kept}, lines, {"mlm_accuracy": 40.0})
    assert kept.points[2:] == [(30, {"training/loss": 30.0, "final/mlm_accuracy": 40.0}), "closed"]


def test_a_tracker_that_fails_is_left_out_and_said_once(feeding):
    good, bad = Toy([]), Toy([], fails_at=(20,))
    lines = [line(step, loss=1.0) for step in (10, 20, 30, 40)]
    said = feeding({"good": good, "bad": bad}, lines)
    assert [point[0] for point in good.points[:-1]] == [10, 20, 30]
    assert [point[0] for point in bad.points] == [10]
    assert said == ["bad: no network; it gets no more points (later: albert-lab track run --to bad)"]


def test_a_missing_package_and_a_refusal_are_errors_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setattr(tracker, "find_spec", lambda name: None)
    with pytest.raises(MissingDataError, match=r"pip install 'albert-lab\[wandb\]'"):
        tracker.open_run("wandb", "run", tmp_path, {})
    monkeypatch.setattr(tracker, "find_spec", lambda name: name)
    monkeypatch.setattr(tracker, "import_module", lambda name: None)
    with pytest.raises(ConfigError, match="the tracker wandb cannot be used: "):
        tracker.open_run("wandb", "run", tmp_path, {})
