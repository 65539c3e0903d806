"""Export of a run: a folder of transformers with a model card, compared with the run before it is written."""

import json
import shutil
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from albert_lab import __version__
from albert_lab.config.schema import RunConfig
from albert_lab.data import corpus as texts
from albert_lab.data.corpus import sentences
from albert_lab.data.tokenizer import Tokenizer, as_json, cleaning_of
from albert_lab.data.tokenizer import load as load_tokenizer
from albert_lab.data.vocabulary import MODEL_FILE, find_tokenizer
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop import layout
from albert_lab.interop.loading import TOKENIZER, TOKENIZER_CONFIG, Opened, open_run
from albert_lab.messages import Say
from albert_lab.model.encoder import PretrainingModel
from albert_lab.runs import results, states
from albert_lab.runs import run as runs
from albert_lab.storage import replacing

CARD = "README.md"
# Float32 on both sides, in another order of sums.
_TOLERANCE = 1e-3
_SENTENCES, _ROWS = 1000, 16


def export(text: str, target: Path, say: Say) -> str:
    """Writes a finished or imported run atomically as a separate folder; returns the class that loads it.

    It is a BERT if no layer is shared and E = H, else an ALBERT. What transformers computes from the folder is compared
    with the run first.

    Args:
        target: folder to write; it must be empty or not exist.

    Raises:
        ConfigError: an unknown or unfinished run, a target that is not empty or cannot be written, a model that
            transformers does not have, or a folder from which it computes something else.
        MissingDataError: transformers is not installed, or the run's weights or tokenizer do not exist.
    """
    layout.package("export")
    folder = runs.find(text)
    states.read_finished(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} already exists and is not empty")
    opened = open_run(folder)
    with replacing(target) as partial:
        partial.mkdir()
        write_tokenizer(opened.run.config, partial)
        labels, tokenizer = opened.pair_labels, opened.tokenizer
        model_class = layout.write(opened.model, opened.missing, labels, tokenizer, partial)
        say(_prove(opened, model_class, partial))
        (partial / CARD).write_text(_card(folder, opened, model_class), encoding="utf-8")
    return model_class


def write_tokenizer(config: RunConfig, folder: Path) -> None:
    """Writes the tokenizer of a run: the model file, and what transformers reads, with the cleaning of its corpus."""
    model, corpus = find_tokenizer(config), config.corpus
    if model.suffix == ".json":
        shutil.copyfile(model, folder / TOKENIZER)
    else:
        shutil.copyfile(model, folder / MODEL_FILE)
        _write_json(folder / TOKENIZER, as_json(model.read_bytes(), cleaning_of(corpus)))
    tokenizer = load_tokenizer(model)
    tokens, special = tokenizer.tokens(), ("pad", "unk", "cls", "sep", "mask")
    content = {
        # This class of transformers reads the file; the others build another normalization from the vocabulary.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "do_lower_case": corpus.lower_case,
        "keep_accents": not corpus.strip_accents,
        "model_max_length": config.max_sequence_length,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": tokens[getattr(tokenizer, f"{name}_id")] for name in special},
        "language": corpus.language,
        "digit_commas": config.tokenizer.digit_commas,
    }
    _write_json(folder / TOKENIZER_CONFIG, content)


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _card(folder: Path, opened: Opened, model_class: str) -> str:
    """The text of a model card: what the Hub reads, then usage, shape, origin and scores."""
    shape, config, record = opened.model.encoder.shape, opened.run.config, results.read(folder)
    left_out = f" Left out, as in its source: {', '.join(opened.missing)}." if opened.missing else ""
    parts = [
        f"---\nlibrary_name: transformers\npipeline_tag: fill-mask\nlanguage: {config.corpus.language}\n---",
        f"# {opened.run.name}",
        f"```python\nfrom transformers import AutoTokenizer, {model_class}\n"
        f'tokenizer, model = AutoTokenizer.from_pretrained("."), {model_class}.from_pretrained(".")\n```',
        f"{shape.num_layers} layers, H = {shape.hidden_size}, E = {shape.embedding_size}, {shape.num_attention_heads}"
        f" heads, sharing {config.sharing.name}, vocabulary {shape.vocab_size:,}, at most {config.max_sequence_length}"
        f" tokens. Labels of the pair head: {', '.join(opened.pair_labels) or 'none'}.{left_out}",
    ]
    if record:
        scores = [{"score": name, **score.model_dump()} for name, score in record.scores.items()]
        parts += [
            f"Trained on {config.corpus.name} ({config.inter_sentence.name}, {record.training.steps:,} steps, seed"
            f" {config.seed}) and exported by albert-lab {__version__}. Scores on held-out documents:",
            tabulate(scores, headers="keys", tablefmt="github", floatfmt=".2f"),
        ]
    return "\n\n".join(parts) + "\n"


def _prove(opened: Opened, model_class: str, folder: Path) -> str:
    """Compares ids, hidden states and logits of sentences of the run's text here and in transformers; says which.

    Raises:
        ConfigError: they differ; names the part.
    """
    transformers, config = layout.package("export"), opened.run.config
    ours = load_tokenizer(find_tokenizer(config), cleaning_of(config.corpus))
    theirs = layout.load(transformers.AutoTokenizer, folder)
    compared = _sentences(config, ours)
    encoded = ours.encode(compared)
    of_theirs = theirs(compared, add_special_tokens=False)["input_ids"]
    for sentence, mine, their in zip(compared, encoded, of_theirs, strict=True):
        if mine != their:
            raise ConfigError(f"ids of {sentence!r} differ in transformers: nothing was written; please report it")
    length = min(config.max_sequence_length, opened.model.encoder.shape.max_position_embeddings) - 2
    chosen = sorted(filter(None, encoded), key=len)
    rows = [torch.tensor([ours.cls_id, *ids[:length], ours.sep_id]) for ids in chosen[:: len(chosen) // _ROWS + 1]]
    model = layout.load(getattr(transformers, model_class), folder, attn_implementation="eager").eval()
    for part, mine, their in _outputs(opened.model, model, rows):
        if not (error := float((mine - their).abs().max() / their.abs().max())) <= _TOLERANCE:
            said = f"{part} differ in transformers by {error:.2g} of their largest"
            raise ConfigError(f"{said}: nothing was written; please report it")
    version = transformers.__version__
    return f"compared with transformers {version}: ids of {len(compared):,} sentences, hidden states, logits"


def _outputs(
    ours: PretrainingModel, theirs: Any, rows: list[torch.Tensor]
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Outputs for rows of ids by name, here and in a model of transformers, where they are not padding."""
    batch = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths, places = torch.tensor([len(row) for row in rows])[:, None], torch.arange(batch.shape[1])
    mask = places < lengths
    types = (mask & (places >= lengths // 2)).long()
    with torch.inference_mode():
        states = ours.encoder(batch, types, mask, output_hidden_states=True).hidden_states
        output = ours(batch, types, mask, mask.flatten().nonzero().flatten())
        expected = theirs(batch, attention_mask=mask.long(), token_type_ids=types, output_hidden_states=True)
    for number, (mine, their) in enumerate(zip(states, expected.hidden_states, strict=True)):
        yield f"hidden states after layer {number}", mine[mask], their[mask]
    for name in {"prediction_logits", "logits"} & {*expected}:
        yield "MLM logits", output.mlm_logits, expected[name][mask]
    for name in {"sop_logits", "seq_relationship_logits"} & {*expected}:
        yield "logits of the pair head", output.pair_logits, expected[name]


def _sentences(config: RunConfig, tokenizer: Tokenizer) -> list[str]:
    """Sentences of the run's text, a few of each document; without the text, the tokens of its vocabulary."""
    special = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]")
    try:
        of_documents = (islice(sentences(one.text, config.corpus), 10) for one in texts.iterate(config.corpus))
        found = list(islice(chain.from_iterable(of_documents), _SENTENCES))
    except (ConfigError, MissingDataError):
        found = [token.replace("▁", " ") for token in tokenizer.tokens()]
    # In transformers, these words in a text are special tokens.
    return [sentence for sentence in found if not any(word in sentence for word in special)]
