"""Possible problems of a folder in the Hugging Face layout, in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from albert_lab.data.tokenizer.cache import MODEL_FILE
from albert_lab.data.tokenizer.cache import load as load_model
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop import folder as folders
from albert_lab.interop import tokenizer_files
from albert_lab.interop.folder import FolderModel

Severity = Literal["error", "warning", "note"]
_PARTS = {
    "pooler": "no pooler: a random one replaces it, and scores that use it are meaningless before training",
    "mlm_head": "no MLM head: a random one replaces it, and there is no MLM accuracy before training",
    "pair_head": "no pair head (sop_classifier or seq_relationship), as in most published checkpoints: NSP and SOP are"
    " scored by a linear probe",
}
_RELEASED_EPS = 1e-12


@dataclass(frozen=True)
class Finding:
    """One finding: every command refuses an error, a warning changes results, a note is information."""

    severity: Severity
    text: str


def lint(folder: Path) -> list[Finding]:
    """All findings about a folder in the Hugging Face layout, the most severe first."""
    try:
        model = folders.read_model(folder)
        content = tokenizer_files.read_json(folder / folders.CONFIG_FILE)
        findings = [
            *_heads(model),
            *_numbers(model, content),
            *_weights(folder, model),
            *_tokenizer(folder, model, content),
        ]
    except (ConfigError, MissingDataError) as error:
        findings = [Finding("error", str(error))]
    order = ("error", "warning", "note")
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def _heads(model: FolderModel) -> Iterator[Finding]:
    for part in model.missing:
        yield Finding("note" if part == "pair_head" else "warning", _PARTS[part])
    if "pair_head" not in model.missing:
        yield Finding("note", f"assumed labels of the pair head: {', '.join(model.architecture.pair_labels)}")


def _numbers(model: FolderModel, content: dict[str, Any]) -> Iterator[Finding]:
    shape, is_albert = model.architecture.shape, model.architecture.family == "albert"
    if is_albert and shape.hidden_act == "gelu":
        yield Finding("warning", "hidden_act=gelu is the exact GELU; the released ALBERT has its tanh form, gelu_new")
    if not is_albert and shape.hidden_act == "gelu":
        yield Finding("note", "hidden_act=gelu is the exact GELU; BERT was released with its tanh form, gelu_new here")
    if shape.layer_norm_eps != _RELEASED_EPS:
        yield Finding("note", f"layer_norm_eps={shape.layer_norm_eps:g}; the released models have {_RELEASED_EPS:g}")
    attention = content.get("attention_probs_dropout_prob")
    if attention not in (None, shape.dropout):
        text = f"hidden_dropout_prob={shape.dropout:g} and attention_probs_dropout_prob={attention}"
        yield Finding("warning", f"{text}; here is one dropout, taken from the first")
    if is_albert and shape.dropout:
        text = f"hidden_dropout_prob={shape.dropout:g} is applied after the FFN here, as released"
        yield Finding("warning", f"{text}; transformers has that dropout and never applies it (training only)")
    if shape.projection and shape.embedding_size == shape.hidden_size:
        yield Finding(
            "note", "E = H with a projection between them, which the release does not have: projection=always"
        )
    if shape.inner_group_num > 1:
        yield Finding("warning", f"inner_group_num={shape.inner_group_num}: load() opens it, a run cannot have it")
    for key in ("classifier_dropout_prob", "classifier_dropout"):
        if content.get(key):
            text = f"{key}={content[key]} is of transformers' own classifiers"
            yield Finding("note", f"{text}; fine-tuning here takes classifier_dropout of the task")


def _weights(folder: Path, model: FolderModel) -> Iterator[Finding]:
    for text in model.notes:
        yield Finding("note", text)
    if not (folder / folders.SAFETENSORS).is_file() and (folder / folders.PICKLE).is_file():
        yield Finding("note", f"{folders.PICKLE} is a pickle: only its tensors are read (weights_only)")
    yield Finding("note", "transformers gives the padding embedding no gradient; here it is a row like others")


def _tokenizer(folder: Path, model: FolderModel, content: dict[str, Any]) -> Iterator[Finding]:
    shape = model.architecture.shape
    try:
        file = tokenizer_files.find(folder)
    except MissingDataError as error:
        has_vocabulary = (folder / tokenizer_files.VOCABULARY_FILE).is_file()
        yield Finding("warning" if has_vocabulary else "error", str(error))
        return
    tokenizer = load_model(file)
    if tokenizer.vocab_size != shape.vocab_size:
        text = f"{file.name} has {tokenizer.vocab_size} tokens and config.json says vocab_size={shape.vocab_size}"
        yield Finding("error", text)
    flags = tokenizer_files.read_flags(folder)
    has_capitals = any(token.isalpha() and token != token.lower() for token in tokenizer.tokens())
    if flags.lower_case and has_capitals:
        yield Finding("warning", "do_lower_case is on, and the vocabulary has tokens with capitals, which never occur")
    if not flags.lower_case and not has_capitals:
        yield Finding("warning", "do_lower_case is off, and no token has capitals: every capital becomes unknown")
    ids = {"pad": tokenizer.pad_id, "bos": tokenizer.cls_id, "eos": tokenizer.sep_id}
    for name, token in ids.items():
        said = content.get(f"{name}_token_id")
        if said is not None and said != token:
            yield Finding("warning", f"{name}_token_id={said} in config.json; the tokenizer's token for it is {token}")
    if flags.max_length is None:
        yield Finding("note", "model_max_length is not set: transformers does not cut texts that are too long")
    elif flags.max_length > shape.max_position_embeddings:
        text = f"model_max_length={flags.max_length} is more than max_position_embeddings"
        yield Finding("warning", f"{text}={shape.max_position_embeddings}")
    has_json = (folder / tokenizer_files.JSON_FILE).is_file()
    if has_json:
        tokenizer = tokenizer_files.read_json(folder / tokenizer_files.JSON_FILE)
        if isinstance(cut := tokenizer.get("truncation"), dict):
            yield Finding("warning", f"tokenizer.json cuts at {cut.get('max_length')} tokens; here it does not")
        if tokenizer.get("padding"):
            yield Finding("note", "tokenizer.json pads every text; here padding is left to the batch")
    if file.name == MODEL_FILE:
        if not has_json:
            text = (
                "spiece.model without a tokenizer.json: transformers 5 makes added tokens of brackets, quotes and full"
            )
            yield Finding("warning", f"{text} stops, and gives other ids than SentencePiece around them")
        if flags.digit_commas is None:
            text = "the release cuts the comma off tokens such as '2006,' (digit_commas=split, taken for such a folder)"
            yield Finding("note", f"{text}; transformers' fast tokenizers keep it")
