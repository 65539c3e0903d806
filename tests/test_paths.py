from pathlib import Path

import pytest

from albert_lab import paths

FOLDERS = {
    "runs": paths.runs,
    "reports": paths.reports,
    "cache": paths.cache,
    "data": paths.tasks_data,
}
VARIABLES = {"cache": "ALBERT_LAB_CACHE", "data": "ALBERT_LAB_TASKS"}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch, tmp_path):
    for name in ("ALBERT_LAB_HOME", "ALBERT_LAB_PUBLISHED", *VARIABLES.values()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_everything_is_written_below_one_folder_in_the_current_folder(tmp_path):
    assert paths.home() == tmp_path / "lab"
    assert {name: folder() for name, folder in FOLDERS.items()} == {
        name: tmp_path / "lab" / name for name in FOLDERS
    }


def test_home_moves_all_output_but_not_published_reports(monkeypatch, tmp_path):
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path / "elsewhere"))
    assert {folder().parent for folder in FOLDERS.values()} == {tmp_path / "elsewhere"}
    assert paths.published() == tmp_path / "reports"


@pytest.mark.parametrize("name", VARIABLES)
def test_a_single_folder_can_be_elsewhere(monkeypatch, tmp_path, name):
    monkeypatch.setenv(VARIABLES[name], str(tmp_path / "elsewhere"))
    assert FOLDERS[name]() == tmp_path / "elsewhere"
    assert all(
        folder() == tmp_path / "lab" / other for other, folder in FOLDERS.items() if other != name
    )


def test_variables_may_be_relative_empty_or_start_with_the_home_folder(monkeypatch, tmp_path):
    for given, meant in {
        "there": tmp_path / "there",
        "": tmp_path / "lab",
        "~/there": Path.home() / "there",
    }.items():
        monkeypatch.setenv("ALBERT_LAB_HOME", given)
        assert paths.home() == meant
