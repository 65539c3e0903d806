"""Pre-training: the loop from batches to a trained model, within a budget, with checkpoints and learning curves."""

import math
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch
from albert_lab.data.stages import StageData, StagedBatches
from albert_lab.measures.catalog import of_kind
from albert_lab.measures.measure import PairMeasure, TokenMeasure
from albert_lab.model.heads import PretrainingModel, PretrainingOutput
from albert_lab.score import Alarm, Score, alarm, loss_name
from albert_lab.training import checkpoint
from albert_lab.training.clock import Clock
from albert_lab.training.device import choose_precision, loss_scaler
from albert_lab.training.evaluate import DivergedError, Evaluation, Evaluator, ForwardPasses, StoppedError
from albert_lab.training.fitting import fit
from albert_lab.training.log import MetricsLog
from albert_lab.training.memory import peak_memory_bytes
from albert_lab.training.optimizer import build_optimizer, set_learning_rate
from albert_lab.training.processes import Processes, Word
from albert_lab.training.schedule import Budget, learning_rate_factor
from albert_lab.training.start import Inherited
from albert_lab.training.step import Step, total

# The recorded final loss is the mean over this many last steps.
FINAL_STEPS = 100


@dataclass
class DataCounts:
    """Counts over all training batches: predicted tokens, pairs, and pairs by label."""

    masked: int
    pairs: int
    labels: list[int]

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.masked += len(batch.masked_labels)
        self.pairs += len(batch)
        for label, count in enumerate(
            np.bincount(batch.pair_labels[batch.pair_labels >= 0], minlength=len(self.labels))
        ):
            self.labels[label] += int(count)


@dataclass(frozen=True)
class Pretraining:
    """A finished pre-training: the model, its final evaluation, and its cost.

    inference_tokens_per_second is measured in the final evaluation on the set for masked language modelling.
    peak_memory_bytes is that of the process (CPU) or of the allocator (CUDA). data_wait_share is the share of the
    training seconds in which the loop waited for a batch. final_loss is the mean training loss of the last FINAL_STEPS
    steps. stages has the training data of each stage of the length schedule. processes has the number of processes by
    the step from which it applies. micro_batch_size is that of the last step, at full length.
    """

    model: PretrainingModel
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


class _Interval:
    """Sums over the steps since the last line of the log, kept on the device."""

    def __init__(self) -> None:
        self.sums: dict[str, torch.Tensor] = {}
        self.losses: list[torch.Tensor] = []
        self.counts = {"steps": 0, "masked": 0, "pairs": 0}

    def add(self, batch: Batch, found: dict[str, torch.Tensor]) -> None:
        for key, value in found.items():
            self.sums[key] = self.sums[key] + value if key in self.sums else value
        self.losses.append(total(found))
        self.counts["steps"] += 1
        self.counts["masked"] += len(batch.masked_labels)
        self.counts["pairs"] += len(batch.pair_labels)

    def means(self) -> dict[str, float]:
        """Means over the steps; accuracies in percent."""
        sums = {key: float(value) for key, value in self.sums.items()}
        steps = self.counts["steps"]
        means = {"loss": (sums["mlm_loss"] + sums.get("pair_loss", 0.0)) / steps, "mlm_loss": sums["mlm_loss"] / steps}
        means["mlm_accuracy"] = 100 * sums["mlm_correct"] / self.counts["masked"]
        if "pair_loss" in sums:
            means["pair_loss"] = sums["pair_loss"] / steps
            means["pair_accuracy"] = 100 * sums["pair_correct"] / self.counts["pairs"]
        means["gradient_norm"] = sums["gradient_norm"] / steps
        return means


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
        micro_batch_size: int | None = None,
    ) -> None:
        """micro_batch_size is the first size that machine.micro_batch_size=auto tries; None: the whole batch."""
        self.config = config
        self.tried_first = micro_batch_size
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
        self.seconds = 0.0  # training seconds, by the leader's clock at the last decision
        self.steps = 0
        self.tokens = 0
        self.shown = DataCounts(0, 0, [0] * len(config.inter_sentence.labels))
        self.wait_seconds = 0.0
        self.peak_memory_bytes = 0
        self.curve_points = 0
        self.saved_at = 0
        self.last_losses: list[float] = []
        self.alarms: list[Alarm] = []
        self.process_counts: dict[int, int] = {}

    @property
    def share(self) -> float:
        """Used share of the budget; the run ends at budget.stop_at."""
        return self.budget.share(steps=self.steps, seconds=self.seconds, tokens=self.tokens)

    def run(self) -> Pretraining | None:
        """Train to the end of the budget and evaluate; None if stopped before, after a checkpoint was written.

        Raises:
            DivergedError: a loss that is not finite.
            LostProcessError: another process of the run is gone.
            checkpoint.CheckpointError: a checkpoint cannot be written.
        """
        self._resume()
        try:
            self._train()
            self._save()
            final = replace(self.evaluator, forwarded=ForwardPasses())
            evaluation = final.evaluate(self.model)
        except StoppedError:
            self._save()
            return None
        self._check_floors(evaluation.scores)
        return Pretraining(
            model=self.model,
            evaluation=evaluation,
            steps=self.steps,
            tokens=self.tokens,
            training_seconds=self.clock.training_seconds,
            total_seconds=self.clock.total_seconds,
            inference_tokens_per_second=final.forwarded.tokens / final.forwarded.seconds,
            data_wait_share=self.wait_seconds / max(self.clock.training_seconds, 1e-9),
            peak_memory_bytes=self._peak_memory(),
            final_loss=statistics.fmean(self.last_losses),
            alarms=tuple(self.alarms),
            shown=self.shown,
            stages=self.batches.stages(self.steps),
            processes=self.process_counts,
            micro_batch_size=self.step.micro_batch_size,
        )

    def _resume(self) -> None:
        with self.processes.leader_first():  # the leader renames damaged checkpoints
            state = checkpoint.load_latest(self.checkpoints, self.model, self.optimizer, self.run_name, self.say)
        if not self.processes.agree(state["step"] if state else -1):
            raise RuntimeError(f"the processes of this run see different checkpoints in {self.checkpoints}")
        if state is None and self.start:
            state = self.start.begin(self.model, self.optimizer, self.log, self.say)
        else:
            self.saved_at = state["step"] if state else 0
        if state:
            self.steps, self.tokens = state["step"], state["tokens"]
            self.shown = DataCounts(**state["shown"])
            self.wait_seconds, self.last_losses = state["wait_seconds"], state["last_losses"]
            self.peak_memory_bytes, self.curve_points = state["peak_memory_bytes"], state["curve_points"]
            self.clock.load_state_dict(state["clock"])
            self.seconds = self.clock.training_seconds
            if state.get("loss_scale"):
                self.step.scaler.load_state_dict(state["loss_scale"])
            if "epochs" in state:  # missing in checkpoints of older versions
                self.batches.load_state_dict(state["epochs"])
            # Dropout depends on the micro-batches, so a resumed run keeps its size.
            self.tried_first = state.get("micro_batch_size") or self.tried_first
            self.process_counts = {int(step): count for step, count in state.get("processes", {"0": 1}).items()}
            self.say(f"resumes from step {self.steps:,} ({self.share:.0%} of the budget)")
        self.log.rewind(state["log_bytes"] if state else 0)
        before, now = next(reversed(self.process_counts.values()), self.processes.size), self.processes.size
        if before != now:
            self.say(f"machine.processes: {before} before, {now} from here on")
        if before != now or not self.process_counts:
            self.process_counts[self.steps] = now

    def _save(self) -> None:
        if self.saved_at == self.steps:
            return
        assert all(map(math.isfinite, self.last_losses)), "a loss that is not finite ends the run before it is saved"
        state = {
            "step": self.steps,
            "log_bytes": self.log.flush(),
            "curve_points": self.curve_points,
            "tokens": self.tokens,
            "shown": asdict(self.shown),
            "wait_seconds": self.wait_seconds,
            "last_losses": self.last_losses,
            "peak_memory_bytes": self._peak_memory(),
            "clock": self.clock.state_dict(),
            "run_name": self.run_name,
            "processes": self.process_counts,
            "loss_scale": self.step.scaler.state_dict(),
            "micro_batch_size": self.step.fitted,
            "epochs": self.batches.state_dict(),
        }
        if self.processes.leads:
            checkpoint.save(self.checkpoints, self.model, self.optimizer, state)
        self.saved_at = self.steps

    def _train(self) -> None:
        self.model.train()
        if self.config.machine.micro_batch_size == "auto":
            longest = self._samples()[-1]
            self.step = replace(self.step, fitted=fit(self.step, longest, self.tried_first or len(longest), self.say))
        # Compilation happens before the clock starts.
        forward = self.step.compiled(self._samples()) if self.config.machine.compile else self.model
        save_at = time.perf_counter() + self.config.machine.checkpoint_seconds
        with closing(self.batches.prefetch(self.steps, lambda: self.share)) as stream:
            while True:
                word = self._word(save_at)
                if word.is_stopped:
                    raise StoppedError
                if self._is_curve_point():
                    self._evaluate_along_the_way()
                if self.share >= self.budget.stop_at:
                    return
                if word.is_save_due:
                    self._save()
                    save_at = time.perf_counter() + self.config.machine.checkpoint_seconds
                interval = _Interval()
                with self.clock.training():
                    while True:
                        waited = time.perf_counter()
                        batch = next(stream)
                        self.wait_seconds += time.perf_counter() - waited
                        interval.add(batch, self._step(forward, batch))
                        self.steps += 1
                        self.tokens += batch.num_tokens
                        self.shown.add(batch)
                        is_logged = self.steps % self.config.machine.log_every_steps == 0
                        word = self._word(save_at)
                        is_due = is_logged or word.is_stopped or word.is_save_due or self._is_curve_point()
                        if is_due or self.share >= self.budget.stop_at:
                            break
                self._end_interval(interval)

    def _samples(self) -> list[Batch]:
        """The next batch, and one of each later stage of the length schedule."""
        return [self.batches.batch(self.steps, self.share), *self.batches.later(self.share)]

    def _word(self, save_at: float) -> Word:
        """The common decision of all processes until the next call; each process calls it at the same places."""
        word = self.processes.word(
            is_stopped=self.is_stopped(),
            is_save_due=time.perf_counter() >= save_at,
            seconds=self.clock.training_seconds,
        )
        self.seconds = word.seconds
        return word

    def _is_curve_point(self) -> bool:
        reached = math.floor(min(self.share, 1.0) * self.config.evaluation.num_curve_points + 1e-9)
        return reached > self.curve_points

    def _step(self, forward: Callable[..., PretrainingOutput], batch: Batch) -> dict[str, torch.Tensor]:
        config = self.config
        factor = learning_rate_factor(self.share, config.optimizer.warmup, config.optimizer.decay)
        set_learning_rate(self.optimizer, config.learning_rate * factor)
        return self.step.take(forward, batch, self.steps)

    def _end_interval(self, interval: _Interval) -> None:
        means = interval.means()
        if not math.isfinite(means["loss"]):
            raise DivergedError(f"the loss is {means['loss']} at step {self.steps:,}; a lower learning rate may help")
        self.last_losses = [*self.last_losses, *torch.stack(interval.losses).tolist()][-FINAL_STEPS:]
        seconds = self.clock.training_seconds
        self.log.write(
            {
                "event": "training",
                "step": self.steps,
                "share": min(self.share, 1.0),
                **means,
                "learning_rate": self.optimizer.param_groups[-1]["lr"],
                "tokens": self.tokens,
                "tokens_per_second": self.tokens / max(seconds, 1e-9),
                "training_seconds": seconds,
                "seconds_left": seconds / self.share * max(0.0, self.budget.stop_at - self.share),
            }
        )

    def _evaluate_along_the_way(self) -> None:
        scores = self.evaluator.along_the_way(self.model, self.config.evaluation.num_curve_pairs)
        self.curve_points += 1
        self.log.write(
            {
                "event": "evaluation",
                "step": self.steps,
                "share": min(self.share, 1.0),
                "tokens": self.tokens,
                "training_seconds": self.clock.training_seconds,
                **{name: score.value for name, score in scores.items()},
                **{f"{name}_n": score.n for name, score in scores.items()},
                **{loss_name(name): score.loss for name, score in scores.items() if score.loss is not None},
            }
        )

    def _check_floors(self, scores: dict[str, Score]) -> None:
        """Raise an alarm for each objective of the model with a score that is not above its floors."""
        own = [measure.name for measure in of_kind(TokenMeasure)]
        own += [
            measure.name
            for measure in of_kind(PairMeasure)
            if measure.has_alarm and measure.negative in self.evaluator.kinds
        ]
        found = (alarm(name, scores[name], self.steps) for name in own)
        self.alarms += [each for each in found if each]

    def _peak_memory(self) -> int:
        return max(self.peak_memory_bytes, peak_memory_bytes(self.device))
