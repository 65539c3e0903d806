import errno
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
from command import own_signals
from toy import toy_config, write_corpus
from toy_training import quick_starts

import albert_lab
from albert_lab import machine, storage
from albert_lab.config.schema import RESULTS_VERSION
from albert_lab.data.files import known_digests
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.runs import results, states, worker
from albert_lab.runs import run as runs
from albert_lab.runs.finetunings import RandomWeights
from albert_lab.runs.from_weights import layers_of


class Child:
    """The process of a run: as `python -m albert_lab.runs.worker FOLDER`, with torch loaded in
    advance.
    """

    def __init__(self, folder: Path) -> None:
        self._process = quick_starts().Process(target=make, args=(folder, dict(os.environ)))
        self._process.start()
        self.pid = self._process.pid

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it may have ended
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode


def make(folder: Path, environment: dict[str, str]) -> None:
    os.environ |= environment  # not the environment of the server
    with said_by(folder).open("w", buffering=1) as sys.stderr:
        sys.exit(worker.command(str(folder)))


def said_by(folder: Path) -> Path:
    """The output of the process of a run."""
    return folder.with_name(f"{folder.name}.said")


def test_a_runs_name_depends_on_the_text_but_not_on_machine_and_path(corpus, tmp_path):
    name = runs.plan(toy_config(corpus)).name
    assert (
        runs.plan(toy_config(corpus, "machine.threads=2", "machine.log_every_steps=1")).name == name
    )
    assert runs.plan(toy_config(write_corpus(tmp_path / "elsewhere"))).name == name
    assert runs.plan(toy_config(corpus, "seed=1")).name != name
    assert runs.plan(toy_config(write_corpus(tmp_path / "longer", documents=81))).name != name


def test_runs_of_any_seed_objective_and_shape_are_compared_on_one_set(corpus):
    sets = {
        runs.plan(toy_config(corpus, *overrides)).evaluation_set
        for overrides in (
            ["seed=1"],
            ["inter_sentence=nsp"],
            ["embedding_size=48", "sharing=not-shared"],
        )
    }
    assert len(sets) == 1
    other = runs.plan(shorter := toy_config(corpus, "masking=official", "max_sequence_length=24"))
    assert other.evaluation_set not in sets
    both = map(runs.plan, (shorter, toy_config(corpus)))
    of_both = {RandomWeights(run.config, run.fingerprints).name for run in both}
    assert len(of_both) == 2, "fine-tunings are of other lengths, too"


def test_machine_and_paths_of_the_last_command_are_used_but_not_while_the_run_is_made(
    corpus, own_home, tmp_path
):
    folder = runs.create(runs.plan(toy_config(corpus)))
    moved = runs.plan(toy_config(write_corpus(tmp_path / "moved"), "machine.micro_batch_size=4"))
    with storage.locked(folder / runs.LOCK, pytest.fail):
        assert runs.create(moved) == folder
        assert runs.read(folder) == runs.plan(toy_config(corpus))
    assert runs.create(moved) == folder
    assert runs.read(folder) == moved


def test_weights_from_a_gpu_are_used_on_a_machine_without_one(corpus, monkeypatch):
    run = runs.plan(toy_config(corpus, "machine.device=cuda"))
    monkeypatch.setattr(runs, "gpus", lambda: ["0"])
    assert runs.config_here(run).machine.device == "cuda"
    monkeypatch.setattr(runs, "gpus", list)
    assert runs.config_here(run).machine.device == "auto"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_run_that_waits_for_another_process_reports_it_and_can_be_stopped(
    corpus, own_home, number, code
):
    folder = runs.create(runs.plan(toy_config(corpus)))
    with storage.locked(folder / runs.LOCK, pytest.fail):
        child = Child(folder)
        while not (said_by(folder).exists() and "another process" in said_by(folder).read_text()):
            time.sleep(0.01)
        child.send_signal(number)
        assert child.wait(timeout=10) == code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("embedding_size: 8", "embedding_size: 9"),
        (f"results_version: {RESULTS_VERSION}", "results_version: 1"),
        (f"results_version: {RESULTS_VERSION}", "results_version: 99"),
        (f"results_version: {RESULTS_VERSION}", "results_version: [4]"),
    ],
)
def test_a_run_file_changed_by_hand_is_refused(corpus, own_home, before, after):
    folder = runs.create(runs.plan(toy_config(corpus)))
    file = folder / runs.RUN_FILE
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(ConfigError, match="run.yaml"):
        runs.read(folder)


@pytest.mark.parametrize("name", ["metrics.jsonl", "checkpoint", "finetuning", "lock"])
def test_a_run_writes_nothing_through_a_link_in_its_folder(corpus, own_home, name):
    folder = runs.create(runs.plan(toy_config(corpus)))
    other = own_home / "other"
    other.mkdir() if name in ("checkpoint", "finetuning") else other.write_text("mine")
    (folder / name).symlink_to(other)
    with own_signals():
        assert worker.main(folder) == 2
    assert name in (folder / runs.FAILURE).read_text()
    assert (not list(other.iterdir())) if other.is_dir() else other.read_text() == "mine"


@pytest.mark.parametrize(
    ("error", "code"), [(ConfigError("no GPU"), 2), (OSError(errno.ENOSPC, "full"), 74)]
)
def test_any_process_of_a_run_says_why_it_fails_before_it_joins_the_others(
    corpus, own_home, monkeypatch, error, code
):
    folder = runs.create(runs.plan(toy_config(corpus)))
    for variable, value in zip(machine.RANK, ("1", "2", "1", "2"), strict=True):
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(worker, "_pretrain", Mock(side_effect=error))
    with own_signals():
        assert worker.main(folder) == code
    assert (folder / runs.FAILURE).exists() == (code == 2), "a full disk is no failure of the run"


def test_a_run_goes_from_missing_to_done(corpus, own_home):
    folder = runs.create(runs.plan(toy_config(corpus, "budget.value=2")))
    assert states.state(folder) == "missing"
    with storage.locked(folder / runs.LOCK, pytest.fail):
        assert states.state(folder) == "running"
    assert Child(folder).wait() == 0
    assert states.state(folder) == "done"
    record = results.read(folder)
    assert record is not None
    assert record.training.steps == 2
    assert record.provenance.threads == 1
    written = (folder / results.RECORD).stat().st_mtime_ns
    with own_signals():
        assert worker.main(folder) == 0
    assert (folder / results.RECORD).stat().st_mtime_ns == written, "finished work is not repeated"


def test_a_stopped_run_saves_reports_it_and_goes_on_where_it_was(corpus, own_home):
    config = toy_config(corpus, "budget.value=100", "machine.log_every_steps=2")
    folder = runs.create(runs.plan(config))
    stopped_at = [0]
    for number, code in ((signal.SIGTERM, 75), (signal.SIGINT, 130)):
        before = len(results.read_metrics(folder))
        child = Child(folder)
        while len(results.read_metrics(folder)) <= before:
            time.sleep(0.01)
        child.send_signal(number)
        assert child.wait() == code
        assert states.state(folder) == "stopped"
        stopped_at.append(
            int(max((folder / "checkpoint").glob("step-*")).name.removeprefix("step-"))
        )
    assert Child(folder).wait() == 0
    assert 0 < stopped_at[1] < stopped_at[2] < 100
    steps = [line["step"] for line in results.read_metrics(folder) if line["event"] == "training"]
    assert steps == sorted(set(steps)), "each once, though it was stopped"


def test_a_run_keeps_its_tokenizer_and_other_text_is_never_taken_for_its_own(
    corpus, own_home, tmp_path
):
    text = Path(shutil.copytree(corpus, tmp_path / "text"))
    done, waiting = (
        runs.create(runs.plan(toy_config(text, "budget.value=2", f"seed={seed}")))
        for seed in (0, 1)
    )
    with pytest.raises(ConfigError, match="is not finished"):
        albert_lab.load(done)
    assert worker.main(done) == 0
    tokenizer = albert_lab.load(done)[1].fingerprint
    shutil.rmtree(find_tokenizer(runs.read(done).config).parent)
    assert albert_lab.load(done)[1].fingerprint == tokenizer, "the cache is made again"
    (text / "more.txt").write_text("zu zu ze.\nzi zo zu.\n\nza ze zi.\nze za.\n")
    known_digests.clear()
    assert albert_lab.load(done)[1].fingerprint == tokenizer
    assert worker.main(waiting) == 2
    assert "its corpus is not what it was" in (waiting / runs.FAILURE).read_text()
    with pytest.raises(ConfigError, match="its corpus is not what it was"):
        layers_of(done, print)
    shutil.rmtree(find_tokenizer(runs.config_here(runs.read(done))).parent)
    with pytest.raises(ConfigError, match="put it back"):
        albert_lab.load(done)


def test_a_run_remembers_the_most_runs_that_it_was_trained_beside(corpus, own_home, monkeypatch):
    folder = runs.create(run := runs.plan(toy_config(corpus)))
    for beside, known in (("2", "2"), ("1", "2"), ("4", "4"), ("", "0"), ("1", "0")):
        monkeypatch.setenv("ALBERT_LAB_JOBS", beside)
        runs.use_threads(folder, run.config)
        assert os.environ["ALBERT_LAB_JOBS"] == known


def test_a_run_is_found_by_a_part_of_its_name_that_no_other_has_or_as_an_import_of_it(
    corpus, own_home, monkeypatch
):
    folders = [runs.create(runs.plan(toy_config(corpus, f"seed={seed}"))) for seed in range(2)]
    assert [runs.find(folder.name[:-4]) for folder in folders] == folders
    with pytest.raises(ConfigError, match=min(folder.name for folder in folders)):
        runs.find("tiny")
    (folders[1] / runs.IMPORT).write_text("{}\n")
    assert runs.find("tiny") == folders[1]
    monkeypatch.chdir(own_home)
    Path("tiny").mkdir()  # the folder that was imported
    assert (runs.find("tiny"), runs.find("./tiny")) == (folders[1], Path("tiny"))
