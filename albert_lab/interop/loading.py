"""A model from a run, an export or a folder of transformers; and the import of such a folder as a
run.
"""

import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from albert_lab import files
from albert_lab.config.compose import (
    content_of,
    groups,
    settings_of,
    validate,
    vocabulary_size,
)
from albert_lab.config.schema import RunConfig
from albert_lab.config.section import MIN_SEQUENCE_LENGTH
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.data.vocabulary import MODEL_FILE, find_or_train, load_tokenizer
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop import layout
from albert_lab.messages import Say, to_stderr
from albert_lab.model.encoder import PretrainingModel
from albert_lab.model.shape import EncoderShape
from albert_lab.runs import results, states
from albert_lab.runs import run as runs
from albert_lab.storage import find_or_build
from albert_lab.training import checkpoint
from albert_lab.training.optimizer import build_optimizer

TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
_REMEDY = (
    "a tokenizer.json names all rows: AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) "
    "writes one with added tokens; if rows are padding, tokenizer.add_tokens(['[row 1]', ...]) "
    "names them before"
)


class Opened(NamedTuple):
    """A model in evaluation mode, its tokenizer, the run that it is or would be, and the
    layout.PARTS that it lacks.
    """

    run: runs.Run
    model: PretrainingModel
    tokenizer: Tokenizer
    missing: tuple[str, ...] = ()


def load(folder: str | Path) -> tuple[PretrainingModel, Tokenizer]:
    """The model of a folder in evaluation mode, and its tokenizer.

    The folder is a run (also by its name), an export of `albert-lab export`, or an ALBERT or BERT
    in the Hugging Face layout. A missing pooler or MLM head, and a pair head that nobody trained,
    has random weights, and a warning names it. The model computes hidden states by
    `model.encoder(input_ids, token_type_ids, attention_mask, output_hidden_states=True)`:
    `last_hidden_state` [batch, sequence, hidden] and `hidden_states`, the input of the first layer
    and then the output of each. `model.pooler` and `model.mlm_head` are its heads, and
    `model.pair_head` is None if it has none.

    Raises:
        ConfigError: the folder does not exist or cannot be used; names the file.
        MissingDataError: weights or tokenizer do not exist, or transformers, which reads its own
            folders.
    """
    opened = open_folder(str(folder))
    random = [part for part in opened.missing if getattr(opened.model, part) is not None]
    if random:
        warnings.warn(
            f"{folder} has no {' and no '.join(random)}: random weights are used instead",
            stacklevel=2,
        )
    return opened.model, opened.tokenizer


def open_folder(text: str) -> Opened:
    """The model of a run by its name, or of a folder.

    Raises:
        ConfigError, MissingDataError: see load().
    """
    path = runs.find(text)
    return open_run(path) if (path / runs.RUN_FILE).is_file() else open_transformers(path)


def open_transformers(
    folder: Path, overrides: Sequence[str] = (), name: str | None = None
) -> Opened:
    """The model of a folder of transformers, with the configuration that it has as a run.

    Args:
        overrides: `key=value` of keys that the folder does not determine: scale, corpus, budget.
        name: model name, of which letters, digits and dots stay, for the run's name; None: the
            folder's name.

    Raises:
        ConfigError: see layout.read; a tokenizer with another vocabulary; an override of a key that
            the folder determines.
        MissingDataError: there is no tokenizer, or transformers is not installed.
    """
    model, labels, missing = layout.read(folder)
    shape = model.encoder.shape
    name = re.sub(r"[^A-Za-z0-9.]+", "-", name or folder.resolve().name).strip("-.") or "imported"
    config = _configure(shape, _inter_sentence(labels), folder, overrides, name)
    tokenizer = load_tokenizer(config)
    size = tokenizer.vocab_size
    if size != shape.vocab_size:
        reason = _REMEDY if size < shape.vocab_size else "its weights belong to another one"
        raise ConfigError(
            f"{config.tokenizer.model_file} has {size} tokens, but the model's vocab_size is "
            f"{shape.vocab_size}: {reason}"
        )
    hashed = hashlib.blake2b(digest_size=6)
    for key, tensor in sorted(model.state_dict().items()):
        hashed.update(key.encode() + tensor.contiguous().numpy().tobytes())
    fingerprints = {"tokenizer": tokenizer.fingerprint, "weights": hashed.hexdigest()}
    return Opened(runs.Run(config, fingerprints), model, tokenizer, missing)


def _configure(
    shape: EncoderShape,
    inter_sentence: dict[str, Any],
    folder: Path,
    overrides: Sequence[str],
    name: str,
) -> RunConfig:
    """The configuration of a run that has the shape, pair labels and tokenizer of a folder.

    Raises:
        ConfigError: an override of what the folder determines.
    """
    settings = read_tokenizer_settings(folder)
    longest = shape.max_position_embeddings
    settings["max_sequence_length"] = min(settings["max_sequence_length"], longest)
    settings |= {
        "length_schedule": "constant",
        "tokenizer": "model-file",
        "tokenizer.model_file": str(find_tokenizer_file(folder)),
    }
    given = settings_of(overrides)
    content = content_of(settings | given)
    # layout.read() refuses a model whose attention is shared otherwise than its FFN.
    number = len(set(shape.ffn_blocks))
    sharing = {1: "all-shared", shape.num_layers: "not-shared"}.get(number, "groups")
    is_square = shape.embedding_size == shape.hidden_size
    in_model = {key: getattr(shape, key) for key in content["model"] if key != "name"}
    decided: dict[str, Any] = {
        "model": {"name": name, **in_model},
        "sharing": {"name": sharing, "attention_groups": number, "ffn_groups": number},
        "inter_sentence": inter_sentence,
        "embedding_size": shape.embedding_size,
        "projection": "always" if shape.projection and is_square else "auto",
        "dropout": shape.dropout,
    }
    for key in given:
        if key.split(".")[0] in decided or key in ("tokenizer", "tokenizer.model_file"):
            raise ConfigError(f"{key} cannot be set: {folder} determines it")
    return validate(content | decided)


def _inter_sentence(labels: Sequence[str]) -> dict[str, Any]:
    """The inter_sentence option with these labels; those of the paper come first."""
    # `sop` and its variant `sop-release` have the same labels.
    for name in ("none", "nsp", "sop", *groups()["inter_sentence"]):
        option = content_of({"inter_sentence": name})["inter_sentence"]
        if [label["kind"] for label in option["labels"]] == [*labels]:
            return option
    raise ConfigError(f"pair_labels={list(labels)}: no inter_sentence option has these labels")


def find_tokenizer_file(folder: Path) -> Path:
    """The tokenizer file of a folder: spiece.model, but tokenizer.json if that has more tokens or
    is alone.

    Raises:
        MissingDataError: neither exists. ConfigError: one that exists cannot be read.
    """
    found = [file for file in (folder / MODEL_FILE, folder / TOKENIZER) if file.is_file()]
    if not found:
        raise MissingDataError(
            f"{folder} has no tokenizer, neither {MODEL_FILE} nor {TOKENIZER}: transformers' "
            "BertTokenizerFast.from_pretrained(DIR).save_pretrained(DIR) makes one of a vocab.txt"
        )
    # Tokens that were added to a SentencePiece model, and have rows in the embeddings, are only in
    # the other file. Of equal sizes, max() takes the first. None, of no file, does not occur.
    return max(found, key=lambda file: vocabulary_size(str(file)) or 0)


class _TokenizerConfig(BaseModel, strict=True):
    """The keys of tokenizer_config.json that are read, with the defaults of transformers; the last
    is ours.
    """

    do_lower_case: bool | None = True
    strip_accents: bool | None = None
    keep_accents: bool | None = None
    model_max_length: int | float | None = Field(
        default=None, ge=MIN_SEQUENCE_LENGTH, multiple_of=1
    )
    language: str | None = Field(default=None, pattern=r"^[A-Za-z]+(-[A-Za-z0-9]+)*$")


def read_tokenizer_settings(folder: Path) -> dict[str, Any]:
    """The settings of a run that the tokenizer of a folder determines, by their keys; or
    ConfigError: its file.
    """
    file = folder / TOKENIZER_CONFIG
    flags = files.read_json(file, _TokenizerConfig) if file.exists() else _TokenizerConfig()
    strips = flags.strip_accents
    if strips is None:  # ALBERT strips accents with either case; in BERT, they follow the case
        has_pieces = (folder / MODEL_FILE).is_file()
        is_albert = has_pieces or "keep_accents" in flags.model_fields_set
        strips = not flags.keep_accents if is_albert else bool(flags.do_lower_case)
    settings = {
        "corpus.lower_case": bool(flags.do_lower_case),
        "corpus.strip_accents": strips,
        "max_sequence_length": flags.model_max_length or inf,
    }
    if flags.language is not None:
        settings["corpus.language"] = flags.language
    return settings


def open_run(folder: Path) -> Opened:
    """The model of the folder of a finished run.

    Raises:
        ConfigError: it is none, its weights do not fit its configuration, or its tokenizer was
            changed.
        MissingDataError: weights or tokenizer do not exist.
        DamagedFileError: the weights are damaged.
    """
    run = states.read_finished(folder)
    if runs.read_import(folder):
        run = replace(run, config=runs.with_file(run.config, find_tokenizer_file(folder)))
    run = replace(run, config=runs.config_here(run))
    find_or_train(run.config, to_stderr)  # its cache may have been removed
    model = PretrainingModel.from_config(run.config).eval()
    checkpoint.load_weights(checkpoint.last_weights(folder / "checkpoint", run.name), model)
    return Opened(run, model, load_tokenizer(run.config), results.untrained_parts(folder))


def import_folder(folder: Path, overrides: Sequence[str], name: str | None, say: Say) -> Path:
    """The run folder of a folder of transformers; makes it first if it does not exist.

    It contains the weights as a checkpoint of step 0 without optimizer state, the tokenizer, and
    import.json.

    Raises:
        ConfigError, MissingDataError: see open_transformers.
    """
    opened = open_transformers(folder, overrides, name)
    source = find_tokenizer_file(folder)
    run = replace(
        opened.run, config=runs.with_file(opened.run.config, opened.run.folder / source.name)
    )

    def build(partial: Path) -> None:
        shutil.copyfile(source, partial / source.name)
        runs.write_run_file(run, partial)
        optimizer = build_optimizer(opened.model, run.config.optimizer, run.config.learning_rate)
        checkpoint.save(
            partial / "checkpoint", opened.model, optimizer, {"run_name": run.name, "step": 0}
        )
        noted = {"missing_parts": opened.missing, "source": str(folder.resolve())}
        (partial / runs.IMPORT).write_text(json.dumps(noted))

    find_or_build(run.folder, build, say)
    if opened.missing:
        say(
            f"the folder has no {' and no '.join(opened.missing)}: pre-training from it starts "
            "with new ones"
        )
    return run.folder
