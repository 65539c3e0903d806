"""The launcher of Slurm against an sbatch and an squeue that are shell scripts; tests/slurm/ has the real ones."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command import here
from toy import toy_config, toy_overrides

from albert_lab import squeue
from albert_lab.config.launcher import SlurmLauncher
from albert_lab.errors import INTERRUPTED, STOPPED, ConfigError, MissingDataError
from albert_lab.runs import job, preparing, results, states
from albert_lab.runs import run as runs
from albert_lab.runs.status import rows
from albert_lab.studies.launchers import slurm
from albert_lab.studies.launchers.base import LOST, NOT_AWAITED, PARENT_FAILED

# Records its arguments, and adds the job to the queue.
SBATCH = """#!/bin/bash
cd "$(dirname "$0")"
[ -e refuse ] && { echo "sbatch: error: invalid partition" >&2; exit 1; }
number=$(( $(cat last 2>/dev/null || echo 10) + 1 ))
echo $number > last
printf '%s\\n' "$@" > $number.options
cat > $number.script
env > $number.environment
last=$(printf '%s\\n' "$@" | sed -n 's/^--array=0-\\([0-9]*\\).*/\\1/p')
if [ -z "$last" ]; then echo "$number|PENDING||Priority" >> queue; else
  for place in $(seq 0 "$last"); do echo "${number}_$place|PENDING||Priority" >> queue; done
fi
echo "$number;cluster"
"""
# Runs the first job of the queue to its end, then lists the rest; only lists the queue if `still` exists.
SQUEUE = """#!/bin/bash
cd "$(dirname "$0")"
[ -e away ] && { rm away; exit 1; }
if [ ! -e still ]; then
  number=$(head -1 queue 2>/dev/null | cut -d '|' -f 1)
  if [ -n "$number" ]; then
    array=${number%_*} place=
    [ "$array" = "$number" ] || place=${number#*_}
    log=$(sed -n 's/^--output=//p' $array.options | sed "s/%j/$number/; s/%A_%a/$number/")
    [ -e cancel ] || SLURM_JOB_ID=$array SLURM_ARRAY_JOB_ID=$array SLURM_ARRAY_TASK_ID=$place \
      bash $array.script > "$log" 2>&1
    sed -i 1d queue
  fi
fi
cat queue 2>/dev/null
exit 0
"""
SCANCEL = """#!/bin/bash
echo "$@" > "$(dirname "$0")/scancelled"
"""
SCONTROL = """#!/bin/bash
[ "$1" = requeue ] || exit 1
echo "$2" > "$(dirname "$0")/requeued"
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch, own_home):
    """A folder on the path with the commands of Slurm, in which they note what they did."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    for name, text in {"sbatch": SBATCH, "squeue": SQUEUE, "scancel": SCANCEL, "scontrol": SCONTROL}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(squeue, "_last", None)
    monkeypatch.setattr(squeue, "FRESH_SECONDS", 0)
    return folder


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Makes run folders whose processes end with the exit codes given."""
    codes: dict[str, str] = {}

    def worker(folder: Path, arguments: list[str]) -> list[str]:
        return ["bash", "-c", f"echo made with {' '.join(arguments)}; {codes[folder.name]}"]

    monkeypatch.setattr(slurm, "worker", worker)

    def make(**commands: str) -> dict[Path, list[str]]:
        codes.update(commands)
        created = {tmp_path / name: ["sst2"] for name in commands}
        for folder in created:
            folder.mkdir(exist_ok=True)
        return created

    return make


def settings(sbatch: str = "", preparation: str = "here") -> SlurmLauncher:
    content = {"sbatch": sbatch, "preparation": preparation, "preparation_sbatch": "", "poll_seconds": 0.01}
    return SlurmLauncher.model_validate({"name": "slurm", "at_once": None} | content)


def launch(folders, sbatch="", detach=False, parents=None, goes_on=True):
    """The launcher's answer, and what became of each run."""
    ended: dict[str, int] = {}

    def on_end(folder: Path, code: int) -> bool:
        ended[folder.name] = code
        return goes_on

    code = slurm.launch(folders, settings=settings(sbatch), detach=detach, on_end=on_end, parents=parents or {})
    return code, ended


def options(cluster, number):
    return (cluster / f"{number}.options").read_text().splitlines()


def test_runs_are_tasks_of_an_array_with_the_users_options_last_and_their_exit_codes(cluster, folders, tmp_path):
    code, ended = launch(folders(good="exit 0", bad="exit 3", killed="kill -9 $$"), "--partition='a b' --time=5")
    assert (code, ended) == (0, {"good": 0, "bad": 3, "killed": -9})
    assert options(cluster, 11)[0] == "--parsable"
    assert options(cluster, 11)[1].startswith("--job-name=good-")
    assert "--array=0-2" in options(cluster, 11)
    assert options(cluster, 11)[-2:] == ["--partition=a b", "--time=5"]
    assert (tmp_path / "good" / "slurm-11_0.out").read_text() == "made with sst2\n"


def test_the_number_of_tasks_of_an_array_that_run_at_once_can_be_limited(cluster, folders):
    (cluster / "still").touch()
    limited = settings().model_copy(update={"at_once": 2})
    slurm.launch(folders(a="", b="", c=""), settings=limited, detach=True, on_end=lambda *_: True, parents={})
    assert "--array=0-2%2" in options(cluster, 11)
    assert not any(option.startswith("--dependency") for option in options(cluster, 11))


@pytest.mark.parametrize("child_starts", [True, False])
def test_a_run_waits_for_its_parent_and_has_its_failure_for_a_reason(cluster, folders, tmp_path, child_starts):
    parents = {tmp_path / "child": tmp_path / "parent"}
    (cluster / "still").touch()
    launch(folders(child="exit 4", parent="exit 1"), detach=True, parents=parents)
    assert "--dependency=singleton" in options(cluster, 11)
    assert "--dependency=singleton,afterany:11" in options(cluster, 12)
    if not child_starts:
        (cluster / "queue").write_text("11|PENDING||\n")  # someone cancels it
    (cluster / "still").unlink()
    numbers = {tmp_path / "parent": "11", tmp_path / "child": "12"}
    assert slurm.wait(numbers, 0.01, parents, note := Ends(), received=[]) == 0
    assert note.codes == {"parent": 1, "child": PARENT_FAILED}


def test_a_run_starts_although_a_fine_tuning_of_its_parent_failed(cluster, folders, tmp_path):
    parents = {tmp_path / "child": tmp_path / "parent"}
    record = tmp_path / "parent" / results.RECORD
    ended = launch(folders(child="exit 0", parent=f"touch {record}; exit 1"), parents=parents)
    assert ended == (0, {"parent": 1, "child": 0})


class Ends:
    def __init__(self):
        self.codes: dict[str, int] = {}

    def __call__(self, folder: Path, code: int) -> bool:
        self.codes[folder.name] = code
        return True


def test_a_second_launch_joins_queued_jobs_and_resubmits_only_for_more_tasks(cluster, folders, capsys):
    (cluster / "still").touch()
    submitted = folders(one="exit 0", two="exit 0")
    assert launch(submitted, detach=True) == (NOT_AWAITED, {})
    assert launch(submitted, detach=True) == (NOT_AWAITED, {})
    assert (cluster / "last").read_text() == "11\n"
    assert "one: job 11_0: Priority" in capsys.readouterr().err
    launch({folder: ["rte"] for folder in submitted}, detach=True)
    assert (cluster / "last").read_text() == "12\n"
    assert "sst2 rte" in (cluster / "12.script").read_text()
    assert launch(submitted, detach=True) == (NOT_AWAITED, {})
    assert (cluster / "last").read_text() == "12\n"


def test_a_failing_squeue_does_not_end_a_job(cluster, folders, capsys):
    submitted = folders(one="exit 0")
    launch(submitted, detach=True)
    (cluster / "away").touch()
    assert launch(submitted) == (0, {"one": 0})


def test_runs_that_ended_are_reported_while_squeue_does_not_answer(cluster, folders, tmp_path):
    (cluster / "still").touch()
    launch(folders(good="exit 0", bad="exit 3"), detach=True)
    (cluster / "squeue").write_text("#!/bin/bash\nexit 1\n")
    for place in range(2):
        array = {"SLURM_JOB_ID": "11", "SLURM_ARRAY_JOB_ID": "11", "SLURM_ARRAY_TASK_ID": str(place)}
        subprocess.run(["bash", cluster / "11.script"], env=os.environ | array, check=False, capture_output=True)
    numbers = {tmp_path / "good": "11_0", tmp_path / "bad": "11_1"}
    assert slurm.wait(numbers, 0.01, {}, note := Ends(), received=[]) == 0
    assert note.codes == {"good": 0, "bad": 3}


@pytest.mark.parametrize("code", [STOPPED, 1])
def test_a_stopped_or_failed_run_that_is_back_in_the_queue_is_awaited(cluster, folders, tmp_path, code):
    (cluster / "still").touch()
    launch(folders(one="exit 0"), detach=True)
    (tmp_path / "one" / job.EXIT).write_text(f"{code} 11\n")
    (cluster / "still").unlink()
    assert slurm.wait({tmp_path / "one": "11"}, 0.01, {}, note := Ends(), received=[]) == 0
    assert note.codes == {"one": 0}


def test_the_exit_code_of_an_earlier_job_does_not_end_a_run(cluster, folders, tmp_path):
    (cluster / "still").touch()
    launch(folders(one="exit 0"), detach=True)
    (tmp_path / "one" / job.EXIT).write_text("0 10\n")
    assert job.exit_code(tmp_path / "one", "11") is None
    (cluster / "squeue").write_text(
        '#!/bin/bash\ncd "$(dirname "$0")"\necho >> asked\n[ $(wc -l < asked) -lt 3 ] && cat queue\nexit 0\n'
    )
    assert slurm.wait({tmp_path / "one": "11"}, 0.01, {}, Ends(), received=[]) == STOPPED
    assert (cluster / "asked").read_text().count("\n") >= 3


def test_a_job_without_an_exit_code_is_lost_and_its_log_and_slurm_state_are_reported(cluster, folders, tmp_path):
    (cluster / "still").touch()
    submitted = folders(one="exit 0")
    launch(submitted, detach=True)
    (tmp_path / "one" / "slurm-11.out").write_text("step 1\nCUDA error: an illegal memory access\n")
    (cluster / "queue").unlink()
    assert slurm.wait({tmp_path / "one": "11"}, 0.01, {}, note := Ends(), received=[]) == 0
    assert note.codes == {"one": LOST}
    said = job.describe_end(tmp_path / "one")
    assert said == (
        "job 11 ended without an exit code (neither sacct nor scontrol says why):"
        " step 1 | CUDA error: an illegal memory access"
    )


def test_a_job_that_slurm_killed_before_its_run_could_save_is_no_failure_of_the_run(cluster, folders, tmp_path):
    (cluster / "still").touch()
    launch(folders(one="exit 0"), detach=True)
    (tmp_path / "one" / "slurm-11.out").write_text(
        "slurmstepd-n2: error: *** JOB 11 ON n2 CANCELLED AT 2026-11-22 ***\n"
    )
    (cluster / "queue").unlink()
    code = slurm.wait({tmp_path / "one": "11"}, 0.01, {}, note := Ends(), received=[])
    assert (code, note.codes) == (STOPPED, {"one": STOPPED})


def test_a_job_that_was_cancelled_before_it_began_leaves_the_study_unfinished(cluster, folders):
    (cluster / "cancel").touch()
    assert launch(folders(one="exit 0")) == (STOPPED, {"one": STOPPED})


def test_after_a_failure_fail_fast_cancels_pending_jobs(cluster, folders):
    _, ended = launch(folders(bad="exit 1", other="exit 0"), goes_on=False)
    assert ended["bad"] == 1
    assert (cluster / "scancelled").read_text() == "--state=PENDING 11_1\n"


def test_ctrl_c_ends_the_waiting_and_leaves_the_jobs(cluster, folders, capsys, monkeypatch):
    (cluster / "still").touch()
    ask = squeue.jobs

    def jobs(*arguments, **named):
        if (cluster / "last").exists():
            signal.raise_signal(signal.SIGINT)
        return ask(*arguments, **named)

    monkeypatch.setattr(squeue, "jobs", jobs)
    assert launch(folders(one="exit 0", two="exit 0")) == (INTERRUPTED, {})
    assert "to end them: scancel 11_0 11_1" in capsys.readouterr().err
    assert not (cluster / "scancelled").exists()


@pytest.mark.parametrize(("number", "requeued"), [(signal.SIGUSR1, True), (signal.SIGTERM, False)])
@pytest.mark.parametrize("trap", ["trap 'exit 75' TERM", "true"])  # a process that listens, and one that starts
def test_a_job_requeues_itself_at_its_time_limit_and_never_when_it_is_cancelled(
    cluster, folders, tmp_path, number, requeued, trap
):
    (cluster / "still").touch()
    launch(folders(one=f"{trap}; touch begun; while :; do sleep 0.05; done"), detach=True)
    process = subprocess.Popen(["bash", cluster / "11.script"], env=os.environ | {"SLURM_JOB_ID": "11"})
    while not Path("begun").exists():
        time.sleep(0.02)
    Path("begun").unlink()
    process.send_signal(number)
    assert process.wait() == 75
    assert (cluster / "requeued").exists() == requeued
    assert job.exit_code(tmp_path / "one", "11") == (None if requeued else 75)


def test_a_refusal_by_sbatch_is_reported_in_its_words(cluster, folders, monkeypatch):
    (cluster / "refuse").touch()
    with pytest.raises(ConfigError, match=r"--partition=none: sbatch: error: invalid partition"):
        launch(folders(one="exit 0"), "--partition=none")
    monkeypatch.setenv("PATH", str(cluster / "nothing"))
    with pytest.raises(MissingDataError, match="no sbatch on the path"):
        launch(folders(one="exit 0"))


def test_runs_wait_for_the_job_that_prepares_their_text(cluster, folders, tmp_path, monkeypatch, own_home):
    (cluster / "still").touch()
    monkeypatch.setattr(preparing, "lacking", lambda waiting: list(waiting)[:1])
    waiting = folders(one="exit 0", two="exit 0")
    with_job = settings(preparation="job")
    slurm.launch(waiting, settings=with_job, detach=True, on_end=lambda *_: True, parents={})
    assert "albert_lab.runs.preparing" in (cluster / "11.script").read_text()
    assert "--tasks sst2" in (cluster / "11.script").read_text()
    assert "--dependency=afterok:11" in options(cluster, 12)
    slurm.log_of("11").write_text("no text\n")
    (cluster / "queue").unlink()
    assert "the job that prepares its text: no text" in (job.describe_end(tmp_path / "one") or "")


def test_a_queued_run_is_shown_with_its_job_and_its_reason(corpus, own_home, cluster):
    (cluster / "still").touch()
    run = runs.plan(toy_config(corpus))
    folder = runs.create(run)
    job.write(folder, "11", [], None)
    (cluster / "queue").write_text("11|PENDING||Dependency\n")
    assert states.state(folder) == "queued"
    (row,) = rows(folder.parent)
    assert (row["state"], row["job"], row["reason"]) == ("queued", "11", "job 11: Dependency")
    listed = here("pretrain", *toy_overrides(corpus), "--list", "--tasks", "none")
    assert listed.stdout == f"queued   {folder}  job 11: Dependency\n"
    (cluster / "queue").write_text("11|RUNNING|n7|None\n")
    shown = json.loads(here("pretrain", *toy_overrides(corpus), "--list", "--json", "--tasks", "none").stdout)
    assert (shown[0]["state"], shown[0]["job"], shown[0]["node"]) == ("running", "11", "n7")


def test_a_queued_run_is_not_also_made_here(corpus, own_home, cluster):
    (cluster / "still").touch()
    folder = runs.create(runs.plan(toy_config(corpus)))
    job.write(folder, "11", [], None)
    (cluster / "queue").write_text("11|PENDING||Dependency\n")
    refused = here("pretrain", *toy_overrides(corpus), "--tasks", "none")
    assert refused.returncode == 2
    assert "`scancel 11` ends them" in refused.stderr
    assert here("pretrain", "--detach", *toy_overrides(corpus)).returncode == 2


def test_variables_of_the_job_in_whose_shell_it_is_submitted_do_not_reach_a_job(cluster, folders, monkeypatch):
    for name in ("SLURM_ARRAY_TASK_ID", "SLURM_NTASKS", "SLURM_JOB_NUM_NODES", "SLURM_CONF"):
        monkeypatch.setenv(name, "5")
    launch(folders(good="exit 0"), detach=True)
    passed_on = (cluster / "11.environment").read_text().splitlines()
    assert [line for line in passed_on if line.startswith("SLURM_")] == ["SLURM_CONF=5"]
