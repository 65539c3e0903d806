"""Layer measurements of any encoder that transformers can load from a folder, on the held-out text of a corpus."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_lab.config.schema import RunConfig
from albert_lab.data import corpus as texts
from albert_lab.data.vocabulary import sample
from albert_lab.errors import ConfigError
from albert_lab.interop import layout
from albert_lab.messages import Say, with_progress
from albert_lab.training.layers import Layer

if TYPE_CHECKING:  # it loads torch, which the command line must not load at its start
    from albert_lab.training.layers import HiddenStates


def layers(folder: Path, config: RunConfig, say: Say) -> tuple[str, tuple[Layer, ...]]:
    """The label of an encoder folder, and the change by each of its layers for each choice of tokens.

    The uncleaned text of held-out documents is encoded by the folder's tokenizer, in windows of at most
    max_sequence_length tokens, of which evaluation.num_pairs are measured. Nothing is downloaded, and no code of the
    folder is executed.

    Raises:
        MissingDataError: transformers is not installed, or the text does not exist.
        ConfigError: the folder has no encoder and tokenizer that transformers can load.
    """
    from albert_lab.training.layers import measure_layers

    encoder, tokenizer = _load(folder)
    sizes = encoder.config
    windows = cut_windows(tokenizer, config, _length(sizes, config.max_sequence_length))
    batches = _hidden_states(encoder, tokenizer, windows, config.evaluation.batch_size)
    number = -(-len(windows) // config.evaluation.batch_size)
    changes = measure_layers(
        with_progress(batches, number, f"layers of {folder}: {{}} of {{}} batches", say), config.corpus.name
    )
    place = "/".join(folder.resolve().parts[-2:])
    name = f"{place} ({sizes.model_type}, {sizes.num_hidden_layers} layers, H = {sizes.hidden_size})"
    return name, changes


def _load(folder: Path) -> tuple[Any, Any]:
    transformers = layout.package(str(folder))
    encoder, loaded = layout.load(transformers.AutoModel, folder, output_loading_info=True)
    tokenizer = layout.load(transformers.AutoTokenizer, folder)
    # Missing weights would be random; the pooler is not needed, since it follows the last layer.
    if missing := sorted(name for name in loaded["missing_keys"] if not name.startswith("pooler")):
        raise ConfigError(f"{folder} lacks weights of its encoder: {', '.join(missing)}")
    if not tokenizer.is_fast:
        raise ConfigError(f"{folder}: its tokenizer has no fast version, which is needed to split text into windows")
    return encoder.eval(), tokenizer


def _length(sizes: Any, asked: int) -> int:
    """The asked length, or the longest that the encoder has positions for."""
    longest = getattr(sizes, "max_position_embeddings", None) or -1
    if longest < 0:  # relative positions: XLNet says -1, T5 nothing
        return asked
    # RoBERTa and similar models count positions from the padding id.
    offset = sizes.pad_token_id + 1 if "roberta" in sizes.model_type else 0
    return min(asked, longest - offset)


def cut_windows(tokenizer: Any, config: RunConfig, length: int) -> list[list[int]]:
    """Windows of at most `length` token ids with special tokens, spread evenly over the drawn documents."""
    corpus, num_windows = config.corpus, config.evaluation.num_pairs
    documents = (item.text for item in texts.iterate(corpus))
    held_out = (text for text in documents if texts.split_of(text, corpus.dev_share, corpus.split_seed) == "dev")
    cuts: list[list[int]] = []
    for text in sample(held_out, num_windows):
        cut = tokenizer(" ".join(text.split()), truncation=True, max_length=length, return_overflowing_tokens=True)
        cuts += cut["input_ids"]
    taken = min(num_windows, len(cuts))
    return [cuts[index * len(cuts) // taken] for index in range(taken)]


def _hidden_states(
    encoder: Any, tokenizer: Any, windows: Sequence[list[int]], batch_size: int
) -> "Iterator[tuple[HiddenStates, Any]]":
    import torch

    tokenizer.padding_side = "right"
    for first in range(0, len(windows), batch_size):
        batch = tokenizer.pad({"input_ids": windows[first : first + batch_size]}, return_tensors="pt")
        with torch.inference_mode():
            output = encoder(**batch, output_hidden_states=True)
        yield output.hidden_states, batch["attention_mask"]
