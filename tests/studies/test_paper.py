import json
import re

import pytest
from command import here
from toy import toy_overrides

from albert_lab import paths
from albert_lab.cli.studies import in_order
from albert_lab.runs import results
from albert_lab.studies import experiment

# Two tables that have a run in common, and one that fails.
TABLES = {
    "first": {"source": "Lan et al. 2020, Table 3", "grid": {"embedding_size": ["8"]}},
    "second": {"source": "Lan et al. 2020, Tables 1 and 2", "grid": {"embedding_size": ["8", "4"]}},
    "broken": {
        "source": "Table 9",
        "fixed": ["optimizer.warmup=0", "machine.log_every_steps=1"],
        "grid": {"optimizer.learning_rate": ["1e30"]},
    },
}


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """The experiments of the package."""
    folder = tmp_path / "experiments"
    folder.mkdir()
    for name, content in TABLES.items():
        content = {"title": "Toy", "columns": ["mlm_accuracy"], "figures": []} | content
        (folder / f"{name}.yaml").write_text(json.dumps(content))
    monkeypatch.setattr(paths, "EXPERIMENTS", folder)


def test_experiments_come_in_the_papers_order_and_figures_last():
    found = [experiment.named(file.stem) for file in in_order()]
    numbers = [re.search(r"Tables? (\d+)", of.source) for of in found]
    assert sorted(of.name for of in found) == [file.stem for file in experiment.files()]
    assert (of_tables := [int(number.group(1)) for number in numbers if number]) == sorted(
        of_tables
    )
    assert found[-1].name == "layer-similarity"


@pytest.mark.usefixtures("tables")
def test_the_paper_is_made_runs_are_shared_and_a_failed_table_leaves_the_others(
    corpus, own_home, runs_here
):
    overrides = toy_overrides(corpus, "budget.value=2", "embedding_size=8")
    done = here("paper", *overrides, "--tasks", "none")
    assert done.returncode == 3
    assert "runs: 1, to train: 0" in done.stderr, "the second table's run is the first's"
    assert "FAILED" in done.stderr
    assert "](smoke-files/first/report.md)" in (own_home / "reports" / "README.md").read_text()
    files = [*paths.runs().glob(f"*/{results.RECORD}")]
    written = [file.stat().st_mtime_ns for file in files]
    assert len(files) == 1
    assert here("paper", *overrides, "--tasks", "none").returncode == 3
    assert written == [file.stat().st_mtime_ns for file in files], "nothing repeated"
