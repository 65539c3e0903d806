"""The model card of an exported run."""

import json
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from tabulate import tabulate

from albert_lab import __version__, paths
from albert_lab.config.data import AddedCorpusConfig, CorpusConfig
from albert_lab.data.hub import local_folder
from albert_lab.interop.loading import Opened, read_import
from albert_lab.measures.catalog import labels, units
from albert_lab.runs import reported, results
from albert_lab.runs import run as runs
from albert_lab.runs.results import RunRecord
from albert_lab.score import PRINTED, printed
from albert_lab.units import duration

UNKNOWN = "unknown"  # as the Hub calls a licence that nobody named


def model_card(folder: Path, opened: Opened, layout: str, model_class: str | None, licence: str = UNKNOWN) -> str:
    """The text of a model card: metadata of the Hub, then description, scores, provenance and usage of the model.

    Args:
        model_class: class of transformers that opens it; None: albert_lab.load opens it.
        licence: of the weights, by its name on the Hub.
    """
    record = results.read(folder)
    parts = [
        f"---\n{OmegaConf.to_yaml(OmegaConf.create(_metadata(opened, layout, licence, record)))}---",
        f"# {opened.name}",
        _description(opened),
        _usage(model_class),
        "## Scores",
        _scores(record) if record else "None were taken: the model was not trained here.",
        "## Where it came from",
        _provenance(record) if record else _imported(folder),
        "## Configuration",
        f"```json\n{json.dumps(opened.config.identity(), indent=2)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _metadata(opened: Opened, layout: str, licence: str, record: RunRecord | None) -> dict[str, Any]:
    """What the Hub reads of a card; the text of a model that was not trained here is not known."""
    metadata: dict[str, Any] = {"library_name": "albert-lab" if layout == "albert-lab" else "transformers"}
    metadata |= {"license": licence, "pipeline_tag": "fill-mask", "tags": [layout, "fill-mask", "albert-lab"]}
    if record is None:
        return metadata
    corpus, added = record.config.corpus, record.config.added_corpus
    names = [name for source in (corpus, added) if source.source != "none" for name in _datasets(source)]
    held_out = {"type": corpus.name, "name": f"held-out documents of {corpus.name}"}
    results = [
        {
            "task": {"type": "fill-mask" if name.startswith("mlm") else "text-classification"},
            "dataset": held_out,
            "metrics": [
                {"type": name, "name": f"{labels().get(name, name)} ({units().get(name, '%')})", "value": score.value}
            ],
        }
        for name, score in record.scores.items()
    ]
    metadata |= {"language": corpus.language.split("-")[0], "datasets": list(dict.fromkeys(names))}
    return metadata | {"model-index": [{"name": opened.name, "results": results}]}


def _datasets(corpus: CorpusConfig | AddedCorpusConfig) -> list[str]:
    """The data sets of a text on the Hub; else its own name."""
    return [dataset.path for dataset in corpus.datasets if not local_folder(dataset)] or [corpus.name]


def _description(opened: Opened) -> str:
    config, shape = opened.config, opened.model.encoder.shape
    pairs = ", ".join(opened.pair_labels)
    lines = [
        f"An encoder of {shape.num_layers} layers, H = {shape.hidden_size}, E = {shape.embedding_size},"
        f" {shape.num_attention_heads} heads, sharing `{config.sharing.name}`, vocabulary {shape.vocab_size:,}.",
        f"Labels of its pair head: {pairs} (label 0 first)." if pairs else "It has no pair head.",
        f"Sequences of at most {config.max_sequence_length} tokens: positions beyond that were not trained."
        if config.max_sequence_length < shape.max_position_embeddings
        else f"Sequences of at most {shape.max_position_embeddings} tokens.",
    ]
    if opened.missing:
        lines.append(f"Parts that its source did not have are left out: {', '.join(opened.missing)}.")
    if config.tokenizer.digit_commas == "split":
        lines.append(
            "It was trained on tokens such as `2006,` with their comma cut off, as the released ALBERT;"
            " tokenizer.json keeps the comma."
        )
    return "\n".join(lines)


def _usage(model_class: str | None) -> str:
    lines = ["```python"]
    if model_class:
        lines += [f"from transformers import AutoTokenizer, {model_class}", "", 'folder = "."']
        lines += ["tokenizer = AutoTokenizer.from_pretrained(folder)", f"model = {model_class}.from_pretrained(folder)"]
    else:
        lines += ["import albert_lab", "", 'model, tokenizer = albert_lab.load(".")']
    return "\n".join([*lines, "```"])


def _scores(record: RunRecord) -> str:
    body = [[name, *printed(score), score.by] for name, score in record.scores.items()]
    header = ["score", *PRINTED, "by"]
    alarms = [
        f"Alarm: {alarm.metric} {alarm.value:.1f} % (n = {alarm.n:,}) is not above"
        f" {alarm.floor} ({alarm.bound:.1f} %) after {alarm.steps:,} steps"
        for alarm in record.alarms
    ]
    table = tabulate(body, headers=header, tablefmt="github", disable_numparse=True)
    held_out = (
        f"On held-out documents of the corpus `{record.config.corpus.name}`; the interval is over answers, not seeds."
    )
    return "\n\n".join([held_out, table, *alarms])


def _provenance(record: RunRecord) -> str:
    config, training, origin = record.config, record.training, record.provenance
    packages = ", ".join(f"{name} {version}" for name, version in sorted(origin.packages.items()))
    code = f" (commit {origin.commit})" if origin.commit else ""
    machine = (origin.platform, origin.processor, origin.device, origin.precision)
    rows = {
        "run": record.name,
        "made with": f"albert-lab {origin.albert_lab}{code}, Python {origin.python}, {packages}",
        "finished": origin.finished,
        "machine": f"{', '.join(machine)}, {origin.threads} threads",
        "corpus": f"{config.corpus.name}, fingerprint {record.fingerprints['corpus']}",
        "tokenizer": f"{config.tokenizer.name}, fingerprint {record.fingerprints['tokenizer']}",
        "objective": config.inter_sentence.name,
        "training": f"{training.steps:,} steps, {training.tokens:,} tokens, {duration(training.training_seconds)},"
        f" seed {config.seed}",
        "parameters": f"{record.parameters['total']:,}",
        "results version": str(record.results_version),
        "exported with": f"albert-lab {__version__}",
        "report": ", ".join(f"`{report}`" for report in _reports(record.name)) or "no report here has this run",
    }
    return tabulate(list(rows.items()), headers=["", ""], tablefmt="github", disable_numparse=True)


def _reports(name: str) -> list[str]:
    reports = []
    for folder in (paths.reports(), paths.published()):
        for file in sorted(folder.glob(f"*/*/{reported.FOLDER}/{name}.json")):
            report = file.parents[1] / "report.md"
            if report.is_file():
                reports.append(report.relative_to(folder).as_posix())
    return list(dict.fromkeys(reports))


def _imported(folder: Path) -> str:
    noted = read_import(folder)
    assert noted is not None, f"{folder / runs.IMPORT} must exist"
    rows = {
        "imported from": Path(noted["source"]).name,
        "family": noted["family"],
        "imported": noted["imported"],
        "notes": "; ".join(noted["notes"]) or "none",
        "exported with": f"albert-lab {__version__}",
    }
    return tabulate(list(rows.items()), headers=["", ""], tablefmt="github", disable_numparse=True)
