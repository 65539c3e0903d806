"""The held-out measures by name, which every run takes; own code can add others."""

from dataclasses import replace
from functools import cache
from typing import TypeVar

from albert_lab.config.compose import load
from albert_lab.config.data import InterSentenceConfig
from albert_lab.errors import ConfigError
from albert_lab.measures.measure import (
    Baseline,
    Difference,
    Measure,
    OwnTextMeasure,
    PairMeasure,
    RandomProbe,
    TokenMeasure,
    WordOverlap,
)
from albert_lab.measures.sop_across_documents import across_documents

_Kind = TypeVar("_Kind", bound=Measure)


@cache
def _objective(name: str) -> InterSentenceConfig:
    return load([f"inter_sentence={name}"]).inter_sentence


def _nsp_released() -> InterSentenceConfig:
    consecutive, negative = _objective("nsp").labels
    labels = (consecutive, negative.model_copy(update={"kind": "random-document"}))
    return _objective("nsp").model_copy(update={"name": "nsp-released", "labels": labels})


# Masked language modelling: chunks as SOP has them, unswapped, masked like the training batches
# (section 4.1). Differs from the paper, whose set is made from the development texts of SQuAD and
# RACE (section 4.1).
MLM = TokenMeasure("mlm_accuracy", "MLM", in_curves=True, objective=lambda: _objective("none"))
# Next sentence prediction: does the second segment follow, or is it as long a one from another
# document?
NSP = PairMeasure(
    "nsp_accuracy",
    "NSP",
    True,
    objective=lambda: _objective("nsp"),
    negative="other-document",
    probe="nsp_probe",
)
# Negatives as released: the second segment is from a random place of a random other document.
# Source: create_pretraining_data.py, create_instances_from_document.
NSP_RELEASED = PairMeasure(
    "nsp_released",
    "NSP as released",
    objective=_nsp_released,
    negative=NSP.negative,
    probe="nsp_released_probe",
)
# Sentence order prediction: are two consecutive segments in order or swapped? (section 3.1)
SOP = PairMeasure(
    "sop_accuracy",
    "SOP",
    True,
    objective=lambda: _objective("sop"),
    negative="swapped",
    probe="sop_probe",
)
# Which segment comes first, if the second is from another document?
SOP_ACROSS_DOCUMENTS = replace(
    SOP,
    name="sop_across_documents",
    label="SOP across documents",
    probe=None,
    changed=across_documents,
    fitted_as=SOP.name,
)
# The part of SOP that is told by the relation of the two segments.
COHERENCE = Difference("coherence", "coherence", True, of=SOP.name, minus=SOP_ACROSS_DOCUMENTS.name)

# What a probe's NSP score is worth: random weights and shared words tell documents apart, too.
NSP_BY_RANDOM_WEIGHTS = RandomProbe(
    "nsp_by_random_weights", "NSP by probe of random weights", pairs_of=NSP.name
)
NSP_BY_OVERLAP = WordOverlap("nsp_by_overlap", "NSP by word overlap", pairs_of=NSP.name)

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        MLM,
        NSP,
        NSP_RELEASED,
        SOP,
        SOP_ACROSS_DOCUMENTS,
        COHERENCE,
        NSP_BY_RANDOM_WEIGHTS,
        NSP_BY_OVERLAP,
    )
}

BUILT_IN = frozenset(MEASURES)  # the others are of own code


def measures() -> tuple[Measure, ...]:
    """All measures: of tokens, of pairs, differences, baselines, then those on own text, each by
    name.
    """
    kinds = (TokenMeasure, PairMeasure, Difference, Baseline, OwnTextMeasure)
    for name, measure in MEASURES.items():
        if not isinstance(measure, kinds):
            raise ConfigError(f"MEASURES: {name}={measure!r} is no Measure of measures/measure.py")
    found: list[Measure] = []
    for kind in kinds:
        found += [MEASURES[name] for name in sorted(MEASURES) if isinstance(MEASURES[name], kind)]
    return tuple(found)


def own_measures() -> list[Measure]:
    """Those that own code has added."""
    return [measure for measure in measures() if measure.name not in BUILT_IN]


def of_kind(kind: type[_Kind]) -> list[_Kind]:
    """The measures of a kind, in the order of measures()."""
    return [measure for measure in measures() if isinstance(measure, kind)]


def probes() -> dict[str, str]:
    """The names of the scores of linear probes, each with the name of its measure."""
    return {measure.probe: measure.name for measure in of_kind(PairMeasure) if measure.probe}


def labels() -> dict[str, str]:
    """The label of every score on held-out text: of the measures, then of the probes."""
    label_of = {measure.name: measure.label for measure in measures()}
    return label_of | {probe: f"{label_of[name]} by probe" for probe, name in probes().items()}


def units() -> dict[str, str]:
    """The unit of every score on held-out text."""
    return {measure.name: measure.unit for measure in measures()} | dict.fromkeys(probes(), "%")
