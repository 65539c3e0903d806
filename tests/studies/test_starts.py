import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from command import own_signals
from safetensors.numpy import load_file
from toy import toy_experiment, toy_overrides, train, trained

from albert_lab.errors import ConfigError
from albert_lab.model.counts import count_training_flops
from albert_lab.runs import results, states
from albert_lab.runs import run as runs
from albert_lab.studies import children, prices, study
from albert_lab.studies.jobs import Job
from albert_lab.studies.plan import Plan, plan_study


@pytest.fixture(autouse=True)
def signals():
    with own_signals():
        yield


TRUNK = {"dropout": "0.1", "budget.stop_at": "0.6"}
ARMS = {
    "grid": {"dropout": [0.1, 0]},
    "start_from": [{"row": {}, "parent": TRUNK, "keep": "training"}],
}
LAYERS = "model.num_layers"
CHAIN = {
    "grid": {LAYERS: [1, 2, 4]},
    "start_from": [
        {"row": {LAYERS: row}, "parent": {LAYERS: parent}, "keep": "weights"}
        for row, parent in (("2", "1"), ("4", "2"))
    ],
}


def planned(content, corpus, *overrides) -> Plan:
    return plan_study(toy_experiment(**content), toy_overrides(corpus, *overrides), [])


def weights_of(run: runs.Run) -> dict:
    """Weights of a finished run, trained in this process where it is not there."""
    trained(run)
    return load_file(max((run.folder / "checkpoint").glob("step-*")) / "model.safetensors")


def assert_same(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    assert not [name for name, tensor in one.items() if tensor.tobytes() != other[name].tobytes()]


def start_and_kill(run: runs.Run) -> None:
    """Begin a run in a child process, and kill it after its first steps."""
    child = subprocess.Popen(
        [sys.executable, "-m", "albert_lab.runs.worker", str(runs.create(run))], stderr=-3
    )
    own: list[int] = []
    while len(set(own)) < 4:
        assert child.poll() is None
        own += [
            int(path.name[5:13]) for path in (run.folder / "checkpoint").glob("step-" + "[0-9]" * 8)
        ]
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert states.state(run.folder) == "stopped"


# Which run starts from which


def test_arms_share_their_trunk_and_a_chain_its_links(corpus):
    kept, removed = planned(ARMS, corpus).points
    assert kept.parent == removed.parent
    assert kept.run.start_from == runs.StartFrom(run=kept.lineage[0].run.name, keep="training")
    plan = planned(CHAIN, corpus)
    one, two, four = plan.points
    assert [above.run for above in four.lineage] == [one.run, two.run, four.run]
    assert len(plan.family) == 3


def from_trunk(key: str, parent: str, other: str) -> dict:
    """Two rows that continue a trunk with the first's value of a key."""
    trunk = {"row": {}, "parent": {key: parent, "budget.stop_at": "0.5"}, "keep": "training"}
    return {"grid": {key: [parent, other]}, "start_from": [trunk]}


WIDER = {
    "row": {"model.num_layers": "4"},
    "parent": {"model.intermediate_size": "64"},
    "keep": "weights",
}


@pytest.mark.parametrize(
    ("content", "overrides", "key"),
    [
        (from_trunk("batch_size", "4", "8"), [], "batch_size"),
        (from_trunk("max_sequence_length", "16", "32"), [], "max_sequence_length"),
        (from_trunk("position_encoding", "rope", "learned"), [], "position_encoding"),
        (ARMS, ["budget.stop_at=0.5"], "leaves nothing to do"),
        (CHAIN | {"start_from": [WIDER]}, ["model.num_layers=2,4"], "intermediate_size"),
    ],
)
def test_an_invalid_start_is_refused_before_any_run(corpus, own_home, content, overrides, key):
    with pytest.raises(ConfigError, match=key):
        planned(content, corpus, *overrides)
    assert not list(own_home.iterdir())


def finish(run: runs.Run, *, with_weights: bool = True) -> None:
    runs.create(run)
    (run.folder / results.RECORD).touch()
    if with_weights:
        (run.folder / "checkpoint" / "step-00000001").mkdir(parents=True)


def needed(plan: Plan, *places: int) -> set[str]:
    """Names of the runs that these rows need to pre-train now."""
    return {
        item.run.name
        for item in replace(plan, points=tuple(plan.points[at] for at in places)).updated().to_train
    }


def test_a_runs_name_depends_on_its_parent_and_on_what_is_kept(corpus):
    config = planned(ARMS, corpus).config
    started = {
        runs.plan(config, start).name for start in (None, runs.StartFrom(run="a", keep="training"))
    }
    started |= {
        runs.plan(config, runs.StartFrom(run=parent, keep="weights")).name for parent in ("a", "b")
    }
    assert len(started) == 4


def test_only_missing_runs_are_needed_and_parents_only_for_missing_children(corpus, own_home):
    plan = planned(CHAIN, corpus)
    one, two, four = (item.run for item in plan.points)
    assert needed(plan, 0, 1, 2) == {one.name, two.name, four.name}
    finish(one)
    assert needed(plan, 0, 1, 2) == {two.name, four.name}
    finish(four)
    assert needed(plan, 2) == set(), "no unfinished run needs the middle one"
    assert needed(plan, 0, 1, 2) == {two.name}
    (runs.create(two) / runs.FAILURE).write_text("out of memory")
    assert needed(plan, 0, 1, 2) == {two.name}, "what failed is tried again"


def test_a_dry_run_counts_shared_runs_once_and_arms_for_their_own_part(corpus, own_home):
    plan = planned(ARMS, corpus, "budget.value=10")
    result, config = prices.price([plan]), plan.config
    whole = 10 * config.batch_size * config.max_sequence_length * count_training_flops(config)
    assert result.runs == 3
    assert result.flops == pytest.approx(whole * (0.6 + 2 * 0.4), rel=0.05)


# Execution


# Notes its start and its end, and leaves a record unless it is not to be trained.
WORKER = """
import pathlib, sys, time
folder, code = pathlib.Path(sys.argv[1]), int(sys.argv[2])
with open(folder.parent / "said", "a", buffering=1) as said:
    print("begin", folder.name, file=said)
    time.sleep(0.2)
    (folder / "results.json").touch() if folder.name != "bad" else None
    print("end", folder.name, file=said)
sys.exit(code)
"""


def test_a_child_is_started_only_after_its_parent_was_trained(tmp_path):
    parents = {"arm": "trunk", "orphan": "bad", "grandchild": "orphan"}
    failed = ("bad", "trunk")  # of the trunk, a fine-tuning
    jobs = []
    for name in ("arm", "grandchild", "orphan", "trunk", "bad", "other"):
        folder = tmp_path / name
        folder.mkdir()
        command = [sys.executable, "-S", "-c", WORKER, str(folder), str(int(name in failed))]
        parent = tmp_path / parents[name] if name in parents else None
        jobs.append(Job(folder, command, parent))
    assert children.launch(jobs, 3, lambda *_: None) == 0
    said = (tmp_path / "said").read_text().splitlines()
    begun = [line.split()[1] for line in said if line.startswith("begin")]
    assert {*begun[:3]} == {"trunk", "bad", "other"}
    assert begun[3:] == ["arm"]
    assert said.index("begin arm") > said.index("end trunk")


def test_children_of_a_run_that_failed_are_missing_with_that_reason(corpus, own_home, runs_here):
    plan = planned(
        ARMS,
        corpus,
        "optimizer.learning_rate=1e30",
        "optimizer.warmup=0",
        "machine.log_every_steps=1",
    )
    outcome = train(plan)
    assert outcome.code == 1  # no row is finished
    trunk = plan.points[0].lineage[0].run
    assert "the loss is nan" in outcome.failures[trunk.name]
    table = study.collect(plan.updated(), outcome.failures, "albert-lab toy", print).points
    assert all(trunk.name in point.reason and "the loss is nan" in point.reason for point in table)
    assert train(plan).failures.keys() == {trunk.name}


@pytest.mark.kills
def test_a_killed_trunk_and_arm_resume_without_repeated_steps(
    corpus, own_home, tmp_path, monkeypatch
):
    overrides = ["budget.value=120", "machine.checkpoint_seconds=0"]
    plan = planned(ARMS, corpus, *overrides)
    kept, removed = plan.points
    trunk = kept.lineage[0].run
    start_and_kill(trunk)
    weights_of(trunk)
    start_and_kill(kept.run)
    written = (trunk.folder / results.RECORD).stat().st_mtime_ns
    assert train(plan, jobs=2).code == 0
    assert (trunk.folder / results.RECORD).stat().st_mtime_ns == written
    resumed = {item.run.name: weights_of(item.run) for item in (kept, removed)}
    for item in (kept, removed):
        lines = [
            line for line in results.read_metrics(item.run.folder) if line["event"] == "training"
        ]
        steps = [line["step"] for line in lines]
        assert steps == list(range(1, 121)), "the trunk's curve, then its own, each step once"
        rates = [line["learning_rate"] for line in lines[20:]]
        assert rates == sorted(rates, reverse=True), "one schedule"
    assert trained(trunk).training.steps == 72
    assert trained(kept.run).training.steps == 120
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path / "straight"))
    for run in (trunk, kept.run, removed.run):
        weights_of(run)
    for item in (kept, removed):
        assert_same(resumed[item.run.name], weights_of(item.run))
    first, second = resumed.values()
    assert any(tensor.tobytes() != second[name].tobytes() for name, tensor in first.items())


def test_an_arm_without_changes_equals_a_run_without_a_trunk(corpus, own_home):
    overrides = ["budget.value=20", "machine.log_every_steps=1"]
    arm = planned(ARMS, corpus, *overrides).points[0]
    weights_of(arm.lineage[0].run)
    assert_same(weights_of(arm.run), weights_of(runs.plan(arm.run.config)))
