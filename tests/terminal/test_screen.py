import io
from dataclasses import replace

import pandas as pd
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


def test_two_reports_are_compared_in_units_on_a_screen_whatever_their_texts_are_called(full):
    _, result = full("sop-vs-nsp")
    table = analysis.compare_summaries(result.summary, result.summary)
    lines = screen.compared(result, result, table).splitlines()
    assert len(lines) <= screen.LINES
    assert " ".join(lines[2].split()) == "MLM % none 21.0 21.0 +0.0 points [-3.3, +3.3]"
    assert "nan" not in "".join(lines)
    documents = [
        {"run": run.name, "metric": "mlm_accuracy", "document": 0, "n": 5, "sum": 2}
        for run in result.study.runs
    ]
    other_name = [
        run.model_copy(update={"record": run.record.model_copy(update={"evaluation_set": "b"})})
        for run in result.study.runs
    ]
    known = replace(result, frame=replace(result.frame, documents=pd.DataFrame(documents)))
    renamed = replace(known, study=result.study.model_copy(update={"runs": other_name}))
    assert len(known.held_out) == 1
    assert renamed.held_out == known.held_out
