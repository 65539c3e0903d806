"""The configurations that a benchmark compares: rows of Tables 1 and 2 by name, or a sweep of any keys."""

from collections.abc import Sequence

from albert_lab.config.compose import axes, groups
from albert_lab.config.schema import RunConfig
from albert_lab.cost import counts
from albert_lab.errors import ConfigError
from albert_lab.studies.experiment import named
from albert_lab.studies.points import points

# These rows of Tables 1 and 2 are compared unless a sweep is asked for; the first is the reference.
ROWS = "model-sizes"
PAIR = ("BERT-base", "ALBERT-base")


def configurations(overrides: Sequence[str]) -> dict[str, RunConfig]:
    """The compared configurations by label: rows of Tables 1 and 2 by their names, or a sweep of any keys."""
    swept = axes(overrides)
    table = named(ROWS)
    is_other = any(len(values) > 1 for values in swept.values()) or {"sharing", "embedding_size"} & swept.keys()
    models = [model.strip("'\"") for model in swept.get("model", () if is_other else PAIR)]
    rows = [*table.grid["model"], *table.beyond_paper["model"].values]
    allowed = [*rows, *groups()["model"]]
    if unknown := [model for model in models if model not in allowed]:
        raise ConfigError(f"model={unknown[0]} is unknown (allowed: {', '.join(allowed)})")
    if not set(rows) & set(models):
        return counts.configurations(overrides)
    asked = [*overrides]
    asked += [] if "model" in swept else ["model=" + ",".join(PAIR)]
    asked += [] if "seed" in swept else ["seed=0"]
    return {" ".join(point.row.values()): point.config for point in points(table, asked)}
