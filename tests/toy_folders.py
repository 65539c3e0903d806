"""Toy run folders with random weights in the form of trained runs, and folders of transformers."""

import dataclasses
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from parity import random_model
from records import toy_record

from albert_lab.config.compose import load, validate
from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import MODEL_FILE, train
from albert_lab.model.shape import EncoderShape
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.training import checkpoint
from albert_lab.training.optimizer import build_optimizer

SENTENCES = [
    f'{first} {second} ({third}) had 92,000 of "{second}" in {year}, and {first}-{third}.'
    for year, first in zip(
        range(1990, 2020), ["alpha", "beta", "gamma", "delta", "omega"] * 6, strict=True
    )
    for second, third in (("cats", "dogs"), ("red", "green"), ("mat", "house"))
]


@cache
def _settings() -> RunConfig:
    return load(
        ["scale=smoke", "machine.device=cpu", "machine.precision=fp32", "machine.threads=1"]
    )


def toy_tokenizer_file(folder: Path, vocab_size: int = 56) -> Path:
    """A SentencePiece model in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL_FILE).write_bytes(_trained(vocab_size))
    return folder / MODEL_FILE


@cache
def _trained(vocab_size: int) -> bytes:
    settings = _settings().tokenizer.model_copy(update={"vocab_size": vocab_size})
    with TemporaryDirectory() as folder:
        train(iter(SENTENCES * 4), settings, Path(folder) / MODEL_FILE)
        return (Path(folder) / MODEL_FILE).read_bytes()


def toy_run(
    tokenizer_file: Path, shape: EncoderShape, inter_sentence: str = "sop", seed: int = 0
) -> Path:
    """The folder of a finished run with random weights; its vocabulary is that of the tokenizer."""
    tokenizer = load_model(tokenizer_file)
    content = _settings().model_dump(mode="json")
    content["model"] |= {key: getattr(shape, key) for key in content["model"] if key != "name"}
    content["sharing"] = {
        "name": "toy",
        "attention_groups": shape.attention_groups,
        "ffn_groups": shape.ffn_groups,
    }
    content["inter_sentence"] = load(
        [f"inter_sentence={inter_sentence}"]
    ).inter_sentence.model_dump(mode="json")
    content["tokenizer"] |= {
        "name": "model-file",
        "model_file": str(tokenizer_file),
        "vocab_size": tokenizer.vocab_size,
        "training_sentences": None,
        "character_coverage": None,
    }
    is_square = shape.embedding_size == shape.hidden_size
    content |= {
        "embedding_size": shape.embedding_size,
        "projection": "always" if shape.projection and is_square else "auto",
        "max_sequence_length": max(8, shape.max_position_embeddings),
        "dropout": shape.dropout,
        "seed": seed,
    }
    config = validate(content)
    run = runs.Run(config, {"corpus": "c0ffee", "tokenizer": tokenizer.fingerprint})
    folder = runs.create(run)
    shape = dataclasses.replace(shape, vocab_size=tokenizer.vocab_size)
    model = random_model(shape, len(config.inter_sentence.labels), seed)
    optimizer = build_optimizer(model, config.optimizer, config.learning_rate)
    checkpoint.save(folder / "checkpoint", model, optimizer, {"run_name": run.name, "step": 1})
    results.write(folder, toy_record(config, name=run.name))
    return folder


def trained_model(folder: Path) -> torch.nn.Module:
    """The model of a toy run, read directly from its checkpoint."""
    from albert_lab.model.encoder import PretrainingModel

    model = PretrainingModel.from_config(runs.read(folder).config).eval()
    checkpoint.load_weights(checkpoint.last_weights(folder / "checkpoint", folder.name), model)
    return model
