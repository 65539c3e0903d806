"""A model from a run, an export, or a folder in the Hugging Face layout; and the import of such a folder as a run."""

import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from pydantic import BaseModel

from albert_lab import __version__, files, own_code
from albert_lab.config.compose import groups, load_option, parse, validate
from albert_lab.config.compose import load as compose
from albert_lab.config.data import InterSentenceConfig
from albert_lab.config.schema import RunConfig
from albert_lab.data.build import find_or_build
from albert_lab.data.cleaning import cleaning_of
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import MODEL_FILE, find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.files import check_name
from albert_lab.interop import layout, tokenizer_files
from albert_lab.messages import Say
from albert_lab.model.encoder import PretrainingModel
from albert_lab.runs import run as runs
from albert_lab.training import checkpoint
from albert_lab.training.optimizer import build_optimizer


@dataclass(frozen=True)
class Opened:
    """A model in evaluation mode with its tokenizer, and the run that it is, or would be if it was imported.

    pair_labels: the kinds of pair that the pair head classifies; empty without one. missing: parts that the folder
    lacks. is_imported: the model was not trained by this package.
    """

    run: runs.Run
    model: PretrainingModel
    tokenizer: Tokenizer
    tokenizer_file: Path
    pair_labels: tuple[str, ...]
    missing: tuple[str, ...]
    is_imported: bool


def load(folder: str | Path) -> tuple[PretrainingModel, Tokenizer]:
    """The model of a folder in evaluation mode, and its tokenizer.

    The folder is a run (also by its name), an export of `albert-lab export`, or an ALBERT or BERT in the Hugging Face
    layout. A missing part gets random weights, and a warning names it. The model computes hidden states by
    `model.encoder(input_ids, token_type_ids, attention_mask, output_hidden_states=True)`: `last_hidden_state` [batch,
    sequence, hidden] and `hidden_states`, the input of the first layer and then the output of each. `model.pooler` and
    `model.mlm_head` are its heads, and `model.pair_head` is None if it has none.

    Example:
        >>> import albert_lab, torch
        >>> model, tokenizer = albert_lab.load("my-albert")
        >>> (ids,) = tokenizer.encode(["a sentence"])
        >>> input_ids = torch.tensor([[tokenizer.cls_id, *ids, tokenizer.sep_id]])
        >>> with torch.inference_mode():
        ...     states = model.encoder(input_ids, torch.zeros_like(input_ids), None, output_hidden_states=True)
        >>> kept = states.hidden_states
        >>> cosines = [torch.cosine_similarity(a, b, dim=-1).mean() for a, b in zip(kept, kept[1:])]

    Raises:
        ConfigError: the folder does not exist or cannot be used; names the file.
        MissingDataError: weights or tokenizer do not exist, or transformers, which reads its own folders.
    """
    opened = open_folder(str(folder))
    if random := [part for part in opened.missing if part != "pair_head"]:
        warnings.warn(f"{folder} has no {' and no '.join(random)}: random weights are used instead", stacklevel=2)
    return opened.model, opened.tokenizer


def open_folder(text: str) -> Opened:
    """The model of a run by its name, or of a folder.

    Raises:
        ConfigError, MissingDataError: see load.
    """
    path = runs.find(text)
    if (path / runs.RUN_FILE).is_file():
        return open_run(path)
    layout.refuse_tensorflow(path)
    return open_transformers(path, tokenizer_files.find(path))


def open_transformers(
    folder: Path, tokenizer_file: Path, overrides: Sequence[str] = (), name: str | None = None
) -> Opened:
    """The model of a folder of transformers, with the configuration that it has as a run.

    Args:
        overrides: `key=value` of keys that the folder does not determine: scale, corpus, budget.
        name: model name, for the run's name; None: the folder's name.

    Raises:
        ConfigError: see layout.read; a tokenizer with another vocabulary; an override of a key that the folder
            determines; an invalid name.
    """
    read = layout.read(folder)
    config = _configure(read, folder, tokenizer_file, overrides, _model_name(folder, name))
    tokenizer = load_model(tokenizer_file, cleaning_of(config.corpus), config.tokenizer.digit_commas)
    if tokenizer.vocab_size != (size := read.model.encoder.shape.vocab_size):
        remedy = f"; if it is padded: model.resize_token_embeddings({tokenizer.vocab_size}), and save it again"
        raise ConfigError(
            f"{tokenizer_file} has {tokenizer.vocab_size} tokens, but the model's vocab_size is {size}"
            + remedy * (size > tokenizer.vocab_size)
        )
    fingerprints = {"tokenizer": tokenizer.fingerprint, "weights": digest_tensors(read.model.state_dict())}
    run = runs.Run(config, fingerprints)
    return Opened(run, read.model, tokenizer, tokenizer_file, read.pair_labels, read.missing, is_imported=True)


def _configure(
    read: layout.FolderModel, folder: Path, tokenizer_file: Path, overrides: Sequence[str], name: str
) -> RunConfig:
    shape, flags = read.model.encoder.shape, tokenizer_files.read_flags(folder)
    groups = len(set(shape.ffn_blocks))
    content = compose(["length_schedule=constant", *overrides]).model_dump(mode="json")
    named = {override.key_or_group for override in parse(overrides)} if overrides else set()
    decided: dict[str, Any] = {
        "model": {"name": name, **{key: getattr(shape, key) for key in content["model"] if key != "name"}},
        "sharing": {
            "name": {1: "all-shared", shape.num_layers: "not-shared"}.get(groups, "groups"),
            "attention_groups": groups,
            "ffn_groups": groups,
        },
        "inter_sentence": _inter_sentence(read.pair_labels),
        "embedding_size": shape.embedding_size,
        "projection": "always" if shape.projection and shape.embedding_size == shape.hidden_size else "auto",
        "dropout": shape.dropout,
    }
    for key in named:
        if key.split(".")[0] in decided:
            raise ConfigError(f"{key} cannot be set: {folder} determines it")
    longest, commas = min(flags.pop("max_length"), shape.max_position_embeddings), flags.pop("digit_commas")
    if "max_sequence_length" not in named:
        decided["max_sequence_length"] = longest
    said = {key: value for key, value in flags.items() if value is not None}
    content["corpus"] |= {key: value for key, value in said.items() if f"corpus.{key}" not in named}
    content["tokenizer"] = {
        "name": "model-file",
        "model_file": str(tokenizer_file),
        "vocab_size": shape.vocab_size,
        "training_sentences": None,
        "character_coverage": None,
        "digit_commas": content["tokenizer"]["digit_commas"]
        if "tokenizer.digit_commas" in named
        # Published ALBERT was trained with commas split off, as in the release.
        else commas or ("split" if tokenizer_file.name == MODEL_FILE else "keep"),
    }
    return validate(content | decided)


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


class _Import(BaseModel):
    """The key of import.json that is read; the file has more."""

    missing_parts: tuple[str, ...]


def read_import(folder: Path) -> _Import | None:
    file = folder / runs.IMPORT
    return files.read_json(file, _Import, "remove the folder, and import the model again") if file.is_file() else None


def open_run(folder: Path) -> Opened:
    """The model of a run folder.

    Raises:
        ConfigError: it is not a run folder, or its weights do not fit its configuration.
        MissingDataError: weights or tokenizer do not exist.
        DamagedFileError: the weights are damaged.
    """
    run = runs.read(folder)
    own_code.check(run.own_code, run.name)
    model = PretrainingModel.from_config(run.config).eval()
    checkpoint.load_weights(checkpoint.last_weights(folder / "checkpoint", run.name), model)
    noted = read_import(folder)
    file = tokenizer_files.find(folder) if noted else find_tokenizer(run.config)
    return Opened(
        run=run,
        model=model,
        tokenizer=load_model(file, cleaning_of(run.config.corpus), run.config.tokenizer.digit_commas),
        tokenizer_file=file,
        pair_labels=tuple(label.kind for label in run.config.inter_sentence.labels),
        missing=noted.missing_parts if noted else (),
        is_imported=noted is not None,
    )


def import_folder(folder: Path, overrides: Sequence[str], name: str | None, say: Say) -> Path:
    """The run folder of a folder of transformers; makes it first if it does not exist.

    It contains the weights as a checkpoint of step 0 without optimizer state, the tokenizer, and import.json.

    Raises:
        ConfigError, MissingDataError: see loading.open_transformers and tokenizer_files.find_or_convert.
    """
    layout.package("import")
    layout.refuse_tensorflow(folder)
    with TemporaryDirectory() as scratch:
        opened = open_transformers(folder, tokenizer_files.find_or_convert(folder, Path(scratch)), overrides, name)
        file = opened.run.folder / opened.tokenizer_file.name
        settings = opened.run.config.tokenizer.model_copy(update={"model_file": str(file)})
        run = replace(opened.run, config=opened.run.config.model_copy(update={"tokenizer": settings}))

        def build(partial: Path) -> None:
            shutil.copyfile(opened.tokenizer_file, partial / file.name)
            runs.write_run_file(run, partial)
            optimizer = build_optimizer(opened.model, run.config.optimizer, run.config.learning_rate)
            checkpoint.save(partial / "checkpoint", opened.model, optimizer, {"run_name": run.name, "step": 0})
            record = {
                "source": str(folder.resolve()),
                "missing_parts": list(opened.missing),
                "albert_lab": __version__,
                "imported": datetime.now(UTC).date().isoformat(),
            }
            (partial / runs.IMPORT).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")

        find_or_build(run.folder, build, f"the import of {folder}", say)
    if opened.missing:
        say(f"the folder has no {' and no '.join(opened.missing)}: pre-training from it starts with new ones")
    say("the folder has no optimizer state: pre-training from it starts with new moments")
    return run.folder
