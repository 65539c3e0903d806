"""Tables with planted results: row means, seeds and noise of known size."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from records import toy_run

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.decisions import Verdict
from albert_lab.score import Alarm, Score
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study, StudyPoint
from albert_lab.studies.table import Row

EMBEDDING_SIZES = ("64", "128", "256", "768")


def row(label: str) -> dict[str, str]:
    return {"embedding_size": label}


def claim(check: str, **content) -> dict:
    return {"quote": "words of the paper", "section": "4.4", "metric": "average", "check": check} | content


def experiment(*claims: dict, paper: Mapping[str, str] | None = None) -> Experiment:
    content = {"name": "toy", "title": "Toy", "source": "none", "claims": claims}
    content["grid"] = {"embedding_size": list(EMBEDDING_SIZES)}
    if paper:
        cells = [row(label) | {"average": cell} for label, cell in paper.items()]
        content["paper"] = {"table": "Table 3", "columns": {"average": "Avg"}, "rows": cells}
    return Experiment.model_validate(content)


def table(
    values: Mapping[str, Sequence[float] | Mapping[int, float]],
    column: str = "average",
    *,
    score: Callable[[float], float | Score] = float,
    alarms: tuple[Alarm, ...] = (),
) -> list[Row]:
    """Rows with these values by seed, scores in percent; score makes more of a value than a number."""
    rows = []
    for label, of_seeds in values.items():
        pairs = of_seeds.items() if isinstance(of_seeds, Mapping) else enumerate(of_seeds)
        runs = [toy_run(f"{label}-{seed}", seed, {column: score(value)}, alarms=alarms) for seed, value in pairs]
        rows.append(Row(row(label), row(label), runs, {}))
    return rows


def analysed(asked: Experiment, rows: Sequence[Row]) -> Analysis:
    """The analysis of an experiment whose table has these rows."""
    labels = rows[0].labels if rows else {}
    content = {"values": labels, "labels": labels, "seed": 0, "run": "run", "state": "done"}
    point = StudyPoint.model_validate({**content, "scale": "smoke", "corpus": "sotu", "command": "a command"})
    return Analysis(Study(asked, [point], []), rows)


def decide(asked: Experiment, rows: Sequence[Row]) -> list[Verdict]:
    return analysed(asked, rows).verdicts


def companions(asked: Experiment, rows: Sequence[Row]) -> list[Verdict]:
    return analysed(asked, rows).companions


def noisy(rng: np.random.Generator, means: Mapping[str, float], n: int, sd: float = 1.0, shared: float = 1.0):
    """Values with noise of sd, besides what all rows of one seed have in common."""
    of_seed = rng.normal(0, shared, n)
    return {label: list(mean + of_seed + rng.normal(0, sd, n)) for label, mean in means.items()}
