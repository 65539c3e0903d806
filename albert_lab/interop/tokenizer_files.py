"""The tokenizer of a folder in the layout of transformers."""

import json
import shutil
from pathlib import Path
from typing import Any

from albert_lab import files
from albert_lab.config.schema import RunConfig
from albert_lab.data.cleaning import cleaning_of
from albert_lab.data.tokenizer import as_json
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import MODEL_FILE
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop import layout

JSON_FILE, CONFIG_FILE, VOCABULARY_FILE = "tokenizer.json", "tokenizer_config.json", "vocab.txt"
# Our keys in tokenizer_config.json; published ALBERT was trained with commas split off, as in the release.
_LANGUAGE_KEY, _COMMAS_KEY = "language", "digit_commas"
_NO_LENGTH = 10**30  # as transformers writes it


def write(model: Path, config: RunConfig, folder: Path) -> None:
    """Writes the tokenizer of a run: the model file, and the files that transformers reads.

    Args:
        config: configuration of the run; the cleaning of its corpus becomes part of the tokenizer.
    """
    tokenizer, corpus = load_model(model), config.corpus
    tokens = tokenizer.tokens()
    if model.suffix == ".json":
        shutil.copyfile(model, folder / JSON_FILE)
    else:
        shutil.copyfile(model, folder / MODEL_FILE)
        _write_json(folder / JSON_FILE, as_json(model.read_bytes(), cleaning_of(corpus)))
    special = {"pad": tokenizer.pad_id, "unk": tokenizer.unk_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    special["mask"] = tokenizer.mask_id
    content = {
        # This class of transformers reads the file; the others build another normalization from the vocabulary.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "do_lower_case": corpus.lower_case,
        "keep_accents": not corpus.strip_accents,
        "model_max_length": config.max_sequence_length,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": tokens[token] for name, token in special.items()},
        _LANGUAGE_KEY: corpus.language,
        _COMMAS_KEY: config.tokenizer.digit_commas,
    }
    _write_json(folder / CONFIG_FILE, content)


def find(folder: Path) -> Path:
    """The tokenizer file of a folder: spiece.model, else tokenizer.json.

    Raises:
        MissingDataError: neither exists.
    """
    for name in (MODEL_FILE, JSON_FILE):
        if (folder / name).is_file():
            return folder / name
    has_vocabulary = (folder / VOCABULARY_FILE).is_file()
    advice = f"; `albert-lab import` makes one of its {VOCABULARY_FILE}" if has_vocabulary else ""
    raise MissingDataError(f"{folder} has no tokenizer: neither {MODEL_FILE} nor {JSON_FILE}{advice}")


def find_or_convert(folder: Path, target: Path) -> Path:
    """The tokenizer file of a folder; for a vocab.txt, the tokenizer.json that is made of it in another folder.

    Raises:
        MissingDataError: no tokenizer file, or transformers (for a vocab.txt) is not installed.
        ConfigError: the vocabulary cannot be read.
    """
    try:
        return find(folder)
    except MissingDataError:
        if not (folder / VOCABULARY_FILE).is_file():
            raise
    loader = layout.package(str(folder / VOCABULARY_FILE)).BertTokenizer
    layout.load(loader, folder).backend_tokenizer.save(str(target / JSON_FILE))
    return target / JSON_FILE


def read_flags(folder: Path) -> dict[str, Any]:
    """What a folder's tokenizer_config.json says, with the defaults of transformers.

    Returns:
        lower_case, strip_accents, language of a corpus; max_length in tokens; digit_commas. None: it is not given.

    Raises:
        ConfigError: the file is not a JSON object, or a flag in it is neither true nor false.
    """
    file = folder / CONFIG_FILE
    content: dict[str, Any] = files.read_json(file, dict[str, Any]) if file.is_file() else {}
    for key in ("do_lower_case", "strip_accents", "keep_accents"):
        if not isinstance(content.get(key), bool | None):
            raise ConfigError(f"{file}: {key}={content[key]!r} (allowed: true, false)")
    lower_case = bool(content.get("do_lower_case", True))
    strip_accents = content.get("strip_accents")  # BERT's key; None means the value of do_lower_case
    if strip_accents is None:  # ALBERT strips accents with either case
        is_albert = "keep_accents" in content or (folder / MODEL_FILE).is_file()
        strip_accents = not content.get("keep_accents") if is_albert else lower_case
    length = content.get("model_max_length")
    return {
        "lower_case": lower_case,
        "strip_accents": strip_accents,
        "language": content.get(_LANGUAGE_KEY),
        "max_length": length if isinstance(length, int) else _NO_LENGTH,
        "digit_commas": content.get(_COMMAS_KEY),
    }


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
