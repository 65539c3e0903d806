"""One fine-tuning: from a pre-trained encoder, a task and a seed to predictions, scores and a record."""

import json
import math
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import nn
from torch.optim import AdamW, Optimizer

from albert_lab.config.schema import digest
from albert_lab.data.fingerprint import remember_fingerprints
from albert_lab.messages import Say
from albert_lab.record import Record
from albert_lab.storage import write_atomically
from albert_lab.tasks.evaluation import END_SHARE, Evaluated, evaluate_scores, floors_of, score_examples, signs_of
from albert_lab.tasks.examples import describe, subsample
from albert_lab.tasks.features import Features, TaskBatch, TextEncoder, training_items
from albert_lab.tasks.model import InitialModel, Scores, TaskModel, build_model, load_kind
from albert_lab.tasks.records import (
    WEIGHTS,
    Attempt,
    Evaluation,
    ExampleSet,
    FinetuningRecord,
    fingerprint_of,
    has_same_data,
    identity_of,
    load_scores,
    output_folder,
    read_record,
    remove_record,
    save_scores,
    write_record,
)
from albert_lab.tasks.task import TaskConfig, load_start
from albert_lab.training import checkpoint
from albert_lab.training.device import Clock, autocast, choose_device, choose_precision
from albert_lab.training.evaluate import DivergedError
from albert_lab.training.optimizer import Lamb, can_fuse, learning_rate_factor, split_parameters

CHECKPOINTS = "checkpoint"
SAVED = ("best", "last")  # evaluations whose scores and predictions are kept
# Of optimization.py of the release.
MAX_GRAD_NORM = 1.0
BETAS, EPS, WEIGHT_DECAY = (0.9, 0.999), 1e-6, 0.01


def finetune(
    start: InitialModel,
    task: TaskConfig,
    seed: int,
    *,
    data: Path,
    say: Say,
    is_stopped: Callable[[], bool] = lambda: False,
    keep_weights: bool = False,
) -> FinetuningRecord | None:
    """The record of a fine-tuning; runs it first if it is not finished. None if stopped before the end.

    A stopped fine-tuning resumes from its last checkpoint. If the task has start_from, that task is fine-tuned first,
    with the same seed.

    Args:
        task: The task; its settings are those of the run's scale, its lengths at most the run's.
        seed: Seed of the head's weights, the order of the examples and dropout.
        keep_weights: Whether to keep the best weights, so that other tasks can start from them.

    Raises:
        MissingDataError: the task's data does not exist.
        ConfigError: the data cannot be used, or the weights do not fit the configuration.
        DivergedError: the loss was not a finite number in the last of the attempts that the settings allow.
        WriteError: a file cannot be written.
        DamagedFileError: the weights are damaged.
    """
    identity = identity_of(start.name, start.config, task, seed)
    record = read_record(start.folder, task.name, seed)
    is_current = record is not None and record.identity == identity and has_same_data(record, task, start.folder, data)
    if is_current and (not keep_weights or (output_folder(start.folder, task.name, seed) / WEIGHTS).exists()):
        return record
    if record is not None and not is_current:
        say(f"{task.title}, seed {seed}: its settings or its data have changed, so it runs again")
    before = load_start(task)
    if before and not finetune(start, before, seed, data=data, say=say, is_stopped=is_stopped, keep_weights=True):
        return None
    if not is_current:
        remove_record(start.folder, task.name, seed)
    record = _Finetuning(start, task, seed, identity, before, data, say, is_stopped).run(keep_weights)
    if record is not None:
        write_record(start.folder, record)
        has_same_data(record, task, start.folder, data)  # so that no later process reads the files to compare them
        remember_fingerprints()
    return record


def build_optimizer(model: nn.Module, name: str, learning_rate: float) -> Optimizer:
    """An optimizer over a model's parameters, without weight decay for LayerNorm and biases.

    Args:
        name: adamw, or adam-release, which has no bias correction of the moments: its first steps are up to 6.6 times
            as long.
    """
    adapted, excluded = split_parameters(model)
    groups = [{"params": adapted}, {"params": excluded, "weight_decay": 0.0}]
    if name == "adam-release":
        return Lamb(groups, lr=learning_rate, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, trust_ratio=False)
    # Differs from the release: AdamW corrects the bias of the moments.
    return AdamW(groups, lr=learning_rate, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, fused=can_fuse(groups))


def take_step(
    model: TaskModel,
    optimizer: Optimizer,
    batch: TaskBatch,
    autocast: Callable[[], AbstractContextManager[object]],
) -> torch.Tensor:
    """Updates the weights by one batch; returns its loss on the device, for which it does not wait."""
    with autocast():
        loss = model.loss(batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


class _Progress(Record, frozen=False):
    """Progress of a fine-tuning: the content of a checkpoint besides weights and moments."""

    step: int = 0
    examples: int = 0
    tokens: int = 0
    places: int = 0
    end_losses: list[float] = Field(default_factory=list)
    evaluations: list[Evaluation] = Field(default_factory=list)
    attempts: list[Attempt] = Field(default_factory=list)  # earlier attempts

    @property
    def best(self) -> Evaluation:
        return max(self.evaluations, key=lambda evaluation: evaluation.main.value)


class _Split:
    """The used examples of a split, in order, with their sequences; record describes both."""

    def __init__(self, tuning: "_Finetuning", name: str) -> None:
        examples, issues = tuning.task.read(tuning.data, name)
        if issues:
            tuning.say(f"{tuning.task.file(tuning.data, name)}: {describe(issues)}")
        self.examples = subsample(examples, getattr(tuning.settings, f"{name}_examples"))
        self.features: Features = tuning.kind.make_features(self.examples, tuning.encoder, training=name == "train")
        self.record = ExampleSet(
            used=len(self.examples),
            available=len(examples),
            fingerprint=fingerprint_of(self.examples),
            issues=describe(issues),
            counts=self.features.counts,
        )


@dataclass
class _Finetuning:
    start: InitialModel
    task: TaskConfig
    seed: int
    identity: str
    before: TaskConfig | None
    data: Path
    say: Say
    is_stopped: Callable[[], bool]

    def __post_init__(self) -> None:
        self.settings = self.task.fitted(self.start.config)
        self.outputs = output_folder(self.start.folder, self.task.name, self.seed)
        self.kind = load_kind(self.task, self.settings)
        self.encoder = TextEncoder(self.start.tokenizer)
        machine = self.start.config.machine
        self.device = choose_device(machine.device)
        self.precision = choose_precision(machine.precision, self.device)
        self.autocast = autocast(self.precision, self.device)
        self.progress = _Progress()
        self.clock = Clock(self.device)
        self.name = f"{self.task.title}, seed {self.seed}"

    def run(self, keep_weights: bool) -> FinetuningRecord | None:
        self.outputs.mkdir(parents=True, exist_ok=True)
        self.train, self.dev = _Split(self, "train"), _Split(self, "dev")
        # Named by what determines it, so that no checkpoint of other settings or data is resumed.
        inputs = [self.identity, self.train.record.fingerprint, self.dev.record.fingerprint]
        self.checkpoints = self.outputs / CHECKPOINTS / digest(inputs)
        self.floors = floors_of(self.task, self.kind, self.train.examples, self.dev.examples)
        attempt = self._train(keep_weights)
        while attempt is not None and attempt.diverged and len(self.progress.attempts) < self.settings.retries:
            # Differs from the paper, which mentions no fine-tuning that does not learn.
            self.say(f"{self.name}: {'; '.join(attempt.diverged)}; again at half the learning rate")
            shutil.rmtree(self.checkpoints, ignore_errors=True)
            self.progress = _Progress(attempts=[*self.progress.attempts, attempt])
            attempt = self._train(keep_weights)
        if attempt is None:
            return None
        if attempt.end_loss is None:
            raise DivergedError(f"{self.name}: {'; '.join(attempt.diverged)}")
        record = self._record(attempt)
        shutil.rmtree(self.outputs / CHECKPOINTS, ignore_errors=True)
        if not keep_weights:
            (self.outputs / WEIGHTS).unlink(missing_ok=True)
        return record

    @property
    def _learning_rate(self) -> float:
        return self.settings.learning_rate / 2 ** len(self.progress.attempts)

    def _build(self) -> TaskModel:
        settings, start = self.settings, self.start
        model = build_model(start, self.kind, settings.dropout, self.seed, settings.pooler)
        if self.before is not None:
            head = load_kind(self.before, self.before.fitted(start.config))
            tuned = build_model(start, head, settings.dropout, self.seed)
            checkpoint.load_weights(output_folder(start.folder, self.before.name, self.seed) / WEIGHTS, tuned)
            model = TaskModel(tuned.encoder, tuned.pooler, model.head)
        return model.to(self.device)

    def _train(self, keep_weights: bool) -> Attempt | None:
        """One attempt or its remaining steps; None if stopped."""
        model = self._build()
        optimizer = build_optimizer(model, self.settings.optimizer, self._learning_rate)
        state = checkpoint.load_latest(self.checkpoints, model, optimizer, self.identity, self.say)
        if state:
            self.progress = _Progress.model_validate(state["progress"])
            self.clock.load_state_dict(state["clock"])
        features = self.train.features
        stream = islice(training_items(features.lengths, self.settings.batch_size, self.seed), self.progress.step, None)
        saved = time.perf_counter()
        chance_loss, end_loss, signs = self.kind.chance_loss(features), None, ()
        is_constant = False
        model.train()
        while self.progress.step < self.settings.steps and not signs:
            if time.perf_counter() - saved >= self.start.config.machine.checkpoint_seconds:
                self._save(model, optimizer)
                saved = time.perf_counter()
            first = self.progress.step
            with self.clock.training():
                loss = self._train_interval(model, optimizer, features, stream)
            # The loss of a step is that of the weights before it.
            if not math.isfinite(loss):
                signs = (f"the loss is {loss} at step {self.progress.step:,}",)
            elif not all(weights.isfinite().all() for weights in model.parameters()):
                signs = (f"weights are not finite at step {self.progress.step:,}",)
            elif self.progress.step == first or not self._is_evaluated:  # stopped
                self._save(model, optimizer)
                return None
            else:
                is_constant = self._evaluate(model, keep_weights)
        if not signs:
            end_loss = float(np.mean(self.progress.end_losses))
            signs = signs_of(end_loss, chance_loss, self.progress.evaluations[-1].main, is_constant)
        return Attempt(learning_rate=self._learning_rate, end_loss=end_loss, chance_loss=chance_loss, diverged=signs)

    @property
    def _is_evaluated(self) -> bool:
        step = self.progress.step
        return bool(step) and (step % self.settings.checkpoint_steps == 0 or step == self.settings.steps)

    def _train_interval(self, model: TaskModel, optimizer: Optimizer, features: Features, stream: Any) -> float:
        """Trains up to the next evaluation or stop; returns the mean loss of these steps."""
        progress, settings = self.progress, self.settings
        losses = []
        while not self.is_stopped():
            rate = learning_rate_factor(progress.step / settings.steps, settings.warmup_steps / settings.steps)
            for group in optimizer.param_groups:
                group["lr"] = self._learning_rate * rate
            batch = features.batch(next(stream), self.device)
            # Dropout depends only on seed and step, so that a resumed fine-tuning needs no generator state.
            torch.manual_seed(int(np.random.SeedSequence([self.seed, progress.step]).generate_state(1)[0]))
            losses.append(take_step(model, optimizer, batch, self.autocast))
            progress.step += 1
            progress.examples += len(next(iter(batch.targets.values())))
            progress.tokens += batch.num_tokens
            progress.places += batch.input_ids.numel()
            if self._is_evaluated:
                break
        values = [float(loss) for loss in losses]
        num_end_steps = max(1, math.floor(END_SHARE * settings.steps))
        first = settings.steps - num_end_steps - (progress.step - len(values))
        progress.end_losses += values[max(0, first) :]
        return sum(values) / max(1, len(values))

    def _save(self, model: TaskModel, optimizer: Optimizer) -> None:
        state = {
            "run_name": self.identity,
            "step": self.progress.step,
            "progress": self.progress.model_dump(),
            "clock": self.clock.state_dict(),
        }
        checkpoint.save(self.checkpoints, model, optimizer, state)

    def _evaluate(self, model: TaskModel, keep_weights: bool) -> bool:
        """Keeps the scores of an evaluation that is the best yet or the last; whether all answers are the same."""
        dev, evaluations = self.dev, self.progress.evaluations
        scores = score_examples(model, self.kind, dev.examples, dev.features, self.device, self.autocast)
        evaluated = self._judge(scores)
        evaluations.append(evaluated.evaluation)
        if self.progress.best is evaluated.evaluation:
            save_scores(scores, self.outputs / "best.npz")
            if keep_weights:
                checkpoint.save_weights(self.outputs / WEIGHTS, model)
        if self.progress.step == self.settings.steps:
            save_scores(scores, self.outputs / "last.npz")
        return evaluated.is_constant

    def _judge(self, scores: Scores) -> Evaluated:
        return evaluate_scores(self.task, self.kind, self.dev.examples, scores, self.floors, step=self.progress.step)

    def _record(self, attempt: Attempt) -> FinetuningRecord:
        judged = {name: self._judge(load_scores(self.outputs / f"{name}.npz")) for name in SAVED}
        for name, evaluated in judged.items():
            write_atomically(self.outputs / f"{name}.json", json.dumps(dict(evaluated.answers), ensure_ascii=False))
        progress, seconds = self.progress, self.clock.training_seconds
        is_chosen = progress.best.threshold is not None
        return FinetuningRecord(
            task=self.task.name,
            title=self.task.title,
            version=self.task.version,
            identity=self.identity,
            run=self.start.name,
            weights="random" if self.start.weights is None else "pre-trained",
            start_from=self.task.start_from,
            seed=self.seed,
            scale=self.start.config.scale.name,
            settings=self.settings,
            train=self.train.record,
            dev=self.dev.record,
            best=progress.best,
            last=progress.evaluations[-1],
            evaluations=tuple(progress.evaluations),
            documents=judged["best"].documents,
            threshold_from="dev: it makes the F1 of these very examples highest" if is_chosen else None,
            attempts=(*progress.attempts, attempt),
            diverged=attempt.diverged,
            training_seconds=seconds,
            total_seconds=self.clock.total_seconds,
            examples_per_second=progress.examples / seconds,
            tokens_per_second=progress.tokens / seconds,
            padding_share=1 - progress.tokens / progress.places,
        )
