"""Intrinsic scores of a model from any folder, on any corpus."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf
from tabulate import tabulate

from albert_lab.config.compose import load, parse, validate
from albert_lab.config.schema import RunConfig
from albert_lab.data.fingerprint import fingerprint
from albert_lab.data.prepare import prepare, without_added
from albert_lab.data.shards import open_shards
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.interop.loading import Opened, open_folder
from albert_lab.machine import cores
from albert_lab.measures import catalog
from albert_lab.measures.measure import Difference, Measure, OwnTextMeasure, PairMeasure, TokenMeasure
from albert_lab.measures.segments_floor import find_or_fit
from albert_lab.messages import Say
from albert_lab.score import PRINTED, Score, printed

# Keys that an evaluation may set; the model determines all others.
SETTABLE = ("corpus", "evaluation", "machine", "masking", "max_sequence_length", "short_sequence_probability", "scale")
# Cleaning of the text on which the model was trained.
_CLEANING = ("lower_case", "strip_accents", "language")


@dataclass(frozen=True)
class Scored:
    """The scores of one model on one corpus, and of each other measure the reason why it has none."""

    model: str
    corpus: str
    dev_documents: int
    max_sequence_length: int
    scores: dict[str, Score]
    reasons: dict[str, str]
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        nothing = dict.fromkeys(Score.model_fields)
        return {
            **{key: value for key, value in vars(self).items() if key not in ("scores", "reasons")},
            "rows": [
                *({"score": name} | score.model_dump() | {"reason": None} for name, score in self.scores.items()),
                *({"score": name} | nothing | {"reason": reason} for name, reason in self.reasons.items()),
            ],
        }

    def as_text(self) -> str:
        body = [[name, *printed(score), score.by] for name, score in self.scores.items()]
        body += [[name, *[""] * len(PRINTED), reason] for name, reason in self.reasons.items()]
        table = tabulate(body, headers=["score", *PRINTED, "by"], tablefmt="simple", disable_numparse=True)
        return "\n".join([table, "", *self.notes])


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
    config = without_added(_configure(opened, overrides))
    is_trained_on = not opened.is_imported and fingerprint(config.corpus) in opened.run.fingerprints.values()
    is_whole = whole and not is_trained_on
    is_whole &= not any(text.lstrip("+").startswith("corpus.dev_share=") for text in overrides)
    if is_whole:
        config = config.model_copy(update={"corpus": config.corpus.model_copy(update={"dev_share": 1.0})})
    threads = config.machine.threads or cores()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    from albert_lab.training.device import autocast, choose_device, choose_precision
    from albert_lab.training.evaluate import Evaluator, make_sets

    torch.set_num_threads(threads)
    lacking = _lacking(opened)
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
    scores = evaluator.evaluate(opened.model.to(device), without=lacking).scores
    left_out, reasons = evaluator.sets.left_out, {}
    for measure in catalog.measures():
        parts = [measure.of, measure.minus] if isinstance(measure, Difference) else [measure.name]
        why = next(filter(None, [lacking.get(type(measure)), *map(left_out.get, parts)]), None)
        for name in filter(None, (measure.name, measure.probe if isinstance(measure, PairMeasure) else None)):
            if why or name not in scores:
                reasons[name] = why or "nothing of the text is left to fit a probe on"
    documents = len(dev.document_offsets) - 1
    return Scored(
        model=opened.run.name,
        corpus=config.corpus.name if config.corpus.path is None else f"{config.corpus.name} ({config.corpus.path})",
        dev_documents=documents,
        max_sequence_length=config.max_sequence_length,
        scores={name: score for name, score in scores.items() if name not in reasons},
        reasons=reasons,
        notes=_notes(opened, documents, config, is_whole),
    )


def _lacking(opened: Opened) -> dict[type[Measure], str]:
    """Kinds of measure that are not available, with the reason."""
    reasons: dict[type[Measure], str] = {}
    if "mlm_head" in opened.missing:
        reasons |= dict.fromkeys((TokenMeasure, OwnTextMeasure), "the checkpoint has no MLM head")
    if "pooler" in opened.missing:
        without = "the checkpoint has neither pair head nor pooler for a probe to read"
        reasons |= dict.fromkeys((PairMeasure, Difference), without)
    return reasons


def _notes(opened: Opened, documents: int, config: RunConfig, is_whole: bool) -> list[str]:
    held, pairs = "All" if is_whole else "The held-out", f"{config.evaluation.num_pairs:,} pairs of segments"
    notes = [f"{held} {documents:,} documents of the text, up to {pairs} (evaluation.num_pairs) a measure."]
    if is_whole:
        notes.append("Probes and floors of single segments need a part to be fitted on: corpus.dev_share=0.5.")
    if opened.pair_labels:
        notes.append(f"Labels of the pair head: {', '.join(opened.pair_labels)}.")
    elif "pooler" not in opened.missing and not is_whole:
        notes.append("There is no pair head: NSP and SOP are scored by a linear probe on the pooled output.")
    if opened.is_imported:
        notes.append("It is not known whether the model was trained on this text.")
    return notes


def _configure(opened: Opened, overrides: Sequence[str]) -> RunConfig:
    own = opened.run.config
    content = OmegaConf.create(own.model_dump(mode="json"))
    keys = [override.key_or_group for override in parse(overrides)] if overrides else []
    own_scale = [] if "scale" in keys else [f"scale={own.scale.name}"]
    composed = OmegaConf.create(load([*own_scale, *overrides, "length_schedule=constant"]).model_dump(mode="json"))
    content.length_schedule = composed.length_schedule  # held-out text has one length
    for key in sorted(keys, key=lambda key: key.count(".")):  # groups before the keys in them
        if key.split(".")[0] not in SETTABLE:
            raise ConfigError(f"{key} cannot be set: the model determines it (allowed: {', '.join(SETTABLE)})")
        place = "evaluation" if key == "scale" else key
        OmegaConf.update(content, place, OmegaConf.select(composed, place), merge=False)
        if key == "corpus":
            content.corpus.update({name: getattr(own.corpus, name) for name in _CLEANING})
    content: Any = OmegaConf.to_container(content)
    if content["corpus"] != own.model_dump(mode="json")["corpus"] or opened.tokenizer_file != find_tokenizer(own):
        # Given by its file; by its settings, a new tokenizer would be trained on the other text.
        content["tokenizer"] |= {
            "name": "model-file",
            "model_file": str(opened.tokenizer_file.resolve()),
            "training_sentences": None,
            "character_coverage": None,
        }
    content["tokenizer"]["most_unknown"] = 1.0  # only said: the model has no other tokens
    return validate(content)
