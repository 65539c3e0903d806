import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import here
from toy import toy_overrides
from toy_reports import toy_report

from albert_lab import paths
from albert_lab.cli import app
from albert_lab.studies import experiment


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["sop-vs-nsp", "modl=base"], "modl"),
        (["sop-vs-nsp", "batch_size=many"], "batch_size=many"),
        (["pretrain", "seed=0,1"], "seed=0,1"),
        (["sweep", "steps=1,2"], "steps"),
        (["report", "nowhere", "--publish"], "nowhere"),
        (["compare", "nowhere", "nowhere"], "nowhere"),
        (["sop-vs-nsp", "--jobs", "1000000000"], "1000000000"),
        (["sop-vs-nsp", "--tasks", "mnly"], "mnli"),
        (["sop-vs-nsp", "--tasks", "none,cola"], "none"),
        (["finetune", "nowhere"], "nowhere"),
        (["finetune", "nowhere", "--seeds", "9" * 5000], "--seeds"),
        (["pretrain", "start_from=nowhere"], "nowhere"),
        (["pretrain", "start_from="], "run.yaml"),
        (["export", str(Path(__file__).parent), "out"], "run.yaml"),
        (["config", "show", "corpus=files", "corpus.path="], "corpus.path"),
    ],
)
def test_a_mistake_is_named_with_exit_code_2_and_nothing_is_written(arguments, key, own_home):
    done = here(*arguments)
    assert done.returncode == 2, done.stderr
    assert key in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(own_home.iterdir())


def test_missing_text_is_exit_code_4_and_names_its_expected_path(own_home):
    done = here("sop-vs-nsp", "corpus=files", "corpus.path=/nowhere/texts")
    assert done.returncode == 4
    assert "/nowhere/texts" in done.stderr
    assert not list(own_home.iterdir())


def test_a_folder_that_the_system_refuses_is_exit_code_2_and_is_named(
    corpus, own_home, monkeypatch
):
    def refuse(folder, *_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = here("data", "prepare", *toy_overrides(corpus), ALBERT_LAB_CACHE="/nowhere")
    assert done.returncode == 2
    assert "/nowhere" in done.stderr


def test_a_current_folder_that_was_removed_is_exit_code_2(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert here("status", ALBERT_LAB_HOME="lab").returncode == 2


@pytest.mark.parametrize("experiment", ["glue", "same-wall-clock"])
def test_a_dry_run_writes_nothing_and_knows_no_speed_before_the_first_run(experiment, own_home):
    done = here(experiment, "--dry-run", "--json", "scale=paper")
    assert done.returncode == 0, done.stderr
    price = json.loads(done.stdout)[experiment]
    assert (
        (price["seconds"] is None) == (price["flops"] > 1e19) == (experiment != "same-wall-clock")
    )
    assert not list(own_home.iterdir())


def test_a_dry_run_says_how_many_seeds_open_claims_need_by_a_report_of_its_scale_and_text(own_home):
    folder = own_home / "reports" / "overnight-sotu" / "sharing"
    shutil.copytree(paths.PACKAGE.parent / "reports" / "overnight-sotu" / "sharing", folder)
    said = here("sharing", "scale=overnight", "--tasks", "none", "--dry-run").stdout
    needed = [*map(int, re.findall(r"as measured needs (\d+) seeds a row: ", said))]
    assert needed == sorted(needed)
    assert min(needed) > 3, "the report has three seeds, and they do not decide"


def test_a_sweep_says_first_that_an_embedding_size_is_above_the_width(own_home):
    said = here("sweep", "embedding_size=64,128,256,768", "--dry-run").stderr
    assert "embedding_size=128,256,768 above model.hidden_size=72: the layers read 72" in said


def test_a_name_with_a_comma_is_refused_as_two_rows_with_the_form_that_is_one(
    own_home, corpus, tmp_path
):
    (folder := tmp_path / "my texts, 2024").symlink_to(corpus)
    command = ("sweep", "scale=smoke", "corpus=files", "--dry-run")
    refused = here(*command, f"corpus.path={folder}")
    assert (refused.returncode, refused.stdout) == (2, "")
    (quoted,) = shlex.split(refused.stderr.partition("as one value: ")[2])
    assert here(*command, quoted).stdout.startswith("sweep: 1 run,")
    folder.unlink()
    refused = here(*command, f"corpus.path={folder}")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert shlex.split(refused.stderr.partition("as one value: ")[2]) == [quoted]
    assert here(*command, quoted).returncode == 4, "it is one name, of which there is no text"


def test_the_parameters_of_three_rows_of_the_paper_fit_a_hundred_columns():
    printed = here("params", "scale=paper", "sharing=all-shared,not-shared,shared-attention").stdout
    assert "89,780,402" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_a_study_prints_its_table_and_rebuilds_its_report(
    corpus, own_home, runs_here, empty_figures
):
    overrides = toy_overrides(corpus, "budget.value=3")
    done = here("sop-vs-nsp", *overrides, "--tasks", "none")
    assert done.returncode == 0, done.stderr
    firsts = [line.split()[0] for line in done.stdout.splitlines() if line]
    assert [word for word in firsts if word in ("none", "nsp", "sop")] == ["none", "nsp", "sop"]
    folder = own_home / "reports" / "smoke-files" / "sop-vs-nsp"
    forms = [folder / "report.md", folder / "report.html"]
    written = [file.read_bytes() for file in forms]
    for file in forms:
        file.unlink()
    assert here("report", str(folder)).stdout.split() == [str(file) for file in forms]
    assert [file.read_bytes() for file in forms] == written
    again = here("sop-vs-nsp", *overrides, "--tasks", "none", "--json")
    assert "to train: 0" in again.stderr
    rows = json.loads(again.stdout)["rows"]
    assert [row["scores"]["mlm_accuracy"]["seeds"] for row in rows] == [1, 1, 1]
    states = json.loads(here("status", "--json").stdout)
    assert [row["state"] for row in states] == ["done"] * 3


def test_a_study_is_finished_without_the_tasks_that_have_no_files(
    corpus, own_home, tmp_path, runs_here, empty_figures
):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "title: Mine\nsource: none\ngrid: {sharing: [groups]}\ncolumns: [mlm_accuracy, mnli, "
        "race]\n"
    )
    study = ["run", str(file), *toy_overrides(corpus, "budget.value=1")]
    done = here(*study)
    assert done.returncode == 0, done.stderr
    assert "mnli, race" in done.stderr
    assert "to train: 0" in here(*study).stderr
    assert here(*study, "--dry-run").stdout.startswith("mine: 0 runs, ")
    next(own_home.glob("runs/*/results.json")).write_text("{")
    assert here(*study).returncode == 2


def test_a_closed_pipe_gives_no_traceback():
    command = f"{sys.executable} -m albert_lab.cli config list | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_one_model_has_a_report_and_a_sweep_of_one_point_uses_its_run(
    corpus, own_home, runs_here, empty_figures
):
    done = here("pretrain", *toy_overrides(corpus, "budget.value=2"))
    assert done.returncode == 0, done.stderr
    (run,) = (own_home / "runs").iterdir()
    report = own_home / "reports" / "smoke-files" / run.name / "report.md"
    assert str(report.with_suffix(".html")) in done.stdout
    assert "MLM" in done.stdout
    swept = here("sweep", *toy_overrides(corpus, "budget.value=2", "seed=0"), "--tasks", "none")
    assert swept.returncode == 0, swept.stderr
    assert "runs: 1, to train: 0" in swept.stderr


def test_several_reports_are_published_together_or_not_at_all(tmp_path):
    report = toy_report(tmp_path / "sop-vs-nsp", experiment.named("sop-vs-nsp"), seeds=1)
    (tmp_path / "other").mkdir()
    published = {"ALBERT_LAB_PUBLISHED": str(tmp_path / "published")}
    assert (
        here("report", "--publish", str(report), str(tmp_path / "other"), **published).returncode
        == 2
    )
    assert not (tmp_path / "published").exists()


def test_a_closed_stream_and_a_width_beyond_any_terminal_harm_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setenv("COLUMNS", "1000000000")
    app._settle_streams()
    with sys.stdout as opened:
        assert not opened.isatty()
    assert "COLUMNS" not in os.environ
