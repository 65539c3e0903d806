"""Export of a run: a folder of transformers with a model card, compared with the run before it is
written.
"""

import json
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
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.storage import replacing

CARD = "README.md"
# Float32 on both sides, in another order of sums.
_TOLERANCE = 1e-3
_SENTENCES = 1000
_PROBLEM = "nothing was written; please report it"


def export(text: str, target: Path, say: Say) -> str:
    """Writes a finished or imported run atomically as a separate folder; returns the class that
    loads it.

    It is a BERT if no layer is shared and E = H, else an ALBERT. What transformers computes from
    the folder is compared with the run first.

    Args:
        target: folder to write; it must be empty or not exist.

    Raises:
        ConfigError: an unknown or unfinished run, a target that is not empty or cannot be written,
            a model that transformers does not have, or a folder from which it computes something
            else.
        MissingDataError: transformers is not installed, or the run's weights or tokenizer do not
            exist.
    """
    layout.package("export")
    folder = runs.find(text)
    is_free = not target.exists() or (target.name and target.is_dir() and not any(target.iterdir()))
    if target.is_symlink() or not is_free:
        raise ConfigError(f"{target} is a link, not empty, or the current folder: name a new one")
    opened = open_run(folder)
    with replacing(target) as partial:
        partial.mkdir()
        write_tokenizer(opened.run.config, partial)
        pair_labels = tuple(label.kind for label in opened.run.config.inter_sentence.labels)
        model_class = layout.write(
            opened.model, opened.missing, pair_labels, opened.tokenizer, partial
        )
        say(_prove(opened, model_class, partial))
        (partial / CARD).write_text(_card(folder, opened, model_class), encoding="utf-8")
    return model_class


def write_tokenizer(config: RunConfig, folder: Path) -> None:
    """Writes the tokenizer of a run: the model file, and what transformers reads, with the cleaning
    of its corpus.
    """
    file = find_tokenizer(config)
    corpus = config.corpus
    tokenizer = load_tokenizer(file)
    written: dict[str, Any] = {}
    if file.suffix != ".json":
        written[TOKENIZER] = as_json(tokenizer.model, cleaning_of(corpus))
    (folder / (MODEL_FILE if written else TOKENIZER)).write_bytes(tokenizer.model)
    tokens = tokenizer.tokens()
    special = ("pad", "unk", "cls", "sep", "mask")
    written[TOKENIZER_CONFIG] = {
        # This class of transformers reads the file; the others build another normalization from the
        # vocabulary.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "do_lower_case": corpus.lower_case,
        "keep_accents": not corpus.strip_accents,
        "model_max_length": config.max_sequence_length,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": tokens[getattr(tokenizer, f"{name}_id")] for name in special},
        "language": corpus.language,
    }
    for name, content in written.items():
        text = json.dumps(content, indent=2, ensure_ascii=False)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def _card(folder: Path, opened: Opened, model_class: str) -> str:
    """The text of a model card: what the Hub reads, then usage, origin and scores."""
    config = opened.run.config
    record = results.read(folder, opened.run.name)
    parts = [
        "---\nlibrary_name: transformers\npipeline_tag: fill-mask\nlanguage: "
        f"{config.corpus.language}\n---",
        f"# {opened.run.name}",
        f"```python\nfrom transformers import AutoTokenizer, {model_class}\n"
        'tokenizer, model = AutoTokenizer.from_pretrained("."), '
        f'{model_class}.from_pretrained(".")\n```',
        "Words of a text such as `[MASK]` or `<unk>` were text in training. Here they are special "
        "tokens, unless the tokenizer is called with `split_special_tokens=True`, which gives the "
        "ids of training.",
    ]
    if not record:  # of an imported model
        return "\n\n".join(parts) + "\n"
    start = ""
    if record.start_from:
        start = f", from the weights of {record.start_from.run}"
    if record.conversion:
        start += f", converted: {record.conversion.as_text(config.conversion)}"
    scores = [{"score": name, **score.model_dump()} for name, score in record.scores.items()]
    parts += [
        f"Trained on {config.corpus.name} ({config.inter_sentence.name}, "
        f"{record.training.steps:,} steps, seed {config.seed}{start}) and exported by albert-lab "
        f"{__version__}. Scores on its held-out documents:",
        tabulate(scores, headers="keys", tablefmt="github", floatfmt=".2f"),
    ]
    return "\n\n".join(parts) + "\n"


def _prove(opened: Opened, model_class: str, folder: Path) -> str:
    """Compares ids of sentences of the run's text, and outputs for random ids, here and in
    transformers; says what was compared.

    Raises:
        ConfigError: they differ; names the part.
    """
    transformers = layout.package("export")
    config = opened.run.config
    theirs = layout.load(transformers.AutoTokenizer, folder)
    compared = _sentences(config, opened.tokenizer)
    # Names of special tokens in a sentence are text here; a tokenizer of transformers is told so.
    ids = theirs(compared, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    ours = opened.tokenizer.encode(compared)
    tied = 0
    for sentence, expected, actual in zip(compared, ours, ids, strict=True):
        # "0 00" and "00 0", the same tokens, are equally likely: rounding decides.
        if sorted(expected) != sorted(actual):
            raise ConfigError(f"ids of {sentence!r} differ in transformers: {_PROBLEM}")
        tied += expected != actual
    loader = getattr(transformers, model_class)
    _compare_outputs(opened, layout.load(loader, folder, attn_implementation="eager").eval())
    return (
        f"compared with transformers {transformers.__version__}: ids of {len(compared):,} "
        f"sentences ({tied:,} are cut otherwise there, which is as likely), and outputs"
    )


def _compare_outputs(opened: Opened, theirs: Any) -> None:
    """Raises ConfigError if a model of transformers gives other outputs for random ids."""
    model = opened.model
    shape = (2, model.encoder.shape.max_position_embeddings)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(opened.tokenizer.vocab_size, shape, generator=generator)
    types = (torch.arange(shape[1]) >= shape[1] // 2).long().expand(shape)
    with torch.inference_mode():
        states = model.encoder(ids, types, None).last_hidden_state
        output = model(ids, types, None, torch.arange(ids.numel()))
        expected = theirs(ids, token_type_ids=types)
    mlm_logits = output.mlm_logits.unflatten(0, shape)
    ours = {
        "prediction_logits": mlm_logits,
        "logits": mlm_logits,
        "last_hidden_state": states,
        "sop_logits": output.pair_logits,
        "seq_relationship_logits": output.pair_logits,
    }
    for part, values in expected.items():
        if part in ours:
            error = (ours[part] - values).abs().max() / values.abs().max()
            if not error <= _TOLERANCE:  # also where it is not a number
                raise ConfigError(
                    f"{part} differ in transformers by {error:.2g} of their largest: {_PROBLEM}"
                )


def _sentences(config: RunConfig, tokenizer: Tokenizer) -> list[str]:
    """Sentences of the run's text, a few of each document; without the text, the tokens of its
    vocabulary.
    """
    try:
        documents = ("\n".join(document) for document in texts.iterate(config.corpus, []))
        of_each = (islice(sentences(document, config.corpus), 10) for document in documents)
        return list(islice(chain.from_iterable(of_each), _SENTENCES))
    except (ConfigError, MissingDataError):
        return [token.replace("▁", " ") for token in tokenizer.tokens()]
