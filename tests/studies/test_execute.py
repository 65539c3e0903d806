import errno
import os
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from command import launch_here
from toy import states_of, toy_plan, train
from toy_training import quick_starts

from albert_lab import errors
from albert_lab.runs import results, worker
from albert_lab.runs import run as runs
from albert_lab.studies import execute
from albert_lab.studies.execute import SOME_FAILED


@pytest.mark.parametrize(
    ("error", "code", "states"),
    [
        (OSError(errno.ENOSPC, "disk full"), errors.UNWRITTEN, ["stopped", "missing"]),
        (errors.ConfigError("no pairs"), 2, ["failed", "failed"]),
        (IsADirectoryError(errno.EISDIR, "a folder"), 2, ["failed", "failed"]),
    ],
)
def test_a_study_stops_at_the_first_run_on_a_full_disk_and_goes_on_after_other_failures(
    error, code, states, corpus, own_home, runs_here, monkeypatch
):
    plan = toy_plan(corpus, "embedding_size=4,8")
    with monkeypatch.context() as bad:
        bad.setattr(worker, "_pretrain", Mock(side_effect=error))
        outcome = train(plan)
        assert outcome.code == code
        assert {*outcome.failures.values()} <= {str(error)}
    assert states_of(plan) == states
    assert train(plan.updated()).code == 0
    assert states_of(plan) == ["done", "done"]


def test_a_failed_run_does_not_stop_the_others_and_the_same_command_tries_it_again(
    corpus, own_home, runs_here
):
    plan = toy_plan(
        corpus,
        "optimizer.learning_rate=0.01,1e30",
        "optimizer.warmup=0",
        "machine.log_every_steps=1",
    )
    outcome = train(plan)
    assert outcome.code == SOME_FAILED
    assert states_of(plan) == ["done", "failed"]
    failed = plan.points[1].run
    assert "the loss is nan" in outcome.failures[failed.name]
    mark, done = failed.folder / runs.FAILURE, plan.points[0].run.folder / results.RECORD
    before, written = mark.stat().st_mtime_ns, done.stat().st_mtime_ns
    assert train(plan).code == SOME_FAILED
    assert mark.stat().st_mtime_ns > before
    assert done.stat().st_mtime_ns == written


def sweep(plan, folder):
    """What the process of one of two sweeps does; it says which records it writes."""
    os.environ["ALBERT_LAB_HOME"] = folder
    write = results.write

    def noted(run, record):
        print(f"written: {run.name}", file=sys.stderr)
        write(run, record)

    results.write = noted
    with (Path(folder) / f"{os.getpid()}.said").open("w", buffering=1) as sys.stderr:
        execute.launch, execute.prices.time_steps = launch_here, Mock()
        sys.exit(execute.execute(plan, execute.Options()).code)


def test_two_sweeps_at_once_train_each_run_once(corpus, own_home):
    plan = toy_plan(corpus, "inter_sentence=nsp,sop", "budget.value=20")
    both = [quick_starts().Process(target=sweep, args=(plan, str(own_home))) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    for folder in runs.paths.runs().iterdir():
        steps = [
            line["step"] for line in results.read_metrics(folder) if line["event"] == "training"
        ]
        assert steps == sorted(set(steps)), "without interruption"
        said = [file.read_text() for file in own_home.glob("*.said")]
        assert "".join(said).count(f"written: {folder.name}") == 1
