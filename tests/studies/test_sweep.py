import subprocess
import sys

import pytest
from toy import toy_overrides, write_corpus

from albert_lab import errors
from albert_lab.errors import ConfigError
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.studies import planning, sweep
from albert_lab.studies.experiment import from_overrides
from albert_lab.studies.launchers import local


def planned(corpus, *overrides: str) -> list[planning.PlannedPoint]:
    experiment, rest = from_overrides(toy_overrides(corpus, "budget.value=2", *overrides))
    return planning.plan(experiment, rest, tasks=[])


def test_a_plan_writes_nothing(corpus, own_home):
    assert len(planned(corpus, "embedding_size=4,8", "seed=0,1")) == 4
    assert not list(own_home.iterdir())


def test_finished_runs_are_skipped_and_only_the_missing_made(corpus, own_home, runs_here):
    points = planned(corpus, "embedding_size=4,8")
    assert sweep.execute(points, sweep.Options()).code == 0
    written = {point.run.name: (point.run.folder / results.RECORD).stat().st_mtime_ns for point in points}
    wider = planned(corpus, "embedding_size=4,8,16")
    assert [point.state for point in wider] == ["done", "done", "missing"]
    assert sweep.execute(wider, sweep.Options()).code == 0
    assert {name: (runs.paths.runs() / name / results.RECORD).stat().st_mtime_ns for name in written} == written


def test_a_failed_run_leaves_the_others_and_is_made_again_only_when_asked(corpus, own_home, runs_here):
    points = planned(corpus, "optimizer.learning_rate=0.01,1e30", "optimizer.warmup=0", "machine.log_every_steps=1")
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


@pytest.mark.parametrize("code", [errors.STOPPED, errors.INTERRUPTED])
def test_a_child_that_was_told_to_stop_by_itself_leaves_the_sweep_unfinished(tmp_path, monkeypatch, code):
    popen = subprocess.Popen
    child = [sys.executable, "-c", f"raise SystemExit({code})"]
    monkeypatch.setattr(local.subprocess, "Popen", lambda *_, **__: popen(child))
    assert local.launch({tmp_path: []}, jobs=1, on_end=lambda *_: True, parents={}) == code


def test_no_run_is_started_after_the_one_at_which_a_sweep_ends(tmp_path, monkeypatch):
    popen, ended = subprocess.Popen, []
    monkeypatch.setattr(local.subprocess, "Popen", lambda *_, **__: popen([sys.executable, "-c", ""]))
    folders = {tmp_path / name: [] for name in ("first", "second")}

    def end(folder, code):
        ended.append(folder.name)
        return False

    assert local.launch(folders, jobs=1, on_end=end, parents={}) == 0
    assert ended == ["first"]


def test_after_a_failure_fail_fast_starts_no_other(corpus, own_home, runs_here):
    points = planned(corpus, "optimizer.learning_rate=1e30,0.01", "optimizer.warmup=0", "machine.log_every_steps=1")
    sweep.execute(points, sweep.Options(fail_fast=True))
    assert [point.state for point in points] == ["failed", "missing"]


def test_rows_that_are_scored_on_different_sets_are_refused_before_anything_is_made(corpus, own_home):
    with pytest.raises(ConfigError, match=r"one table cannot hold these rows.*masking=as-described; masking=official"):
        planned(corpus, "masking=as-described,official")


def test_a_corpus_of_one_document_is_refused_for_nsp_before_a_run_is_begun(tmp_path, own_home):
    corpus = write_corpus(tmp_path / "single", documents=5)
    points = planned(corpus, "inter_sentence=nsp,sop", "corpus.dev_share=0.2")
    with pytest.raises(ConfigError, match="document"):
        sweep.execute(points, sweep.Options())
    assert not runs.paths.runs().exists()


def test_two_sweeps_at_once_make_each_run_once(corpus, own_home):
    overrides = toy_overrides(corpus, "budget.value=30")
    code = f"""
from albert_lab.studies import experiment, planning, sweep
points = planning.plan(experiment.named("sop-vs-nsp"), {[*overrides, "inter_sentence=nsp,sop"]}, [])
raise SystemExit(sweep.execute(points, sweep.Options()).code)
"""
    both = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    for folder in runs.paths.runs().iterdir():
        steps = [line["step"] for line in results.read_metrics(folder) if line["event"] == "training"]
        assert steps == sorted(set(steps)), "made once, without interruption"
        assert sum(f"{folder.name.rpartition('_')[0]}: step 30, held out" in text for text in said) == 1
