import os
from pathlib import Path

import pytest

from albert_lab import own_code
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.files import read_bytes, read_yaml


@pytest.mark.parametrize("read", [read_bytes, own_code.include])
def test_a_pipe_or_a_device_in_place_of_a_file_is_refused_and_not_awaited(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ConfigError, match=file.name):
            read(file)


def test_a_yaml_file_of_more_values_than_are_read_in_seconds_is_refused(tmp_path):
    (tmp_path / "mine.yaml").write_text(f"labels: [{'a,' * 100_000}]")
    with pytest.raises(DamagedFileError, match="more than 100,000"):
        read_yaml(tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    "text", ["a: [1\n", "# nothing\n", "[1]", "\xff", "a: &x [1]\nb: *x\n", "a: " + "[" * 100_000]
)
def test_what_is_no_yaml_with_keys_is_named(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text, encoding="latin-1")
    with pytest.raises(DamagedFileError, match="mine.yaml"):
        read_yaml(tmp_path / "mine.yaml")
