from pathlib import Path

import pytest

from albert_lab.errors import WriteError
from albert_lab.training.log import METRICS, MetricsLog


def test_a_full_disk_raises_an_error_that_names_the_log(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("the system has no /dev/full")
    (tmp_path / METRICS).symlink_to("/dev/full")
    with pytest.raises(WriteError, match=rf"{METRICS} could not be written: the disk is full"):
        MetricsLog(tmp_path, lambda _line: None).write({"event": "training", "step": 1})
