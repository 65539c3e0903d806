"""One fine-tuning: from a pre-trained encoder, a task and a seed to predictions, scores and a
record.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from albert_lab.config.schema import digest
from albert_lab.data.files import digest_path
from albert_lab.messages import Say
from albert_lab.score import Score, by_block, wilson
from albert_lab.storage import replacing, write_atomically
from albert_lab.tasks import records
from albert_lab.tasks.batches import Features, TaskBatch, training_items
from albert_lab.tasks.examples import subsample
from albert_lab.tasks.kind import Scores, load_kind
from albert_lab.tasks.metrics import bag_of_words, jackknife
from albert_lab.tasks.model import InitialModel, TaskModel, build_model
from albert_lab.tasks.records import (
    SCORES,
    WEIGHTS,
    Attempt,
    Evaluation,
    ExampleSet,
    FinetuningRecord,
    output_folder,
)
from albert_lab.tasks.task import SPLITS, TaskConfig, load_start
from albert_lab.training import checkpoint
from albert_lab.training.device import Clock, autocast, choose_device
from albert_lab.training.evaluate import DivergedError, StoppedError
from albert_lab.training.optimizer import Lamb, PlainAdamW, learning_rate_factor, split_parameters

_BATCH_ITEMS = 64  # of an evaluation
# Share of the steps over which the final loss is averaged; share of the chance loss above which it
# is near chance.
END_SHARE, NEAR_CHANCE = 0.1, 0.97
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
    outputs, name = output_folder(start.folder, task.name, seed), f"{task.title}, seed {seed}"
    record = records.current(start.folder, start.name, start.config, task, seed, data)
    if record and (not keep_weights or (outputs / WEIGHTS).exists()):
        return record
    before = load_start(task)
    if before:
        finetune(start, before, seed, data=data, say=say, is_stopped=is_stopped, keep_weights=True)
    if records.read_record(start.folder, task.name, seed):
        say(
            f"{name}: its settings or its data have changed, or its weights are needed, so it "
            "runs again"
        )
        records.remove_record(start.folder, task.name, seed)
    tuning = _Finetuning(start, task, seed, data, say)
    attempts: list[Attempt] = []
    while not attempts or (attempts[-1].diverged and len(attempts) <= tuning.settings.retries):
        if attempts:
            # Differs from the paper, which mentions no fine-tuning that does not learn.
            say(f"{name}: {'; '.join(attempts[-1].diverged)}; again at half the learning rate")
        attempts.append(
            tuning.train(
                tuning.settings.learning_rate / 2 ** len(attempts), is_stopped, keep_weights
            )
        )
    if attempts[-1].end_loss is None:
        raise DivergedError(f"{name}: {'; '.join(attempts[-1].diverged)}")
    best, values, scores, model = tuning.best
    if model is not None:
        checkpoint.save_weights(outputs / WEIGHTS, model)
    with replacing(outputs / SCORES) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **scores)  # pyright: ignore[reportArgumentType]
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
        **tuning.sets,
        best=best,
        last=tuning.evaluations[-1],
        documents=by_block(values),
        attempts=tuple(attempts),
        diverged=attempts[-1].diverged,
        total_seconds=tuning.clock.total_seconds,
    )
    write_atomically(
        records.record_file(start.folder, task.name, seed), record.model_dump_json(indent=1) + "\n"
    )
    return record


def build_optimizer(model: nn.Module, name: str, learning_rate: float) -> Optimizer:
    """An optimizer over a model's parameters, without weight decay for LayerNorm and biases.

    Args:
        name: adamw, or adam-release, which has no bias correction of the moments: its first steps
            are up to 6.6 times as long.
    """
    adapted, excluded = split_parameters(model)
    groups = [{"params": adapted}, {"params": excluded, "weight_decay": 0.0}]
    if name == "adam-release":
        return Lamb(
            groups,
            lr=learning_rate,
            betas=BETAS,
            eps=EPS,
            weight_decay=WEIGHT_DECAY,
            trust_ratio=False,
        )
    # Differs from the release: AdamW corrects the bias of the moments.
    return PlainAdamW(
        groups, lr=learning_rate, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, fused=True
    )


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


class _Finetuning:
    """What all attempts of a fine-tuning share; the evaluations of the last, the best, its scores
    and kept model.
    """

    evaluations: list[Evaluation]
    # with the share or value of each answer
    best: tuple[Evaluation, Sequence[float], Scores, TaskModel | None]

    def __init__(
        self, start: InitialModel, task: TaskConfig, seed: int, data: Path, say: Say
    ) -> None:
        self.start, self.seed = start, seed
        self.settings = task.fitted(start.config)
        self.kind = load_kind(task, self.settings)
        machine = start.config.machine
        self.device = choose_device(machine.device)
        self.autocast = autocast(machine.precision, self.device)
        self.clock = Clock(self.device)
        self.examples: dict[str, list[Any]] = {}  # by split, the used ones in order
        self.features: dict[str, Features] = {}  # their sequences
        self.sets: dict[str, ExampleSet] = {}
        for split in SPLITS:
            file = task.file(data, split)
            usable, issues = task.read(data, split)
            if issues:
                say(f"{file}: {issues}")
            examples = subsample(usable, getattr(self.settings, f"{split}_examples"))
            fingerprint = digest([asdict(example) for example in examples])
            features = self.kind.make_features(examples, start.tokenizer, training=split == "train")
            if features.cut:
                longest = self.settings.max_sequence_length
                say(
                    f"{file}: {features.cut:,} of {len(examples):,} examples are cut to "
                    f"{longest} tokens"
                )
            self.examples[split] = examples
            self.features[split] = features
            self.sets[split] = ExampleSet(
                used=len(examples),
                fingerprint=fingerprint,
                digest=digest_path(file),
                issues=issues,
                cut=features.cut,
            )
        dev = self.examples["dev"]
        # by metric, in percent
        self.constant = self.kind.score(dev, self.kind.constant(dev)).values
        words = bag_of_words(self.examples["train"], dev)  # None for spans
        self.words = None if words is None else task.main_score(self.kind.score(dev, words).values)

    def train(self, rate: float, is_stopped: Callable[[], bool], keep_weights: bool) -> Attempt:
        settings, kind = self.settings, self.kind
        model = build_model(self.start, kind, self.seed)
        # what passes from one task to another
        without_head = TaskModel(model.encoder, model.pooler, nn.Identity())
        if before := kind.task.start_from:
            checkpoint.load_weights(
                output_folder(self.start.folder, before, self.seed) / WEIGHTS, without_head
            )
        model, losses, answers = model.to(self.device), [], []
        chance_loss = kind.chance_loss(self.features["train"])
        steps = self._steps(model, rate, is_stopped)
        self.evaluations = []
        while len(losses) < settings.steps:
            count = min(settings.checkpoint_steps, settings.steps - len(losses))
            with self.clock.training():
                # waits for the device once
                taken = [float(loss) for loss in [*islice(steps, count)]]
            losses += taken
            # The loss of a step is that of the weights before it.
            if not math.isfinite(sum(taken)) or not all(
                weights.isfinite().all() for weights in model.parameters()
            ):
                signs = (f"loss or weights are not finite at step {len(losses):,}",)
                return Attempt(
                    learning_rate=rate, end_loss=None, chance_loss=chance_loss, diverged=signs
                )
            evaluation, shares, scores, answers = self._evaluate(model, len(losses))
            if all(evaluation.main.value > earlier.main.value for earlier in self.evaluations):
                self.best = (
                    evaluation,
                    shares,
                    scores,
                    deepcopy(without_head) if keep_weights else None,
                )
            self.evaluations.append(evaluation)
        end_loss = float(np.mean(losses[-max(1, math.floor(END_SHARE * settings.steps)) :]))
        signs = signs_of(end_loss, chance_loss, self.evaluations[-1].main, answers)
        return Attempt(
            learning_rate=rate, end_loss=end_loss, chance_loss=chance_loss, diverged=signs
        )

    def _steps(
        self, model: TaskModel, rate: float, is_stopped: Callable[[], bool]
    ) -> Iterator[torch.Tensor]:
        """The loss of each step on the device, as it is taken; StoppedError if stopped."""
        settings, features = self.settings, self.features["train"]
        optimizer = build_optimizer(model, settings.optimizer, rate)
        model.train()
        for step, items in enumerate(
            training_items(features.lengths, settings.batch_size, self.seed)
        ):
            if is_stopped():
                raise StoppedError
            factor = learning_rate_factor(
                step / settings.steps, settings.warmup_steps / settings.steps
            )
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            # Dropout depends only on seed and step, not on what was computed in between.
            torch.manual_seed(int(np.random.SeedSequence([self.seed, step]).generate_state(1)[0]))
            yield take_step(model, optimizer, features.batch(items, self.device), self.autocast)

    def _evaluate(
        self, model: TaskModel, step: int
    ) -> tuple[Evaluation, Sequence[float], Scores, Sequence[Any]]:
        """The metrics of dev after `step` steps; share (or jackknife value), scores and answer of
        each.
        """
        task, dev, features, outputs = (
            self.kind.task,
            self.examples["dev"],
            self.features["dev"],
            [],
        )
        places = np.argsort(features.lengths, kind="stable")
        model.eval()
        for items in np.split(places, range(_BATCH_ITEMS, len(places), _BATCH_ITEMS)):
            with torch.no_grad(), self.autocast():
                batch = features.batch(items, self.device)
                outputs.append(model.head.scores(*model(batch), batch))
        model.train()
        back = np.argsort(places)
        gathered = {
            name: torch.cat([of[name] for of in outputs]).cpu().numpy()[back] for name in outputs[0]
        }
        scores = self.kind.collect(dev, features, gathered)
        predictions, floor = self.kind.predict(dev, scores), self.constant
        scored = self.kind.score(dev, *predictions)
        columns = zip(*(scored.shares.get(name, []) for name in task.main), strict=True)
        shares = [sum(column) / len(column) for column in columns]
        main = _score(
            task.main_score(scored.values), shares, len(dev), task.main_score(floor), self.words
        )
        of = {
            name: _score(of, scored.shares.get(name), len(dev), floor[name])
            for name, of in scored.values.items()
        }
        evaluation = Evaluation(step=step, main=main, scores=of, threshold=scored.threshold)
        values = shares or jackknife(
            lambda *of: task.main_score(self.kind.score(*of).values), dev, predictions[0]
        )
        return evaluation, values, scores, predictions[0]


def _score(
    value: float, shares: Sequence[float] | None, n: int, floor: float, words: float | None = None
) -> Score:
    low, high = wilson(sum(shares), len(shares)) if shares else (None, None)
    n = len(shares) if shares else n
    return Score(
        value=value, n=n, low=low, high=high, floor=floor, lexical_floor=words, by="fine-tuned"
    )


def signs_of(
    end_loss: float, chance_loss: float, last: Score, answers: Sequence[Any]
) -> tuple[str, ...]:
    """The signs that a fine-tuning did not learn; empty if it learnt.

    It did not if it gives every dev example the same answer, or if both its training loss and its
    score end near those of a model that ignores the example.

    Args:
        end_loss: mean training loss of the last END_SHARE of the steps.
        chance_loss: the lowest training loss of a model that ignores the example.
        last: the main score after the last step; its floor is the score of constant answers.
        answers: those to the dev examples after the last step, no-answer thresholds aside.
    """
    is_constant = (
        len({round(answer, 2) if isinstance(answer, float) else answer for answer in answers}) == 1
    )
    signs = (
        ["it gives every dev example the same answer"] if is_constant and len(answers) > 1 else []
    )
    # of a correlation near zero
    low = last.value - 196 / math.sqrt(last.n) if last.low is None else last.low
    if end_loss >= NEAR_CHANCE * chance_loss and low <= last.floor:
        signs.append(
            f"it ends near chance: training loss {end_loss:.3f} (chance {chance_loss:.3f}),"
            f" score {last.value:.1f} (constant answers {last.floor:.1f})"
        )
    return tuple(signs)
