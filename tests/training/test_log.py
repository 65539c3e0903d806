from pathlib import Path

import pytest

from albert_lab.errors import DamagedFileError
from albert_lab.runs.results import read_metrics
from albert_lab.training.log import METRICS, MetricsLog


def test_a_full_disk_raises_an_error(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("the system has no /dev/full")
    (tmp_path / METRICS).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space"):
        MetricsLog(tmp_path).write({"event": "training", "step": 1})


def test_a_log_that_lost_lines_since_its_checkpoint_is_called_damaged(tmp_path):
    log = MetricsLog(tmp_path)
    log.write({"event": "training", "step": 1})
    size = log.flush()
    log.write({"event": "training", "step": 2})
    (tmp_path / "backup").hardlink_to(tmp_path / METRICS)
    log.begin(size)
    assert log.flush() == size
    assert (tmp_path / "backup").stat().st_size > size, "another name of the file keeps all"
    (tmp_path / METRICS).unlink()
    with pytest.raises(DamagedFileError, match=METRICS):
        log.begin(size)


def test_a_gradient_norm_that_is_not_finite_does_not_damage_the_log(tmp_path):
    MetricsLog(tmp_path).write({"event": "training", "step": 1, "gradient_norm": float("inf")})
    assert read_metrics(tmp_path) == [{"event": "training", "step": 1, "gradient_norm": None}]
