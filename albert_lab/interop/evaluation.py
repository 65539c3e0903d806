"""Scores of a model from any folder in the held-out measures, on any corpus."""

from collections.abc import Sequence

import torch
from omegaconf import OmegaConf
from tabulate import tabulate

from albert_lab.config.compose import load, settings_of, validate
from albert_lab.config.schema import RunConfig
from albert_lab.config.section import complete
from albert_lab.data.files import fingerprint
from albert_lab.data.prepare import without_added
from albert_lab.errors import ConfigError
from albert_lab.files import Record
from albert_lab.interop.loading import Opened, open_folder
from albert_lab.machine import cores
from albert_lab.measures import catalog
from albert_lab.messages import Say
from albert_lab.runs import preparing
from albert_lab.runs import run as runs
from albert_lab.score import Score
from albert_lab.training.device import choose_device
from albert_lab.training.evaluate import Evaluator

# Keys that an evaluation may set; the model determines all others.
SETTABLE = (
    "corpus",
    "evaluation",
    "machine",
    "masking",
    "max_sequence_length",
    "short_sequence_probability",
    "scale",
)


class Scored(Record):
    """The scores of one model on the held-out documents of one corpus, and what it cannot have."""

    model: str
    corpus: str
    dev_documents: int
    scores: dict[str, Score]
    notes: list[str]

    def as_text(self) -> str:
        body = [{"score": name, **score.model_dump()} for name, score in self.scores.items()]
        table = tabulate(body, headers="keys", tablefmt="simple", floatfmt=".2f")
        return "\n".join([table, "", *self.notes])


def evaluate(text: str, overrides: Sequence[str], say: Say) -> Scored:
    """Scores of a run or folder on the held-out documents of a corpus, by default those of its run.

    Raises:
        ConfigError, MissingDataError: see loading.open_folder; an override of a key that the model
            determines; unusable text.
    """
    opened = open_folder(text)
    config = without_added(_configure(opened, overrides))
    torch.set_num_threads(config.machine.threads or cores())
    data = preparing.load(config, say)
    device = choose_device(config.machine.device)
    evaluator = Evaluator(config, data.fitted_on, data.dev, data.tokenizer, data.floors, device)
    scores = evaluator.evaluate(opened.model.to(device), opened.missing).scores
    documents = len(data.dev.document_offsets) - 1
    notes = [
        f"{documents:,} held-out documents, up to {config.evaluation.num_pairs:,} pairs of "
        "segments a measure."
    ]
    without = [name for name in catalog.labels() if name not in scores]
    if without:
        missing = ", ".join(opened.missing) or "text of several sentences a document"
        notes.append(f"Not scored, without {missing}: {', '.join(without)}.")
    if "corpus" not in opened.run.fingerprints:
        notes.append("Its training text is not recorded: these documents may be part of it.")
    notes.append(
        "Labels of the pair head: "
        f"{', '.join(opened.pair_labels) or 'none, so a linear probe answers'}."
    )
    return Scored(
        model=opened.run.name,
        corpus=config.corpus.name
        if config.corpus.path is None
        else f"{config.corpus.name} ({config.corpus.path})",
        dev_documents=documents,
        scores=scores,
        notes=notes,
    )


def _configure(opened: Opened, overrides: Sequence[str]) -> RunConfig:
    """The configuration of the model's run, with the overrides of an evaluation."""
    own = opened.run.config
    text = opened.run.fingerprints.get("corpus")
    # Of a run with a text: by another split, a document that it was trained on would be held out.
    split = ("dev_share", "split_seed") if text else ()
    content = OmegaConf.create(own.model_dump(mode="json"))
    composed = complete(load([f"scale={own.scale.name}", *overrides, "length_schedule=constant"]))
    for key in sorted(settings_of(overrides)):  # groups before the keys in them
        if key.split(".")[0] not in SETTABLE:
            raise ConfigError(
                f"{key} cannot be set: the model determines it (allowed: {', '.join(SETTABLE)})"
            )
        place = "evaluation" if key == "scale" else key
        OmegaConf.update(
            content, place, OmegaConf.select(OmegaConf.create(composed), place), merge=False
        )
        if key == "corpus":  # cleaned and split as the text on which the model was trained
            content.corpus.update(
                own.corpus.model_dump(include={"lower_case", "strip_accents", "language", *split})
            )
    content.length_schedule = composed["length_schedule"]  # held-out text has one length
    config = validate(OmegaConf.to_container(content))
    for key in split:
        if getattr(config.corpus, key) != getattr(own.corpus, key) and text == fingerprint(
            config.corpus
        ):
            raise ConfigError(
                f"corpus.{key} cannot be set: {opened.run.name} was trained on a part of this text"
            )
    return runs.with_tokenizer(config, opened.run)
