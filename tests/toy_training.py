"""Pre-trainings of the toy corpus, in this process or in several."""

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from typing import Any

import torch

from albert_lab.config.schema import RunConfig
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.stages import StagedBatches
from albert_lab.data.tokenizer.cache import find_tokenizer
from albert_lab.data.tokenizer.cache import load as load_model
from albert_lab.rank import Rank
from albert_lab.training.device import autocast
from albert_lab.training.evaluate import Evaluator
from albert_lab.training.evaluation_sets import make_sets
from albert_lab.training.log import MetricsLog, NoLog
from albert_lab.training.pretrain import Pretrainer
from albert_lab.training.processes import PEER_SECONDS, Processes, Rendezvous

CPU = torch.device("cpu")


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
        sets=make_sets(train, dev, tokenizer, config),
        kinds=[label.kind for label in config.inter_sentence.labels],
        batch_size=config.evaluation.batch_size,
        device=device,
        autocast=autocast(config.machine.precision, device),
        is_stopped=lambda: processes.any(is_stopped()),
    )
    return Pretrainer(
        config,
        run_name="toy",
        folder=folder,
        batches=StagedBatches(train, tokenizer, config),
        evaluator=evaluator,
        log=MetricsLog(folder, lambda line: None) if processes.leads else NoLog(),
        is_stopped=is_stopped,
        say=lambda line: None,
        processes=processes,
    )


def weights(trainer: Pretrainer) -> dict[str, torch.Tensor]:
    """A copy of the weights by name."""
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def train(processes: Processes, configs: dict[str, RunConfig], folder) -> dict[str, Any]:
    """Train each configuration to its end; its losses by step, final weights, and scores, under its name."""
    results = {}
    for name, config in configs.items():
        trainer = pretrainer(config, folder / name, processes=processes)
        done = trainer.run()
        assert done is not None
        scores = {key: score.value for key, score in done.evaluation.scores.items()}
        results[name] = (
            trainer.losses.values,
            {key: tensor.numpy() for key, tensor in weights(trainer).items()},
            scores,
        )
    return results


SECONDS = 240  # timeout of processes that wait for each other


def quick_starts() -> Any:
    """The context of processes that are forked from one server, which has loaded torch."""
    context = multiprocessing.get_context("forkserver")
    # The modules that torch loads for the first optimizer take most of the start time.
    context.set_forkserver_preload(["albert_lab.training.pretrain", "albert_lab.data.prepare", "torch._dynamo"])
    return context


def in_processes(size: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The result of work(processes, *arguments) in each process, or the error that it raised.

    A process that ends without a result gives its exit code.
    """
    context = quick_starts()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pipes = [context.Pipe(duplex=False) for _ in range(size)]
    children = [
        context.Process(target=_work, args=(Rank(number, size, number, size), port, end, work, arguments), daemon=True)
        for number, (_, end) in enumerate(pipes)
    ]
    results = []
    try:
        for child in children:
            child.start()
        for _, end in pipes:
            end.close()
        for child, (out, _) in zip(children, pipes, strict=True):
            assert out.poll(SECONDS), "the processes wait for each other"
            try:
                results.append(out.recv())
            except EOFError:
                child.join(SECONDS)
                results.append(child.exitcode)
    finally:
        for child in children:
            child.kill()
            child.join()
    return results


def _work(rank: Rank, port: int, end: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), PEER_SECONDS: str(SECONDS / 2)}
    os.environ |= {"RANK": str(rank.number), "WORLD_SIZE": str(rank.of)}
    torch.set_num_threads(1)
    processes = Rendezvous.elsewhere(rank, lambda: False).join(CPU, lambda: False, lambda: None)
    assert processes is not None
    try:
        end.send(work(processes, *arguments))
    except Exception as error:
        traceback.print_exc()
        end.send(error)
    processes.leave()
