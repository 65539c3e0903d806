"""Reading and writing the tokenizer of a folder in the Hugging Face layout."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_lab import files
from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer.cache import MODEL_FILE
from albert_lab.data.tokenizer.cache import load as load_model
from albert_lab.data.tokenizer.cleaning import Cleaning, cleaning_of
from albert_lab.data.tokenizer.sentencepiece import as_json
from albert_lab.errors import ConfigError, MissingDataError

JSON_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
VOCABULARY_FILE = "vocab.txt"
# Our key in tokenizer_config.json; published ALBERT was trained with commas split off, as in the release.
DIGIT_COMMAS_KEY = "digit_commas"
# Value that transformers writes if a tokenizer has no maximal length.
_NO_LENGTH = 10**9


@dataclass(frozen=True)
class TokenizerFlags:
    """Cleaning of text before tokenization, and the maximal sequence length (None: not given).

    digit_commas is None if the folder does not give it.
    """

    lower_case: bool
    strip_accents: bool
    max_length: int | None
    digit_commas: str | None

    @property
    def cleaning(self) -> Cleaning:
        return Cleaning(self.lower_case, self.strip_accents)


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
        DIGIT_COMMAS_KEY: config.tokenizer.digit_commas,
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
    advice = (
        f"; import the folder first: its {VOCABULARY_FILE} is then written as {JSON_FILE}" if has_vocabulary else ""
    )
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
        return _convert_vocabulary(folder, target / JSON_FILE)


def _convert_vocabulary(folder: Path, target: Path) -> Path:
    try:
        from transformers import BertTokenizer
    except ImportError as error:
        raise MissingDataError(f"{folder / VOCABULARY_FILE}: pip install 'albert-lab[transformers]'") from error
    flags = read_flags(folder)
    # Not splitlines(): U+2028 and other ends of lines are tokens.
    vocabulary = files.read_text(folder / VOCABULARY_FILE).removesuffix("\n").split("\n")
    tokens = {token.removesuffix("\r"): number for number, token in enumerate(vocabulary)}
    fast = BertTokenizer(vocab=tokens, do_lower_case=flags.lower_case, strip_accents=flags.strip_accents)
    fast.backend_tokenizer.save(str(target))
    return target


def read_flags(folder: Path) -> TokenizerFlags:
    """The cleaning in a folder's tokenizer_config.json, with the defaults of transformers.

    Raises:
        ConfigError: the file is not a JSON object, or a flag in it is neither true nor false.
    """
    content = read_json(folder / CONFIG_FILE) if (folder / CONFIG_FILE).is_file() else {}
    for key in ("do_lower_case", "strip_accents", "keep_accents"):
        if not isinstance(content.get(key), bool | None):
            raise ConfigError(f"{folder / CONFIG_FILE}: {key}={content[key]!r} is neither true nor false")
    lower_case = bool(content.get("do_lower_case", True))
    strip_accents = content.get("strip_accents")  # BERT's key; None means the value of do_lower_case
    if strip_accents is None:  # ALBERT strips accents with either case
        is_albert = "keep_accents" in content or (folder / MODEL_FILE).is_file()
        strip_accents = not content.get("keep_accents") if is_albert else lower_case
    max_length = content.get("model_max_length")
    said = isinstance(max_length, int) and max_length < _NO_LENGTH
    commas = content.get(DIGIT_COMMAS_KEY)
    return TokenizerFlags(
        lower_case, bool(strip_accents), max_length if said else None, commas if commas in ("keep", "split") else None
    )


def read_json(file: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        DamagedFileError: the file does not exist or is not a JSON object.
    """
    return files.read_json(file, dict[str, Any])


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
