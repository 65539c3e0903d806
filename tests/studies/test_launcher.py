import pytest

from albert_lab.errors import ConfigError
from albert_lab.studies.jobs import LOCAL, take


def test_the_launcher_is_taken_from_the_overrides_of_a_run():
    assert take(["scale=smoke"]) == (LOCAL, ["scale=smoke"])
    result, rest = take(["scale=smoke", "launcher=slurm", "launcher.at_once=3"])
    assert (result.name, rest) == ("slurm", ["scale=smoke"])
    sbatch = "--partition=gpu --comment='it''s, ours' --time=4:00:00"
    result, _ = take(["launcher.at_once=3"], sbatch)
    assert (result.sbatch, result.at_once) == (sbatch, 3)


@pytest.mark.parametrize(
    ("overrides", "slurm", "key"),
    [
        (["launcher=slum"], None, "slurm"),
        (["launcher=slurm", "launcher.at_once=0"], None, "launcher.at_once=0"),
        ([], "gpu", "launcher.sbatch"),
        ([], "--array=1-3", "--array"),
    ],
)
def test_an_invalid_launcher_is_refused_with_its_key(overrides, slurm, key):
    with pytest.raises(ConfigError, match=key):
        take(overrides, slurm)
