"""The real packages of trackers, offline: the points of a run that was killed and resumed, counted in each."""

import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from albert_lab.trackers import tracker
from albert_lab.training.log import METRICS

# A process that logs some steps and is killed, or one that resumes from the log and ends the run.
PROCESS = """
import os, signal, sys
from pathlib import Path
from albert_lab.trackers.feed import Feed
from albert_lab.training.log import MetricsLog

tracker, folder, size, first, last, kill = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:])
feed = Feed([tracker], "toy_seed0", folder, {"model": {"hidden_size": 8}, "seed": 0}, print)
log = MetricsLog(folder, lambda line: None, feed)
log.rewind(size)
for step in range(first, last, 10):
    log.write({"event": "training", "step": step, "loss": 1 / (1 + step)})
    if step == 20:
        log.write({"event": "evaluation", "step": step, "mlm_accuracy": 12.5})
    if step == 30:
        print(log.flush(), flush=True)
if kill:
    feed.drain()
    os.kill(os.getpid(), signal.SIGKILL)
log.finish({"mlm_accuracy": 20.0}, last - 10)
log.close()
"""


def trackio_steps(folder, name):
    storage = import_module("trackio.sqlite_storage").SQLiteStorage
    return [row["step"] for row in storage.get_logs("albert-lab", "toy_seed0") if name in row]


def mlflow_steps(folder, name):
    client = import_module("mlflow.tracking").MlflowClient(f"file:{folder}/mlruns")
    (run,) = client.search_runs([client.get_experiment_by_name("albert-lab").experiment_id])
    return [metric.step for metric in client.get_metric_history(run.info.run_id, name)]


def tensorboard_steps(folder, name):
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    events = (
        event for file in sorted((folder / "tensorboard").iterdir()) for event in EventFileLoader(str(file)).Load()
    )
    return [event.step for event in events if any(value.tag == name for value in event.summary.value)]


def wandb_steps(folder, name):
    from albert_lab.trackers.wandb import steps_of

    return [step for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")) for step in steps_of(file, name)]


STEPS = {"trackio": trackio_steps, "wandb": wandb_steps, "mlflow": mlflow_steps, "tensorboard": tensorboard_steps}


def test_every_tracker_is_tried():
    assert {*STEPS} == {*tracker.names()}


@pytest.mark.parametrize("name", STEPS)
def test_a_run_that_was_killed_and_resumed_has_each_point_once(name, tmp_path, monkeypatch):
    if find_spec(name) is None:
        pytest.skip(f"pip install 'albert-lab[{name}]'")
    settings = {"TRACKIO_DIR": str(tmp_path / "trackio"), "WANDB_MODE": "offline", "MLFLOW_ALLOW_FILE_STORE": "true"}
    settings |= {"MLFLOW_TRACKING_URI": f"file:{tmp_path}/mlruns", "MLFLOW_DISABLE_AGENT_ASSIST": "true"}
    for key, value in settings.items():
        monkeypatch.setenv(key, value)

    def process(*arguments):
        arguments = [sys.executable, "-c", PROCESS, name, tmp_path, *arguments]
        return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, env=dict(os.environ))

    killed = process(0, 0, 70, 1)  # its last checkpoint is that of step 30
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = process(killed.stdout.split()[-1], 40, 110, 0)
    assert resumed.returncode == 0, resumed.stderr
    steps = list(range(0, 110, 10))
    assert [json.loads(line)["step"] for line in (tmp_path / METRICS).read_text().splitlines()] == sorted([*steps, 20])
    assert STEPS[name](tmp_path, "training/loss") == steps
    assert STEPS[name](tmp_path, "evaluation/mlm_accuracy") == [20]
    assert STEPS[name](tmp_path, "final/mlm_accuracy") == [100]
