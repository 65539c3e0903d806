"""The held-out measures by name, which every run takes; own code can add others."""

from typing import TypeVar

from albert_lab.measures import coherence, mlm, nsp, nsp_released, sop, sop_across_documents
from albert_lab.measures.measure import Difference, Measure, PairMeasure, TokenMeasure

_Kind = TypeVar("_Kind", bound=Measure)

_MODULES = (mlm, nsp, nsp_released, sop, sop_across_documents, coherence)
MEASURES: dict[str, Measure] = {module.MEASURE.name: module.MEASURE for module in _MODULES}


def measures() -> tuple[Measure, ...]:
    """All measures: of tokens, of pairs, then differences, each by name."""
    kinds = (TokenMeasure, PairMeasure, Difference)
    return tuple(sorted(MEASURES.values(), key=lambda measure: (kinds.index(type(measure)), measure.name)))


def of_kind(kind: type[_Kind]) -> list[_Kind]:
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
