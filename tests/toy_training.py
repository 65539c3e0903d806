"""Pre-trainings of the toy corpus, in this process or in several."""

import multiprocessing
from contextlib import closing
from typing import Any

import torch

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch, StagedBatches
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.training.evaluate import Evaluator
from albert_lab.training.log import MetricsLog
from albert_lab.training.pretrain import Pretrainer
from albert_lab.training.processes import Processes

CPU = torch.device("cpu")


def batch_of(trainer: Pretrainer, step: int, share: float = 0.0) -> Batch:
    """The batch of a step, at a used share of the budget."""
    with closing(trainer.batches.prefetch(step, lambda: share)) as batches:
        return next(batches)


def pretrainer(
    config: RunConfig,
    folder,
    is_stopped=lambda: False,
    processes: Processes | None = None,
    device: torch.device = CPU,
) -> Pretrainer:
    """A pre-training in a folder."""
    processes = processes or Processes()
    folder.mkdir(parents=True, exist_ok=True)
    shards = prepare(config, lambda line: None)
    tokenizer = load_model(find_tokenizer(config))
    train, dev = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))
    evaluator = Evaluator(
        config, train, dev, tokenizer, {}, device, lambda: processes.any(is_stopped())
    )
    return Pretrainer(
        config,
        run_name="toy",
        folder=folder,
        batches=StagedBatches(train, tokenizer, config),
        evaluator=evaluator,
        log=MetricsLog(folder) if processes.leads else None,
        is_stopped=is_stopped,
        say=lambda line: None,
        processes=processes,
    )


def weights(trainer: Pretrainer) -> dict[str, torch.Tensor]:
    """A copy of the weights by name."""
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def quick_starts() -> Any:
    """The context of processes that are forked from one server, which has loaded torch."""
    context = multiprocessing.get_context("forkserver")
    # The modules that torch loads for the first optimizer take most of the start time.
    context.set_forkserver_preload(
        ["albert_lab.training.pretrain", "albert_lab.data.prepare", "torch._dynamo"]
    )
    return context
