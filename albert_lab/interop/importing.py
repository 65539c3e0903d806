"""Import of an ALBERT or BERT of transformers as a run."""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from albert_lab import __version__
from albert_lab.config.compose import groups, load, load_option, parse, validate
from albert_lab.config.data import InterSentenceConfig
from albert_lab.config.schema import RunConfig
from albert_lab.data.build import find_or_build
from albert_lab.data.tokenizer.cache import MODEL_FILE
from albert_lab.data.tokenizer.cache import load as load_model
from albert_lab.errors import ConfigError
from albert_lab.interop import layout, tokenizer_files
from albert_lab.messages import Say
from albert_lab.model.shape import EncoderShape
from albert_lab.naming import check_name
from albert_lab.runs import run as runs
from albert_lab.training import checkpoint
from albert_lab.training.optimizer import build_optimizer


@dataclass(frozen=True)
class Import:
    """A folder to import: its model, and the configuration and name of its run."""

    model: layout.FolderModel
    run: runs.Run
    tokenizer_file: Path


def plan(folder: Path, tokenizer_file: Path, overrides: Sequence[str] = (), name: str | None = None) -> Import:
    """The run of an imported folder; writes nothing.

    Args:
        overrides: `key=value` of keys that the folder does not determine: scale, corpus, budget.
        name: model name, for the run's name; None: the folder's name.

    Raises:
        ConfigError: see layout.read; a tokenizer with another vocabulary; an override of a key that the folder
            determines; an invalid name.
    """
    model = layout.read(folder)
    config = _configure(model, folder, tokenizer_file, overrides, _model_name(folder, name))
    tokenizer = load_model(tokenizer_file, digit_commas=config.tokenizer.digit_commas)
    if tokenizer.vocab_size != config.tokenizer.vocab_size:
        raise ConfigError(
            f"{tokenizer_file} has {tokenizer.vocab_size} tokens, but the model's vocab_size is"
            f" {config.tokenizer.vocab_size}"
        )
    fingerprints = {"tokenizer": tokenizer.fingerprint, "weights": digest_tensors(model.model.state_dict())}
    return Import(model, runs.Run(config, fingerprints), tokenizer_file)


def import_folder(folder: Path, overrides: Sequence[str], name: str | None, say: Say) -> Path:
    """The run folder of a folder of transformers; makes it first if it does not exist.

    It contains the weights as a checkpoint of step 0 without optimizer state, the tokenizer, and import.json.

    Raises:
        ConfigError, MissingDataError: see plan and tokenizer_files.find_or_convert.
    """
    layout.package("import")
    with TemporaryDirectory() as scratch:
        planned = plan(folder, tokenizer_files.find_or_convert(folder, Path(scratch)), overrides, name)
        run, model = planned.run, planned.model
        file = run.folder / planned.tokenizer_file.name
        settings = run.config.tokenizer.model_copy(update={"model_file": str(file)})
        run = runs.Run(run.config.model_copy(update={"tokenizer": settings}), run.fingerprints)
        record = {
            "source": str(folder.resolve()),
            "family": model.family,
            "missing_parts": list(model.missing),
            "unused_tensors": list(model.unused),
            "albert_lab": __version__,
            "imported": datetime.now(UTC).date().isoformat(),
        }

        def build(partial: Path) -> None:
            shutil.copyfile(planned.tokenizer_file, partial / file.name)
            runs.write_run_file(run, partial)
            optimizer = build_optimizer(model.model, run.config.optimizer, run.config.learning_rate)
            checkpoint.save(partial / "checkpoint", model.model, optimizer, {"run_name": run.name, "step": 0})
            (partial / runs.IMPORT).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")

        find_or_build(run.folder, build, f"the import of {folder}", say)
    for key in ("missing_parts", "unused_tensors"):
        if record[key]:
            say(f"{key.replace('_', ' ')}: {', '.join(record[key])}")
    say("the folder has no optimizer state: continued pre-training starts with fresh moments")
    return run.folder


def _configure(
    model: layout.FolderModel, folder: Path, tokenizer_file: Path, overrides: Sequence[str], name: str
) -> RunConfig:
    shape, flags = model.model.encoder.shape, tokenizer_files.read_flags(folder)
    content = load(["length_schedule=constant", *overrides]).model_dump(mode="json")
    named = {override.key_or_group for override in parse(overrides)} if overrides else set()
    decided: dict[str, Any] = {
        "model": {"name": name, **{key: getattr(shape, key) for key in content["model"] if key != "name"}},
        "sharing": _sharing(shape),
        "inter_sentence": _inter_sentence(model.pair_labels),
        "embedding_size": shape.embedding_size,
        "projection": "always" if shape.projection and shape.embedding_size == shape.hidden_size else "auto",
        "dropout": shape.dropout,
    }
    for key in named:
        if key.split(".")[0] in decided:
            raise ConfigError(f"{key} cannot be set: {folder} determines it")
    if "max_sequence_length" not in named:
        longest = min(flags.max_length or shape.max_position_embeddings, shape.max_position_embeddings)
        decided["max_sequence_length"] = longest
    for key in ("lower_case", "strip_accents", "language"):
        if f"corpus.{key}" not in named and (value := getattr(flags, key)) is not None:
            content["corpus"][key] = value
    content["tokenizer"] = {
        "name": "model-file",
        "model_file": str(tokenizer_file),
        "vocab_size": shape.vocab_size,
        "training_sentences": None,
        "character_coverage": None,
        "digit_commas": content["tokenizer"]["digit_commas"]
        if "tokenizer.digit_commas" in named
        # Published ALBERT was trained with commas split off, as in the release.
        else flags.digit_commas or ("split" if tokenizer_file.name == MODEL_FILE else "keep"),
    }
    return validate(content | decided)


def _sharing(shape: EncoderShape) -> dict[str, Any]:
    names = {1: "all-shared", shape.num_layers: "not-shared"}
    name = names.get(len(set(shape.ffn_blocks)), "groups") if shape.num_layers > 1 else "all-shared"
    return {"name": name, "attention_groups": shape.attention_groups, "ffn_groups": shape.ffn_groups}


def _inter_sentence(labels: Sequence[str]) -> dict[str, Any]:
    """The inter_sentence option with these labels; options of the paper come first."""
    options = sorted(groups()["inter_sentence"], key=lambda name: (name not in ("none", "nsp", "sop"), name))
    for name in options:
        option = load_option("inter_sentence", name, InterSentenceConfig)
        if tuple(label.kind for label in option.labels) == tuple(labels):
            return option.model_dump(mode="json")
    raise ConfigError(f"pair_labels={', '.join(labels)}: no inter_sentence option has these labels")


def digest_tensors(tensors: Mapping[str, torch.Tensor]) -> str:
    hashed = hashlib.blake2b(digest_size=6)
    for name in sorted(tensors):
        hashed.update(name.encode())
        hashed.update(tensors[name].detach().contiguous().numpy().tobytes())
    return hashed.hexdigest()


def _model_name(folder: Path, name: str | None) -> str:
    try:
        text = folder.resolve().name if name is None else check_name(name)
    except ValueError as error:
        raise ConfigError(f"--name: {error}") from error
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.") or "imported"
