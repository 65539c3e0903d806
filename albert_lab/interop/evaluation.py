"""Intrinsic scores of a model from any folder, on any corpus."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tabulate import tabulate

from albert_lab.config.compose import load, parse, validate
from albert_lab.config.schema import RunConfig
from albert_lab.data.fingerprint import fingerprint
from albert_lab.data.prepare import prepare, without_added
from albert_lab.data.shards import open_shards
from albert_lab.data.tokenizer.cache import find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.interop.loading import Opened, open_folder
from albert_lab.machine import cores
from albert_lab.measures import catalog
from albert_lab.measures.measure import Difference, Measure, PairMeasure, TokenMeasure
from albert_lab.measures.segments_floor import find_or_fit
from albert_lab.messages import Say
from albert_lab.score import PRINTED, Score, printed

# Keys that an evaluation may set; the model determines all others.
SETTABLE = ("corpus", "evaluation", "machine", "masking", "max_sequence_length", "short_sequence_probability", "scale")
_NOT_OF_WHOLE = "nothing of the text is left to fit a probe on"
# Cleaning of the text on which the model was trained.
_CLEANING = ("lower_case", "strip_accents", "language")


@dataclass(frozen=True)
class ScoreRow:
    """One score, or the reason why it is not available."""

    name: str
    score: Score | None
    reason: str | None


@dataclass(frozen=True)
class Scored:
    """The scores of one model on one corpus."""

    model: str
    corpus: str
    dev_documents: int
    max_sequence_length: int
    rows: tuple[ScoreRow, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"rows": [_as_dict(row) for row in self.rows]}

    def as_text(self) -> str:
        body = [
            [row.name, *printed(row.score), row.score.by] if row.score else [row.name, *[""] * len(PRINTED), row.reason]
            for row in self.rows
        ]
        header = ["score", *PRINTED, "by"]
        table = tabulate(body, headers=header, tablefmt="simple", disable_numparse=True)
        return "\n".join([table, "", *self.notes])


def _as_dict(row: ScoreRow) -> dict[str, Any]:
    score = row.score.model_dump() if row.score else dict.fromkeys(Score.model_fields)
    return {"score": row.name} | score | {"reason": row.reason}


def evaluate(text: str, overrides: Sequence[str], say: Say, *, whole: bool = False) -> Scored:
    """Scores of a run or folder on the held-out documents of a corpus, or on all its documents.

    Args:
        whole: whether all documents are scored, unless the run was trained on this text or corpus.dev_share is given.
            Then nothing is left for probes and floors, and a measure whose pairs the text does not have is left out.

    Raises:
        ConfigError, MissingDataError: see loading.open_folder; an override of a key that the model determines; unusable
            text.
    """
    opened = open_folder(text)
    config = _configure(opened, overrides)
    config = without_added(config)
    is_whole = whole and fingerprint(config.corpus) not in opened.texts
    is_whole &= not any(text.lstrip("+").startswith("corpus.dev_share=") for text in overrides)
    if is_whole:
        config = config.model_copy(update={"corpus": config.corpus.model_copy(update={"dev_share": 1.0})})
    threads = config.machine.threads or cores()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    from albert_lab.training.device import autocast, choose_device, choose_precision
    from albert_lab.training.evaluate import Evaluator
    from albert_lab.training.evaluation_sets import make_sets

    torch.set_num_threads(threads)
    reasons = _reasons(opened)
    shards = prepare(config, say)
    dev = open_shards(shards, "dev", opened.tokenizer)
    train = None if is_whole else open_shards(shards, "train", opened.tokenizer)
    floors = find_or_fit(config, train, dev, say) if train else {}
    device = choose_device(config.machine.device)
    evaluator = Evaluator(
        sets=make_sets(train, dev, opened.tokenizer, config, floors),
        kinds=opened.pair_labels,
        batch_size=config.evaluation.batch_size,
        device=device,
        autocast=autocast(choose_precision(config.machine.precision, device), device),
        is_stopped=lambda: False,
    )
    scores = evaluator.evaluate(opened.model.to(device), without=reasons).scores
    rows = []
    for measure in catalog.measures():
        probe = measure.probe if isinstance(measure, PairMeasure) else None
        for name in filter(None, (measure.name, probe)):
            parts = [measure.of, measure.minus] if isinstance(measure, Difference) else [measure.name]
            lacking = [evaluator.sets.left_out.get(part) for part in parts]
            reason = next(filter(None, [reasons.get(type(measure)), *lacking]), None)
            reason = reason or (None if name in scores else _NOT_OF_WHOLE)
            rows.append(ScoreRow(name, None if reason else scores[name], reason))
    return Scored(
        model=opened.name,
        corpus=config.corpus.name if config.corpus.path is None else f"{config.corpus.name} ({config.corpus.path})",
        dev_documents=len(dev.document_offsets) - 1,
        max_sequence_length=config.max_sequence_length,
        rows=tuple(rows),
        notes=(*_sizes(len(dev.document_offsets) - 1, config, is_whole), *_notes(opened, is_whole)),
    )


def _sizes(documents: int, config: RunConfig, is_whole: bool) -> list[str]:
    held = "All" if is_whole else "The held-out"
    text = f"{held} {documents:,} documents of the text, up to {config.evaluation.num_pairs:,} pairs of segments"
    text += " (evaluation.num_pairs) a measure."
    if is_whole:
        text += " Probes and the floor of each segment by itself need a part to be fitted on: corpus.dev_share=0.5."
    return [text]


def _reasons(opened: Opened) -> dict[type[Measure], str]:
    """Kinds of measure that are not available, with the reason."""
    reasons: dict[type[Measure], str] = {}
    if "mlm_head" in opened.missing:
        reasons[TokenMeasure] = "the checkpoint has no MLM head"
    if "pooler" in opened.missing:
        without = "the checkpoint has neither pair head nor pooler for a probe to read"
        reasons |= dict.fromkeys((PairMeasure, Difference), without)
    return reasons


def _notes(opened: Opened, is_whole: bool) -> tuple[str, ...]:
    notes = []
    if not opened.pair_labels and "pooler" not in opened.missing and not is_whole:
        notes.append("There is no pair head: NSP and SOP are scored by a linear probe on the pooled output.")
    elif opened.pair_labels:
        notes.append(f"Labels of the pair head: {', '.join(opened.pair_labels)}.")
    if opened.imported:
        notes.append("It is not known whether the model was trained on this text.")
    return tuple(notes)


def _configure(opened: Opened, overrides: Sequence[str]) -> RunConfig:
    content = opened.config.model_dump(mode="json")
    before = dict(content["corpus"])
    keys = [override.key_or_group for override in parse(overrides)] if overrides else []
    own_scale = [] if "scale" in keys else [f"scale={opened.config.scale.name}"]
    composed = load([*own_scale, *overrides, "length_schedule=constant"]).model_dump(mode="json")
    content["length_schedule"] = composed["length_schedule"]  # held-out text has one length
    for key in sorted(keys, key=lambda key: key.count(".")):  # groups before the keys in them
        section, *rest = key.split(".")
        if section not in SETTABLE:
            raise ConfigError(f"{key} cannot be set: the model determines it (allowed: {', '.join(SETTABLE)})")
        if section == "scale":
            content["evaluation"] = composed["evaluation"]
        elif not rest:
            cleaning = {name: before[name] for name in _CLEANING} if section == "corpus" else {}
            value = composed[section]
            content[section] = value | cleaning if isinstance(value, dict) else value
        else:
            holder, source = content[section], composed[section]
            for part in rest[:-1]:
                holder, source = holder[part], source[part]
            holder[rest[-1]] = source[rest[-1]]
    if content["corpus"] != before or opened.tokenizer_file != find_tokenizer(opened.config):
        # Given by its file; by its settings, a new tokenizer would be trained on the other text.
        content["tokenizer"] |= {
            "name": "model-file",
            "model_file": str(opened.tokenizer_file.resolve()),
            "training_sentences": None,
            "character_coverage": None,
        }
    content["tokenizer"]["most_unknown"] = 1.0  # only said: the model has no other tokens
    return validate(content)
