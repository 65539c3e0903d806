import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from albert_lab import own_code
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.files import read_bytes, read_yaml
from albert_lab.score import Score


@pytest.mark.parametrize("value", [750.0, -101.0, float("nan"), float("inf")])
def test_a_score_above_100_percent_is_refused(value):
    with pytest.raises(ValidationError):
        Score(value=value, n=10, low=None, high=None, floor=50.0, by="head")


@pytest.mark.parametrize("read", [read_bytes, own_code.include])
def test_a_pipe_or_a_device_in_place_of_a_file_is_refused_and_not_awaited(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ConfigError, match=file.name):
            read(file)


@pytest.mark.parametrize("text", ["a: &x [1]\nb: *x\n", "a: " + "[" * 100 + "]" * 100])
def test_yaml_that_could_mean_billions_of_values_is_refused(tmp_path, text):
    (tmp_path / "bomb.yaml").write_text(text)
    with pytest.raises(DamagedFileError):
        read_yaml(tmp_path / "bomb.yaml")
