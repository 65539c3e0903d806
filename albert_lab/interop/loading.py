"""Models and their tokenizers from any folder: a run, an export, or a checkpoint in the Hugging Face layout."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from albert_lab import files, own_code
from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer.base import Tokenizer
from albert_lab.data.tokenizer.cache import find_tokenizer
from albert_lab.data.tokenizer.cache import load as load_model
from albert_lab.data.tokenizer.cleaning import cleaning_of
from albert_lab.errors import MissingDataError
from albert_lab.interop import importing, layout, tokenizer_files
from albert_lab.model.heads import PretrainingModel
from albert_lab.runs import run as runs
from albert_lab.training import checkpoint


@dataclass(frozen=True)
class Opened:
    """A model read from a folder, in evaluation mode, with its tokenizer and configuration.

    config describes the model and its text. pair_labels are the kinds of pair that the pair head classifies; empty
    without a pair head. missing has the names of parts that the folder lacks and that get random weights.
    imported: the model was not trained by this package. texts are the fingerprints of those that a run was trained on.
    """

    name: str
    model: PretrainingModel
    tokenizer: Tokenizer
    tokenizer_file: Path
    config: RunConfig
    pair_labels: tuple[str, ...]
    missing: tuple[str, ...]
    imported: bool
    texts: frozenset[str] = frozenset()


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
        ConfigError, MissingDataError: see load; a shape that no configuration can have.
    """
    path = runs.find(text)
    if (path / runs.RUN_FILE).is_file():
        return open_run(path)
    planned = importing.plan(path, tokenizer_files.find(path))
    config, read = planned.run.config, planned.model
    return Opened(
        name=planned.run.name,
        model=read.model,
        tokenizer=load_model(planned.tokenizer_file, cleaning_of(config.corpus), config.tokenizer.digit_commas),
        tokenizer_file=planned.tokenizer_file,
        config=config,
        pair_labels=read.pair_labels,
        missing=read.missing,
        imported=True,
    )


def _tokenizer_file(folder: Path, config: RunConfig) -> Path:
    """The tokenizer file of a run: next to run.yaml if imported or exported, else that of the configuration."""
    try:
        return tokenizer_files.find(folder)
    except MissingDataError:
        return find_tokenizer(config)


class _Import(BaseModel):
    """The keys of import.json that are read; the file has more."""

    model_config = ConfigDict(extra="allow")

    missing_parts: tuple[str, ...]


def read_import(folder: Path) -> dict[str, Any] | None:
    file = folder / runs.IMPORT
    remedy = "remove the folder, and import the model again"
    return files.read_json(file, _Import, remedy).model_dump() if file.is_file() else None


def open_run(folder: Path) -> Opened:
    """The model of a run folder, or of an export in our own layout.

    Raises:
        ConfigError: it is not a run folder, or its weights do not fit its configuration.
        MissingDataError: weights or tokenizer do not exist.
        DamagedFileError: the weights are damaged.
    """
    run = runs.read(folder)
    weights = folder / layout.WEIGHTS
    if not weights.is_file():
        weights = checkpoint.last_weights(folder / "checkpoint", run.name)
    own_code.check(run.own_code, run.name)
    model = PretrainingModel.from_config(run.config).eval()
    checkpoint.load_weights(weights, model)
    noted = read_import(folder)
    file = _tokenizer_file(folder, run.config)
    return Opened(
        name=run.name,
        model=model,
        tokenizer=load_model(file, cleaning_of(run.config.corpus), run.config.tokenizer.digit_commas),
        tokenizer_file=file,
        config=run.config,
        pair_labels=tuple(label.kind for label in run.config.inter_sentence.labels),
        missing=() if noted is None else tuple(noted["missing_parts"]),
        imported=noted is not None,
        texts=frozenset() if noted else frozenset(run.fingerprints.values()),
    )
