import io

import pytest
from rich.console import Console
from toy_reports import toy_report

from albert_lab.analysis import analysis
from albert_lab.studies import experiment
from albert_lab.terminal import screen


def shown(folder, result, width) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    screen.print_on(console, folder, result)
    return console.file.getvalue().splitlines()  # pyright: ignore


@pytest.mark.parametrize("width", [80, screen.WIDTH])
@pytest.mark.parametrize("name", [file.stem for file in experiment.files()])
def test_the_last_screen_fits_and_has_the_answer_the_table_the_claims_and_the_paths(
    name, width, full
):
    folder, result = full(name)
    lines = shown(folder, result, width)
    assert len(lines) <= screen.LINES
    assert max(map(len, lines[:-2])) <= width
    assert lines[0].startswith(experiment.named(name).title[:40])
    # the page if it was written, and maybe a picture
    assert any("/report." in line for line in lines[-2:])
    claims = experiment.named(name).claims
    assert sum(line.startswith(tuple(screen.COLOURS)) for line in lines) >= min(1, len(claims))


def test_the_screen_is_plain_where_it_is_piped(tmp_path, capsys):
    folder = toy_report(tmp_path / "sop-vs-nsp", experiment.named("sop-vs-nsp"), 2)
    screen.show(folder, analysis.read(folder))
    assert "\x1b" not in capsys.readouterr().out
