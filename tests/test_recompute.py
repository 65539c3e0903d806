"""The numbers of README.md and docs/results.md, from the committed records: `python
tests/test_recompute.py` writes.

After `<!-- value REPORT; METRIC; ROW -->` stands a mean over seeds with its 95 % interval over
seeds and documents, with `ROW - ROW` a difference, after `mean` the mean alone, after `table
REPORT; METRIC, METRIC` a line a row, after `paper EXPERIMENT; COLUMN; LABEL` a cell of the paper.
Verdicts are the package's: after `claims CLAIM; CLAIM` those of the scoreboard, after `said REPORT`
those of a report that were measured, after `count` how many there are.
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
from scipy.special import digamma, polygamma
from scipy.stats import t

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "results.md"]
KINDS = "value|mean|table|paper|claims|said|count"
MARKED = re.compile(rf"(<!-- ({KINDS}) (.+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
AXES = {"embedding_size": "E", "model.hidden_size": "H", "model.num_layers": "layers"}
HEADINGS = {
    "nsp_released": "NSP as released %",
    "last_degrees": "angle of the last layer",
    "blimp": "BLiMP %",
}
# of versions, models in general, and names of tasks
OTHERS = {"3.11", "3.13", "0.07", "2.3", "1.1", "2.0"}
VERDICTS = re.compile(r"\b(NO|undecided|cannot tell)\b|\| yes \||\b\d+ (yes|claims|sentences)\b")


@cache
def numbers(report: str) -> pd.DataFrame:
    """A line a number of a run: row, seed, metric, value, and n and sum by document if they were
    kept.
    """
    folder, lines = ROOT / "reports" / report, []
    points = json.loads((folder / "study.json").read_text())["points"]
    for point, file in (
        (of, file) for of in points for file in folder.glob(f"runs/{of['run']}.json")
    ):
        content = json.loads(file.read_text())
        record, values = content["record"], {}
        for name, score in record["scores"].items():
            values |= {name: score["value"], f"{name} segments": score.get("segments_floor")}
            values |= {name.removesuffix("_accuracy") + "_loss": score.get("loss")}
        tuned = {
            (its["task"], its["finetunings"][0]["weights"]): its["finetunings"]
            for its in content["columns"]
        }
        # of the mean token
        values |= {"last_degrees": content["layers"][-1]["degrees"]} if content["layers"] else {}
        values |= {
            " ".join(key): np.median([one["best"]["main"]["value"] for one in of])
            for key, of in tuned.items()
        }
        values |= {
            f"{key[0]} words": of[0]["best"]["main"].get("lexical_floor")
            for key, of in tuned.items()
        }
        ours = {
            axis: f"{AXES.get(axis, axis.rpartition('.')[2])}={value}"
            for axis, value in point["values"].items()
        }
        labels = {axis: label for axis, label in point["labels"].items() if label != "true"}
        row = ", ".join(
            ours[axis] if label[0].isdigit() else label for axis, label in labels.items()
        )
        for metric, value in values.items():
            n, right = (record["documents"].get(metric, {}).get(key) for key in ("n", "sum"))
            # the same as those of another score
            n = record["documents"][n]["n"] if isinstance(n, str) else n
            lines.append(
                (
                    row,
                    point["seed"],
                    point["run"],
                    trunk(folder, point["run"]),
                    metric,
                    value,
                    n,
                    right,
                )
            )
    columns = ["row", "seed", "run", "trunk", "metric", "value", "n", "sum"]
    return pd.DataFrame(lines, columns=columns).dropna(subset=["value"])


def trunk(folder: Path, run: str) -> str:
    """The run that a run goes back to."""
    while (file := folder / "runs" / f"{run}.json").exists():
        start = json.loads(file.read_text())["record"].get("start_from")
        if not start:
            break
        run = start["run"]
    return run


def start(report: str) -> str | None:
    """The name of the trained encoder that all rows of a report start from; None if they start from
    nothing.
    """
    found = re.search(
        r"^start_from: (\w[\w.-]*)$",
        (ROOT / "reports" / report / "experiment.yaml").read_text(),
        re.M,
    )
    return found and found[1]


@cache
def variances(report: str) -> pd.DataFrame:
    """The variance over seeds of each row of a scale, text and start, by metric; that of the same
    runs once.
    """
    tables = []
    for folder in sorted((ROOT / "reports" / report).parent.glob("*/")):
        name = str(folder.relative_to(ROOT / "reports"))
        if start(name) == start(report):
            tables.append(numbers(name).assign(table=name))
    rows: Any = pd.concat(tables).groupby(["table", "row", "metric"])
    lines = rows.agg(
        runs=("run", tuple), variance=("value", "var"), seeds=("value", "size")
    ).reset_index()
    return lines[lines["variance"] > 1e-12].drop_duplicates(["metric", "runs"])


def typical(report: str, metric: str) -> float:
    """The geometric mean of the variances of a scale, of which each row takes a quarter of a degree
    of freedom.
    """
    rows = variances(report).query("metric == @metric")
    if rows.empty:  # a floor has no spread
        return 0.0
    half = (rows["seeds"].to_numpy(float) - 1) / 2
    logarithms = np.log(rows["variance"].to_numpy(float)) - digamma(half) + np.log(half)
    assert len(rows) == 1 or logarithms.var(ddof=1) - polygamma(1, half).mean() < polygamma(
        1, 0.125
    )
    return float(np.exp(logarithms.mean()))


def contrast(report: str, metric: str, weights: dict[str, float]) -> list[float]:
    """A level {row: 1} or a difference {row: 1, other: -1}, with its interval over seeds and
    documents.
    """
    table: Any = numbers(report)
    table = table[table["metric"] == metric].sort_values("trunk")
    rows = {row: table[table["row"] == row] for row in weights}
    values = {row: weight * rows[row]["value"].to_numpy(float) for row, weight in weights.items()}
    # [seeds, documents]
    errors = {row: weights[row] * residuals(own, metric) for row, own in rows.items()}
    # Two rows that continue the same trunks are one, of their differences.
    if len({tuple(own["trunk"]) for own in rows.values()}) < len(rows):
        values, errors = ({"both": sum(parts.values(), np.zeros(1))} for parts in (values, errors))
    effect = sum(float(value.mean()) for value in values.values())
    documents = sum((error.mean(0) for error in errors.values()), np.zeros(1))
    known = np.count_nonzero(rows[next(iter(rows))]["n"].iloc[0]) if documents.any() else 2
    of_documents = known / (known - 1) * float((documents**2).sum())
    variance, uncertain = of_documents, of_documents**2 / (known - 1)
    for row, value in values.items():
        seeds = len(value)
        own, df = (float(value.var(ddof=1)), seeds - 1.0) if seeds > 1 else (0.0, 1.0)
        if seeds > 1 and row != "both":
            own, df = (df * own + 0.25 * typical(report, metric)) / (df + 0.25), df + 0.25
        chance = known / (known - 1) * float(errors[row].var(0, ddof=1).sum()) if seeds > 1 else 0.0
        variance += max(0.0, own - chance) / seeds
        uncertain += (own / seeds) ** 2 / df
    if not variance:  # a floor has none
        return [effect] * 3
    low, high = t.interval(0.95, variance**2 / uncertain, effect, np.sqrt(variance))
    return [effect, float(low), float(high)]


def residuals(rows: pd.DataFrame, metric: str) -> np.ndarray:
    """What each document adds to the error of each score; of scores that were not kept by document
    nothing.
    """
    lines = zip(rows["n"], rows["sum"], strict=True)
    shares = [
        (np.array(right) - sum(right) / sum(n) * np.array(n)) / sum(n)
        for n, right in lines
        if right is not None
    ]
    return np.array(shares or np.zeros((len(rows), 1))) * (1 if "loss" in metric else 100)


@cache
def on_scoreboard() -> tuple[list[Any], list[Any]]:
    """The claims of the paper with what all reports say of them, and those of a trained encoder."""
    # numbers work without the package
    from albert_lab.analysis.sentences import of_encoders, reports, sentences

    found = reports(ROOT / "reports")
    return sentences(found), of_encoders(found)


def of_verdicts(kind: str, spec: str, page: Path) -> str:
    """What the package says: a table of claims, the list of a report, or a count."""
    from albert_lab.analysis.analysis import read
    from albert_lab.report import wording
    from albert_lab.studies.claims import Kind

    if kind == "count":
        return wording.of_sentences(on_scoreboard()[0])
    if kind == "said":
        said = wording.claims_of(read(ROOT / "reports" / spec))
        measured = [(claim, by) for claim, by in said if any(words.number for words in by.values())]
        lines = [
            f"- {wording.short(claim)}: {', '.join(map(shown, by.values()))}"
            for claim, by in measured
        ]
        return "\n\n" + "\n".join(lines) + "\n\n"
    from_scratch, of_encoder = ({line.claim.short: line for line in of} for of in on_scoreboard())
    lines = ["| claim | by loss | by tasks | measured | where |", "|---|---|---|---|---|"]
    for name in re.split(r";\s+", spec):
        line = from_scratch.get(name) or of_encoder[name]
        found, said = line.by, wording.words_of(line)
        cells = [said[of].word if of in said else "" for of in (Kind.LOSS, Kind.TASKS)]
        cells[0] = said[Kind.NUMBER].word if Kind.NUMBER in said else cells[0]
        place = next(item for kind, item in found.items() if said[kind].number)
        link = Path(os.path.relpath(place.folder, page.parent)) / "report.md"
        number = next(words.number for words in said.values() if words.number)
        lines.append(f"| {name} | {' | '.join(cells)} | {number} | [{place.folder.name}]({link}) |")
    return "\n\n" + "\n".join(lines) + "\n\n"


def shown(words: Any) -> str:
    number = f" ({words.number})" if words.number else ""
    return f"**{words.word}** {words.kind}{number}"


def paper(experiment: str, column: str, label: str) -> str:
    """A cell of the paper, from the experiment's file."""
    content = yaml.safe_load((ROOT / "experiments" / f"{experiment}.yaml").read_text())["paper"][
        "rows"
    ]
    return next(str(row[column]) for row in content if label in map(str, row.values()))


def made(kind: str, spec: str, page: Path) -> str:
    if kind in ("claims", "said", "count"):
        return of_verdicts(kind, spec, page)
    report, metric, *rows = re.split(r";\s+", spec)
    if kind == "paper":
        return paper(report, metric, rows[0])
    if kind == "table":
        wanted, table = (
            metric.split(", "),
            numbers(report).groupby(["row", "metric"], sort=False)["value"],
        )
        cells = table.agg(lambda its: f"{its.mean():.1f} ± {its.std():.1f}")
        heads = [HEADINGS.get(name, re.split("[_ ]", name)[0].upper() + " %") for name in wanted]
        lines = [["row", *heads], ["---"] * (len(wanted) + 1)]
        lines += [
            [row, *(cells[row, name] for name in wanted)] for row in cells.index.unique("row")
        ]
        return "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"
    weights: dict[str, float] = dict(zip(rows[0].split(" - "), (1.0, -1.0), strict=False))
    digits = 2 if "loss" in metric else 1
    effect, *ends = (
        f"{round(number, digits) + 0.0:.{digits}f}" for number in contrast(report, metric, weights)
    )
    unit = (
        "nats"
        if "loss" in metric
        else "degrees"
        if "degrees" in metric
        else "%"
        if len(weights) == 1
        else "points"
    )
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
