import pytest
from toy import toy_points

from albert_lab.errors import ConfigError
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.studies import planning, selection, sweep


def test_finished_runs_are_skipped_and_only_missing_ones_are_made(corpus, own_home, runs_here):
    points = toy_points(corpus, "embedding_size=4,8")
    assert sweep.execute(points, sweep.Options()).code == 0
    written = {point.run.name: (point.run.folder / results.RECORD).stat().st_mtime_ns for point in points}
    wider = toy_points(corpus, "embedding_size=4,8,16")
    assert [point.state for point in wider] == ["done", "done", "missing"]
    assert list(selection.select(wider).todo) == wider[2:]
    assert sweep.execute(wider, sweep.Options()).code == 0
    assert {name: (runs.paths.runs() / name / results.RECORD).stat().st_mtime_ns for name in written} == written


def test_a_gpu_that_is_not_here_is_refused_before_anything_is_written(corpus, own_home, monkeypatch):
    monkeypatch.setattr(selection, "has_gpu", lambda: False)
    points = toy_points(corpus, "machine.device=cuda")
    with pytest.raises(ConfigError, match="machine.device=cuda: this machine has no NVIDIA GPU"):
        sweep.execute(points, sweep.Options())
    assert not points[0].run.folder.exists()


def test_a_failed_run_does_not_stop_the_others_and_is_remade_only_on_request(corpus, own_home, runs_here):
    points = toy_points(corpus, "optimizer.learning_rate=0.01,1e30", "optimizer.warmup=0", "machine.log_every_steps=1")
    outcome = sweep.execute(points, sweep.Options())
    assert outcome.code == sweep.SOME_FAILED
    assert [point.state for point in points] == ["done", "failed"]
    failed = points[1].run
    assert "the loss is nan" in outcome.failures[failed.name]
    mark = failed.folder / runs.FAILURE
    before = mark.stat().st_mtime_ns
    assert sweep.execute(points, sweep.Options()).code == sweep.SOME_FAILED
    assert mark.stat().st_mtime_ns == before
    sweep.execute(planning.forget(points, fresh=False, retry_failed=True), sweep.Options())
    assert mark.stat().st_mtime_ns > before
