"""One fine-tuning: from a pre-trained encoder, a task and a seed to predictions, scores and a
record.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from albert_lab.config.schema import digest
from albert_lab.data.files import digest_path
from albert_lab.messages import Say
from albert_lab.score import Score, by_block
from albert_lab.storage import write_atomically
from albert_lab.tasks import records
from albert_lab.tasks.batches import Features, TaskBatch, training_items
from albert_lab.tasks.examples import subsample
from albert_lab.tasks.kind import Scored, load_kind
from albert_lab.tasks.metrics import bag_of_words, jackknife
from albert_lab.tasks.model import InitialModel, TaskModel, build_model
from albert_lab.tasks.records import (
    Attempt,
    Evaluation,
    ExampleSet,
    FinetuningRecord,
    weights_file,
)
from albert_lab.tasks.task import TaskConfig, load_start, mean_of
from albert_lab.training import checkpoint
from albert_lab.training.device import Clock, autocast, choose_device
from albert_lab.training.evaluate import DivergedError, StoppedError
from albert_lab.training.optimizer import Lamb, PlainAdamW, learning_rate_factor, split_parameters
from albert_lab.training.step import seed_dropout

_BATCH_ITEMS = 64  # of an evaluation
# Share of the steps over which the final loss is averaged; share of the chance loss above which it
# is near chance.
END_SHARE = 0.1
NEAR_CHANCE = 0.97
# Of optimization.py of the release.
MAX_GRAD_NORM = 1.0
BETAS = (0.9, 0.999)
EPS = 1e-6
WEIGHT_DECAY = 0.01


def finetune(
    start: InitialModel,
    task: TaskConfig,
    seed: int,
    *,
    data: Path,
    say: Say,
    is_stopped: Callable[[], bool] = lambda: False,
    keep_weights: bool = False,
) -> FinetuningRecord:
    """The record of a fine-tuning; runs it first if it is not finished.

    A stopped fine-tuning starts again. If the task has start_from, that task is fine-tuned first,
    with the same seed.

    Args:
        task: The task; its settings are those of the run's scale, its lengths at most the run's.
        seed: Seed of the head's weights, the order of the examples and dropout.
        keep_weights: Whether to keep the best weights, so that other tasks can start from them.

    Raises:
        StoppedError: stopped before the end. MissingDataError: the task's data does not exist.
        ConfigError: the data cannot be used, or the weights do not fit the configuration.
        DivergedError: the loss was not a finite number in the last of the attempts that the
            settings allow.
        OSError: a file cannot be written.
        DamagedFileError: the weights are damaged.
    """
    folder = start.folder
    weights = weights_file(folder, task.name, seed)
    name = f"{task.title}, seed {seed}"
    record = records.current(folder, start.name, start.config, task, seed, data)
    if record and (not keep_weights or weights.exists()):
        return record
    before = load_start(task)
    if before:
        finetune(start, before, seed, data=data, say=say, is_stopped=is_stopped, keep_weights=True)
    if records.read_record(folder, task.name, seed):
        say(
            f"{name}: its settings or its data have changed, or its weights are needed, so it runs "
            "again"
        )
        records.remove_record(folder, task.name, seed)
    tuning = _Finetuning(start, task, seed, data, say)
    rate = tuning.settings.learning_rate
    attempts = [tuning.train(rate, is_stopped, keep_weights)]
    while attempts[-1].diverged and len(attempts) <= tuning.settings.retries:
        # Differs from the paper, which mentions no fine-tuning that does not learn.
        say(f"{name}: {'; '.join(attempts[-1].diverged)}; again at half the learning rate")
        rate /= 2
        attempts.append(tuning.train(rate, is_stopped, keep_weights))
    last = attempts[-1]
    if last.end_loss is None:
        raise DivergedError(f"{name}: {'; '.join(last.diverged)}")
    best = tuning.best
    if keep_weights:
        checkpoint.save_weights(weights, tuning.best_weights)
    else:  # those of a fine-tuning that was killed before its record
        weights.unlink(missing_ok=True)
    record = FinetuningRecord(
        task=task.name,
        title=task.title,
        identity=records.identity_of(start.name, start.config, task, seed),
        run=start.name,
        weights="random" if start.weights is None else "pre-trained",
        start_from=task.start_from,
        seed=seed,
        scale=start.config.scale.name,
        settings=tuning.settings,
        train=tuning.train_set.record,
        dev=tuning.dev_set.record,
        best=best.evaluation,
        last=tuning.evaluations[-1],
        documents=by_block(best.values),
        attempts=tuple(attempts),
        diverged=last.diverged,
        total_seconds=tuning.clock.total_seconds,
    ).signed()
    write_atomically(
        records.record_file(folder, task.name, seed), record.model_dump_json(indent=1) + "\n"
    )
    return record


def build_optimizer(model: nn.Module, name: str, learning_rate: float) -> Optimizer:
    """An optimizer over a model's parameters, without weight decay for LayerNorm and biases.

    Args:
        name: adamw, or adam-release, which has no bias correction of the moments: its first steps
            are up to 6.6 times as long.
    """
    decayed, undecayed = split_parameters(model)
    groups = [{"params": decayed}, {"params": undecayed, "weight_decay": 0.0}]
    released: dict[str, Any] = {"betas": BETAS, "eps": EPS, "weight_decay": WEIGHT_DECAY}
    if name == "adam-release":
        return Lamb(groups, lr=learning_rate, trust_ratio=False, **released)
    # Differs from the release: AdamW corrects the bias of the moments.
    return PlainAdamW(groups, lr=learning_rate, fused=True, **released)


def take_step(
    model: TaskModel, optimizer: Optimizer, batch: TaskBatch, autocast: Callable[[], Any]
) -> torch.Tensor:
    """Updates the weights by one batch; returns its loss on the device, for which it does not
    wait.
    """
    with autocast():
        loss = model.head.loss(*model(batch), batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


class _Examples(NamedTuple):
    """The used examples of a split in order, their sequences, and what the record has of them."""

    examples: list[Any]
    features: Features
    record: ExampleSet


class _Evaluated(NamedTuple):
    """An evaluation on dev: the answer to every example before the threshold of no answer, its
    share of the main score, or value of the jackknife, and which of both.
    """

    evaluation: Evaluation
    answers: Sequence[Any]
    values: Sequence[float]
    is_share: bool


class _Finetuning:
    """What all attempts of a fine-tuning share; the evaluations of the last attempt, the best of
    them, and its weights if they are kept.
    """

    evaluations: list[Evaluation]
    best: _Evaluated
    best_weights: TaskModel

    def __init__(
        self, start: InitialModel, task: TaskConfig, seed: int, data: Path, say: Say
    ) -> None:
        self.start = start
        self.seed = seed
        self.settings = task.fitted(start.config)
        self.kind = load_kind(task, self.settings)
        machine = start.config.machine
        self.device = choose_device(machine.device)
        self.autocast = autocast(machine.precision, self.device)
        self.clock = Clock(self.device)
        self.train_set = self._read("train", self.settings.train_examples, data, say)
        self.dev_set = self._read("dev", self.settings.dev_examples, data, say)
        dev = self.dev_set.examples
        # In percent: by metric of constant answers, of bags of words the main one, None for spans.
        self.constant = self.kind.score(dev, self.kind.constant(dev)).values
        words = bag_of_words(self.train_set.examples, dev)
        self.words = None if words is None else task.main_score(self.kind.score(dev, words).values)

    def _read(self, split: str, size: int | None, data: Path, say: Say) -> _Examples:
        task = self.kind.task
        file = task.file(data, split)
        usable, issues = task.read(data, split)
        if issues:
            say(f"{file}: {issues}")
        examples = subsample(usable, size)
        features = self.kind.make_features(
            examples, self.start.tokenizer, training=split == "train"
        )
        if features.cut:
            say(
                f"{file}: {features.cut:,} of {len(examples):,} examples are cut to "
                f"{self.settings.max_sequence_length} tokens"
            )
        record = ExampleSet(
            used=len(examples),
            fingerprint=digest([asdict(example) for example in examples]),
            digest=digest_path(file),
            issues=issues,
            cut=features.cut,
        )
        return _Examples(examples, features, record)

    def train(self, rate: float, is_stopped: Callable[[], bool], keep_weights: bool) -> Attempt:
        """Trains at a learning rate from the start, and evaluates every checkpoint_steps."""
        settings = self.settings
        kind = self.kind
        model = build_model(self.start, kind, self.seed)
        # what passes from one task to another
        without_head = TaskModel(model.encoder, model.pooler, nn.Identity())
        if kind.task.start_from:
            weights = weights_file(self.start.folder, kind.task.start_from, self.seed)
            checkpoint.load_weights(weights, without_head)
        model.to(self.device)
        chance_loss = kind.chance_loss(self.train_set.features)
        steps = self._steps(model, rate, is_stopped)
        losses: list[float] = []
        # Of the last evaluation.
        answers: Sequence[Any] = []
        is_share = True
        self.evaluations = []

        while len(losses) < settings.steps:
            count = min(settings.checkpoint_steps, settings.steps - len(losses))
            with self.clock.training():
                taken = [*islice(steps, count)]
                losses += [float(loss) for loss in taken]  # waits for the device once
            # The loss of a step is that of the weights before it.
            is_finite = all(parameter.isfinite().all() for parameter in model.parameters())
            if not is_finite or not math.isfinite(sum(losses)):
                sign = f"loss or weights are not finite at step {len(losses):,}"
                return Attempt(
                    learning_rate=rate, chance_loss=chance_loss, end_loss=None, diverged=(sign,)
                )
            evaluated = self._evaluate(model, len(losses))
            score = evaluated.evaluation.main.value
            if all(score > earlier.main.value for earlier in self.evaluations):
                self.best = evaluated
                # Written at the end only: a stopped fine-tuning leaves no weights for a later one.
                if keep_weights:
                    self.best_weights = deepcopy(without_head)
            self.evaluations.append(evaluated.evaluation)
            answers = evaluated.answers
            is_share = evaluated.is_share
        end_loss = float(np.mean(losses[-max(1, math.floor(END_SHARE * settings.steps)) :]))
        last = self.evaluations[-1].main
        signs = signs_of(end_loss, chance_loss, last, answers, is_share=is_share)
        return Attempt(
            learning_rate=rate, chance_loss=chance_loss, end_loss=end_loss, diverged=signs
        )

    def _steps(
        self, model: TaskModel, rate: float, is_stopped: Callable[[], bool]
    ) -> Iterator[torch.Tensor]:
        """The loss of each step on the device, as it is taken; StoppedError if stopped."""
        settings = self.settings
        features = self.train_set.features
        optimizer = build_optimizer(model, settings.optimizer, rate)
        warmup = settings.warmup_steps / settings.steps
        model.train()
        batches = training_items(features.lengths, settings.batch_size, self.seed)
        for step, items in enumerate(batches):
            if is_stopped():
                raise StoppedError
            for group in optimizer.param_groups:
                group["lr"] = rate * learning_rate_factor(step / settings.steps, warmup)
            # Dropout depends only on seed and step, not on what was computed in between.
            seed_dropout(self.seed, step)
            yield take_step(model, optimizer, features.batch(items, self.device), self.autocast)

    def _evaluate(self, model: TaskModel, step: int) -> _Evaluated:
        """The scores of the model on dev after `step` steps."""
        task = self.kind.task
        kind = self.kind
        dev, features, _ = self.dev_set
        answers, na_probs = kind.predict(dev, features, self._outputs(model))
        scored = kind.score(dev, answers, na_probs)
        evaluation = Evaluation(
            step=step,
            main=self._score(task.main, scored).model_copy(update={"lexical_floor": self.words}),
            scores={name: self._score([name], scored) for name in scored.values},
            threshold=scored.threshold,
        )
        shares = scored.share_of_each(task.main)
        values = shares or jackknife(
            lambda *sides: task.main_score(kind.score(*sides).values), dev, answers
        )
        return _Evaluated(evaluation, answers, values, is_share=bool(shares))

    def _score(self, names: Sequence[str], scored: Scored) -> Score:
        """The mean of the scores of these names."""
        shares = scored.share_of_each(names)
        return Score(
            value=mean_of(names, scored.values),
            n=len(shares) or len(self.dev_set.examples),
            floor=mean_of(names, self.constant),
            by="fine-tuned",
        )

    def _outputs(self, model: TaskModel) -> dict[str, np.ndarray]:
        """The scores of the model's head for every item of dev, in order."""
        features = self.dev_set.features
        # Items of one length stand together, so that batches have little padding.
        places = np.argsort(features.lengths, kind="stable")
        outputs = []
        model.eval()
        for items in np.split(places, range(_BATCH_ITEMS, len(places), _BATCH_ITEMS)):
            with torch.no_grad(), self.autocast():
                batch = features.batch(items, self.device)
                outputs.append(model.head.scores(*model(batch), batch))
        model.train()
        back = np.argsort(places)
        return {
            name: torch.cat([output[name] for output in outputs]).cpu().numpy()[back]
            for name in outputs[0]
        }


def signs_of(
    end_loss: float, chance_loss: float, last: Score, answers: Sequence[Any], *, is_share: bool
) -> tuple[str, ...]:
    """The signs that a fine-tuning did not learn; empty if it learnt.

    It did not if it gives every dev example the same answer, or if both its training loss and its
    score end near those of a model that ignores the example.

    Args:
        end_loss: mean training loss of the last END_SHARE of the steps.
        chance_loss: the lowest training loss of a model that ignores the example.
        last: the main score after the last step; its floor is the score of constant answers.
        answers: those to the dev examples after the last step, no-answer thresholds aside.
        is_share: whether the score is a mean over examples, and no correlation.
    """
    signs = []
    different = {round(answer, 2) if isinstance(answer, float) else answer for answer in answers}
    if len(different) == 1 < len(answers):
        signs.append("it gives every dev example the same answer")
    # A score test: the standard deviation of one example's score, in percent, where nothing is
    # learnt; that of a correlation is about 100.
    spread = math.sqrt(last.floor * (100 - last.floor)) if is_share else 100
    is_near_floor = last.value - last.floor <= 1.96 * spread / math.sqrt(last.n)
    if end_loss >= NEAR_CHANCE * chance_loss and is_near_floor:
        signs.append(
            f"it ends near chance: training loss {end_loss:.3f} (chance {chance_loss:.3f}), score "
            f"{last.value:.1f} (constant answers {last.floor:.1f})"
        )
    return tuple(signs)
