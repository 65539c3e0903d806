"""One model: an experiment of a single run, named after that run."""

from collections.abc import Sequence

from albert_lab.config.compose import axes, load
from albert_lab.errors import ConfigError
from albert_lab.studies import graph
from albert_lab.studies.experiment import INTRINSIC, Experiment
from albert_lab.studies.points import points


def one_model(overrides: Sequence[str]) -> tuple[Experiment, list[str]]:
    """The experiment of one run, scored only on held-out text, and the overrides that make it.

    The seed is that of conf/config.yaml unless given, not those of the scale.

    Raises:
        ConfigError: a key with several values, or a configuration that does not fit.
        MissingDataError: text is missing.
    """
    for key, values in axes(overrides).items():
        if len(values) > 1:
            raise ConfigError(f"{key}={','.join(values)}: pretrain makes one model; `albert-lab sweep` makes several")
    chosen = [*overrides, f"seed={load(overrides).seed}"]
    content = {"name": "pretrain", "title": "One model", "source": "no table of the paper", "grid": {}}
    experiment = Experiment.model_validate(content | {"columns": INTRINSIC})
    (point,) = points(experiment, chosen)
    *_, (_, run) = graph.lineage(point)
    return experiment.model_copy(update={"name": run.name}), chosen
