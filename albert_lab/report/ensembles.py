"""The section of a report on ensembles, from their lines in its study."""

import json
from collections.abc import Sequence
from typing import Any

from albert_lab.report.markdown import MISSING, as_table, in_brackets
from albert_lab.report.templates import fill
from albert_lab.score import wilson
from albert_lab.studies.experiment import Experiment
from albert_lab.tasks.metrics import CORRELATIONS, label

Line = dict[str, Any]  # one task


def section(experiment: Experiment, found: Sequence[Line]) -> str:
    if experiment.ensemble is None:
        return ""
    paper = experiment.ensemble.paper
    header = ["task", "best row", "pre-training seed", "members", "single %", "ensemble %", "by members"]
    header += ["paper ensemble"] if paper else []
    body = []
    for line in found:
        members = json.loads(line["members"])
        metrics, interval = line["metric"].split(" and "), ""
        if CORRELATIONS.isdisjoint(metrics):
            low, high = wilson(line["ensemble"] / 100 * line["n"], line["n"])
            interval = f" [{low:.1f}, {high:.1f}]"
        shown = _score(line, "ensemble", interval)
        title = f"{line['title']} ({'/'.join(map(label, metrics))})" if len(metrics) > 1 else line["title"]
        cells = [title, str(line["row"]), str(line["seed"]), f"{len(members)} of {line['finetunings']}"]
        cells += [_score(line, "single"), shown, ", ".join(f"{score:.1f}" for score in members)]
        if paper:  # only for the official task
            cells.append(paper.get(line["task"], MISSING))
        body.append(cells)
    return fill("ensembles.md.j2", scores=body and as_table(header, body), parts=_parts(found))


def _score(line: Line, which: str, interval: str = "") -> str:
    """The score with an interval, then its parts in brackets (F1/EM)."""
    metrics = line["metric"].split(" and ")
    text = f"{line[which]:.1f}{interval}"
    if len(metrics) == 1:
        return text
    scores = json.loads(line[f"{which}_scores"])
    return text + in_brackets([scores[metric] for metric in metrics])


def _parts(found: Sequence[Line]) -> str:
    """Further scores of each task, such as RACE's two levels; empty if there are none."""
    body = []
    for line in found:
        single, together = (json.loads(line[f"{which}_scores"]) for which in ("single", "ensemble"))
        for name in sorted(single.keys() - set(line["metric"].split(" and "))):
            body.append([line["title"], name.replace("_", " "), f"{single[name]:.1f}", f"{together[name]:.1f}"])
    return as_table(["task", "part", "single %", "ensemble %"], body) if body else ""
