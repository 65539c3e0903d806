import shlex

from command import own_signals
from toy import toy_config

from albert_lab.runs import preparing, worker
from albert_lab.runs import run as runs
from albert_lab.studies.jobs import Job, print_commands


def test_the_line_of_the_preparation_comes_first_and_makes_all_that_its_runs_need(
    corpus, own_home, monkeypatch, capsys
):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(own_home / "cache"))
    run = runs.plan(toy_config(corpus))
    folder = runs.create(run)
    assert preparing.lacking([run]) == [run]
    print_commands([Job(folder, ["train", str(folder)])], [run])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert ["--prepare" in line for line in lines] == [True, False]
    assert all(f"ALBERT_LAB_CACHE={own_home}/cache" in line for line in lines)
    with own_signals():
        assert worker.command(shlex.split(lines[0].partition("albert_lab.runs.worker")[2])) == 0
    assert not preparing.lacking([run])
    assert {path.name for path in (own_home / "cache").iterdir()} >= {"shards", "tokenizers"}
