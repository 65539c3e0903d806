"""Interleaved measurements of configurations, each in a child process started as `python -m albert_lab.cost.rounds`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from albert_lab import allocator
from albert_lab.config.compose import validate
from albert_lab.config.schema import RunConfig
from albert_lab.cost import capacity
from albert_lab.errors import ConfigError
from albert_lab.machine import cores
from albert_lab.registry import include_recorded


@dataclass(frozen=True)
class Measurement:
    """One measurement of a configuration: tokens/s of training and of inference, FLOP/s of torch.matmul."""

    training: float
    inference: float
    matrix_products: float


@dataclass(frozen=True)
class Measured:
    """The measurements of a configuration: hardware settings, peak memory of training, and one measurement per round.

    failure is the reason if it has no measurements.
    """

    device: str | None = None
    device_name: str | None = None
    precision: str | None = None
    threads: int | None = None
    micro_batch_size: int | None = None
    peak_memory_bytes: int | None = None
    measurements: tuple[Measurement, ...] = ()
    failure: str = ""


class ChildError(Exception):
    """A configuration cannot be measured; the message is the reason."""


def measure_speeds(
    configs: Sequence[RunConfig], *, rounds: int, seconds: float, say: Callable[[str], None]
) -> list[Measured]:
    """Measure every configuration once per round, one at a time, in a new random order each round.

    Each has a child process, which separates their memory, and all children run for all rounds. So a temporary load of
    the machine slows all configurations equally.

    Args:
        seconds: the approximate duration of measuring training and inference in each round.
    """
    with started_children(configs) as children:
        firsts = [_first(children[place], config, seconds, say) for place, config in enumerate(configs)]
        measurements: list[list[Measurement]] = [[] for _ in configs]
        failures = [one.failure for one in firsts]
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for place in np.random.Generator(np.random.Philox(key=number)).permutation(len(configs)):
                if not failures[place]:
                    try:
                        measurements[place].append(Measurement(**children[place].ask({})))
                    except ChildError as error:
                        failures[place] = str(error)
    measured = []
    for one, own, failure in zip(firsts, measurements, failures, strict=True):
        measured.append(replace(one, measurements=() if failure else tuple(own), failure=failure))
    return measured


def _first(child: "_Child", config: RunConfig, seconds: float, say: Callable[[str], None]) -> Measured:
    shape = f"{config.model.name} E={config.embedding_size} {config.sharing.name}"
    say(f"warming up {shape}, batches of {config.batch_size} sequences of {config.max_sequence_length}")
    try:
        capacity.check_training(config)
        return Measured(**child.ask({"config": config.model_dump(mode="json"), "seconds": seconds}))
    except (ConfigError, ChildError) as error:
        return Measured(failure=str(error))


class _Child:
    """The process of one configuration, which answers each line of JSON with another."""

    def __init__(self, config: RunConfig) -> None:
        threads = config.machine.threads or cores()
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(threads)],
            env=os.environ | allocator.environment() | {"OMP_NUM_THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # only the parent gets Ctrl-C, and it ends its children
        )

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            reason = f"signal {-code}, which may be for lack of memory" if code < 0 else f"exit code {code}"
            raise ChildError(f"its process ended with {reason}")
        answer = json.loads(line)
        if "error" in answer:
            raise ChildError(answer["error"])
        return answer

    def end(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.kill()
        self.process.wait()
        with suppress(BrokenPipeError):  # the child ended before it read a question
            self.process.stdin.close()
        self.process.stdout.close()


@contextmanager
def started_children(configs: Sequence[RunConfig]) -> Iterator[list[_Child]]:
    started: list[_Child] = []
    try:
        for config in configs:
            started.append(_Child(config))
        yield started
    finally:
        for child in started:
            child.end()


def main(threads: int) -> None:
    """Answer the first line of stdin, a configuration, with hardware settings, and each later line with a measurement.

    An error is an answer too.
    """
    answers, sys.stdout = sys.stdout, sys.stderr  # output of libraries is not an answer

    import torch

    from albert_lab.cost.throughput import Bench
    from albert_lab.training.device import device_name

    torch.set_num_threads(threads)
    bench = None
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if bench is None:
                config = validate(question["config"])
                include_recorded(config.own_code)
                bench = Bench(config, question["seconds"])
                computed = {"device": bench.device.type, "device_name": device_name(bench.device)}
                computed |= {"precision": bench.precision, "threads": threads}
                computed |= {"micro_batch_size": bench.micro_batch_size}
                answer = computed | {"peak_memory_bytes": bench.peak_memory_bytes}
            else:
                answer = {
                    "matrix_products": bench.matrix_products(),
                    "training": bench.training(),
                    "inference": bench.inference(),
                }
        except Exception as error:  # such as too little memory on a GPU; the parent reports it
            answer = {"error": str(error).partition("\n")[0] or type(error).__name__}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
