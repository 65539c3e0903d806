"""Launchers start the processes that train runs: one interface, and one module per option of conf/launcher/."""

from functools import partial

from albert_lab.config.launcher import ByHandLauncher, LauncherConfig, SlurmLauncher
from albert_lab.studies.launchers import by_hand, local, slurm
from albert_lab.studies.launchers.base import Launcher


def choose_launcher(settings: LauncherConfig, *, jobs: int, detach: bool) -> Launcher:
    """The launcher of a command.

    Args:
        jobs: number of runs at a time on this machine.
        detach: return at once if runs can continue without this process.
    """
    if isinstance(settings, SlurmLauncher):
        return partial(slurm.launch, settings=settings, detach=detach)
    if isinstance(settings, ByHandLauncher):
        return partial(by_hand.launch, settings=settings)
    return partial(local.launch, jobs=jobs)
