import subprocess
import sys

import pytest
from toy import states_of, toy_overrides, toy_plan, train, write_corpus

from albert_lab import errors, rank
from albert_lab.errors import ConfigError, WriteError
from albert_lab.runs import results, worker
from albert_lab.runs import run as runs
from albert_lab.studies import execute
from albert_lab.studies.execute import SOME_FAILED
from albert_lab.studies.launchers import local
from albert_lab.studies.launchers.base import Job


@pytest.mark.parametrize("code", [errors.STOPPED, errors.INTERRUPTED])
def test_a_stopped_child_leaves_the_sweep_unfinished(tmp_path, monkeypatch, code):
    popen = subprocess.Popen
    child = [sys.executable, "-c", f"raise SystemExit({code})"]
    monkeypatch.setattr(local.subprocess, "Popen", lambda *_, **__: popen(child))
    assert local.launch([Job(tmp_path)], 1, lambda *_: True) == code


def test_a_child_that_a_signal_ends_before_it_listens_was_stopped_and_did_not_fail(tmp_path, monkeypatch):
    popen, ended = subprocess.Popen, []
    script = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    monkeypatch.setattr(local.subprocess, "Popen", lambda *_, **__: popen([sys.executable, "-c", script]))

    def end(_job, of_child: int) -> bool:
        ended.append(of_child)
        return True

    assert local.launch([Job(tmp_path)], 1, end) == errors.STOPPED
    assert ended == [errors.STOPPED]


def test_a_run_of_this_machine_does_not_take_the_rank_of_another_program(tmp_path, monkeypatch):
    popen, seen = subprocess.Popen, tmp_path / "seen"
    for variable in rank.VARIABLES:
        monkeypatch.setenv(variable, "4")

    def begin(_command, **settings):
        script = f"import os; open({str(seen)!r}, 'w').write(str([v for v in {rank.VARIABLES} if v in os.environ]))"
        return popen([sys.executable, "-c", script], **settings)

    monkeypatch.setattr(local.subprocess, "Popen", begin)
    assert local.launch([Job(tmp_path)], 1, lambda *_: True) == 0
    assert seen.read_text() == "[]"


def test_no_run_is_started_after_the_run_that_ends_a_sweep(tmp_path, monkeypatch):
    popen, ended = subprocess.Popen, []
    monkeypatch.setattr(local.subprocess, "Popen", lambda *_, **__: popen([sys.executable, "-c", ""]))
    jobs = [Job(tmp_path / name) for name in ("first", "second")]

    def end(job, code):
        ended.append(job.folder.name)
        return False

    assert local.launch(jobs, 1, end) == 0
    assert ended == ["first"]


def test_a_study_stops_at_the_first_run_that_finds_the_disk_full_and_goes_on_when_there_is_room(
    corpus, own_home, runs_here, monkeypatch
):
    def fill(*_):
        raise WriteError("the disk is full")

    plan = toy_plan(corpus, "embedding_size=4,8")
    with monkeypatch.context() as full:
        full.setattr(worker, "_pretrain", fill)
        assert train(plan).code == 1
    assert states_of(plan) == ["stopped", "missing"]
    assert train(plan.updated()).code == 0
    assert states_of(plan) == ["done", "done"]


def test_fail_fast_starts_no_run_after_a_failure(corpus, own_home, runs_here):
    plan = toy_plan(corpus, "optimizer.learning_rate=1e30,0.01", "optimizer.warmup=0", "machine.log_every_steps=1")
    train(plan, fail_fast=True)
    assert states_of(plan) == ["failed", "missing"]


def test_finished_runs_are_skipped_and_only_missing_ones_are_trained(corpus, own_home, runs_here):
    plan = toy_plan(corpus, "embedding_size=4,8")
    assert train(plan).code == 0
    written = {point.run.name: (point.run.folder / results.RECORD).stat().st_mtime_ns for point in plan.points}
    wider = toy_plan(corpus, "embedding_size=4,8,16")
    assert [point.state for point in wider.points] == ["done", "done", "missing"]
    assert wider.to_train == [wider.points[2]]
    assert train(wider).code == 0
    assert {name: (runs.paths.runs() / name / results.RECORD).stat().st_mtime_ns for name in written} == written


def test_a_gpu_that_is_not_here_is_refused_before_anything_is_written(corpus, own_home, monkeypatch):
    monkeypatch.setattr(execute, "has_gpu", lambda: False)
    plan = toy_plan(corpus, "machine.device=cuda")
    with pytest.raises(ConfigError, match="machine.device=cuda: torch finds no GPU on this machine"):
        train(plan)
    assert not plan.points[0].run.folder.exists()


def test_a_failed_run_does_not_stop_the_others_and_is_trained_again_only_on_request(corpus, own_home, runs_here):
    plan = toy_plan(corpus, "optimizer.learning_rate=0.01,1e30", "optimizer.warmup=0", "machine.log_every_steps=1")
    outcome = train(plan)
    assert outcome.code == SOME_FAILED
    assert states_of(plan) == ["done", "failed"]
    failed = plan.points[1].run
    assert "the loss is nan" in outcome.failures[failed.name]
    mark = failed.folder / runs.FAILURE
    before = mark.stat().st_mtime_ns
    assert train(plan).code == SOME_FAILED
    assert mark.stat().st_mtime_ns == before
    train(execute.reset(plan.updated(), retry_failed=True))
    assert mark.stat().st_mtime_ns > before


def test_a_corpus_of_one_document_is_refused_for_nsp_before_any_run_starts(tmp_path, own_home):
    corpus = write_corpus(tmp_path / "single", documents=5)
    plan = toy_plan(corpus, "inter_sentence=nsp,sop", "corpus.dev_share=0.2")
    with pytest.raises(ConfigError, match="document"):
        train(plan)
    assert not runs.paths.runs().exists()


def test_two_sweeps_at_once_train_each_run_once(corpus, own_home):
    overrides = toy_overrides(corpus, "budget.value=30")
    code = f"""
from albert_lab.studies.execute import Options, execute
from albert_lab.studies.experiment import named
from albert_lab.studies.plan import plan_study
plan = plan_study(named("sop-vs-nsp"), {[*overrides, "inter_sentence=nsp,sop"]}, [])
raise SystemExit(execute(plan, Options()).code)
"""
    both = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    for folder in runs.paths.runs().iterdir():
        steps = [line["step"] for line in results.read_metrics(folder) if line["event"] == "training"]
        assert steps == sorted(set(steps)), "trained once, without interruption"
        assert sum(f"{folder.name.rpartition('_')[0]}: step 30, held out" in text for text in said) == 1
