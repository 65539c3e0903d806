import re

import pytest
from command import here
from toy import toy_overrides

from albert_lab.errors import ConfigError
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.studies import experiment, paper
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.prices import price

# Two tables that have a run in common, and one that overrides can break.
TABLES = [
    {"name": "first", "source": "Lan et al. 2020, Table 3", "grid": {"embedding_size": ["8"]}},
    {"name": "second", "source": "Lan et al. 2020, Tables 1 and 2", "grid": {"embedding_size": ["8", "4"]}},
]


def tables(*more) -> list[Experiment]:
    return [
        Experiment.model_validate({"title": "Toy", "columns": ["mlm_accuracy"], "figures": ()} | content)
        for content in (*TABLES, *more)
    ]


def test_experiments_come_in_the_papers_order_and_figures_last():
    names = [experiment.name for experiment in paper.experiments()]
    assert sorted(names) == [file.stem for file in experiment.files()]
    numbers = [re.search(r"Tables? (\d+)", experiment.source) for experiment in paper.experiments()]
    tables = [int(number.group(1)) for number in numbers if number]
    assert tables == sorted(tables)
    assert names[-1] == "layer-similarity"


def test_an_override_that_a_table_refuses_is_reported_with_its_name_before_any_run(own_home):
    with pytest.raises(ConfigError, match="model-sizes"):
        paper.plan_paper(["scale=smoke", "sharing=groups"], [])
    assert not list(own_home.iterdir())


def test_the_cost_of_the_paper_counts_shared_runs_once(corpus, own_home, monkeypatch):
    monkeypatch.setattr(paper, "experiments", tables)
    seen: set[str] = set()
    assert [price(plan, seen).runs for plan in paper.plan_paper(toy_overrides(corpus), [])] == [1, 1]
    assert not list(own_home.iterdir())


def test_the_paper_is_made_runs_are_shared_and_a_failed_table_leaves_the_others(
    corpus, own_home, runs_here, monkeypatch
):
    broken = {"name": "broken", "source": "Table 9", "grid": {"optimizer.learning_rate": ["1e30"]}}
    broken["fixed"] = ["optimizer.warmup=0", "machine.log_every_steps=1"]
    monkeypatch.setattr(paper, "experiments", lambda: tables(broken))
    overrides = toy_overrides(corpus, "budget.value=2", "embedding_size=8")
    done = here("paper", *overrides, "--tasks", "none")
    assert done.returncode == 3
    err = done.stderr
    assert "runs: 1, to train: 0" in err, "the second table's run is the first's"
    assert "FAILED" in err
    reports = own_home / "reports"
    assert "](smoke-files/first/report.md)" in (reports / "README.md").read_text()
    records = {
        folder: (folder / results.RECORD).stat().st_mtime_ns
        for folder in runs.paths.runs().iterdir()
        if (folder / results.RECORD).exists()
    }
    assert len(records) == 1
    assert here("paper", *overrides, "--tasks", "none").returncode == 3
    assert records == {folder: (folder / results.RECORD).stat().st_mtime_ns for folder in records}, "nothing repeated"
