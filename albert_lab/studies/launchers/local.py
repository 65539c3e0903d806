"""Runs as child processes on this machine, several at a time."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from albert_lab import allocator, rank, signals
from albert_lab.errors import INTERRUPTED, STOPPED
from albert_lab.machine import cores, gpus, shared_out
from albert_lab.runs.run import is_trained
from albert_lab.studies.launchers.base import PARENT_FAILED, worker

POLL_SECONDS = 0.1


def launch(
    folders: Mapping[Path, Sequence[str]],
    *,
    jobs: int,
    on_end: Callable[[Path, int], bool],
    parents: Mapping[Path, Path],
) -> int:
    """Train runs in child processes, at most `jobs` at a time, which divide cores and GPUs among them; see Launcher.

    SIGINT and SIGTERM are passed on to the children, which save a checkpoint and end. They do the same if this process
    is killed: a child does not outlive it.
    """
    waiting = list(folders)
    slots = shared_out(gpus(), jobs) if jobs > 1 else [[]]
    slot_of: dict[Path, int] = {}
    failed: set[Path] = set()
    running: dict[Path, subprocess.Popen[bytes]] = {}
    environment = {key: value for key, value in os.environ.items() if key not in rank.VARIABLES}  # of another program
    environment |= allocator.environment()
    environment |= {"ALBERT_LAB_THREADS": str(max(1, cores() // jobs)), signals.PARENT: str(os.getpid())}
    environment["ALBERT_LAB_JOBS"] = str(jobs)
    if jobs > 1:
        environment["ALBERT_LAB_PLAIN_PROGRESS"] = "1"
    stopped = 0

    def pass_on(number: int) -> None:
        for child in running.values():
            if child.poll() is None:
                child.send_signal(number)

    with signals.deferred(pass_on) as received:
        while waiting or running:
            for folder in [folder for folder in waiting if parents.get(folder) in failed and not received]:
                waiting.remove(folder)
                failed.add(folder)
                on_end(folder, PARENT_FAILED)
            for folder in [folder for folder in waiting if parents.get(folder) not in {*waiting, *running, *failed}]:
                if len(running) >= jobs or received:
                    break
                waiting.remove(folder)
                slot_of[folder] = min(set(range(jobs)) - {slot_of[other] for other in running})
                visible = slots[slot_of[folder]]
                own = {"CUDA_VISIBLE_DEVICES": ",".join(visible)} if visible else {}
                with signals.held_back():  # until the child is in running, and handles signals
                    running[folder] = subprocess.Popen(
                        worker(folder, folders[folder]),
                        env=environment | own,
                        stdin=subprocess.DEVNULL,
                    )
            for folder, child in list(running.items()):
                code = child.poll()
                if code is not None:
                    del running[folder]
                    if -code in signals.NUMBERS:  # a second signal, when it handled none any more
                        code = signals.code_of(-code)
                    if code and not is_trained(folder):  # its weights are final even if a fine-tuning failed
                        failed.add(folder)
                    if code in (STOPPED, INTERRUPTED):
                        stopped = code
                    if not on_end(folder, code):
                        waiting.clear()
            if received and not running:
                break
            time.sleep(POLL_SECONDS)
    if not received:
        return stopped
    return signals.code_of(received[0])
