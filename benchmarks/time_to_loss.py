"""Seconds of training until a held-out MLM loss, of albert-lab and of stock transformers, as
Markdown.

`python benchmarks/time_to_loss.py [LOSS,LOSS...|end] [KEY=VALUE]...`; end: the loss of albert-lab
at the end of its budget, in steps. The same model with the same initial weights reads the same text
(transformers projects embeddings also where E = H: there it keeps the identity, untrained).
albert-lab trains as configured: its optimizer, its stages of lengths. transformers trains at full
length with AdamW (fused, as its Trainer does) at the same rate and schedule; at its default,
float32 and eager; and at its best, bf16 and compiled. It has SLOWER times as many steps, since it
needs more: what counts is the time to a loss. The three train by turns of one interval each, in
processes of their own, one at a time. Seconds are those of optimizer steps, without compilation and
evaluation; all are evaluated by the same code on the same held-out text.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tabulate import tabulate
from torch import nn
from transformers_step import LIBRARIES, build, inputs_and_labels

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import StagedBatches
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.vocabulary import load_tokenizer
from albert_lab.interop.layout import PROJECTION, from_transformers, to_transformers
from albert_lab.machine import ALLOCATOR, cores
from albert_lab.model.shape import EncoderShape
from albert_lab.training.device import choose_device, synchronize
from albert_lab.training.evaluate import Evaluator
from albert_lab.training.log import Event, MetricsLog
from albert_lab.training.optimizer import learning_rate_factor, split_parameters
from albert_lab.training.pretrain import Pretrainer

LOSSES = (5.0, 4.65)
SLOWER = 2
OURS = LIBRARIES[0]
# Nothing but MLM is measured, so by default nothing else is trained.
COMMON = [
    "inter_sentence=none",
    "evaluation.num_curve_points=24",
    "evaluation.num_curve_pairs=2048",
]
COMMON += [
    "evaluation.num_pairs=2048",
    "evaluation.num_probe_pairs=64",
    "machine.checkpoint_seconds=1000000",
]
THEIRS = ["optimizer=adamw", "length_schedule=constant"]
MLM = "mlm_accuracy"
SAME_LOSS = 0.01  # nats between the same weights in two libraries

Point = tuple[float, int, float]  # training seconds, steps, held-out MLM loss


def main(losses: Sequence[float], overrides: list[str]) -> None:
    """Train by turns until each library has reached the lowest loss or its budget, and print the
    table.

    Without losses, the one is that of albert-lab at its end.
    """
    load([*COMMON, *overrides])  # a wrong setting is refused here
    children = {library: _child(library, overrides) for library in LIBRARIES}
    curves = {library: [point] for library, child in children.items() if (point := _turn(child))}
    starts = [curve[0][2] for curve in curves.values()]
    if max(starts) - min(starts) > SAME_LOSS:
        sys.exit(f"the initial weights are not the same: losses {starts}")
    rng = np.random.Generator(np.random.Philox(key=0))
    running = set(LIBRARIES)
    goal = min(losses, default=-math.inf)
    while running:
        for library in rng.permutation(sorted(running)):
            if (point := _turn(children[library])) is None:
                running.discard(library)
                if library == OURS and not losses:
                    goal = curves[OURS][-1][2]
                continue
            curves[library].append(point)
            print(
                f"{library}: {point[0]:.0f} s, step {point[1]:,}, loss {point[2]:.3f}",
                file=sys.stderr,
                flush=True,
            )
            if point[2] <= goal:
                running.discard(library)
    for child in children.values():
        child.kill()
    print(table(curves, losses or [goal]))
    print(
        f"\n{cores()} cores, load {os.getloadavg()[0]:.1f} at the end, text of "
        f"{load(overrides).corpus.name}:",
        end="",
    )
    print(f" {' '.join(overrides) or 'scale=laptop'}")


def table(curves: dict[str, list[Point]], losses: Sequence[float]) -> str:
    """Seconds to each loss, and how many times those of albert-lab they are, as Markdown."""
    lines = []
    for library, curve in curves.items():
        line = [library]
        for loss in losses:
            own, ours = seconds_to(curve, loss), seconds_to(curves[OURS], loss)
            line.append(f"{own:,.0f}" if own else f"not in {curve[-1][0]:,.0f}")
            line.append(
                f"{(own or curve[-1][0]) / ours:.1f}{'' if own else ' or more'}" if ours else ""
            )
        lines.append([*line, f"{1000 * curve[-1][0] / max(curve[-1][1], 1):.1f}"])
    header = ["library"]
    for loss in losses:
        header += [f"seconds to {loss:.3g}", "times ours"]
    return tabulate(lines, [*header, "ms a step"], "github", disable_numparse=True)


def seconds_to(curve: Sequence[Point], loss: float) -> float | None:
    """Training seconds at which a curve first reaches a loss, on straight lines between its points;
    None if never.
    """
    for (before, _, higher), (after, _, lower) in pairwise(curve):
        if lower <= loss:
            return before + (after - before) * max(0.0, (higher - loss) / (higher - lower))
    return None


def _child(library: str, overrides: list[str]) -> subprocess.Popen[str]:
    own = ALLOCATOR if library == OURS else {}
    command = [sys.executable, __file__, "--one", library, *overrides]
    return subprocess.Popen(
        command, env=os.environ | own, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _turn(child: subprocess.Popen[str]) -> Point | None:
    """Let a child train until its next point; None if its training has ended."""
    assert child.stdin
    assert child.stdout
    if child.poll() is None:
        child.stdin.write("\n")
        child.stdin.flush()
    line = child.stdout.readline()
    if not line and child.wait():
        sys.exit(f"a child has failed: exit code {child.returncode}")
    return tuple(json.loads(line)) if line else None


def train(library: str, overrides: list[str]) -> None:
    """Train one library in this process: a line with a point for each line that is read."""
    sys.stdin.readline()
    config = load([*COMMON, *overrides])
    torch.set_num_threads(config.machine.threads or cores())
    with tempfile.TemporaryDirectory() as folder:
        if library == OURS:
            trainer = _pretrainer(config, Path(folder))
            _tell(0.0, 0, _loss(trainer))
            sys.stdin.readline()
            trainer.run()
        else:
            rate, value = config.learning_rate, SLOWER * config.budget.value
            betas = ",".join(map(str, config.optimizer.betas))
            same = [
                f"optimizer.learning_rate={rate}",
                f"optimizer.betas=[{betas}]",
                f"budget.value={value}",
            ]
            theirs = load([*COMMON, *overrides, *THEIRS, *same])
            _train_transformers(_pretrainer(theirs, Path(folder)), library == LIBRARIES[2])


class _TellingLog(MetricsLog):
    """A log that tells the parent each evaluation, and waits for the next turn."""

    def write(self, line: Event) -> None:
        super().write(line)
        if line["event"] == "evaluation":
            _tell(line["training_seconds"], line["step"], line["mlm_loss"])
            sys.stdin.readline()


def _tell(seconds: float, step: int, loss: float) -> None:
    print(json.dumps([seconds, step, loss]), flush=True)


def _loss(trainer: Pretrainer) -> float:
    num_pairs = trainer.config.evaluation.num_curve_pairs
    loss = trainer.evaluator.along_the_way(trainer.model, num_pairs)[MLM].loss
    assert loss is not None
    return loss


def _pretrainer(config: RunConfig, folder: Path) -> Pretrainer:
    def say(line: str) -> None:
        print(line, file=sys.stderr)

    shards, tokenizer = prepare(config, say), load_tokenizer(config)
    text, held_out = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))
    device = choose_device(config.machine.device)
    return Pretrainer(
        config,
        run_name="benchmark",
        folder=folder,
        batches=StagedBatches(text, tokenizer, config),
        evaluator=Evaluator(config, text, held_out, tokenizer, {}, device),
        log=_TellingLog(folder),
        is_stopped=lambda: False,
        say=say,
    )


def _train_transformers(trainer: Pretrainer, is_best: bool) -> None:
    """Train transformers' model from the initial weights of a pre-training, on its batches, with
    its evaluation.
    """
    config, device, shape = trainer.config, trainer.device, EncoderShape.from_config(trainer.config)
    model = build(config).to(device)
    missing, unexpected = model.load_state_dict(
        to_transformers(trainer.model.state_dict(), shape, "albert"), strict=False
    )
    # without a pair loss it has none
    assert all("pooler" in name for name in unexpected), unexpected
    # tied to the word embeddings and the bias
    assert all("predictions.decoder" in name for name in missing), missing
    model.get_submodule(PROJECTION).requires_grad_(shape.projection)
    decayed, rest = split_parameters(model)
    options = {"betas": config.optimizer.betas, "eps": config.optimizer.eps, "fused": True}
    groups = [
        {"params": decayed, "weight_decay": config.optimizer.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.0, **options)
    forward = torch.compile(model) if is_best else model
    context = trainer.evaluator.autocast if is_best else nullcontext

    def losses(batch: Any) -> torch.Tensor:
        with context():
            return forward(**inputs_and_labels(batch, model, device)).loss

    model.train()
    with closing(trainer.batches.prefetch(0, lambda: 0.0)) as stream:
        losses(next(stream)).backward()  # compiles
    optimizer.zero_grad()
    seconds, steps = 0.0, int(config.budget.value)
    ends = np.linspace(0, steps, config.evaluation.num_curve_points + 1).round().astype(int)
    _tell(0.0, 0, _evaluated(trainer, model, shape))
    with closing(trainer.batches.prefetch(0, lambda: 0.0)) as stream:
        for first, end in pairwise(ends):
            sys.stdin.readline()
            with _timed(device) as took:
                for step in range(first, end):
                    for group in optimizer.param_groups:
                        factor = learning_rate_factor(
                            step / steps, config.optimizer.warmup, config.optimizer.decay
                        )
                        group["lr"] = config.learning_rate * factor
                    losses(next(stream)).backward()
                    nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.max_grad_norm)
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=True)
            seconds += took[0]
            _tell(seconds, int(end), _evaluated(trainer, model, shape))


def _evaluated(trainer: Pretrainer, model: nn.Module, shape: EncoderShape) -> float:
    tensors = from_transformers(model.state_dict(), shape, "albert")
    trainer.model.load_state_dict(tensors, strict=False)
    return _loss(trainer)


@contextmanager
def _timed(device: torch.device) -> Iterator[list[float]]:
    seconds: list[float] = []
    synchronize(device)
    start = time.perf_counter()
    yield seconds
    synchronize(device)
    seconds.append(time.perf_counter() - start)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--one"]:
        train(arguments[1], arguments[2:])
    elif arguments and "=" not in arguments[0]:
        main(
            [] if arguments[0] == "end" else [float(word) for word in arguments[0].split(",")],
            arguments[1:],
        )
    else:
        main(LOSSES, arguments)
