"""Training and inference of albert-lab and of stock transformers on the same batches, in turns, as
Markdown.

`python benchmarks/transformers_step.py [ROUNDS] [KEY=VALUE]...`. The model and losses of
transformers, with torch's default AdamW: at its default, float32 and eager; and at its best, in the
precision of albert-lab and compiled (which needs a C++ compiler on a CPU). Each measurement has a
process of its own; only those of albert-lab have the settings of the memory allocator that runs
have.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median
from typing import Any

import numpy as np
import torch
from tabulate import tabulate
from torch import nn

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import IGNORED_LABEL, Batch
from albert_lab.machine import ALLOCATOR, cores
from albert_lab.model.encoder import PretrainingModel
from albert_lab.model.shape import EncoderShape
from albert_lab.training.device import (
    Tensors,
    autocast,
    choose_device,
    inputs_of,
    synchronize,
)
from albert_lab.training.optimizer import build_optimizer
from albert_lab.training.step import Step, with_graphs

LIBRARIES = ("albert-lab", "transformers", "transformers at its best")
ROUNDS, SECONDS, WARM_UP = 7, 0.5, 7  # the first steps choose kernels and record graphs


def main(number: int, overrides: list[str]) -> None:
    """Print the medians over rounds; each measures the libraries once, in a random order."""
    load(overrides)  # a wrong setting is refused here
    turns: list[dict[str, list[float]]] = []
    for turn in range(number):
        order = np.random.Generator(np.random.Philox(key=turn)).permutation(LIBRARIES)
        turns.append({str(library): _in_child(str(library), overrides) for library in order})
        print(f"round {turn + 1} of {number}", file=sys.stderr, flush=True)
    lines = []
    for library in LIBRARIES:
        speeds = [median(turn[library][place] for turn in turns) for place in (0, 1)]
        ratios = [
            median(turn["albert-lab"][place] / turn[library][place] for turn in turns)
            for place in (0, 1)
        ]
        lines.append(
            [library, *(f"{speed:,.0f}" for speed in speeds), *(f"{ratio:.2f}" for ratio in ratios)]
        )
    header = [
        "library",
        "training tokens/s",
        "inference tokens/s",
        "albert-lab over it, training",
        "inference",
    ]
    print(tabulate(lines, header, "github", disable_numparse=True))
    print(
        f"\nMedians of {number} rounds on {cores()} cores, load {os.getloadavg()[0]:.1f} at "
        "the end:"
        f" {' '.join(overrides)}"
    )


def _in_child(library: str, overrides: list[str]) -> list[float]:
    own = ALLOCATOR if library == "albert-lab" else {}
    command = [sys.executable, __file__, "--one", library, *overrides]
    return json.loads(
        subprocess.run(command, env=os.environ | own, stdout=subprocess.PIPE, check=True).stdout
    )


def measure(library: str, config: RunConfig) -> tuple[float, float]:
    """Tokens/s of training and of inference, in this process."""
    torch.set_num_threads(config.machine.threads or cores())
    if library == "albert-lab":
        return _measure_ours(config)
    device, is_best = choose_device(config.machine.device), library == "transformers at its best"
    with_precision = autocast(config.machine.precision, device) if is_best else nullcontext
    model = build(config).to(device)
    # A rate of 0 changes neither the weights nor the amount of work.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    forward = torch.compile(model) if is_best else model
    batch, held_out = (
        synthetic_batch(config, size) for size in (config.batch_size, config.evaluation.batch_size)
    )

    def train() -> None:
        model.train()
        with with_precision():
            forward(**inputs_and_labels(batch, model, device)).loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.max_grad_norm)
        optimizer.step()
        model.zero_grad(set_to_none=True)

    def infer() -> None:
        model.eval()
        with torch.inference_mode(), with_precision():
            model(**_inputs(held_out, device))

    return batch.num_tokens * _rate(train, device), held_out.num_tokens * _rate(infer, device)


def _measure_ours(config: RunConfig) -> tuple[float, float]:
    device = choose_device(config.machine.device)
    model = PretrainingModel.from_config(config).to(device)
    step = Step(config, model, build_optimizer(model, config.optimizer, 0.0), device)
    batch, held_out = (
        synthetic_batch(config, size) for size in (config.batch_size, config.evaluation.batch_size)
    )
    steps = with_graphs(step)

    def train() -> None:
        model.train()
        steps.take(batch)

    def infer() -> None:
        model.eval()
        with torch.inference_mode(), step.autocast():
            model(**inputs_of(held_out, device))

    return batch.num_tokens * _rate(train, device), held_out.num_tokens * _rate(infer, device)


def synthetic_batch(config: RunConfig, num_sequences: int) -> Batch:
    """Sequences of full length: random ids and labels, and the number of predicted positions that
    the masking sets.
    """
    sequence = config.max_sequence_length
    masked = config.masking.most_predictions(sequence)
    rng = np.random.Generator(np.random.Philox(key=config.seed))
    ids = rng.integers(config.tokenizer.vocab_size, size=(num_sequences, sequence))
    places = np.sort(
        rng.permuted(np.tile(np.arange(sequence), (num_sequences, 1)), axis=1)[:, :masked], axis=1
    )
    num_labels = len(config.inter_sentence.labels)
    return Batch(
        input_ids=ids,
        token_type_ids=np.tile(
            (np.arange(sequence) >= sequence // 2).astype(np.int64), (num_sequences, 1)
        ),
        attention_mask=np.ones((num_sequences, sequence), dtype=bool),
        masked_positions=(places + sequence * np.arange(num_sequences)[:, None]).ravel(),
        masked_labels=rng.integers(config.tokenizer.vocab_size, size=num_sequences * masked),
        pair_labels=rng.integers(num_labels, size=num_sequences)
        if num_labels
        else np.full(num_sequences, -1),
    )


def build(config: RunConfig) -> nn.Module:
    """The model of transformers with the shape and losses of a configuration, randomly
    initialised.
    """
    import transformers

    shape = EncoderShape.from_config(config)
    common = {
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_attention_heads,
        "intermediate_size": shape.intermediate_size,
        "max_position_embeddings": shape.max_position_embeddings,
        "hidden_act": shape.hidden_act,
        "layer_norm_eps": shape.layer_norm_eps,
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.dropout,
    }
    has_pairs = bool(config.inter_sentence.labels)
    if shape.attention_groups == shape.ffn_groups == 1:
        kind = transformers.AlbertForPreTraining if has_pairs else transformers.AlbertForMaskedLM
        return kind(transformers.AlbertConfig(**common, embedding_size=shape.embedding_size))
    if shape.attention_groups == shape.ffn_groups == shape.num_layers and not shape.projection:
        kind = transformers.BertForPreTraining if has_pairs else transformers.BertForMaskedLM
        return kind(transformers.BertConfig(**common))
    sys.exit(
        "transformers has all-shared layers, and not-shared ones with E = H; no model of this "
        "configuration"
    )


def _rate(work: Callable[[], None], device: torch.device) -> float:
    """How often a second some work is done, after a warm-up."""

    def timed(times: int) -> float:
        synchronize(device)
        start = time.perf_counter()
        for _ in range(times):
            work()
        synchronize(device)
        return time.perf_counter() - start

    warm = [timed(1) for _ in range(WARM_UP)]
    times = max(1, math.ceil(SECONDS / warm[-1]))
    return times / timed(times)


def _inputs(batch: Batch, device: torch.device) -> Tensors:
    inputs = inputs_of(batch, device)
    del inputs["masked_positions"]
    return inputs


def inputs_and_labels(batch: Batch, model: nn.Module, device: torch.device) -> dict[str, Any]:
    """The arguments of a training step of a model of transformers."""
    labels = np.full(batch.input_ids.size, IGNORED_LABEL)
    labels[batch.masked_positions] = batch.masked_labels
    inputs: dict[str, Any] = {
        "labels": torch.from_numpy(labels.reshape(batch.input_ids.shape)).to(device)
    }
    name = type(model).__name__
    if name.endswith("ForPreTraining"):
        pairs = "sentence_order_label" if name.startswith("Albert") else "next_sentence_label"
        # Labels beyond its two, as in three-way, are set to the second: the work is the same.
        inputs[pairs] = torch.from_numpy(np.minimum(batch.pair_labels, 1)).to(device)
    return _inputs(batch, device) | inputs


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(arguments[1], load(arguments[2:]))))
    elif arguments and arguments[0].isdigit():
        main(int(arguments[0]), arguments[1:])
    else:
        main(ROUNDS, arguments)
