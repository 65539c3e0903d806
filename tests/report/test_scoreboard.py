import json

import pytest
from toy_reports import toy_report

from albert_lab.analysis import sentences
from albert_lab.analysis.verdicts import CANNOT_TELL, NOT_SUPPORTED, SUPPORTED, UNDECIDED
from albert_lab.report import scoreboard
from albert_lab.studies import experiment
from albert_lab.studies.experiment import Experiment


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Reports of a table of the paper at two scales, and of an own study."""
    folder = tmp_path_factory.mktemp("reports")
    for place in ("small", "large"):
        report = toy_report(folder / place / "sop-vs-nsp", experiment.named("sop-vs-nsp"), 3)
        for file in (report / "runs").glob("*.json"):
            content = json.loads(file.read_text())
            content["record"]["train_flops_per_token"] *= 10 if place == "large" else 1
            file.write_text(json.dumps(content))
    own = {"name": "own", "title": "Mine?", "source": "own study", "grid": {"embedding_size": ["4", "8"]}}
    toy_report(folder / "small" / "own", Experiment.model_validate(own), 2)
    return folder


def test_a_sentence_has_one_line_that_of_the_largest_scale(root):
    lines = sentences.sentences(sentences.reports(root))
    quotes = [claim.quote for file in experiment.files() for claim in experiment.named(file.stem).claims]
    assert len(lines) <= len(set(quotes)) <= scoreboard.MOST_LINES
    run = [line for line in lines if line.report]
    assert len(run) == 4, "sentences on tasks were not run"
    assert {line.report[0].parent.name for line in run if line.report} == {"large"}


def test_the_scoreboard_links_every_report_once(root):
    text = scoreboard.write(root).read_text()
    assert text.count("(large/sop-vs-nsp/report.md)") == 4
    assert text.count("(small/sop-vs-nsp/report.md)") == 1
    assert text.count("(small/own/report.md)") == 1
    assert len(scoreboard.as_text(sentences.sentences(sentences.reports(root))).splitlines()) > 4
    assert json.dumps(scoreboard.as_data(sentences.sentences(sentences.reports(root))))


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ({SUPPORTED}, SUPPORTED),
        ({SUPPORTED, CANNOT_TELL}, SUPPORTED),
        ({SUPPORTED, NOT_SUPPORTED}, sentences.MIXED),
        ({SUPPORTED, UNDECIDED}, UNDECIDED),
        ({CANNOT_TELL}, CANNOT_TELL),
    ],
)
def test_tests_of_one_sentence_make_one_verdict(verdicts, outcome):
    assert sentences.outcome(verdicts) == outcome
