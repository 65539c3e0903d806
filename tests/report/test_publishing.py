"""A report replaces the files of the report that was there, and touches no other file."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from toy_reports import toy_report

from albert_lab.analysis.frame import as_csv
from albert_lab.errors import ConfigError
from albert_lab.report import report
from albert_lab.report.scoreboard import publish
from albert_lab.studies import experiment
from albert_lab.studies import study as studies

PLACE = Path("smoke-sotu", "sharing")
MINE = ("mine.csv", "mine.html", "paper.tex", "other.png", "runs/mine.json", "runs/mine.txt")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[int, Path]:
    """A report by its number of seeds."""
    asked = experiment.named("sharing")
    return {
        seeds: toy_report(tmp_path_factory.mktemp("made") / "sharing", asked, seeds)
        for seeds in (1, 2)
    }


def files(folder: Path) -> dict[str, bytes]:
    """The content of every file below a folder, links followed."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_what_a_former_report_wrote_is_replaced_and_nothing_else_is_touched(
    made, tmp_path, empty_figures
):
    target = publish(made[2], tmp_path).parent
    assert target == tmp_path / PLACE
    assert "smoke-sotu/sharing/report.md" in (tmp_path / "README.md").read_text()
    for name in MINE:
        (target / name).write_text("mine")
    publish(made[1], tmp_path)
    records = {f"runs/{point.run}.json" for point in studies.read(made[1]).points}
    made_of_records = {"report.md", "report.html", "results.csv", "sharing-tradeoff.png"}
    written = {"study.json", "experiment.yaml", *made_of_records, *records}
    assert files(target).keys() == {*MINE, *written}
    assert len(studies.read(target).runs) == len(records), "a file of the user is no record"
    before = files(target)
    report.rebuild(target)
    assert files(target) == before
    publish(target, tmp_path)
    assert files(target) == before, "published onto itself"
    assert all(before[name] == b"mine" for name in MINE)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("README.md", "file"),
        (PLACE / "report.md", "file"),
        (PLACE / "report.md", "folder"),
        (PLACE, "link"),
        (PLACE / "runs", "link"),
        ("smoke-sotu/damaged/experiment.yaml", "file"),
    ],
)
def test_nothing_is_published_where_something_else_is_in_the_way(
    made, tmp_path, empty_figures, name, kind
):
    path, elsewhere = tmp_path / "reports" / name, tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.csv").write_text("mine")
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(elsewhere)
    before = files(tmp_path)
    with pytest.raises(ConfigError):
        publish(made[1], tmp_path / "reports")
    assert files(tmp_path) == before


def test_text_in_a_table_of_numbers_is_no_formula():
    table = pd.DataFrame({"row": ["=1+1", "@a", "-b", "a=1"], "value": [-1.5, 2.0, 3.0, 4.0]})
    assert as_csv(table).splitlines()[1:] == ["'=1+1,-1.5", "'@a,2.0", "'-b,3.0", "a=1,4.0"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"seed": 10**30}, "seed"),
        ({"seed": 5}, "seed"),
        ({"labels": {}}, "axes"),
        ({"values": {"sharing": "all-shared"}}, "axes"),
        ({"labels": {"a": "b"}, "values": {"a": "b"}}, "axes"),
        ({"run": "gone"}, "gone"),
    ],
)
def test_a_study_of_other_rows_than_its_runs_is_refused(made, tmp_path, changes, problem):
    folder = tmp_path / "sharing"
    shutil.copytree(made[1], folder)
    content = json.loads((folder / studies.STUDY).read_text())
    content["points"][0] |= changes
    (folder / studies.STUDY).write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=problem):
        studies.read(folder)
