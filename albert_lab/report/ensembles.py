"""The section of a report on ensembles, from their lines in its study."""

from collections.abc import Mapping, Sequence

from albert_lab.report.markdown import MISSING, as_table, in_brackets
from albert_lab.report.templates import fill
from albert_lab.score import wilson
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import EnsembleLine
from albert_lab.tasks.metrics import CORRELATIONS, label


def section(experiment: Experiment, lines: Sequence[EnsembleLine]) -> str:
    if experiment.ensemble is None:
        return ""
    paper = experiment.ensemble.paper
    header = ["task", "best row", "pre-training seed", "members", "single %", "ensemble %", "by members"]
    header += ["paper ensemble"] if paper else []
    body = []
    for line in lines:
        interval = ""
        if CORRELATIONS.isdisjoint(line.metrics):
            low, high = wilson(line.ensemble / 100 * line.n, line.n)
            interval = f" [{low:.1f}, {high:.1f}]"
        single = f"{line.single:.1f}{_brackets(line, line.single_scores)}"
        ensemble = f"{line.ensemble:.1f}{interval}{_brackets(line, line.ensemble_scores)}"
        labels = f" ({'/'.join(map(label, line.metrics))})" if len(line.metrics) > 1 else ""
        cells = [line.title + labels, line.row, str(line.seed), f"{len(line.members)} of {line.finetunings}"]
        cells += [single, ensemble, ", ".join(f"{score:.1f}" for score in line.members)]
        if paper:  # only for the official task
            cells.append(paper.get(line.task, MISSING))
        body.append(cells)
    return fill("ensembles.md.j2", scores=body and as_table(header, body), parts=_parts(lines))


def _brackets(line: EnsembleLine, scores: Mapping[str, float]) -> str:
    """The parts of a score (F1/EM)."""
    return in_brackets([scores[metric] for metric in line.metrics]) if len(line.metrics) > 1 else ""


def _parts(lines: Sequence[EnsembleLine]) -> str:
    """Further scores of each task, such as RACE's two levels; empty if there are none."""
    body = [
        [line.title, name.replace("_", " "), f"{line.single_scores[name]:.1f}", f"{line.ensemble_scores[name]:.1f}"]
        for line in lines
        for name in sorted(line.single_scores.keys() - set(line.metrics))
    ]
    return as_table(["task", "part", "single %", "ensemble %"], body) if body else ""
