"""What is printed: no text of a record, an experiment or an argument controls the terminal."""

import io
import json

import pytest
from command import here
from toy import toy_config
from toy_reports import toy_report

from albert_lab import paths
from albert_lab.analysis import analysis
from albert_lab.runs import run as runs
from albert_lab.studies.experiment import Experiment
from albert_lab.terminal import screen
from albert_lab.terminal.console import PlainConsole

HOSTILE = "\x1b]0;owned\x07\r\x9b31m\u202e [red]x[/y] :smile:\nall is well"
EXPERIMENT = {
    "title": HOSTILE,
    "source": HOSTILE,
    "grid": {"embedding_size": {"evil": "4", "plain": "8"}},
}


def check(text: str) -> None:
    """What was printed has no character that controls a terminal, and no line that is not ours."""
    assert [char for char in text if not (char.isprintable() or char == "\n")] == []
    assert "all is well" not in text.splitlines()


@pytest.fixture
def hostile(own_home, corpus):
    """A report, and a failed run in it, by someone who knows terminals."""
    asked = Experiment.model_validate({"name": "own", **EXPERIMENT})
    folder = toy_report(paths.reports() / "smoke-sotu" / "own", asked, 2)
    for file in (folder / "study.json", folder / "experiment.yaml"):
        text = (
            file.read_text()
            .replace('"evil"', json.dumps(HOSTILE))
            .replace(" evil:", f" {json.dumps(HOSTILE)}:")
        )
        file.write_text(text)
    run = runs.create(runs.plan(toy_config(corpus)))
    (run / runs.FAILURE).write_text(HOSTILE)
    return folder


def test_nothing_of_a_report_controls_the_terminal(hostile, empty_figures, tmp_path):
    elsewhere = tmp_path / "a\x1b[2Jb"
    elsewhere.symlink_to(hostile)
    printed = [
        here(*words.split())
        for words in (
            "status",
            f"compare {hostile} {hostile}",
            f"report {hostile}",
            f"report {hostile} --publish",
            f"report {paths.reports()}",
            f"report {hostile}/none",
            f"plot scores-by-setting {hostile}",
            "plot layer-similarity",
        )
    ]
    for result in printed:
        check(result.stdout + result.stderr)
    assert [result.returncode for result in printed] == [0, 0, 0, 0, 0, 2, 0, 4]
    assert all("\\u001b]0;owned" in result.stdout for result in printed[:2])
    out = io.StringIO()
    screen.print_on(
        PlainConsole(file=out, width=100, force_terminal=False), hostile, analysis.read(hostile)
    )
    check(out.getvalue())
    assert "[red]x[/y] :smile:" in out.getvalue(), "text is no markup"


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", f"embedding_size={HOSTILE}"),
        ("report", HOSTILE),
        (HOSTILE,),
        ("sweep", f"--{HOSTILE}"),
    ],
)
def test_an_argument_that_cannot_be_seen_is_refused(words):
    result = here(*words)
    assert result.returncode == 2
    check(result.stdout + result.stderr)
