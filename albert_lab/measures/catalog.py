"""The list of held-out measures: one for each module of this package that has a `MEASURE`."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from albert_lab import measures as package
from albert_lab.measures.measure import Difference, Measure, PairMeasure, TokenMeasure

_Kind = TypeVar("_Kind", bound=Measure)


@cache
def measures() -> tuple[Measure, ...]:
    """All measures: of tokens, of pairs, then differences, each by name."""
    modules = (import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__))
    found = [module.MEASURE for module in modules if hasattr(module, "MEASURE")]
    kinds = (TokenMeasure, PairMeasure, Difference)
    return tuple(sorted(found, key=lambda measure: (kinds.index(type(measure)), measure.name)))


def of_kind(kind: type[_Kind]) -> list[_Kind]:
    """The measures of one kind."""
    return [measure for measure in measures() if isinstance(measure, kind)]


@cache
def probes() -> dict[str, str]:
    """The names of the scores of linear probes, each with the name of its measure."""
    return {measure.probe: measure.name for measure in of_kind(PairMeasure) if measure.probe}


@cache
def labels() -> dict[str, str]:
    """The label of every score on held-out text: of the measures, then of the probes."""
    found = {measure.name: measure.label for measure in measures()}
    return found | {probe: f"{found[name]} by probe" for probe, name in probes().items()}


@cache
def units() -> dict[str, str]:
    """The unit of every score on held-out text."""
    return {measure.name: measure.unit for measure in measures()} | dict.fromkeys(probes(), "%")
