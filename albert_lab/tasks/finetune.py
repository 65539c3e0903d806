"""One fine-tuning: from a pre-trained encoder, a task and a seed to predictions, scores and a record."""

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import nn
from torch.optim import AdamW, Optimizer

from albert_lab.config.schema import digest
from albert_lab.data.fingerprint import digest_path, remember_fingerprints
from albert_lab.files import Record
from albert_lab.messages import Say
from albert_lab.score import by_block
from albert_lab.storage import write_atomically
from albert_lab.tasks import records
from albert_lab.tasks.evaluation import END_SHARE, evaluate_scores, floors_of, score_examples, shares_of_main, signs_of
from albert_lab.tasks.examples import describe, subsample
from albert_lab.tasks.features import TaskBatch, training_items
from albert_lab.tasks.model import InitialModel, TaskModel, build_model, load_kind
from albert_lab.tasks.records import WEIGHTS, Attempt, Evaluation, ExampleSet, FinetuningRecord, output_folder
from albert_lab.tasks.task import TaskConfig, load_start
from albert_lab.training import checkpoint
from albert_lab.training.device import Clock, autocast, choose_device, choose_precision
from albert_lab.training.evaluate import DivergedError
from albert_lab.training.optimizer import Lamb, can_fuse, learning_rate_factor, split_parameters

CHECKPOINTS = "checkpoint"
BEST, LAST = "best.npz", "last.npz"  # the scores of these evaluations, with their answers beside them
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
    identity = records.identity_of(start.name, start.config, task, seed)
    record = records.read_record(start.folder, task.name, seed)
    is_current = (
        record is not None and record.identity == identity and records.has_same_data(record, task, start.folder, data)
    )
    if is_current and (not keep_weights or (output_folder(start.folder, task.name, seed) / WEIGHTS).exists()):
        return record
    if record is not None and not is_current:
        say(f"{task.title}, seed {seed}: its settings or its data have changed, so it runs again")
    before = load_start(task)
    if before and not finetune(start, before, seed, data=data, say=say, is_stopped=is_stopped, keep_weights=True):
        return None
    if not is_current:
        records.remove_record(start.folder, task.name, seed)
    record = _Finetuning(start, task, seed, identity, before, data, say, is_stopped, keep_weights).run()
    if record is not None:
        records.write_record(start.folder, record)
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
    end_losses: list[float] = Field(default_factory=list)
    evaluations: list[Evaluation] = Field(default_factory=list)
    attempts: list[Attempt] = Field(default_factory=list)  # earlier attempts

    @property
    def best(self) -> Evaluation:
        return max(self.evaluations, key=lambda evaluation: evaluation.main.value)


class _Split:
    """The used examples of a split, in order, with their sequences; record describes both."""

    def __init__(self, tuning: "_Finetuning", name: str) -> None:
        file = tuning.task.file(tuning.data, name)
        examples, issues = tuning.task.read(tuning.data, name)
        if issues:
            tuning.say(f"{file}: {describe(issues)}")
        self.examples = subsample(examples, getattr(tuning.settings, f"{name}_examples"))
        is_train = name == "train"
        self.features = tuning.kind.make_features(self.examples, tuning.start.tokenizer, training=is_train)
        self.record = ExampleSet(
            used=len(self.examples),
            available=len(examples),
            fingerprint=digest([asdict(example) for example in self.examples]),
            digest=digest_path(file),
            issues=describe(issues),
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
    keep_weights: bool

    def run(self) -> FinetuningRecord | None:
        self.settings = self.task.fitted(self.start.config)
        self.outputs = output_folder(self.start.folder, self.task.name, self.seed)
        self.outputs.mkdir(parents=True, exist_ok=True)
        self.kind = load_kind(self.task, self.settings)
        machine = self.start.config.machine
        self.device = choose_device(machine.device)
        self.precision = choose_precision(machine.precision, self.device)
        self.autocast = autocast(self.precision, self.device)
        self.clock = Clock(self.device)
        self.train, self.dev = _Split(self, "train"), _Split(self, "dev")
        # Named by what determines it, so that no checkpoint of other settings or data is resumed.
        inputs = [self.identity, self.train.record.fingerprint, self.dev.record.fingerprint]
        self.checkpoints = self.outputs / CHECKPOINTS / digest(inputs)
        self.floors = floors_of(self.kind, self.train.examples, self.dev.examples)
        self.progress = _Progress()
        name = f"{self.task.title}, seed {self.seed}"
        attempt = self._train()
        while attempt is not None and attempt.diverged and len(self.progress.attempts) < self.settings.retries:
            # Differs from the paper, which mentions no fine-tuning that does not learn.
            self.say(f"{name}: {'; '.join(attempt.diverged)}; again at half the learning rate")
            shutil.rmtree(self.checkpoints, ignore_errors=True)
            self.progress = _Progress(attempts=[*self.progress.attempts, attempt])
            attempt = self._train()
        if attempt is None:
            return None
        if attempt.end_loss is None:
            raise DivergedError(f"{name}: {'; '.join(attempt.diverged)}")
        record = self._record(attempt)
        shutil.rmtree(self.outputs / CHECKPOINTS, ignore_errors=True)
        if not self.keep_weights:
            (self.outputs / WEIGHTS).unlink(missing_ok=True)
        return record

    def _build(self) -> TaskModel:
        settings, start = self.settings, self.start
        model = build_model(start, self.kind, settings.dropout, self.seed, settings.pooler)
        if self.before is not None:
            head = load_kind(self.before, self.before.fitted(start.config))
            tuned = build_model(start, head, settings.dropout, self.seed)
            checkpoint.load_weights(output_folder(start.folder, self.before.name, self.seed) / WEIGHTS, tuned)
            model = TaskModel(tuned.encoder, tuned.pooler, model.head)
        return model.to(self.device)

    def _train(self) -> Attempt | None:
        """One attempt or its remaining steps; None if stopped."""
        model, rate = self._build(), self.settings.learning_rate / 2 ** len(self.progress.attempts)
        optimizer = build_optimizer(model, self.settings.optimizer, rate)
        if state := checkpoint.load_latest(self.checkpoints, model, optimizer, self.identity, self.say):
            self.progress = _Progress.model_validate(state["progress"])
            self.clock.load_state_dict(state["clock"])
        progress, saved = self.progress, time.perf_counter()
        chance_loss, end_loss, signs = self.kind.chance_loss(self.train.features), None, ()
        steps = self._steps(model, optimizer, rate)
        model.train()
        while progress.step < self.settings.steps and not signs:
            if time.perf_counter() - saved >= self.start.config.machine.checkpoint_seconds:
                self._save(model, optimizer)
                saved = time.perf_counter()
            losses = []
            with self.clock.training():
                while not (is_stopped := self.is_stopped()):
                    losses.append(next(steps))
                    if progress.step % self.settings.checkpoint_steps == 0 or progress.step == self.settings.steps:
                        break
                values = [float(loss) for loss in losses]  # waits for the device
            first = self.settings.steps - max(1, math.floor(END_SHARE * self.settings.steps))
            progress.end_losses += values[max(0, first - (progress.step - len(values))) :]
            # The loss of a step is that of the weights before it.
            if not math.isfinite(sum(values)):
                signs = (f"the loss is {sum(values)} up to step {progress.step:,}",)
            elif not all(weights.isfinite().all() for weights in model.parameters()):
                signs = (f"weights are not finite at step {progress.step:,}",)
            elif is_stopped:
                self._save(model, optimizer)
                return None
            else:
                self._evaluate(model)
        if not signs:
            end_loss = float(np.mean(progress.end_losses))
            answers = self.kind.predict(self.dev.examples, records.load_scores(self.outputs / LAST)).answers
            signs = signs_of(end_loss, chance_loss, progress.evaluations[-1].main, answers.values())
        return Attempt(learning_rate=rate, end_loss=end_loss, chance_loss=chance_loss, diverged=signs)

    def _steps(self, model: TaskModel, optimizer: Optimizer, rate: float) -> Iterator[torch.Tensor]:
        """The loss of each further step on the device, as it is taken."""
        progress, settings, features = self.progress, self.settings, self.train.features
        for items in islice(training_items(features.lengths, settings.batch_size, self.seed), progress.step, None):
            factor = learning_rate_factor(progress.step / settings.steps, settings.warmup_steps / settings.steps)
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            batch = features.batch(items, self.device)
            # Dropout depends only on seed and step, so that a resumed fine-tuning needs no generator state.
            torch.manual_seed(int(np.random.SeedSequence([self.seed, progress.step]).generate_state(1)[0]))
            loss = take_step(model, optimizer, batch, self.autocast)
            progress.step += 1
            yield loss

    def _save(self, model: TaskModel, optimizer: Optimizer) -> None:
        progress = self.progress
        state = {"run_name": self.identity, "step": progress.step, "progress": progress.model_dump()}
        checkpoint.save(self.checkpoints, model, optimizer, state | {"clock": self.clock.state_dict()})

    def _evaluate(self, model: TaskModel) -> None:
        """Keeps the scores of an evaluation that is the best yet or the last."""
        dev, progress = self.dev, self.progress
        scores = score_examples(model, self.kind, dev.examples, dev.features, self.device, self.autocast)
        evaluation = evaluate_scores(self.kind, dev.examples, scores, self.floors, progress.step)
        progress.evaluations.append(evaluation)
        if progress.best is evaluation:
            records.save_scores(scores, self.outputs / BEST)
            if self.keep_weights:
                checkpoint.save_weights(self.outputs / WEIGHTS, model)
        if progress.step == self.settings.steps:
            records.save_scores(scores, self.outputs / LAST)

    def _record(self, attempt: Attempt) -> FinetuningRecord:
        for file in (self.outputs / LAST, self.outputs / BEST):
            scored = self.kind.score(self.dev.examples, self.kind.predict(self.dev.examples, records.load_scores(file)))
            write_atomically(file.with_suffix(".json"), json.dumps(dict(scored.answers), ensure_ascii=False))
        shares = shares_of_main(self.task, scored)
        return FinetuningRecord(
            task=self.task.name,
            title=self.task.title,
            identity=self.identity,
            run=self.start.name,
            weights="random" if self.start.weights is None else "pre-trained",
            start_from=self.task.start_from,
            seed=self.seed,
            scale=self.start.config.scale.name,
            settings=self.settings,
            train=self.train.record,
            dev=self.dev.record,
            best=self.progress.best,
            last=self.progress.evaluations[-1],
            evaluations=tuple(self.progress.evaluations),
            documents=by_block(shares) if shares else None,
            attempts=(*self.progress.attempts, attempt),
            diverged=attempt.diverged,
            total_seconds=self.clock.total_seconds,
        )
