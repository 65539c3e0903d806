"""The committed scoreboard, reports and picture of claims against what the records say now.

`albert-lab report reports/*/*`, `albert-lab report reports` and `albert-lab plot claims reports
--out reports` write them anew.
"""

from pathlib import Path

import pytest
from PIL import Image

from albert_lab.analysis.sentences import reports, sentences
from albert_lab.figures import claims, drawing
from albert_lab.report import markdown, scoreboard, wording
from albert_lab.studies import experiment

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "reports"
FOLDERS = sorted(file.parent for file in REPORTS.glob("*/*/study.json"))


@pytest.fixture(scope="module")
def found():
    return reports(REPORTS)


def test_the_scoreboard_is_that_of_the_records(found):
    assert (REPORTS / scoreboard.PAGE).read_text() == scoreboard.render(found, REPORTS)


def test_the_picture_of_claims_is_that_of_the_records(found):
    text = claims.as_text(scoreboard.drawn(found), wording.of_sentences(sentences(found)))
    assert Image.open(REPORTS / scoreboard.PICTURE).text[drawing.DESCRIPTION] == text  # pyright: ignore


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(REPORTS)))
def test_a_report_is_that_of_its_records(folder, found):
    analysis = found[folder]
    picture = next((file.name for file in folder.glob("*.png")), None)
    text = markdown.render(analysis, (picture, wording.title(analysis)) if picture else None)
    assert (folder / "report.md").read_text() == text


def test_a_report_of_a_table_of_the_paper_has_the_claims_of_that_table(found):
    named = {file.stem for file in experiment.files()}
    for folder, analysis in found.items():
        if folder.name in named:
            asked = experiment.named(folder.name)
            assert analysis.experiment.claims == asked.claims, folder
            assert analysis.experiment.answers == asked.answers, folder
