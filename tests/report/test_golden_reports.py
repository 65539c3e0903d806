"""Every report against a golden file: the text of each packaged experiment's, from fixed records."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from golden import assert_golden
from toy_reports import compose_figure, toy_report

from albert_lab.figures import drawing
from albert_lab.report import report
from albert_lab.studies import experiment
from albert_lab.studies import study as studies

GOLDEN = Path(__file__).with_name("golden")
EXPERIMENTS = [file.stem for file in experiment.files()]


class Cells(HTMLParser):
    """The tables of a page as lists of rows of texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._is_inside = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._is_inside = True

    def handle_endtag(self, tag):
        self._is_inside = self._is_inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self._is_inside:
            self.tables[-1][-1][-1] += data


def tables_of(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown text, without the rules below their headers and the marks of code."""
    blocks = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    return [
        [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in [*block[:1], *block[2:]]]
        for block in blocks
    ]


@pytest.fixture(scope="module", params=EXPERIMENTS)
def folder(request, tmp_path_factory):
    """The report of an experiment in both its forms."""
    folder = toy_report(
        tmp_path_factory.mktemp("report") / request.param, experiment.named(request.param), 3, full=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "write", compose_figure)
        report.rebuild(folder)
    return folder


def test_the_report_of_every_experiment_is_the_golden_one(folder):
    assert_golden((folder / report.REPORT).read_text(), GOLDEN / f"{folder.name}.md")


def test_the_page_of_every_experiment_has_the_tables_and_figures_of_its_text(folder):
    text, page = ((folder / name).read_text() for name in (report.REPORT, report.PAGE))
    tables = tables_of(text)
    assert len(tables) >= 3
    assert Cells(page).tables == tables
    assert page.count("<img ") == text.count("![") > 0


def test_the_page_of_every_experiment_has_a_curve_for_each_finished_run(folder):
    page = (folder / report.PAGE).read_text()
    finished = len(studies.read(folder).runs)
    panels = page.count("<figure ")
    assert panels == len([column for column in experiment.named(folder.name).columns if column.endswith("_accuracy")])
    assert page.count("<polyline ") == panels * finished


def test_every_golden_report_has_an_experiment():
    assert sorted(file.stem for file in GOLDEN.iterdir()) == EXPERIMENTS
