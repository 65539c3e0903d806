"""Pre-training: the loop from batches to a trained model, within a budget, with checkpoints and learning curves."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch
from albert_lab.data.stages import StageData, StagedBatches
from albert_lab.measures.catalog import of_kind
from albert_lab.measures.measure import PairMeasure, TokenMeasure
from albert_lab.model.heads import PretrainingModel
from albert_lab.score import Alarm, Score, alarm
from albert_lab.training import checkpoint
from albert_lab.training.clock import Clock
from albert_lab.training.device import choose_precision, loss_scaler
from albert_lab.training.evaluate import Evaluation, Evaluator, StoppedError
from albert_lab.training.graphs import TakesSteps, with_graphs
from albert_lab.training.intervals import DataCounts, Interval, LastLosses, LearningCurve, Position, SaveTimer
from albert_lab.training.log import MetricsLog
from albert_lab.training.memory import peak_memory_bytes
from albert_lab.training.optimizer import build_optimizer, set_learning_rate
from albert_lab.training.processes import Decision, Processes
from albert_lab.training.schedule import Budget, learning_rate_factor
from albert_lab.training.start import Inherited
from albert_lab.training.step import Forward, Step

INFERENCE_SECONDS = 2.0  # that a run measures inference for, at its end


@dataclass(frozen=True)
class Pretraining:
    """A finished pre-training: the model, its final evaluation, and its cost.

    inference_tokens_per_second is measured for INFERENCE_SECONDS at the end, or for as long as the training took.
    peak_memory_bytes is that of the process (CPU) or of the allocator (CUDA). data_wait_share is the share of the
    training seconds in which the loop waited for a batch. final_loss is the mean training loss of the last FINAL_STEPS
    steps. stages has the training data of each stage of the length schedule. processes has the number of processes by
    the step from which it applies. micro_batch_size is that of the last step, at full length.
    """

    evaluation: Evaluation
    steps: int
    tokens: int
    training_seconds: float
    total_seconds: float
    inference_tokens_per_second: float
    data_wait_share: float
    peak_memory_bytes: int
    final_loss: float
    alarms: tuple[Alarm, ...]
    shown: DataCounts
    stages: tuple[StageData, ...]
    processes: dict[int, int]
    micro_batch_size: int


class Pretrainer:
    """One pre-training in a run's folder; `run` resumes from the last undamaged checkpoint.

    Several processes may train in lockstep, each with the whole model; only the leader writes.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        run_name: str,
        folder: Path,
        batches: StagedBatches,
        evaluator: Evaluator,
        log: MetricsLog,
        is_stopped: Callable[[], bool],
        say: Callable[[str], None],
        start: Inherited | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.config = config
        self.start = start
        self.processes = processes or Processes()
        self.run_name = run_name
        self.checkpoints = folder / "checkpoint"
        self.batches = batches
        self.evaluator = evaluator
        self.log = log
        self.is_stopped = is_stopped
        self.say = say
        self.device = evaluator.device
        self.model = PretrainingModel.from_config(config).to(self.device)
        self.optimizer = build_optimizer(self.model, config.optimizer, config.learning_rate)
        scaler = loss_scaler(choose_precision(config.machine.precision, self.device), self.device)
        self.step = Step(config, self.model, self.optimizer, self.device, evaluator.autocast, self.processes, scaler)
        self.budget = Budget(config.budget)
        self.clock = Clock(self.device)
        self.position = Position(0, 0, DataCounts(0, 0, [0] * len(config.inter_sentence.labels)))
        self.losses = LastLosses()
        self.curve = LearningCurve(config.evaluation.num_curve_points, config.evaluation.num_curve_pairs)
        self.save_timer = SaveTimer(config.machine.checkpoint_seconds)
        self.peak_memory_bytes = 0
        self.process_counts: dict[int, int] = {}

    @property
    def share(self) -> float:
        """Used share of the budget; the run ends at budget.stop_at."""
        position = self.position
        return self.budget.share(steps=position.steps, seconds=position.seconds, tokens=position.tokens)

    def run(self) -> Pretraining | None:
        """Train to the end of the budget and evaluate; None if stopped before, after a checkpoint was written.

        Raises:
            DivergedError: a loss that is not finite.
            LostProcessError: another process of the run is gone.
            WriteError: a checkpoint cannot be written.
        """
        self._resume()
        try:
            self._train()
            self._save()
            evaluation = self.evaluator.evaluate(self.model)
        except StoppedError:
            self._save()
            return None
        position, seconds = self.position, self.clock.training_seconds
        return Pretraining(
            evaluation=evaluation,
            steps=position.steps,
            tokens=position.tokens,
            training_seconds=seconds,
            total_seconds=self.clock.total_seconds,
            inference_tokens_per_second=self.evaluator.tokens_per_second(self.model, min(seconds, INFERENCE_SECONDS)),
            data_wait_share=position.wait_seconds / max(seconds, 1e-9),
            peak_memory_bytes=self._peak_memory(),
            final_loss=statistics.fmean(self.losses.values),
            alarms=self._alarms(evaluation.scores),
            shown=position.shown,
            stages=self.batches.stages(position.steps),
            processes=self.process_counts,
            micro_batch_size=self.step.micro_batch_size,
        )

    def _train(self) -> None:
        """Take steps to the end of the budget, and do what is due between them.

        Raises:
            StoppedError: this process, or another one of the run, was asked to stop.
        """
        self.model.train()
        forward = self._forward()
        steps = with_graphs(self.step)
        self.save_timer.restart()
        with closing(self.batches.prefetch(self.position.steps, lambda: self.share)) as stream:
            while True:
                decision = self._decide()
                if decision.is_stopped:
                    raise StoppedError
                if self.curve.is_due(self.share):
                    scores = self.curve.take_point(self.evaluator, self.model)
                    used = {"tokens": self.position.tokens, "training_seconds": self.clock.training_seconds}
                    self._log("evaluation", used | scores)
                if self.share >= self.budget.stop_at:
                    return
                if decision.is_save_due:
                    self._save()
                    self.save_timer.restart()
                self._take_steps(steps, forward, stream)

    def _take_steps(self, steps: TakesSteps, forward: Forward, stream: Iterator[Batch]) -> None:
        """Take steps until something else is due, and log their means; the training clock runs meanwhile."""
        optimizer, interval = self.config.optimizer, Interval()
        with self.clock.training():
            is_due = False
            while not is_due:
                waited = time.perf_counter()
                batch = next(stream)
                self.position.wait_seconds += time.perf_counter() - waited
                factor = learning_rate_factor(self.share, optimizer.warmup, optimizer.decay)
                set_learning_rate(self.optimizer, self.config.learning_rate * factor)
                interval.add(batch, steps.take(forward, batch, self.position.steps))
                self.position.add(batch)
                is_due = self._is_anything_due()
        self._log("training", self.losses.add(interval, self.position.steps) | self._speed())

    def _is_anything_due(self) -> bool:
        decision = self._decide()
        is_logged = self.position.steps % self.config.machine.log_every_steps == 0
        is_at_end = self.share >= self.budget.stop_at
        return is_logged or is_at_end or decision.is_stopped or decision.is_save_due or self.curve.is_due(self.share)

    def _decide(self) -> Decision:
        """The common decision of all processes; each process calls it at the same places."""
        decision = self.processes.decide(
            is_stopped=self.is_stopped(), is_save_due=self.save_timer.is_due, seconds=self.clock.training_seconds
        )
        self.position.seconds = decision.seconds
        return decision

    def _forward(self) -> Forward:
        """The model, or its compiled form, before the clock starts."""
        if not self.config.machine.compile:
            return self.model
        # The next batch, and one of each later stage of the length schedule.
        return self.step.compiled(
            [self.batches.batch(self.position.steps, self.share), *self.batches.later(self.share)]
        )

    def _log(self, event: str, columns: dict[str, Any]) -> None:
        self.log.write({"event": event, "step": self.position.steps, "share": min(self.share, 1.0)} | columns)

    def _speed(self) -> dict[str, float]:
        tokens, seconds = self.position.tokens, self.clock.training_seconds
        return {
            "learning_rate": float(self.optimizer.param_groups[-1]["lr"]),
            "tokens": tokens,
            "tokens_per_second": tokens / max(seconds, 1e-9),
            "training_seconds": seconds,
            "seconds_left": seconds / self.share * max(0.0, self.budget.stop_at - self.share),
        }

    def _resume(self) -> None:
        """Continue from the last checkpoint, or else from the run that this one starts from, or else at the start."""
        with self.processes.leader_first():  # the leader renames damaged checkpoints
            state = checkpoint.load_latest(self.checkpoints, self.model, self.optimizer, self.run_name, self.say)
        if state is None and self.start:
            state = self.start.begin(self.model, self.optimizer, self.log, self.say)
        else:
            self.save_timer.saved_at = state["step"] if state else 0
        if state:
            for part in (self.position, self.losses, self.curve):
                part.load_state_dict(state)
            self.clock.load_state_dict(state["clock"])
            self.peak_memory_bytes = state["peak_memory_bytes"]
            if state["loss_scale"]:  # empty without a scale
                self.step.scaler.load_state_dict(state["loss_scale"])
            self.batches.load_state_dict(state["epochs"], state["step"])
            self.process_counts = {int(step): count for step, count in state["processes"].items()}
            self.say(f"resumes from step {self.position.steps:,} ({self.share:.0%} of the budget)")
        self.log.rewind(state["log_bytes"] if state else 0)
        before, now = next(reversed(self.process_counts.values()), self.processes.size), self.processes.size
        if before != now:
            self.say(f"machine.processes: {before} before, {now} from here on")
        if before != now or not self.process_counts:
            self.process_counts[self.position.steps] = now

    def _save(self) -> None:
        if self.save_timer.saved_at == self.position.steps:
            return
        state = {
            **self.position.state_dict(),
            **self.losses.state_dict(),
            **self.curve.state_dict(),
            "log_bytes": self.log.flush(),
            "peak_memory_bytes": self._peak_memory(),
            "clock": self.clock.state_dict(),
            "run_name": self.run_name,
            "processes": self.process_counts,
            "loss_scale": self.step.scaler.state_dict(),
            "epochs": self.batches.state_dict(),
        }
        if self.processes.leads:
            checkpoint.save(self.checkpoints, self.model, self.optimizer, state)
        self.save_timer.saved_at = self.position.steps

    def _alarms(self, scores: dict[str, Score]) -> tuple[Alarm, ...]:
        """An alarm for each objective of the model with a score that is not above its floors."""
        own = [measure.name for measure in of_kind(TokenMeasure)]
        own += [
            measure.name
            for measure in of_kind(PairMeasure)
            if measure.has_alarm and measure.negative in self.evaluator.kinds
        ]
        raised = (alarm(name, scores[name], self.position.steps) for name in own)
        return tuple(item for item in raised if item)

    def _peak_memory(self) -> int:
        return max(self.peak_memory_bytes, peak_memory_bytes(self.device))
