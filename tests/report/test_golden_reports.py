"""The report of every packaged experiment, from fixed records; two of them to the letter."""

import os
from pathlib import Path

import pytest
from toy_reports import compose_figure, toy_report

from albert_lab.figures import drawing
from albert_lab.report import report
from albert_lab.studies import experiment

GOLDEN = Path(__file__).with_name("golden")


@pytest.mark.parametrize("name", [file.stem for file in experiment.files()])
def test_every_experiment_has_a_report_and_those_in_the_folder_are_the_golden_ones(name, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "write", compose_figure)
    folder = toy_report(tmp_path / name, experiment.named(name), 3, full=True)
    text, golden = report.rebuild(folder).read_text(), GOLDEN / f"{name}.md"
    assert text.startswith(f"# {experiment.named(name).title} (smoke, sotu)")
    if golden.exists():
        if os.environ.get("ALBERT_LAB_GOLDEN") == "write":
            golden.write_text(text)
        assert text == golden.read_text()
