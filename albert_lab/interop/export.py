"""Export of a run: a folder of transformers, compared with the run before it is written, or our own layout."""

import shutil
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

import safetensors.torch
import torch

from albert_lab.data import corpus as texts
from albert_lab.data.cleaning import cleaning_of
from albert_lab.data.corpus import sentences
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import MODEL_FILE
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop import layout as layouts
from albert_lab.interop import tokenizer_files
from albert_lab.interop.card import model_card
from albert_lab.interop.loading import Opened, open_run
from albert_lab.messages import Say
from albert_lab.runs import results, states
from albert_lab.runs import run as runs
from albert_lab.storage import check_folder, replacing

AUTO, OWN = "auto", "albert-lab"
LAYOUTS = (AUTO, *get_args(layouts.Family), OWN)
CARD = "README.md"
# Float32 on both sides, in another order of sums.
_TOLERANCE = 1e-3
_SENTENCES, _ROWS = 1000, 16


def export(text: str, target: Path, layout: str, say: Say) -> str:
    """Writes a finished or imported run atomically as a separate folder; returns the layout.

    auto: as ALBERT if whole layers are shared, as BERT if none are shared and E = H. What transformers computes from
    the folder is compared with the run first.

    Args:
        target: folder to write; it must be empty or not exist.

    Raises:
        ConfigError: unknown layout or run, an unfinished run, a target that is not empty or cannot be written, a model
            that the layout does not support, or a folder from which transformers computes something else.
        MissingDataError: transformers is not installed, or the run's weights or tokenizer do not exist.
    """
    if layout not in LAYOUTS:
        raise ConfigError(f"--layout {layout} is unknown (allowed: {', '.join(LAYOUTS)})")
    if layout != OWN:
        layouts.package("export")
    folder = runs.find(text)
    states.check_finished(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} already exists and is not empty")
    check_folder(target.parent, f"DIR {target}:")
    opened = open_run(folder)
    with replacing(target) as partial:
        partial.mkdir()
        if layout == OWN:
            model_class = None
            _write_own(folder, opened, partial)
        else:
            try:
                layout = layouts.choose_family(opened.model.encoder.shape) if layout == AUTO else layout
                model_class = _write(opened, layout, partial)
            except ConfigError as error:
                raise ConfigError(f"{error}; --layout {OWN} writes a folder that albert_lab.load opens") from error
            say(_prove(opened, model_class, partial))
        (partial / CARD).write_text(model_card(folder, opened, model_class), encoding="utf-8")
    return layout


def _write(opened: Opened, family: str, folder: Path) -> str:
    tokenizer = opened.tokenizer
    special_ids = {"pad": tokenizer.pad_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    tokenizer_files.write(opened.tokenizer_file, opened.run.config, folder)
    return layouts.write(opened.model, opened.missing, opened.pair_labels, family, special_ids, folder)


def _write_own(folder: Path, opened: Opened, target: Path) -> None:
    for name in (runs.RUN_FILE, results.RECORD, runs.IMPORT):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, target / name)
    tensors = {name: tensor.contiguous() for name, tensor in opened.model.state_dict().items()}
    safetensors.torch.save_file(tensors, target / layouts.WEIGHTS)
    is_json = opened.tokenizer_file.suffix == ".json"
    shutil.copyfile(opened.tokenizer_file, target / (tokenizer_files.JSON_FILE if is_json else MODEL_FILE))


def _prove(opened: Opened, model_class: str, folder: Path) -> str:
    """Compares ids, hidden states and logits of sentences of the run's text here and in transformers; says which.

    Raises:
        ConfigError: they differ; names the part.
    """
    transformers, config = layouts.package("export"), opened.run.config
    theirs = layouts.load(transformers.AutoTokenizer, folder)
    ours = load_model(opened.tokenizer_file, cleaning_of(config.corpus))  # tokenizer.json keeps digit_commas
    compared = _sentences(opened)
    encoded = ours.encode(compared)
    for sentence, mine, their in zip(
        compared, encoded, theirs(compared, add_special_tokens=False)["input_ids"], strict=True
    ):
        if mine != their:
            raise _differs("ids", f"for {sentence!r}")
    length = min(config.max_sequence_length, opened.model.encoder.shape.max_position_embeddings) - 2
    chosen = sorted(filter(None, encoded), key=len)
    rows = [torch.tensor([ours.cls_id, *ids[:length], ours.sep_id]) for ids in chosen[:: len(chosen) // _ROWS + 1]]
    model = layouts.load(getattr(transformers, model_class), folder, attn_implementation="eager").eval()
    for part, mine, their in _outputs(opened, model, torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), rows):
        if not (error := float((mine - their).abs().max() / their.abs().max())) <= _TOLERANCE:
            raise _differs(part, f"by {error:.2g} of their largest")
    version = transformers.__version__
    return f"compared with transformers {version}: ids of {len(compared):,} sentences, hidden states, logits"


def _outputs(
    opened: Opened, model: Any, batch: torch.Tensor, rows: list[torch.Tensor]
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Outputs of padded rows by name, here and in a model of transformers, where they are not padding."""
    lengths, places = torch.tensor([len(row) for row in rows])[:, None], torch.arange(batch.shape[1])
    mask = places < lengths
    types = (mask & (places >= lengths // 2)).long()
    with torch.inference_mode():
        states = opened.model.encoder(batch, types, mask, output_hidden_states=True).hidden_states
        output = opened.model(batch, types, mask, mask.flatten().nonzero().flatten())
        expected = model(batch, attention_mask=mask.long(), token_type_ids=types, output_hidden_states=True)
    for number, (mine, their) in enumerate(zip(states, expected.hidden_states, strict=True)):
        yield f"hidden states after layer {number}", mine[mask], their[mask]
    for name in ("prediction_logits", "logits"):
        if name in expected:
            yield "MLM logits", output.mlm_logits, expected[name][mask]
    for name in ("sop_logits", "seq_relationship_logits"):
        if name in expected:
            yield "logits of the pair head", output.pair_logits, expected[name]


def _differs(part: str, how: str) -> ConfigError:
    return ConfigError(f"{part} differ in transformers {how}: nothing was written; please report it")


def _sentences(opened: Opened) -> list[str]:
    """Sentences of the run's text, a few of each document; without the text, the tokens of its vocabulary."""
    corpus, special = opened.run.config.corpus, ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]")
    try:
        of_documents = (islice(sentences(document.text, corpus), 10) for document in texts.iterate(corpus))
        found = list(islice(chain.from_iterable(of_documents), _SENTENCES))
    except (ConfigError, MissingDataError):
        found = [token.replace("▁", " ") for token in opened.tokenizer.tokens()]
    # In transformers, these words in a text are special tokens.
    return [sentence for sentence in found if not any(word in sentence for word in special)]
