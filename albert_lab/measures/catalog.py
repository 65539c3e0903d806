"""The list of held-out measures: one for each module of this package that has a `MEASURE`."""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from albert_lab import measures as package
from albert_lab.data.pairs import Pairs
from albert_lab.data.shards import Shards
from albert_lab.errors import ConfigError
from albert_lab.measures.measure import Difference, Measure, PairMeasure, TokenMeasure
from albert_lab.registry import Registry, until_included

ChangePairs = Callable[[Pairs, Shards, int], Pairs]
_Kind = TypeVar("_Kind", bound=Measure)


def _registry() -> Registry[Measure]:
    modules = (import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__))
    measures = [module.MEASURE for module in modules if hasattr(module, "MEASURE")]
    return Registry("measure", {measure.name: measure for measure in measures})


def measure(name: str, label: str, *, like: str, in_curves: bool = False) -> Callable[[ChangePairs], ChangePairs]:
    """Register the accuracy on held-out pairs that a function makes of those of another measure.

    Args:
        like: the measure of pairs whose held-out pairs the function receives, with the seed of the evaluation; the
            heads, probes and floors that are trained for it answer.
        in_curves: whether it is also taken along the way, for learning curves.
    """

    def register(changed: ChangePairs) -> ChangePairs:
        known = _registry()
        other = dict(known).get(like)
        if not isinstance(other, PairMeasure):
            pairs = [entry.name for entry in known.values() if isinstance(entry, PairMeasure)]
            raise ConfigError(f"measure {name}: like={like} is no measure of pairs (allowed: {', '.join(pairs)})")
        registered = PairMeasure(
            name,
            label,
            in_curves,
            objective=other.objective,
            negative=other.negative,
            changed=changed,
            fitted_as=other.fitted_as or other.name,
        )
        known.register(name, registered)
        return changed

    return register


@until_included
def measures() -> tuple[Measure, ...]:
    """All measures: of tokens, of pairs, then differences, each by name."""
    kinds = (TokenMeasure, PairMeasure, Difference)
    return tuple(sorted(_registry().values(), key=lambda measure: (kinds.index(type(measure)), measure.name)))


def of_kind(kind: type[_Kind]) -> list[_Kind]:
    return [measure for measure in measures() if isinstance(measure, kind)]


@until_included
def probes() -> dict[str, str]:
    """The names of the scores of linear probes, each with the name of its measure."""
    return {measure.probe: measure.name for measure in of_kind(PairMeasure) if measure.probe}


@until_included
def labels() -> dict[str, str]:
    """The label of every score on held-out text: of the measures, then of the probes."""
    label_of = {measure.name: measure.label for measure in measures()}
    return label_of | {probe: f"{label_of[name]} by probe" for probe, name in probes().items()}


@until_included
def units() -> dict[str, str]:
    """The unit of every score on held-out text."""
    return {measure.name: measure.unit for measure in measures()} | dict.fromkeys(probes(), "%")
