import errno
from pathlib import Path

import pytest

from albert_lab import paths
from albert_lab.errors import ConfigError

FOLDERS = {"runs": paths.runs, "reports": paths.reports, "cache": paths.cache, "data": paths.tasks_data}
VARIABLES = {"reports": "ALBERT_LAB_REPORTS", "cache": "ALBERT_LAB_CACHE", "data": "ALBERT_LAB_TASKS"}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch, tmp_path):
    for name in ("ALBERT_LAB_HOME", "ALBERT_LAB_PUBLISHED", *VARIABLES.values()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_everything_is_written_below_one_folder_in_the_current_folder(tmp_path):
    assert paths.home() == tmp_path / "lab"
    assert {name: folder() for name, folder in FOLDERS.items()} == {name: tmp_path / "lab" / name for name in FOLDERS}


def test_home_moves_all_output_but_not_published_reports(monkeypatch, tmp_path):
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path / "elsewhere"))
    assert {folder().parent for folder in FOLDERS.values()} == {tmp_path / "elsewhere"}
    assert paths.published() == tmp_path / "reports"


@pytest.mark.parametrize("name", VARIABLES)
def test_a_single_folder_can_be_elsewhere(monkeypatch, tmp_path, name):
    monkeypatch.setenv(VARIABLES[name], str(tmp_path / "elsewhere"))
    assert FOLDERS[name]() == tmp_path / "elsewhere"
    assert all(folder() == tmp_path / "lab" / other for other, folder in FOLDERS.items() if other != name)


def test_variables_may_be_relative_empty_or_start_with_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("ALBERT_LAB_HOME", "there")
    assert paths.home() == tmp_path / "there"
    monkeypatch.setenv("ALBERT_LAB_HOME", "")
    assert paths.home() == tmp_path / "lab"
    monkeypatch.setenv("ALBERT_LAB_HOME", "~/there")
    assert paths.home() == Path.home() / "there"


def test_what_is_no_folder_is_refused_with_its_variable(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "circle").symlink_to("circle")
    for path in ("file", "file/below", "nowhere/below", "circle", "~nobody-of-this-name/x"):
        monkeypatch.setenv("ALBERT_LAB_CACHE", path)
        with pytest.raises(ConfigError, match=path.split("/")[0]):
            paths.cache()
    (tmp_path / "lab").touch()
    with pytest.raises(ConfigError, match="lab"):
        paths.runs()


def test_a_refusal_of_the_system_is_that_of_the_variable_whose_folder_it_concerns(monkeypatch, tmp_path):
    name = "cache"
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(VARIABLES[name], str(tmp_path / "home" / "there" / "here"))

    def refused(number, file):
        return (paths.refused(OSError(number, "No", str(tmp_path / file))) or "").partition("=")[0]

    assert refused(errno.ENOENT, "home/there") == refused(errno.EACCES, "home/there/here/file") == VARIABLES[name]
    assert refused(errno.EROFS, "home/runs") == "ALBERT_LAB_HOME"
    assert not refused(errno.ENOENT, "home/there/here/file"), "a single file that is missing"
    assert not refused(errno.ENOSPC, "home/there")
    assert not refused(errno.EACCES, "elsewhere")
    assert paths.refused(OSError("no file")) is None
    monkeypatch.delenv("ALBERT_LAB_HOME")
    assert refused(errno.EACCES, "lab/runs").startswith("ALBERT_LAB_HOME is not set: ")
