"""Runs as child processes of this one, so many at a time: whatever ends this process ends them
first.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import psutil

from albert_lab import machine, signals
from albert_lab.errors import INTERRUPTED, STOPPED, UNWRITTEN
from albert_lab.machine import ALLOCATOR, cores, gpus_of_jobs
from albert_lab.runs import run as runs
from albert_lab.studies.jobs import Job

_POLL_SECONDS = 0.1


def launch(jobs: Sequence[Job], at_once: int, on_end: Callable[[Job, int], None]) -> int:
    """Train runs in child processes, at most `at_once` at a time, which divide cores and GPUs among
    them.

    After SIGINT or SIGTERM the children get SIGTERM, so that they save a checkpoint and end; with
    each further signal another one, at which what has nothing to save ends at once. They get it
    also if an error ends this function.

    Args:
        jobs: the runs; one that starts from another of them waits for it, and is left out, without
            a call of on_end, if that fails.
        on_end: called with a run that was not stopped and the exit code of its process, or minus
            the number of the signal that killed it.

    Returns:
        0, or the code of an incomplete study: 130 after Ctrl-C, 75 after SIGTERM, sent to this
            process
        or to a run's, 74 if a run could not write, after which no further one is started.
    """
    waiting = list(jobs)
    children = _Children(at_once)
    code_of_study = 0
    with signals.deferred() as received:
        try:
            while children.running or (waiting and not received):
                if not received:
                    waiting = children.start(waiting)
                children.stop(len(received))
                for job, code in children.ended():
                    is_of_signal = -code in signals.NUMBERS or (code and received)
                    code = STOPPED if is_of_signal else code
                    if code in (STOPPED, INTERRUPTED, UNWRITTEN):
                        code_of_study = code
                    else:
                        on_end(job, code)
                    if code == UNWRITTEN:
                        waiting.clear()
                time.sleep(_POLL_SECONDS)
        finally:
            # After an error: a run that went on would train unseen, and hold its lock.
            while children.running:
                children.stop(1 + len(received))
                children.ended()
                time.sleep(_POLL_SECONDS)
    return signals.exit_code() or code_of_study


def environment(at_once: int, slot: int = 0) -> dict[str, str]:
    """The environment of one of several simultaneous children: its share of the machine; the user's
    settings of memory win.
    """
    shared = ALLOCATOR | os.environ
    for variable in machine.RANK:  # of another program, which started this one
        shared.pop(variable, None)
    every = gpus_of_jobs(at_once) if at_once > 1 else [[]]
    if every[slot]:
        shared["CUDA_VISIBLE_DEVICES"] = ",".join(every[slot])
    return shared | {
        machine.JOBS: str(at_once),
        machine.JOBS_ON_GPU: str(every.count(every[slot])),
        machine.THREADS: str(max(1, cores() // at_once)),
        signals.PARENT: str(os.getpid()),
    }


class _Children:
    """The jobs and processes that train runs now, by the place of each among the simultaneous
    ones.
    """

    def __init__(self, at_once: int) -> None:
        self.running: dict[int, tuple[Job, subprocess.Popen[bytes]]] = {}
        self._at_once = at_once
        self._times_stopped = 0

    def start(self, waiting: Sequence[Job]) -> list[Job]:
        """Start as many runs as there is place for, and return those that still wait.

        A run waits for the one that it starts from, and is left out if that did not finish.
        """
        unfinished = {job.folder for job in waiting}
        unfinished |= {job.folder for job, _ in self.running.values()}
        still_waiting = []
        for job in waiting:
            if job.parent in unfinished or len(self.running) == self._at_once:
                still_waiting.append(job)
            elif job.parent is None or runs.is_trained(job.parent):
                self._start(job)
        return still_waiting

    def _start(self, job: Job) -> None:
        slot = min(set(range(self._at_once)) - self.running.keys())
        process = subprocess.Popen(
            job.command,
            env=environment(self._at_once, slot),
            process_group=0,  # one of its own: Ctrl-C in the terminal reaches this process alone
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
        )
        self.running[slot] = (job, process)

    def stop(self, times: int) -> None:
        """Send SIGTERM to all children, until it was sent so many times."""
        while self._times_stopped < times:
            self._times_stopped += 1
            for job, process in self.running.values():
                # torchrun passes on a first signal, but a second one ends it before its processes.
                if job.processes > 1 and self._times_stopped > 1:
                    _terminate_children_of(process)
                else:
                    process.terminate()

    def ended(self) -> list[tuple[Job, int]]:
        """The jobs whose processes have ended since the last call, with their exit codes."""
        ended = []
        for slot, (job, process) in [*self.running.items()]:
            code = process.poll()
            if code is not None:
                del self.running[slot]
                ended.append((job, code))
        return ended


def _terminate_children_of(process: "subprocess.Popen[bytes]") -> None:
    with suppress(psutil.NoSuchProcess):  # it has ended
        for child in psutil.Process(process.pid).children():
            child.terminate()
