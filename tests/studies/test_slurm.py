"""The scripts for Slurm against an sbatch and an squeue that are shell scripts; tests/slurm/ has
the real ones.
"""

import os
import signal
import subprocess
import time

import pytest
from command import here
from toy import toy_overrides

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.studies.jobs import Job, Options
from albert_lab.studies.slurm import scripts, submit

# Notes its arguments and script, and adds the tasks of the array to the queue.
SBATCH = """#!/bin/bash
cd "$(dirname "$0")"
[ -e refuse ] && { echo "sbatch: error: invalid partition" >&2; exit 1; }
number=$(( $(cat last 2>/dev/null || echo 10) + 1 ))
echo $number > last
echo "${@:1:$#-1}" > $number.options
cp "${@: -1}" $number.script
env > $number.environment
for place in $(seq 0 $(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' $number.script)); do
  echo "${number}_$place" >> queue
done
echo "$number;cluster"
"""
SCONTROL = """#!/bin/bash
cd "$(dirname "$0")"
largest=$(cat largest 2>/dev/null || echo 1001)
[ "$1" = show ] && { echo "MaxArraySize            = $largest"; exit; }
echo "$@" > scontrol.said
"""
SETTINGS = Options(slurm="--time=5")
TASK = {"SLURM_ARRAY_JOB_ID": "11", "SLURM_ARRAY_TASK_ID": "0"}


@pytest.fixture
def cluster(tmp_path, monkeypatch, own_home):
    """A folder on the path with the commands of Slurm, in which they note what they did."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    squeue = f"#!/bin/bash\ncat {folder}/queue 2>/dev/null\nexit 0\n"
    for name, text in {
        "sbatch": SBATCH,
        "squeue": squeue,
        "scontrol": SCONTROL,
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def jobs(tmp_path):
    """Two runs, and one that starts from the first."""
    for name in ("a", "b", "child"):
        (tmp_path / name).mkdir()
    a, b, child = (
        Job(tmp_path / name, ["worker", str(tmp_path / name)]) for name in ("a", "b", "child")
    )
    return [a, b, child._replace(parent=a.folder)]


def test_each_generation_is_an_array_with_a_line_for_each_run(jobs, cluster):
    first, second = scripts(jobs, Options(1, "--time=5"))
    assert (first.jobs, second.jobs) == (jobs[:2], jobs[2:])
    for line in ("#SBATCH --array=0-1%1", "#SBATCH --time=5", f"'worker {jobs[0].folder}'"):
        assert f"{line}\n" in first.text
    of_queued = jobs[2]._replace(folder=jobs[0].folder / "queued", parent=jobs[0].folder / "parent")
    arrays = scripts([of_queued, *jobs], SETTINGS)
    assert [array.jobs for array in arrays] == [jobs[:2], [of_queued, jobs[2]]]


def test_the_same_command_submits_only_what_is_not_in_the_queue(cluster, jobs):
    submit(jobs, SETTINGS)
    submit(jobs, SETTINGS)
    assert (cluster / "last").read_text() == "12\n"
    (cluster / "queue").write_text("11_0\n")
    submit(jobs, SETTINGS)
    assert f"worker {jobs[1].folder}" in (cluster / "13.script").read_text()
    assert (cluster / "14.options").read_text() == "--parsable --dependency=afterany:11\n", (
        "the parent runs"
    )


def test_a_generation_that_is_larger_than_an_array_may_be_is_several_of_which_jobs_counts_all(
    cluster, jobs
):
    (cluster / "largest").write_text("2")
    alone = [job._replace(parent=None) for job in jobs]
    submit(
        [*alone, jobs[2]._replace(folder=jobs[0].folder / "child", parent=jobs[2].folder)],
        Options(1, "--time=5"),
    )
    assert (cluster / "queue").read_text().split() == ["11_0", "11_1", "12_0", "13_0"]
    options = [(cluster / f"{number}.options").read_text().strip() for number in (11, 12, 13)]
    assert [of[11:] for of in options] == [
        "",
        "--dependency=afterany:11",
        "--dependency=afterany:12",
    ]


def test_after_a_refusal_the_same_command_submits_all(cluster, jobs):
    (cluster / "refuse").touch()
    with pytest.raises(ConfigError, match="0 of 3 runs") as refused:
        submit(jobs, SETTINGS)
    assert "invalid partition" in str(refused.value), "the words of sbatch"
    (cluster / "refuse").unlink()
    submit(jobs, SETTINGS)
    assert (cluster / "queue").read_text().split() == ["11_0", "11_1", "12_0"]


def test_a_job_whose_folder_is_gone_runs_nothing(cluster, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    ((_, script, _),) = scripts([Job(tmp_path, ["touch", str(tmp_path / "begun")])], SETTINGS)
    (tmp_path / "gone").rmdir()
    assert (
        subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=os.environ | TASK, check=False
        ).returncode
        == 4
    )
    assert not (tmp_path / "begun").exists()


def test_a_run_is_not_submitted_twice_because_the_queue_does_not_answer(cluster, jobs):
    (cluster / "squeue").write_text("#!/bin/bash\nexit 1\n")
    with pytest.raises(MissingDataError):
        submit(jobs, SETTINGS)


def test_without_slurm_nothing_is_trained(corpus, own_home, monkeypatch):
    monkeypatch.setenv("PATH", str(own_home))
    command = ["pretrain", *toy_overrides(corpus), "--tasks", "none", "--slurm", "--time=5"]
    assert here(*command).returncode == 4
    assert here(*command, "--dry-run").returncode == 0


@pytest.mark.parametrize(("number", "requeued"), [(signal.SIGUSR1, True), (signal.SIGTERM, False)])
def test_a_job_requeues_itself_at_its_time_limit_and_never_when_it_is_cancelled(
    cluster, tmp_path, number, requeued
):
    loop = f"trap 'exit 75' TERM; touch {tmp_path}/begun; while :; do sleep 0.05; done"
    ((_, script, _),) = scripts([Job(tmp_path, ["bash", "-c", loop])], SETTINGS)
    process = subprocess.Popen(["bash", "-c", script], env=os.environ | TASK)
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait() == 75
    assert (cluster / "scontrol.said").exists() == requeued


def test_the_same_command_submits_runs_once_and_reports_those_that_are_done(
    cluster, corpus, empty_figures, runs_here
):
    command = ["sop-vs-nsp", *toy_overrides(corpus, "budget.value=2", "seed=0"), "--tasks", "none"]
    first = here(*command, "--slurm", "--time=5")
    assert (first.returncode, first.stdout) == (0, ""), first.stderr
    assert here(*command, "--slurm", "--time=5").stdout == "", "they are in the queue"
    assert "inter_sentence=nsp seed 0" in here("status", "sop-vs-nsp").stdout
    (cluster / "queue").unlink()
    assert here(*command).returncode == 0  # as the jobs would
    assert "sop-vs-nsp/report." in here(*command, "--slurm", "--time=5").stdout
