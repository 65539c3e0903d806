"""The model card of an exported run."""

from pathlib import Path

from tabulate import tabulate

from albert_lab import __version__
from albert_lab.interop.loading import Opened
from albert_lab.runs import results
from albert_lab.score import PRINTED, printed


def model_card(folder: Path, opened: Opened, model_class: str | None) -> str:
    """The text of a model card: what the Hub reads, then usage, shape, origin and scores.

    Args:
        model_class: class of transformers that loads it; None: albert_lab.load does.
    """
    shape, config, record = opened.model.encoder.shape, opened.run.config, results.read(folder)
    library, usage = "albert-lab", 'import albert_lab\nmodel, tokenizer = albert_lab.load(".")'
    if model_class:
        library, usage = "transformers", f"from transformers import AutoTokenizer, {model_class}\n"
        usage += f'tokenizer, model = AutoTokenizer.from_pretrained("."), {model_class}.from_pretrained(".")'
    lines = [f"---\nlibrary_name: {library}\npipeline_tag: fill-mask", f"language: {config.corpus.language}\n---"]
    lines += [f"# {opened.run.name}", f"```python\n{usage}\n```"]
    lines.append(
        f"{shape.num_layers} layers, H = {shape.hidden_size}, E = {shape.embedding_size}, {shape.num_attention_heads}"
        f" heads, sharing {config.sharing.name}, vocabulary {shape.vocab_size:,}, at most {config.max_sequence_length}"
        f" tokens. Labels of the pair head: {', '.join(opened.pair_labels) or 'none'}."
        + (f" Left out, as in its source: {', '.join(opened.missing)}." if opened.missing else "")
        + (
            " tokenizer.json keeps the comma of `2006,`, which was cut off."
            * (config.tokenizer.digit_commas == "split")
        )
    )
    if record:
        lines.append(
            f"Trained on {config.corpus.name} ({config.inter_sentence.name}, {record.training.steps:,} steps, seed"
            f" {config.seed}) and exported by albert-lab {__version__}. Scores on held-out documents:"
        )
        scores = [[name, *printed(score), score.by] for name, score in record.scores.items()]
        lines.append(tabulate(scores, headers=["score", *PRINTED, "by"], tablefmt="github", disable_numparse=True))
    return "\n".join(lines[:2]) + "\n\n" + "\n\n".join(lines[2:]) + "\n"
