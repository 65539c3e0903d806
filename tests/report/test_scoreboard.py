import json

import pytest
from toy_reports import toy_report

from albert_lab.analysis.sentences import reports, sentences
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
    own = {
        "name": "own",
        "title": "Mine?",
        "source": "own study",
        "grid": {"embedding_size": ["4", "8"]},
    }
    toy_report(folder / "small" / "own", Experiment.model_validate(own), 2)
    return folder


def test_a_claim_has_one_line_that_of_the_largest_scale(root):
    lines = sentences(reports(root))
    claims = [claim for file in experiment.files() for claim in experiment.named(file.stem).claims]
    assert len(lines) == len(claims)
    assert all(line.claim in claims for line in lines)
    measured = [found for line in lines for found in line.by.values() if found.verdict.effect]
    assert len(measured) == 4, "tasks were not run"
    assert {found.folder.parent.name for found in measured} == {"large"}


def test_claims_stand_in_the_order_of_the_papers_tables_and_then_of_its_figures(root):
    places = list(dict.fromkeys(line.where for line in sentences(reports(root))))
    assert places[:4] == ["Tables 1 and 2", "Table 3", "Table 4", "Table 5"]
    assert places[-3:] == ["Table 12", "Table 13", "Figure 1"]


def test_the_scoreboard_has_every_claim_and_links_every_report(root):
    found = reports(root)
    text = scoreboard.write(root).read_text()
    lines = sentences(found)
    assert all(f"| {line.claim.short}" in text for line in lines)
    assert text.count("(large/sop-vs-nsp/report.md") >= 4
    assert text.count("(small/sop-vs-nsp/report.md)") == 1
    assert text.count("(small/own/report.md)") == 1
    assert "](small/sop-vs-nsp/report.md) \\*:" in text, "its text was not cleaned"
    assert len(scoreboard.as_text(lines).splitlines()) == len(scoreboard.picture(lines)) + 3
    assert json.dumps(scoreboard.as_data(lines))


def test_studies_of_a_trained_encoder_stand_apart_from_those_from_scratch(root, tmp_path):
    asked = experiment.named("sop-vs-nsp").model_copy(update={"start_from": "an-encoder"})
    toy_report(tmp_path / "large" / "sop-vs-nsp", asked, 3)
    found = reports(tmp_path)
    assert not any(line.by for line in sentences(found))
    before, after = scoreboard.render(found, tmp_path).split("## Asked of a trained encoder")
    assert "large/sop-vs-nsp" not in before
    assert "large/sop-vs-nsp" in after
    published = scoreboard.publish(tmp_path / "large" / "sop-vs-nsp", tmp_path)
    assert published.parent.parent.name.endswith("-from-an-encoder")
