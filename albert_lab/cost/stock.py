"""The same step in stock transformers, for comparison of speed. Needs the extra of that name."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import AdamW

from albert_lab.config.schema import RunConfig
from albert_lab.cost.throughput import Bench
from albert_lab.data.batches import Batch
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.model.shape import EncoderShape
from albert_lab.training.device import autocast
from albert_lab.training.transfer import Tensors, inputs_of

IGNORED = -100  # a label that the losses of transformers ignore


class StockBench(Bench):
    """The model and losses of transformers with torch's default AdamW, on the batches of Bench.

    At its default: float32 and eager. At its best: in the precision of albert-lab, and compiled.
    """

    def __init__(self, config: RunConfig, seconds: float, is_best: bool) -> None:
        """Build and warm up like Bench."""
        self._is_best = is_best
        machine = {"compile": is_best} | ({} if is_best else {"precision": "fp32"})
        super().__init__(config.model_copy(update={"machine": config.machine.model_copy(update=machine)}), seconds)

    def _step_of(self, config: RunConfig) -> "StockStep":
        precision = autocast(self.precision, self.device) if self._is_best else nullcontext
        return StockStep(config, build(config).to(self.device), self.device, precision)

    def _infer_once(self) -> None:
        self._model.eval()
        with torch.inference_mode(), self._autocast():
            self._forward(**_inputs(self._held_out, self.device))


class StockStep:
    """One optimizer step of a model of transformers; the same members as the Step of pre-training."""

    def __init__(self, config: RunConfig, model: nn.Module, device: torch.device, autocast: Callable[[], Any]) -> None:
        """A step of a model on a device; autocast makes the context of a forward pass."""
        self.config, self.model, self.device, self.autocast = config, model, device, autocast
        # A rate of 0 changes neither the weights nor the amount of work.
        self.optimizer = AdamW(model.parameters(), lr=0.0)

    def take(self, forward: Callable[..., Any], batch: Batch) -> None:
        """Update the weights with one batch."""
        size = self.config.machine.micro_batch_size or len(batch)
        if size != "auto" and size < len(batch):
            raise ConfigError("machine.micro_batch_size: the step of transformers is measured on whole batches")
        self._backward(forward, batch)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimizer.max_grad_norm)
        self.optimizer.step()
        self.model.zero_grad(set_to_none=True)

    def compiled(self, batch: Batch) -> Callable[..., Any]:
        """The compiled model; one pass over a batch compiles it and changes no weights."""
        forward = torch.compile(self.model)
        self._backward(forward, batch)
        self.model.zero_grad(set_to_none=True)
        return forward

    def _backward(self, forward: Callable[..., Any], batch: Batch) -> None:
        with self.autocast():
            found = forward(**_inputs(batch, self.device), **_labels(batch, self.model, self.device))
        found.loss.backward()


def build(config: RunConfig) -> nn.Module:
    """The model of transformers with the shape and losses of a configuration, randomly initialised.

    Raises:
        ConfigError: transformers has no such model.
        MissingDataError: transformers is not installed.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingDataError("--against transformers: pip install 'albert-lab[transformers]'") from error
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
    raise ConfigError(
        f"transformers has no model with sharing={config.sharing.name} and embedding_size={shape.embedding_size}"
        " (it has all-shared, and not-shared with E = H)"
    )


def _inputs(batch: Batch, device: torch.device) -> Tensors:
    inputs = inputs_of(batch, device)
    del inputs["masked_positions"]
    return inputs


def _labels(batch: Batch, model: nn.Module, device: torch.device) -> dict[str, torch.Tensor]:
    labels = np.full(batch.input_ids.size, IGNORED)
    labels[batch.masked_positions] = batch.masked_labels
    found = {"labels": torch.from_numpy(labels.reshape(batch.input_ids.shape)).to(device)}
    name = type(getattr(model, "_orig_mod", model)).__name__
    if name.endswith("ForPreTraining"):
        pairs = "sentence_order_label" if name.startswith("Albert") else "next_sentence_label"
        # Labels beyond its two, as in three-way, are set to the second: the work is the same.
        found[pairs] = torch.from_numpy(np.minimum(batch.pair_labels, 1)).to(device)
    return found
