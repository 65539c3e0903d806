import pytest

from albert_lab.config.launcher import LOCAL, SlurmLauncher, take
from albert_lab.errors import ConfigError


def test_the_launcher_is_taken_from_the_overrides_of_a_run():
    assert take(["scale=smoke"]) == (LOCAL, ["scale=smoke"])
    result, rest = take(["scale=smoke", "launcher=slurm", "launcher.poll_seconds=3"])
    assert (result.name, rest) == ("slurm", ["scale=smoke"])
    sbatch = "--partition=gpu --comment='it''s, ours' --time=4:00:00"
    result, _ = take(["launcher.poll_seconds=3"], sbatch, detach=True)
    assert isinstance(result, SlurmLauncher)
    assert (result.sbatch, result.poll_seconds) == (sbatch, 3)


@pytest.mark.parametrize(
    ("overrides", "slurm", "said"),
    [
        (["launcher=slum"], None, "did you mean launcher=slurm"),
        (["launcher=slurm", "launcher.poll=3"], None, "unknown key launcher.poll"),
        (["launcher=slurm", "launcher.poll_seconds=0"], None, "launcher.poll_seconds=0"),
        (["launcher.sbatch=x"], None, "unknown key launcher.sbatch.*slurm"),
        (["launcher=slurm,local"], None, "one command has one launcher"),
        (["launcher=local"], "", "launcher=local was given too"),
        ([], "gpu", "begin with a dash"),
        ([], "--array=1-3", "--array=1-3 cannot be given"),
        ([], "-d afterok:3", "-d cannot be given"),
        ([], "'", "cannot be split as a shell does"),
    ],
)
def test_an_invalid_launcher_is_refused_with_its_key(overrides, slurm, said):
    with pytest.raises(ConfigError, match=said):
        take(overrides, slurm)


def test_runs_on_this_machine_cannot_be_detached():
    with pytest.raises(ConfigError, match="--detach"):
        take([], detach=True)
