"""Runs as rows of tables: one row per run, fine-tuning, evaluation during training, or layer."""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from albert_lab.runs import commit
from albert_lab.runs.finetunings import AVERAGE, AVERAGED
from albert_lab.runs.reported import ReportedRun
from albert_lab.runs.results import LAYER_NUMBERS, RunRecord
from albert_lab.score import Score, loss_name
from albert_lab.tasks.records import FinetuningRecord, summarize

_COMMIT_DIGITS = 12
TOKEN = "mean"  # the choice of tokens: the mean over all real ones, which varies less than [CLS]


def row(run: ReportedRun) -> dict[str, Any]:
    """A run as one flat row of the table of runs, from its record and its fine-tunings."""
    return (
        of_record(run.record)
        | _downstream({each.column: each.finetunings for each in run.columns})
        | (layer_numbers(run.layers, run.record.config.model.hidden_size))
    )


def of_record(record: RunRecord) -> dict[str, Any]:
    """A record as columns of a table of runs."""
    row: dict[str, Any] = {"run": record.name, "evaluation_set": record.evaluation_set}
    for name, score in record.scores.items():
        row |= score_columns(name, score)
    row |= {
        "parameters": record.parameters["total"],
        "encoder_parameters": record.parameters["encoder"],
        "train_flops_per_token": record.train_flops_per_token,
    }
    row |= record.training.model_dump()
    data = record.data.model_dump()
    data["label_shares"] = json.dumps(data["label_shares"], sort_keys=True)
    del data["stages"]
    row |= data
    config = record.config
    row |= {
        "learning_rate": config.learning_rate,
        "optimizer": config.optimizer.name,
        "corpus": config.corpus.name,
        "added_corpus": config.added_corpus.name,
        "start_from": "{run} ({keep})".format(**record.start_from) if record.start_from else "",
        "tokenizer": config.tokenizer.name,
        "tokenizer_sentences": config.tokenizer.training_sentences,
        "digit_commas": config.tokenizer.digit_commas,
        "vocab_size": config.tokenizer.vocab_size,
        "num_layers": config.model.num_layers,
        "hidden_size": config.model.hidden_size,
        "batch_size": config.batch_size,
        "max_sequence_length": config.max_sequence_length,
        "short_sequence_probability": config.short_sequence_probability,
        "budget": f"{config.budget.value:g} {config.budget.unit}",
        "masking": config.masking.name,
        "corpus_fingerprint": record.fingerprints["corpus"],
        "tokenizer_fingerprint": record.fingerprints["tokenizer"],
        "results_version": record.results_version,
        "alarms": "; ".join(record.alarms),
    }
    if record.data.stages:  # at a constant length the table has no such columns
        row["length_schedule"] = config.length_schedule.name
        row["short_stages"] = "; ".join(
            f"{stage.max_sequence_length} tokens for {stage.steps:,} steps,"
            f" {100 * stage.dropped_text_share:.0f} % of the text in dropped single sentences"
            for stage in record.data.stages[:-1]
        )
    provenance = record.provenance
    packages = " ".join(f"{name} {version}" for name, version in sorted(provenance.packages.items()))
    row |= {
        "albert_lab": provenance.albert_lab,
        "packages": f"python {provenance.python} {packages}",
        "machine": f"{provenance.platform}, {provenance.processor}, {provenance.cores} cores",
        "threads": provenance.threads,
        "device": provenance.device,
        "precision": provenance.precision,
        "processes": provenance.processes,
        "devices": ", ".join(sorted(set(provenance.devices))) or provenance.device,
        "finished": provenance.finished,
    }
    if provenance.commit:  # without a commit the table has no such column
        row["commit"] = _commit(provenance.commit)
    return row


def _commit(text: str) -> str:
    """A commit as text, shortened to the digits that identify it."""
    digits = text.removesuffix(commit.DIRTY)
    return digits[:_COMMIT_DIGITS] + (" with uncommitted changes" if text != digits else "")


def score_columns(name: str, score: Score) -> dict[str, Any]:
    """A score as columns of a table of runs, in percent; the loss in nats per answer. Missing values are left out."""
    columns = {
        name: score.value,
        f"{name}_n": score.n,
        f"{name}_low": score.low,
        f"{name}_high": score.high,
        f"{name}_floor": score.floor,
        f"{name}_lexical_floor": score.lexical_floor,
        f"{name}_by": score.by,
        loss_name(name): score.loss,
    }
    return {column: value for column, value in columns.items() if value is not None}


def _downstream(columns: Mapping[str, Sequence[FinetuningRecord]]) -> dict[str, Any]:
    """The downstream columns of a row, in percent: the median over fine-tuning seeds; a loss is in nats.

    Scores are of the best checkpoint on dev, losses of the last step: the checkpoints of a task with constant answers
    all score the same, and the first of them would be taken, after a few steps of fine-tuning. The interval is Wilson's
    for a share of n answers. It is too wide for F1, where an answer scores between 0 and 1; correlations have no
    interval.
    """
    found: dict[str, Any] = {}
    values: dict[str, float] = {}
    for column, records in columns.items():
        name, summary = records[0].task, summarize(records)
        values[column] = summary.best.value
        found |= score_columns(name, summary.best.model_copy(update={"loss": summary.last.loss}))
        for metric in records[0].best.scores:
            found[f"{name}_{metric}"] = median(record.best.scores[metric].value for record in records)
    if set(AVERAGED) <= set(values):
        found[AVERAGE] = fmean(values[column] for column in AVERAGED)
    return found


def layer_numbers(layers: Sequence[Mapping[str, Any]], hidden_size: int) -> dict[str, float]:
    """Summaries of the layers of a run (LAYER_NUMBERS), for the mean over tokens; empty if not measured.

    Roughness is the mean change between consecutive layers (of the L2 distance, or of the angle) over the mean of all
    layers: 0 if all layers change their input equally, independent of the unit, and undefined for a single layer.
    last_rms_change is the L2 distance of the last layer over the root of the hidden size, which makes widths
    comparable: outputs of a LayerNorm are about as long as that root, so a rotation by one degree is about 0.0175.
    """
    ours = sorted((line for line in layers if line["token"] == TOKEN), key=lambda line: line["layer"])
    if not ours:
        return {}
    distances, degrees = ([float(line[column]) for line in ours] for column in ("l2_distance", "degrees"))
    numbers = (_roughness(distances), _roughness(degrees), distances[-1] / math.sqrt(hidden_size), degrees[-1])
    return dict(zip(LAYER_NUMBERS, numbers, strict=True))


def _roughness(values: Sequence[float]) -> float:
    changes = [abs(after - before) for before, after in pairwise(values)]
    return fmean(changes) / fmean(values) if changes else math.nan


def curve(run: ReportedRun) -> list[dict[str, Any]]:
    """One line per evaluation during training (accuracies in percent, and losses)."""
    return [{"run": run.name} | line for line in run.curve]


def layers(run: ReportedRun) -> list[dict[str, Any]]:
    """One line per choice of tokens and layer."""
    return [{"run": run.name} | line for line in run.layers]


def finetunings(run: ReportedRun) -> list[dict[str, Any]]:
    """One line per finished fine-tuning: run, task, settings, and scores in percent."""
    lines = []
    for column in run.columns:
        for record in column.finetunings:
            settings = record.settings
            lines.append(
                {
                    "run": run.name,
                    "column": column.column,
                    "task": column.task,
                    "title": column.title,
                    "metric": " and ".join(column.metrics),
                    "seed": record.seed,
                    "best": record.best.main.value,
                    "best_step": record.best.step,
                    "last": record.last.main.value,
                    "last_loss": record.last.main.loss,
                    "baseline": record.best.main.floor,
                    "scores": json.dumps({metric: score.value for metric, score in record.best.scores.items()}),
                    "n": record.best.main.n,
                    "dev": record.dev.fingerprint,
                    "dev_available": record.dev.available,
                    "train_used": record.train.used,
                    "train_available": record.train.available,
                    "official": json.dumps(column.official_examples),
                    "steps": settings.steps,
                    "batch_size": settings.batch_size,
                    "learning_rate": record.attempts[-1].learning_rate,
                    "max_sequence_length": settings.max_sequence_length,
                    "attempts": len(record.attempts),
                    "diverged": "; ".join(record.diverged),
                    "counts": json.dumps({"train": record.train.counts, "dev": record.dev.counts}),
                    "issues": "; ".join(filter(None, (record.train.issues, record.dev.issues))),
                    "note": column.note,
                    "threshold_from": record.threshold_from or "",
                    "training_seconds": record.training_seconds,
                    "total_seconds": record.total_seconds,
                    "examples_per_second": record.examples_per_second,
                    "padding_share": record.padding_share,
                    "identity": record.identity,
                    "example_scores": json.dumps(record.example_scores, separators=(",", ":")),
                }
            )
    return lines
