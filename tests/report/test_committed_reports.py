import re
import shutil
import textwrap
from pathlib import Path

import pytest

from albert_lab.report import ladder, overview, report
from albert_lab.studies import ladder_results

REPORTS = Path(__file__).parents[2] / "reports"
FOLDERS = sorted(file.parent for file in REPORTS.glob("*/*/experiment.yaml"))
LADDERS = sorted(file.parent for file in REPORTS.glob("*/*/ladder.json"))[
    :2
]  # one takes seconds: of tokens, and of size


def texts(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".md", ".html", ".svg", ".csv")
    }


@pytest.mark.parametrize("folder", [*FOLDERS, *LADDERS], ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_committed_report_is_rebuilt_from_its_records(folder, tmp_path):
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    for name in texts(copy):
        (copy / name).unlink()
    (ladder if ladder_results.holds(copy) else report).rebuild(copy)
    assert texts(copy) == texts(folder)


@pytest.mark.skipif(not FOLDERS, reason="no report is committed")
def test_the_committed_page_is_rebuilt_from_its_reports(tmp_path):
    copy = tmp_path / "reports"
    shutil.copytree(REPORTS, copy)
    overview.write(copy)
    assert texts(copy) == texts(REPORTS)


def test_the_page_of_the_committed_reports_fits_on_three_screens():
    shown = re.sub(r"\]\([^)]*\)|[*`\[]", "", (REPORTS / overview.PAGE).read_text())
    lines = [part for line in shown.splitlines() for part in textwrap.wrap(line, 125)]
    assert len(lines) <= 3 * 32
