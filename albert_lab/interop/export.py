"""Export of a run: a folder of transformers with a model card, compared with the run before it is written."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

import torch
from tabulate import tabulate

from albert_lab import __version__
from albert_lab.data import corpus as texts
from albert_lab.data.cleaning import cleaning_of
from albert_lab.data.corpus import sentences
from albert_lab.data.tokenizer import load as load_model
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop import layout as layouts
from albert_lab.interop import tokenizer_files
from albert_lab.interop.loading import Opened, open_run
from albert_lab.messages import Say
from albert_lab.runs import results, states
from albert_lab.runs import run as runs
from albert_lab.score import PRINTED, printed
from albert_lab.storage import check_folder, replacing

AUTO = "auto"
LAYOUTS = (AUTO, *get_args(layouts.Family))
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
    layouts.package("export")
    folder = runs.find(text)
    states.read_finished(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} already exists and is not empty")
    check_folder(target.parent, f"DIR {target}:")
    opened = open_run(folder)
    with replacing(target) as partial:
        partial.mkdir()
        try:
            family = layouts.choose_family(opened.model.encoder.shape) if layout == AUTO else layout
            model_class = _write(opened, family, partial)
        except ConfigError as error:
            raise ConfigError(f"{error}; albert_lab.load({folder.name!r}) opens the run itself") from error
        say(_prove(opened, model_class, partial))
        (partial / CARD).write_text(_card(folder, opened, model_class), encoding="utf-8")
    return family


def _write(opened: Opened, family: str, folder: Path) -> str:
    tokenizer = opened.tokenizer
    special_ids = {"pad": tokenizer.pad_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    tokenizer_files.write(opened.tokenizer_file, opened.run.config, folder)
    return layouts.write(opened.model, opened.missing, opened.pair_labels, family, special_ids, folder)


def _card(folder: Path, opened: Opened, model_class: str) -> str:
    """The text of a model card: what the Hub reads, then usage, shape, origin and scores."""
    shape, config, record = opened.model.encoder.shape, opened.run.config, results.read(folder)
    left_out = f" Left out, as in its source: {', '.join(opened.missing)}." if opened.missing else ""
    if config.tokenizer.digit_commas == "split":
        left_out += " tokenizer.json keeps the comma of `2006,`, which was cut off."
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
        scores = [[name, *printed(score), score.by] for name, score in record.scores.items()]
        parts += [
            f"Trained on {config.corpus.name} ({config.inter_sentence.name}, {record.training.steps:,} steps, seed"
            f" {config.seed}) and exported by albert-lab {__version__}. Scores on held-out documents:",
            tabulate(scores, headers=["score", *PRINTED, "by"], tablefmt="github", disable_numparse=True),
        ]
    return "\n\n".join(parts) + "\n"


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
