"""The throughput of one configuration on this machine: training, inference, and matrix products of its device."""

import math
import time
from collections.abc import Callable

import numpy as np
import torch

from albert_lab.config.schema import RunConfig
from albert_lab.cost import capacity
from albert_lab.cost.counts import masked_per_sequence
from albert_lab.data.batches import Batch
from albert_lab.model.heads import PretrainingModel
from albert_lab.training.clock import synchronize
from albert_lab.training.device import autocast, choose_device, choose_precision, loss_scaler
from albert_lab.training.fitting import usable_memory_bytes
from albert_lab.training.graphs import WARM_UP as GRAPHS_WARM_UP
from albert_lab.training.graphs import with_graphs
from albert_lab.training.memory import peak_memory_bytes
from albert_lab.training.optimizer import build_optimizer
from albert_lab.training.step import Step
from albert_lab.training.transfer import inputs_of

WARM_UP = 3  # training steps; the second is the first with both the optimizer's moments and the activations
MATRIX_SIZES = {"cpu": (512, 1024, 2048), "cuda": (4096, 8192, 16384)}


def synthetic_batch(config: RunConfig, num_sequences: int) -> Batch:
    """Sequences of full length: random ids and labels, and the number of predicted positions that the masking sets.

    Needs neither text nor a tokenizer. There is no padding, since its work would not be counted.
    """
    sequence, masked = config.max_sequence_length, masked_per_sequence(config)
    rng = np.random.Generator(np.random.Philox(key=config.seed))
    ids = rng.integers(config.tokenizer.vocab_size, size=(num_sequences, sequence))
    places = np.sort(rng.permuted(np.tile(np.arange(sequence), (num_sequences, 1)), axis=1)[:, :masked], axis=1)
    num_labels = len(config.inter_sentence.labels)
    return Batch(
        input_ids=ids,
        token_type_ids=np.tile((np.arange(sequence) >= sequence // 2).astype(np.int64), (num_sequences, 1)),
        attention_mask=np.ones((num_sequences, sequence), dtype=bool),
        masked_positions=(places + sequence * np.arange(num_sequences)[:, None]).ravel(),
        masked_labels=rng.integers(config.tokenizer.vocab_size, size=num_sequences * masked),
        pair_labels=rng.integers(num_labels, size=num_sequences) if num_labels else np.full(num_sequences, -1),
    )


class Bench:
    """One configuration, built and warmed up for any number of measurements.

    Training is the optimizer step of pre-training. Inference is the forward pass of encoder and heads in evaluation
    mode, without gradients and never compiled, in batches of evaluation.batch_size, as runs are evaluated.
    """

    def __init__(self, config: RunConfig, seconds: float) -> None:
        """Build and warm up; each later measurement takes about the given seconds, and at least one pass."""
        self.device = choose_device(config.machine.device)
        self.precision = choose_precision(config.machine.precision, self.device)
        self._autocast = autocast(self.precision, self.device)
        asked = config.machine.micro_batch_size
        if asked == "auto":
            usable = usable_memory_bytes(self.device)
            most = capacity.micro_batch_size(config, self.device.type, self.precision, 1, usable)
            asked = most
            machine = config.machine.model_copy(update={"micro_batch_size": asked})
            config = config.model_copy(update={"machine": machine})
        self.micro_batch_size = asked
        # A tiny step loads what torch loads at its first step, which is not memory of the model.
        smallest = self._step_of(_smallest(config))
        smallest.take(smallest.model, synthetic_batch(smallest.config, 1))
        before = peak_memory_bytes(self.device)
        self._step = self._step_of(config)
        self.model = self._step.model
        self._batch = synthetic_batch(config, config.batch_size)
        self._forward = self._step.compiled([self._batch]) if config.machine.compile else self.model
        # Several processes, of which this measures one, take no graphs.
        self._steps = with_graphs(self._step) if config.machine.processes == 1 else self._step
        more = 0 if self._steps is self._step else GRAPHS_WARM_UP
        times = [self._timed(self.train_once, 1) for _ in range(WARM_UP + more)]
        self.peak_memory_bytes = peak_memory_bytes(self.device) - before
        self._training_passes = _passes(seconds, times[-1])
        self._held_out = synthetic_batch(config, config.evaluation.batch_size)
        self._timed(self._infer_once, 1)
        self._inference_passes = _passes(seconds, self._timed(self._infer_once, 1))
        self._matrix, rate = self._best_matrix()
        self._products = _passes(seconds / 2, 2 * len(self._matrix) ** 3 / rate)

    def training(self) -> float:
        return self._training_passes * self._batch.num_tokens / self._timed(self.train_once, self._training_passes)

    def inference(self) -> float:
        passes = self._inference_passes
        return passes * self._held_out.num_tokens / self._timed(self._infer_once, passes)

    def matrix_products(self) -> float:
        """FLOP/s of torch.matmul on square matrices, in the precision of the matrix products of training."""
        matrix = self._matrix
        return self._products * 2 * len(matrix) ** 3 / self._timed(lambda: matrix @ matrix, self._products)

    def _step_of(self, config: RunConfig) -> Step:
        model = PretrainingModel.from_config(config).to(self.device)
        # A rate of 0 changes neither the weights nor the amount of work.
        optimizer = build_optimizer(model, config.optimizer, 0.0)
        scaler = loss_scaler(self.precision, self.device)
        return Step(config, model, optimizer, self.device, self._autocast, scaler=scaler)

    def train_once(self) -> None:
        """One of the steps that training() times, at a learning rate of 0."""
        self.model.train()
        self._steps.take(self._forward, self._batch)

    def _infer_once(self) -> None:
        self.model.eval()
        with torch.inference_mode(), self._autocast():
            self.model(**inputs_of(self._held_out, self.device))

    def _best_matrix(self) -> tuple[torch.Tensor, float]:
        """The square matrix of the size with the fastest products, and their FLOP/s."""
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.precision, torch.float32)
        rates = []
        for size in MATRIX_SIZES[self.device.type]:
            matrix = torch.full((size, size), 1 / size, dtype=dtype, device=self.device)
            self._timed(lambda matrix=matrix: matrix @ matrix, 1)
            rates.append((2 * size**3 / self._timed(lambda matrix=matrix: matrix @ matrix, 1), matrix))
        rate, matrix = max(rates, key=lambda item: item[0])
        return matrix, rate

    def _timed(self, work: Callable[[], object], times: int) -> float:
        synchronize(self.device)
        start = time.perf_counter()
        for _ in range(times):
            work()
        synchronize(self.device)
        return time.perf_counter() - start


def _smallest(config: RunConfig) -> RunConfig:
    """The configuration with one layer of one head of eight units, and a batch to match."""
    shape = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 8}
    parts = {
        "model": config.model.model_copy(update=shape),
        "sharing": config.sharing.model_copy(update={"attention_groups": 1, "ffn_groups": 1}),
        "tokenizer": config.tokenizer.model_copy(update={"vocab_size": 32}),
        "machine": config.machine.model_copy(update={"micro_batch_size": None}),
    }
    return config.model_copy(update=parts | {"embedding_size": 8, "max_sequence_length": 8, "batch_size": 1})


def _passes(seconds: float, of_one: float) -> int:
    return max(1, math.ceil(seconds / of_one))
