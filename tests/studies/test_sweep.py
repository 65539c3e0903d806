import subprocess
import sys

import pytest
from toy import toy_overrides, toy_points, write_corpus

from albert_lab import errors
from albert_lab.errors import ConfigError
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.studies import sweep
from albert_lab.studies.launchers import local


@pytest.mark.parametrize("code", [errors.STOPPED, errors.INTERRUPTED])
def test_a_stopped_child_leaves_the_sweep_unfinished(tmp_path, monkeypatch, code):
    popen = subprocess.Popen
    child = [sys.executable, "-c", f"raise SystemExit({code})"]
    monkeypatch.setattr(local.subprocess, "Popen", lambda *_, **__: popen(child))
    assert local.launch({tmp_path: []}, jobs=1, on_end=lambda *_: True, parents={}) == code


def test_no_run_is_started_after_the_run_that_ends_a_sweep(tmp_path, monkeypatch):
    popen, ended = subprocess.Popen, []
    monkeypatch.setattr(local.subprocess, "Popen", lambda *_, **__: popen([sys.executable, "-c", ""]))
    folders = {tmp_path / name: [] for name in ("first", "second")}

    def end(folder, code):
        ended.append(folder.name)
        return False

    assert local.launch(folders, jobs=1, on_end=end, parents={}) == 0
    assert ended == ["first"]


def test_fail_fast_starts_no_run_after_a_failure(corpus, own_home, runs_here):
    points = toy_points(corpus, "optimizer.learning_rate=1e30,0.01", "optimizer.warmup=0", "machine.log_every_steps=1")
    sweep.execute(points, sweep.Options(fail_fast=True))
    assert [point.state for point in points] == ["failed", "missing"]


def test_a_corpus_of_one_document_is_refused_for_nsp_before_any_run_starts(tmp_path, own_home):
    corpus = write_corpus(tmp_path / "single", documents=5)
    points = toy_points(corpus, "inter_sentence=nsp,sop", "corpus.dev_share=0.2")
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
