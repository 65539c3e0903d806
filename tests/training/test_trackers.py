"""Each tracker has the numbers of the log at their steps; one that is not installed is refused
before any work.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from albert_lab.errors import MissingDataError
from albert_lab.training import log
from albert_lab.training.log import MetricsLog, tracked


def test_tensorboard_has_the_numbers_of_each_line_at_its_step(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tracked(["tensorboard"], "toy", tmp_path, {"seed": 0}) as track:
        log = MetricsLog(tmp_path, track)
        for step in (10, 20):
            log.write(
                {
                    "event": "training",
                    "step": step,
                    "loss": 1 / step,
                    "note": "text",
                    "missing": None,
                }
            )
        track({"event": "final", "step": 20, "mlm_accuracy": 12.5})
    kept = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert sorted(kept.Tags()["scalars"]) == ["final/mlm_accuracy", "training/loss"]
    assert [(point.step, point.value) for point in kept.Scalars("training/loss")] == [
        (10, pytest.approx(0.1)),
        (20, pytest.approx(0.05)),
    ]
    assert [
        json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()
    ] == [10, 20]


@pytest.mark.skipif(find_spec("wandb") is None, reason="needs the extra wandb")
def test_wandb_keeps_an_offline_run_below_the_folder(tmp_path):
    code = "import sys; from pathlib import Path; from albert_lab.training.log import tracked;"
    code += "opened = tracked(['wandb'], 'toy', Path(sys.argv[1]), {});"
    code += (
        "opened.__enter__()({'event': 'training', 'step': 1, 'loss': 1.0}); opened.__exit__(None, "
        "None, None)"
    )
    subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        check=True,
        env=os.environ | {"WANDB_MODE": "offline"},
    )
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def test_a_tracker_that_is_not_installed_is_missing(monkeypatch):
    monkeypatch.setattr(log, "find_spec", lambda name: None)
    with pytest.raises(MissingDataError, match="wandb"):
        log.check_installed(["wandb"])
