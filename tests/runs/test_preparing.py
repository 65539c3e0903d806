from command import own_signals
from toy import toy_config

from albert_lab.runs import preparing, worker
from albert_lab.runs import run as runs


def test_the_first_job_makes_all_that_its_runs_need(corpus, own_home, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(own_home / "cache"))
    run = runs.plan(toy_config(corpus))
    folder = runs.create(run)
    assert preparing.lacking([run]) == [run]
    with own_signals():
        assert worker.command(["--prepare", str(folder)]) == 0
    assert not preparing.lacking([run])
    assert {path.name for path in (own_home / "cache").iterdir()} >= {"shards", "tokenizers"}
