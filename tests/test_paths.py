from pathlib import Path

import pytest

from albert_lab import paths

FOLDERS = {
    "runs": "lab/runs",
    "reports": "lab/reports",
    "cache": "lab/cache",
    "tasks_data": "lab/data",
    "published": "reports",
}
OF_HOME = {
    "runs": "there/runs",
    "reports": "there/reports",
    "cache": "there/cache",
    "tasks_data": "there/data",
}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch, tmp_path):
    for name in ("HOME", "PUBLISHED", "CACHE", "TASKS"):
        monkeypatch.delenv(f"ALBERT_LAB_{name}", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("variable", "given", "moved"),
    [
        ("HOME", "", {}),
        ("HOME", "there", OF_HOME),
        ("CACHE", "there", {"cache": "there"}),
        ("TASKS", "there", {"tasks_data": "there"}),
        ("PUBLISHED", "there", {"published": "there"}),
    ],
)
def test_all_is_written_below_the_current_folder_and_a_variable_moves_its_folders_alone(
    monkeypatch, tmp_path, variable, given, moved
):
    monkeypatch.setenv(f"ALBERT_LAB_{variable}", given)
    for name, place in (FOLDERS | moved).items():
        assert getattr(paths, name)() == tmp_path / place


def test_a_variable_may_start_with_the_home_folder(monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_HOME", "~/there")
    assert paths.home() == Path.home() / "there"
