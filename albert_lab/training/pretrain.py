"""Pre-training: the loop from batches to a trained model, within a budget, with checkpoints and
learning curves.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from albert_lab import signals
from albert_lab.config.schema import Keep, RunConfig
from albert_lab.data.batches import Batch, StageData, StagedBatches
from albert_lab.model.conversion import convert
from albert_lab.model.encoder import PretrainingModel
from albert_lab.model.shape import EncoderShape, changes
from albert_lab.score import loss_name
from albert_lab.training import checkpoint
from albert_lab.training.device import Clock, peak_memory_bytes
from albert_lab.training.evaluate import DivergedError, Evaluation, Evaluator, StoppedError
from albert_lab.training.log import METRICS, MetricsLog
from albert_lab.training.optimizer import build_optimizer, learning_rate_factor, set_learning_rate
from albert_lab.training.processes import Decision, Processes
from albert_lab.training.step import GraphedStep, Step, Sums, total, with_graphs

INFERENCE_SECONDS = 2.0  # that a run measures inference for, at its end
PAIR_HEAD = "pair_head."  # in the names of its parameters
FINAL_STEPS = 100  # whose mean loss is the recorded final loss


@dataclass(frozen=True)
class Inherited:
    """A finished run to start from: its name, folder and shape, the kept part of its state, and its
    random heads.
    """

    run_name: str
    folder: Path
    shape: EncoderShape
    keep: Keep
    untrained: tuple[str, ...] = ()


@dataclass
class Progress:
    """The position of a run, and what was seen on the way: what its checkpoints keep besides
    tensors.

    Attributes:
        tokens: those of its batches.
        seconds: of training by the leader's clock, at the last decision.
        last_losses: of the last FINAL_STEPS steps.
        curve_points: the points of the learning curve so far.
        unexplained: what its smaller embeddings lost at its start (conversion.Converted).
    """

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    last_losses: list[float] = field(default_factory=list)
    curve_points: int = 0
    unexplained: float | None = None

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Progress":
        """The progress in the state of a checkpoint, of which the clock has the seconds."""
        return cls(
            steps=state["step"],
            tokens=state["tokens"],
            seconds=state["clock"]["training_seconds"],
            last_losses=state["last_losses"],
            curve_points=state["curve_points"],
            unexplained=state.get("unexplained"),
        )


def means_of(steps: Sequence[Sums]) -> dict[str, float]:
    """Means over steps of what Step.take() returned, and their loss; waits for the device."""
    means = {key: float(sum(step[key] for step in steps)) / len(steps) for key in steps[0]}
    return means | {"loss": means["mlm_loss"] + means.get("pair_loss", 0.0)}


@dataclass(frozen=True)
class Pretraining:
    """A finished pre-training: the final evaluation, the data of each stage, and the cost as in
    results.Training.

    changes are those of the shape of the weights that it started from (see results.Conversion).
    untrained are the heads with random weights, which no step has trained; they are not scored.
    peak_memory_bytes is that of the process (CPU) or of the allocator (CUDA); inference
    is measured for INFERENCE_SECONDS at the end, or for as long as the training took.
    """

    evaluation: Evaluation
    untrained: tuple[str, ...]
    changes: dict[str, tuple[Any, Any]]
    progress: Progress
    stages: tuple[StageData, ...]
    cost: dict[str, float | None]


@dataclass
class Pretrainer:
    """One pre-training in a run's folder; `run` resumes from the last undamaged checkpoint.

    Several processes may train in lockstep, each with the whole model; only the leader writes, and
    has a log.
    """

    config: RunConfig
    run_name: str
    folder: Path
    batches: StagedBatches
    evaluator: Evaluator
    log: MetricsLog | None
    is_stopped: Callable[[], bool]
    say: Callable[[str], None]
    start: Inherited | None = None
    processes: Processes = field(default_factory=Processes)

    def __post_init__(self) -> None:
        config = self.config
        self.device = self.evaluator.device
        self.checkpoints = self.folder / "checkpoint"
        self.model = PretrainingModel.from_config(config).to(self.device)
        self.optimizer = build_optimizer(self.model, config.optimizer, config.learning_rate)
        self.step = Step(config, self.model, self.optimizer, self.device, self.processes)
        self.clock = Clock(self.device)
        self.progress = Progress()
        # The step and the time of the last checkpoint. Before a step there is nothing to save, but
        # for a run without steps.
        self.saved_step: int | None = 0 if config.budget.value else None
        self.saved_time = perf_counter()
        self.earlier_peak = 0  # of memory, of the processes that trained this run before

    @property
    def untrained(self) -> tuple[str, ...]:
        """The heads with random weights: those of the start that have not been trained here."""
        if self.progress.steps or not self.start:
            return ()
        return self.start.untrained

    @property
    def share(self) -> float:
        """Used share of the budget: 0 at the start, and at its end 1, or slightly more in seconds
        and tokens.
        """
        budget = self.config.budget
        return getattr(self.progress, budget.unit) / budget.value if budget.value else 1.0

    def run(self) -> Pretraining | None:
        """Train to the end of the budget and evaluate; None if stopped before, after a checkpoint
        was written.

        Raises:
            DivergedError: a loss that is not finite.
            LostProcessError: another process of the run is gone.
            OSError: a checkpoint cannot be written.
            MissingDataError, DamagedFileError, ConfigError: the run that it starts from; see
                checkpoint.last_weights.
        """
        self._resume()
        if not self._train_and_save():
            return None
        try:
            evaluation = self.evaluator.evaluate(self.model, self.untrained)
        except StoppedError:
            return None
        return Pretraining(
            evaluation=evaluation,
            untrained=self.untrained,
            changes=changes(self.start.shape, self.model.encoder.shape) if self.start else {},
            progress=self.progress,
            stages=self.batches.stages(self.progress.steps),
            cost=self._cost(),
        )

    def _cost(self) -> dict[str, float | None]:
        """The cost of a finished training, measured with that of inference; of no steps it has no
        speed and no loss.
        """
        progress = self.progress
        is_trained = progress.steps > 0
        seconds = self.clock.training_seconds
        total_seconds = self.clock.total_seconds
        measured_for = min(seconds, INFERENCE_SECONDS) if is_trained else INFERENCE_SECONDS
        inference = self.evaluator.tokens_per_second(self.model, measured_for)
        return {
            "steps": progress.steps,
            "tokens": progress.tokens,
            "training_seconds": seconds,
            "total_seconds": total_seconds,
            "tokens_per_second": progress.tokens / seconds if is_trained else None,
            "inference_tokens_per_second": inference,
            "peak_memory_bytes": self._peak_memory(),
            "final_loss": statistics.fmean(progress.last_losses) if is_trained else None,
        }

    def _train_and_save(self) -> bool:
        """Train, and write a checkpoint at the end; whether that is the end of the budget."""
        with signals.unsaved():
            try:
                if self.config.budget.value:
                    self._train()
                is_trained = True
            except StoppedError:
                is_trained = False
            self._save()
        return is_trained

    def _train(self) -> None:
        """Take steps to the end of the budget, and do what is due between them."""
        steps = with_graphs(self.step)
        with closing(self.batches.prefetch(self.progress.steps, lambda: self.share)) as stream:
            while True:
                decision = self._decide()
                if decision.is_stopped:
                    raise StoppedError
                if self._is_point_due():
                    self._take_point()
                if self.share >= self.config.budget.stop_at:
                    return
                if decision.is_save_due:
                    self._save()
                self._take_steps(steps, stream)

    def _take_steps(self, steps: Step | GraphedStep, stream: Iterator[Batch]) -> None:
        """Take steps until something else is due, and log their means; the training clock runs
        meanwhile.
        """
        progress = self.progress
        taken: list[Sums] = []
        is_due = False
        self.model.train()
        with self.clock.training():
            while not is_due:
                taken.append(self._take_step(steps, next(stream)))
                decision = self._decide()
                is_due = (
                    decision.is_stopped
                    or decision.is_save_due
                    or self._is_point_due()
                    or progress.steps % self.config.machine.log_every_steps == 0
                    or self.share >= self.config.budget.stop_at
                )
        means = means_of(taken)
        if not math.isfinite(means["loss"]):
            raise DivergedError(
                f"the loss is {means['loss']} at step {progress.steps:,}; a lower learning rate "
                "may help"
            )
        losses = torch.stack([total(sums) for sums in taken]).tolist()
        progress.last_losses = [*progress.last_losses, *losses][-FINAL_STEPS:]
        seconds = self.clock.training_seconds
        speed = {
            "learning_rate": float(self.optimizer.param_groups[-1]["lr"]),
            "tokens": progress.tokens,
            "tokens_per_second": progress.tokens / max(seconds, 1e-9),
            "training_seconds": seconds,
            "seconds_left": seconds * max(0.0, self.config.budget.stop_at / self.share - 1),
        }
        self._write("training", means | speed)

    def _take_step(self, steps: Step | GraphedStep, batch: Batch) -> Sums:
        """Take one step, at the learning rate of the used share of the budget before it."""
        optimizer = self.config.optimizer
        factor = learning_rate_factor(self.share, optimizer.warmup, optimizer.decay)
        set_learning_rate(self.optimizer, self.config.learning_rate * factor)
        sums = steps.take(batch, self.progress.steps)
        self.progress.steps += 1
        self.progress.tokens += batch.num_tokens
        return sums

    def _decide(self) -> Decision:
        """The common decision of all processes; each process calls it at the same places."""
        unsaved_seconds = perf_counter() - self.saved_time
        decision = self.processes.decide(
            is_stopped=self.is_stopped(),
            is_save_due=unsaved_seconds >= self.config.machine.checkpoint_seconds,
            seconds=self.clock.training_seconds,
        )
        self.progress.seconds = decision.seconds
        return decision

    def _is_point_due(self) -> bool:
        """Whether the learning curve has a point here: they are at equal shares of the budget."""
        points = min(self.share, 1.0) * self.config.evaluation.num_curve_points
        return math.floor(points + 1e-9) > self.progress.curve_points

    def _take_point(self) -> None:
        """Log the scores of the next point of the learning curve, their numbers of examples, and
        losses.
        """
        scores = self.evaluator.along_the_way(self.model, self.config.evaluation.num_curve_pairs)
        self.progress.curve_points += 1
        columns: dict[str, Any] = {
            "tokens": self.progress.tokens,
            "training_seconds": self.clock.training_seconds,
        }
        for name, score in scores.items():
            columns |= {name: score.value, f"{name}_n": score.n, loss_name(name): score.loss}
        self._write("evaluation", columns)

    def _write(self, event: str, columns: dict[str, Any]) -> None:
        if self.log:
            self.log.write(
                {"event": event, "step": self.progress.steps, "share": min(self.share, 1.0)}
                | columns
            )

    def _resume(self) -> None:
        """Continue from the last checkpoint, or else from the run that this one starts from, or
        else at the start.
        """
        with self.processes.leader_first():  # the leader renames damaged checkpoints
            state = checkpoint.load_latest(
                self.checkpoints, self.model, self.optimizer, self.run_name, self.say
            )
        if state:
            self.saved_step = state["step"]
        elif self.start:
            # None if only weights are kept: then they are set already
            state = self._inherit(self.start)
        if state:
            self.progress = Progress.from_state(state)
            self.clock.load_state_dict(state["clock"])
            self.earlier_peak = state["peak_memory_bytes"]
            self.batches.load_state_dict(state["epochs"], state["step"])
            self.say(f"resumes from step {self.progress.steps:,} ({self.share:.0%} of the budget)")
        if self.log:
            self.log.begin(state["log_bytes"] if state else 0)

    def _inherit(self, start: Inherited) -> dict[str, Any] | None:
        """Set model, optimizer and log to another run's state, and return the state; None if only
        weights are kept.

        Of weights, a pair head stays as it is drawn if the other run has none, and is left behind
        if this one has none.
        """
        file = checkpoint.last_weights(start.folder / "checkpoint", start.run_name)
        if start.keep == "training":
            state = checkpoint.load(file.parent, self.model, self.optimizer, start.run_name)
            if self.log:
                self.log.begin(state["log_bytes"], start.folder / METRICS)
            self.say(f"continues where {start.run_name} ended")
            return state
        own = checkpoint.weights_of(self.model)
        converted = convert(
            checkpoint.read_weights(file),
            start.shape,
            self.model.encoder.shape,
            self.config.conversion,
            self.batches.first_tokens,
        )
        self.progress.unexplained = converted.unexplained
        kept = {
            name: tensor
            for name, tensor in converted.tensors.items()
            if name in own or not name.startswith(PAIR_HEAD)
        }
        drawn = {name: tensor for name, tensor in own.items() if name.startswith(PAIR_HEAD)}
        checkpoint.set_weights(self.model, drawn | kept, f"the state of {start.run_name}")
        self.say(f"starts from the weights of {start.run_name}")
        return None

    def _save(self) -> None:
        """Write a checkpoint, as the leader; nothing if this step has one."""
        if self.log and self.saved_step != self.progress.steps:
            state = {
                **asdict(self.progress),
                "step": self.progress.steps,
                "log_bytes": self.log.flush(),
                "peak_memory_bytes": self._peak_memory(),
                "clock": self.clock.state_dict(),
                "run_name": self.run_name,
                "epochs": self.batches.state_dict(),
            }
            checkpoint.save(self.checkpoints, self.model, self.optimizer, state)
        self.saved_step = self.progress.steps
        self.saved_time = perf_counter()

    def _peak_memory(self) -> int:
        """Peak in bytes, of this process and of those that trained this run before."""
        return max(self.earlier_peak, peak_memory_bytes(self.device))
