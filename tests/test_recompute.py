"""The numbers of README.md and docs/results.md, from the committed records: `python tests/test_recompute.py` writes.

After `<!-- value REPORT; METRIC; ROW -->` stands a mean over seeds with its 95 % interval over seeds and documents,
with `ROW - ROW` a difference, after `mean` the mean alone, after `table REPORT; METRIC, METRIC` a line a row, after
`paper EXPERIMENT; COLUMN; LABEL` a cell of the paper. Verdicts are the package's: after `claims CLAIM; CLAIM` those of
the scoreboard, after `said REPORT` those of a report that were measured, after `count` how many there are.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import t

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "results.md"]
KINDS = "value|mean|table|paper|claims|said|count"
MARKED = re.compile(rf"(<!-- ({KINDS}) (.+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
AXES = {"embedding_size": "E", "model.hidden_size": "H", "model.num_layers": "layers"}
HEADINGS = {"nsp_released": "NSP as released %", "last_degrees": "angle of the last layer", "blimp": "BLiMP %"}
OTHERS = {"3.11", "3.13", "0.07", "2.3", "1.1", "2.0"}  # of versions, models in general, and names of tasks
VERDICTS = re.compile(r"\b(NO|undecided|cannot tell)\b|\| yes \||\b\d+ (yes|claims|sentences)\b")


@cache
def numbers(report: str) -> pd.DataFrame:
    """A line a number of a run: row, seed, metric, value, and n and sum by document if they were kept."""
    folder, lines = ROOT / "reports" / report, []
    points = json.loads((folder / "study.json").read_text())["points"]
    for point, file in ((of, file) for of in points for file in folder.glob(f"runs/{of['run']}.json")):
        content = json.loads(file.read_text())
        record, values = content["record"], {}
        for name, score in record["scores"].items():
            values |= {name: score["value"], f"{name} segments": score.get("segments_floor")}
            values |= {name.removesuffix("_accuracy") + "_loss": score.get("loss")}
        tuned = {(its["task"], its["finetunings"][0]["weights"]): its["finetunings"] for its in content["columns"]}
        values |= {"last_degrees": content["layers"][-1]["degrees"]} if content["layers"] else {}  # of the mean token
        values |= {" ".join(key): np.median([one["best"]["main"]["value"] for one in of]) for key, of in tuned.items()}
        values |= {f"{key[0]} words": of[0]["best"]["main"].get("lexical_floor") for key, of in tuned.items()}
        ours = {axis: f"{AXES.get(axis, axis.rpartition('.')[2])}={value}" for axis, value in point["values"].items()}
        labels = {axis: label for axis, label in point["labels"].items() if label != "true"}
        row = ", ".join(ours[axis] if label[0].isdigit() else label for axis, label in labels.items())
        for metric, value in values.items():
            n, right = (record["documents"].get(metric, {}).get(key) for key in ("n", "sum"))
            n = record["documents"][n]["n"] if isinstance(n, str) else n  # the same as those of another score
            lines.append((row, point["seed"], metric, value, n, right))
    return pd.DataFrame(lines, columns=["row", "seed", "metric", "value", "n", "sum"]).dropna(subset=["value"])


def contrast(report: str, metric: str, weights: dict[str, float]) -> list[float]:
    """A level {row: 1} or a difference {row: 1, other: -1}, with its interval over seeds and documents."""
    table = numbers(report).query("metric == @metric")
    design, of_seeds = (pd.get_dummies(table[key], dtype=float) for key in ("row", "seed"))
    vector = np.array([weights.get(row, 0) for row in design])
    of_rows = [{*table.groupby("row").get_group(row)["seed"]} for row in weights]
    if not vector.sum() and 2 * len(set.intersection(*of_rows)) > max(map(len, of_rows)):  # what a seed does to all
        design = np.hstack([design, of_seeds.iloc[:, :-1].sub(of_seeds.iloc[:, -1], axis=0)])
        vector = np.append(vector, np.zeros(design.shape[1] - len(vector)))
    design, values = np.asarray(design), table["value"].to_numpy(float)
    inverse, df = np.linalg.inv(design.T @ design), max(len(values) - design.shape[1], 1)
    means = inverse @ design.T @ values
    parts, errors = [(((values - design @ means) ** 2).sum() / df * vector @ inverse @ vector, df)], np.zeros(1)
    for row, weight in weights.items():
        own = table[table["row"] == row].dropna()
        for n, right in zip(map(np.array, own["n"]), map(np.array, own["sum"]), strict=True):
            error = (right - right.sum() / n.sum() * n) / n.sum() * (1 if "loss" in metric else 100)
            errors, known = errors + error * weight / len(own), np.count_nonzero(n)
            parts[1:] = [(known / (known - 1) * (errors**2).sum(), known - 1)]
    variance = sum(part for part, _ in parts) or 1e-12  # a floor has none
    joint = variance**2 / (sum(part**2 / of_part for part, of_part in parts) or 1e-24)
    return [float(n) for n in (vector @ means, *t.interval(0.95, joint, vector @ means, np.sqrt(variance)))]


@cache
def on_scoreboard() -> list[Any]:
    """The claims of the paper with what all reports say of them."""
    from albert_lab.analysis.sentences import reports, sentences  # numbers work without the package

    return sentences(reports(ROOT / "reports"))


def of_verdicts(kind: str, spec: str, page: Path) -> str:
    """What the package says: a table of claims, the list of a report, or a count."""
    from albert_lab.analysis.analysis import read
    from albert_lab.report import wording
    from albert_lab.studies.claims import Kind

    if kind == "count":
        return wording.of_sentences(on_scoreboard())
    if kind == "said":
        said = wording.claims_of(read(ROOT / "reports" / spec))
        measured = [(claim, by) for claim, by in said if any(words.number for words in by.values())]
        lines = [f"- {wording.short(claim)}: {', '.join(map(shown, by.values()))}" for claim, by in measured]
        return "\n\n" + "\n".join(lines) + "\n\n"
    by_name = {line.claim.short: line for line in on_scoreboard()}
    lines = ["| the paper says | by loss | by tasks | measured | where |", "|---|---|---|---|---|"]
    for name in re.split(r";\s+", spec):
        found, said = by_name[name].by, wording.words_of(by_name[name])
        cells = [said[of].word if of in said else "" for of in (Kind.LOSS, Kind.TASKS)]
        cells[0] = said[Kind.NUMBER].word if Kind.NUMBER in said else cells[0]
        place = next(item for kind, item in found.items() if said[kind].number)
        link = Path(os.path.relpath(place.folder, page.parent)) / "report.md"
        number = next(words.number for words in said.values() if words.number)
        lines.append(f"| {name} | {' | '.join(cells)} | {number} | [{place.folder.name}]({link}) |")
    return "\n\n" + "\n".join(lines) + "\n\n"


def shown(words: Any) -> str:
    return f"**{words.word}** {words.kind}" + (
        f" ({words.number}{' (!)' * bool(words.warning)})" if words.number else ""
    )


def paper(experiment: str, column: str, label: str) -> str:
    """A cell of the paper, from the experiment's file."""
    content = yaml.safe_load((ROOT / "experiments" / f"{experiment}.yaml").read_text())["paper"]["rows"]
    return next(str(row[column]) for row in content if label in map(str, row.values()))


def made(kind: str, spec: str, page: Path) -> str:
    if kind in ("claims", "said", "count"):
        return of_verdicts(kind, spec, page)
    report, metric, *rows = spec.split("; ")
    if kind == "paper":
        return paper(report, metric, rows[0])
    if kind == "table":
        wanted, table = metric.split(", "), numbers(report).groupby(["row", "metric"], sort=False)["value"]
        cells = table.agg(lambda its: f"{its.mean():.1f} ± {its.std():.1f}")
        heads = [HEADINGS.get(name, re.split("[_ ]", name)[0].upper() + " %") for name in wanted]
        lines = [["row", *heads], ["---"] * (len(wanted) + 1)]
        lines += [[row, *(cells[row, name] for name in wanted)] for row in cells.index.unique("row")]
        return "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"
    weights: dict[str, float] = dict(zip(rows[0].split(" - "), (1.0, -1.0), strict=False))
    effect, *ends = (f"{number:.{2 if 'loss' in metric else 1}f}" for number in contrast(report, metric, weights))
    unit = "nats" if "loss" in metric else "degrees" if "degrees" in metric else "%" if len(weights) == 1 else "points"
    return f"{effect} {unit}" + (f" [{', '.join(ends)}]" if kind == "value" else "")


def rewritten(page: Path, text: str) -> str:
    return MARKED.sub(lambda found: found[1] + made(found[2], found[3], page) + found[5], text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_number_and_verdict_of_a_page_is_that_of_the_records_and_marked(page):
    text = page.read_text()
    assert text == rewritten(page, text)
    rest = MARKED.sub("", text)
    assert set(re.findall(r"(?<![\w.=])\d+\.\d+(?![\w.])", rest)) <= OTHERS
    assert not VERDICTS.search(re.sub("`[^`]*`", "", rest)), VERDICTS.search(rest)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rewritten(page, page.read_text()))
